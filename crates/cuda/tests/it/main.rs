//! The bindings of the driver, through a stand-in that is compiled here.

mod driver;
mod runtime;
mod stub;
