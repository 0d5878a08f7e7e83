//! One file for each code.

use crate::page::{Example, FoundBy};

macro_rules! pages {
    ($($file:ident $code:literal $found_by:ident;)*) => {
        $(mod $file;)*
        /// Every page, in the order of the codes.
        pub const EXAMPLES: &[Example] = &[$(Example {
            code: $code,
            found_by: FoundBy::$found_by,
            broken: $file::broken,
            repaired: $file::repaired,
            source: include_str!(concat!(stringify!($file), ".rs")),
        }),*];
    };
}

pages! {
    r6_bulk "R6.bulk" Checker;
}
