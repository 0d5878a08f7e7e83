//! Runs on the simulator, and on a stand-in for the driver.

mod child;
mod configs;
mod cudarc;
mod ms_deform_attn;
mod nvfp4;
mod products;
mod rows;
mod shipped;
mod simulator;
mod stand_in;
