//! Whole pipelines on the CPU executor, written with the public builder: rings of every kind, trip
//! count, timing and cluster size; turns, queues, flags, rasterization, GEMMs, fragments, outboxes,
//! stream-K; and faulty pipelines, reported at the right source line.

mod accumulators;
mod clusters;
mod copies;
mod faulty;
mod gemms;
mod harness;
mod matrices;
mod operands;
mod outboxes;
mod prologue_barriers;
mod rasterization;
mod registers;
mod rings;
mod slots;
mod stream_k;
mod tiles;
mod waits;
