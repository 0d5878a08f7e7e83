//! Prints checked Warpline kernels as PTX and reads what ptxas says of them
