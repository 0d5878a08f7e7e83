//! Schedules: the order of the products and the softmax of a consumer.
//!
//! | where | order |
//! |---|---|
//! | `cooperative` | scores, softmax, values, block by block |
//! | `ping_pong` | the scores of a block beside the values of the block before |

mod cooperative;
mod ping_pong;

use super::config::{Config, Schedule};
use super::context::{Context, Half16};
use super::problem::{Class, ElementType};
use crate::roles::declare_roles;
use half::{bf16, f16};
use warpline_ir::builder::*;

/// Declares the kernel of a class and a config.
pub(super) fn declare(k: Builder, class: &Class, c: &Config) {
    match class.dtype {
        ElementType::F16 => roles::<f16>(k, class, c),
        ElementType::Bf16 => roles::<bf16>(k, class, c),
    }
}

fn roles<T: Half16>(k: Builder, class: &Class, c: &Config) {
    let context = Context::<T>::declare(k, class, c);
    let consumers = || match c.schedule {
        Schedule::Cooperative => context.consumers(k, cooperative::tile),
        Schedule::PingPong => context.consumers(k, ping_pong::tile),
    };
    declare_roles(c.registers(), || context.load(k), consumers);
}
