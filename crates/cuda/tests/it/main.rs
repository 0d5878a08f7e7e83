//! Tests of the driver bindings against a stub driver that the tests compile.

mod driver;
mod runtime;
mod stub;
