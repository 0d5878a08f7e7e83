//! The warpline command line, as a library for authors of kernels
