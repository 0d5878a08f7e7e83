//! The kernel of a class and a config.

use super::config::{Config, Schedule};
use super::context::DeformContext;
use super::lanes::LaneLayout;
use super::problem::Class;
use super::texel::{PointElement, Texel};
use super::{boxes, plain, specialized};
use half::{bf16, f16};
use warpline_family::float::FloatType;
use warpline_ir::builder::*;

/// Declares parameters, rings and roles.
pub(super) fn roles(k: Builder, class: &Class, c: &Config, lanes: LaneLayout) {
    match class.value {
        FloatType::F32 => with_values::<f32>(k, class, c, lanes),
        FloatType::F16 => with_values::<f16>(k, class, c, lanes),
        FloatType::Bf16 => with_values::<bf16>(k, class, c, lanes),
    }
}

fn with_values<E: Texel>(k: Builder, class: &Class, c: &Config, lanes: LaneLayout) {
    match class.point {
        FloatType::F32 => with_points::<E, f32>(k, class, c, lanes),
        FloatType::F16 => with_points::<E, f16>(k, class, c, lanes),
        FloatType::Bf16 => with_points::<E, bf16>(k, class, c, lanes),
    }
}

fn with_points<E: Texel, N: PointElement>(
    k: Builder,
    class: &Class,
    c: &Config,
    lanes: LaneLayout,
) {
    let cx = DeformContext::<E, N>::declare(k, class, c, lanes);
    match c.schedule {
        Schedule::Plain => plain::roles(k, &cx),
        Schedule::Specialized => specialized::roles(k, &cx),
        Schedule::Boxes => boxes::roles(k, &cx),
    }
}
