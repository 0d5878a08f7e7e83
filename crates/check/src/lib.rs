//! Decides whether a Warpline kernel may be printed or launched
