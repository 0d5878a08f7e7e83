//! The names that every schedule imports.

pub(super) use super::{
    CONSUMERS, consumer, declare_roles, exchange_rings, multicast, partials_name, producer,
    producer_over, send,
};
pub(super) use crate::gemm::context::GemmContext;
pub(super) use crate::gemm::epilogue::Out;
pub(super) use crate::gemm::mainloop::{LoadBy, LoadPart, MainloopOrder};
pub(super) use warpline_ir::Element;
pub(super) use warpline_ir::builder::*;
