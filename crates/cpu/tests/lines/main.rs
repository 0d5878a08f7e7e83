//! Whole assembly lines on the CPU, written with the public builder: rings
//! under every discipline, trip count, timing and cluster size; turns, queues,
//! flags, orders, products; and lines that are wrong, found at the right line.

mod clusters;
mod harness;
mod orders;
mod products;
mod rings;
mod tiles;
mod waits;
mod wrong;
