//! The kernel of a class and a config.

use super::config::{Config, Form};
use super::lanes::Lanes;
use super::line::Line;
use super::problem::Class;
use super::texel::{Number, Texel};
use super::{boxes, plain, specialized};
use half::{bf16, f16};
use warpline_family::float::Float;
use warpline_ir::build::*;

/// Declares the parameters, rings and roles.
pub(super) fn roles(k: Builder, class: &Class, c: &Config, lanes: Lanes) {
    match class.value {
        Float::F32 => with_values::<f32>(k, class, c, lanes),
        Float::F16 => with_values::<f16>(k, class, c, lanes),
        Float::Bf16 => with_values::<bf16>(k, class, c, lanes),
    }
}

fn with_values<E: Texel>(k: Builder, class: &Class, c: &Config, lanes: Lanes) {
    match class.point {
        Float::F32 => with_points::<E, f32>(k, class, c, lanes),
        Float::F16 => with_points::<E, f16>(k, class, c, lanes),
        Float::Bf16 => with_points::<E, bf16>(k, class, c, lanes),
    }
}

fn with_points<E: Texel, N: Number>(k: Builder, class: &Class, c: &Config, lanes: Lanes) {
    let line = Line::<E, N>::declare(k, class, c, lanes);
    match c.form {
        Form::Plain => plain::roles(k, &line),
        Form::Specialized => specialized::roles(k, &line),
        Form::Boxes => boxes::roles(k, &line),
    }
}
