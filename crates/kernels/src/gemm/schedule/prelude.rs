//! What schedules are written with.

pub(super) use super::{
    CONSUMERS, consumer, handed, in_order, multicast, partials, producer, producer_over,
};
pub(super) use crate::gemm::context::GemmContext;
pub(super) use crate::gemm::epilogue::Out;
pub(super) use crate::gemm::mainloop::{MainloopOrder, Part};
pub(super) use warpline_ir::Element;
pub(super) use warpline_ir::build::*;
