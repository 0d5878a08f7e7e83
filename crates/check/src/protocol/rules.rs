//! The rules of the protocol, by the names that this module uses.

use crate::codes::{self, Rule};

macro_rules! rules {
    ($($name:ident = $code:ident;)*) => {
        $(
            #[doc = concat!("`codes::", stringify!($code), "`.")]
            pub const $name: Rule = codes::$code;
        )*
        /// Every rule of the protocol.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    ARRIVALS = R1_ARRIVALS;
    PHASE = R1_PHASE;
    BYTES = R2_BYTES;
    PARITY = R3_PARITY;
    ORDER = R3_ORDER;
    TRIPS = R4_TRIPS;
    PROXY_WRITE = R5_WRITE;
    PROXY_READ = R5_READ;
    BULK = R6_BULK;
    RELEASE = R7_RELEASE;
    START = R8_START;
    EXIT = R8_EXIT;
    SCOPE = R8_SCOPE;
    AGREE = R8_AGREE;
    COUNT = R10_COUNT;
    RECYCLE = R10_RECYCLE;
    INIT = R11_INIT;
    ALIAS = R12_ALIAS;
    BOUNDS = R12_BOUNDS;
    LANES = R15_LANES;
    LATE = R15_LATE;
    WHOLE = R15_WHOLE;
    CYCLE = R17_CYCLE;
    RUN = R17_RUN;
    UNKNOWN = U_UNKNOWN;
    STATES = U_STATES;
}
