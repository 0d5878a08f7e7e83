//! The Warpline kernel library: one file per family
