//! Tests of the generator, the brute-force machine, and a short campaign.

mod brute;
mod campaign;
mod ops;
