//! The stand-in for the driver, for tests of the whole command.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use warpline_testkit::stand_in;

/// A folder in which the loader finds the stand-in.
pub(crate) static STAND_IN: LazyLock<PathBuf> =
    LazyLock::new(|| stand_in::folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("stand-in")));
