//! Fits the model that selects the config of a GEMM.
//!
//! `fit measure` times many configs of many random problems on a GPU and writes a table. `fit constants`
//! fits the constants of the model to a table, and reports how much slower the selected config is than the
//! fastest measured one, also for problems that were held out (k-fold). The table is
//! `docs/perf/data/gemm-configs.json`.
//!
//! | where | what |
//! |---|---|
//! | `shapes` | random problems |
//! | `table` | the table of timings |
//! | `measure` | timings on a GPU |
//! | `samples` | the problems of a table with their configs |
//! | `loss` | the slowdown of the selected configs |
//! | `search` | the search for constants |

pub mod loss;
pub mod measure;
pub mod samples;
pub mod search;
pub mod shapes;
pub mod table;
