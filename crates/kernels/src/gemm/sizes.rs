//! Shared memory of a config, as the builder allocates it.

use super::config::{Config, Operands, Schedule, Staging, TileAssignment};
use super::problem::{Class, EpilogueOps};
use super::schedule;
use super::tile_scheduler::Cluster;
use crate::memo::Memo;
use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::builder::Resources;

/// Bytes of shared memory that every config leaves free. The heuristic was fitted to such kernels;
/// without the reserve some would get one more stage and differ from the measured programs.
pub(super) const RESERVED_BYTES: u32 = 1024;

/// Returns the shared memory of a CTA in bytes; the builder computes it once per kernel.
fn shared_bytes(class: &Class, c: &Config, target: &Target) -> Result<u32, FamilyError> {
    static KNOWN: Memo<(&str, Class, Config), u32> = Memo::new();
    let class = Class {
        // No epilogue op has shared memory of its own.
        epilogue: EpilogueOps::default(),
        ..*class
    };
    let config = Config {
        shared_bytes: 0,
        ctas: 0,
        cache_hints: false,
        tail_n: None,
        ..*c
    };
    KNOWN.get((target.name, class, config), || {
        let resources = Resources::of(target, |k| schedule::declare(k, &class, &config))?;
        Ok(resources.shared_bytes)
    })
}

/// Returns the staging tiles that a consumer may have, widest first.
fn staging(class: &Class, c: &Config) -> Vec<Staging> {
    let size = class.out.dtype().bytes() as u32;
    let some = |width, stages| Staging { width, stages };
    if c.swap_ab() {
        return vec![some(c.rows(), 1)];
    }
    if !c.tile_n.is_multiple_of(16) {
        // Rows of an odd number of 16-byte units are in different banks without a swizzle.
        return vec![some(c.tile_n, 2), some(c.tile_n, 1), some(8, 1)];
    }
    let wide = [128, 64, 32].map(|bytes| [2, 1].map(|stages| some(bytes / size, stages)));
    let wide = wide.as_flattened().iter().copied();
    let divides = |s: &Staging| c.tile_n.is_multiple_of(s.width);
    wide.filter(divides).chain([some(16, 1)]).collect()
}

/// Does a kernel with `bytes` of shared memory fit?
fn fits(bytes: u32, target: &Target) -> bool {
    bytes + RESERVED_BYTES <= target.shared_bytes
}

/// Returns the config with the widest staging tiles that fit beside its ring, or else with the
/// narrowest.
fn with_staging(class: &Class, c: &Config, target: &Target) -> Result<Config, FamilyError> {
    // Split-K gives up a stage for the exchanged accumulators, not the width of its stores: judge
    // the staging tiles without the exchange ring.
    let schedule = match c.schedule {
        Schedule::SplitK {
            consumers,
            swap_ab,
            raster,
        } => Schedule::Cooperative {
            consumers,
            operands: match swap_ab {
                true => Operands::Swapped,
                false => Operands::Ab(Cluster::One),
            },
            tiles: TileAssignment::Static(raster),
        },
        same => same,
    };
    let mut config = *c;
    for staging in staging(class, c) {
        config.staging = staging;
        let without_exchange = Config { schedule, ..config };
        if fits(shared_bytes(class, &without_exchange, target)?, target) {
            break;
        }
    }
    config.shared_bytes = shared_bytes(class, &config, target)?;
    Ok(config)
}

/// Returns the config with its stages. If `stages` is 0, picks the most, up to `most`, that leave
/// room for wide staging tiles.
pub(super) fn with_stages(
    class: &Class,
    c: &Config,
    most: u32,
    target: &Target,
) -> Result<Config, FamilyError> {
    if c.stages > 0 {
        return with_staging(class, c, target);
    }
    let with = |stages: u32| Config { stages, ..*c };
    let narrow = |c: &Config| match c.tile_n % 32 {
        0 => c.staging.width * (class.out.dtype().bytes() as u32) < 64,
        _ => c.staging.width < c.tile_n && !c.tile_n.is_multiple_of(16),
    };
    // Every further stage has the size of the third.
    let narrowest = staging(class, c).pop().unwrap_or(c.staging);
    let bytes = |stages: u32| {
        let config = Config {
            staging: narrowest,
            ..with(stages)
        };
        shared_bytes(class, &config, target)
    };
    let (two, three) = (bytes(2)?, bytes(3)?);
    let more = target.shared_bytes.saturating_sub(RESERVED_BYTES + two) / (three - two).max(1);
    for stages in (3..=most.min(2 + more)).rev() {
        let config = with_staging(class, &with(stages), target)?;
        if fits(config.shared_bytes, target) && (c.swap_ab() || !narrow(&config)) {
            return Ok(config);
        }
    }
    with_staging(class, &with(2), target)
}
