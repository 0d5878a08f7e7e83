//! Whole assembly lines on the CPU, written with the public builder: rings
//! under every discipline, trip count, timing and cluster size; turns, queues,
//! flags, orders, products, register tiles, outboxes, streams; and lines that
//! are wrong, found at the right line.

mod accumulators;
mod clusters;
mod copies;
mod harness;
mod matrices;
mod meetings;
mod operands;
mod orders;
mod outboxes;
mod products;
mod registers;
mod rings;
mod slots;
mod streams;
mod tiles;
mod waits;
mod wrong;
