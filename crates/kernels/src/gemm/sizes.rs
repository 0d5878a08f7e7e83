//! Shared memory of a config, as the builder allocates it.

use super::config::{Config, Exchange, Operands, Schedule, Staging, TileAssignment};
use super::pack::Pack;
use super::problem::{Class, EpilogueOps};
use super::schedule;
use super::tile_scheduler::Cluster;
use crate::memo::Memo;
use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::builder::Resources;

/// Bytes of shared memory that every config leaves free. The heuristic is fitted to kernels with this
/// reserve; without it some would get one more stage and differ from the measured programs.
pub(super) const RESERVED_BYTES: u32 = 1024;

/// Returns the shared memory of a CTA in bytes; the builder computes it once per kernel.
fn shared_bytes(class: &Class, c: &Config, target: &Target) -> Result<u32, FamilyError> {
    static CACHE: Memo<(&str, Class, Config), u32> = Memo::new();
    let class = Class {
        // No epilogue op has shared memory of its own.
        epilogue: EpilogueOps::default(),
        ..*class
    };
    let config = Config {
        shared_bytes: 0,
        ctas: 0,
        cache_hints: false,
        pack: Pack::None,
        tail_n: None,
        ..*c
    };
    CACHE.get((target.name, class, config), || {
        let resources = Resources::of(target, |k| schedule::declare(k, &class, &config))?;
        Ok(resources.shared_bytes)
    })
}

/// Returns the staging tiles that a consumer may have, widest first.
fn staging(class: &Class, c: &Config) -> Vec<Staging> {
    let size = class.out.dtype().bytes() as u32;
    let staging = |width, stages| Staging { width, stages };
    if c.schedule.exchanges_in_memory() {
        // A staging tile holds the columns that a CTA adds at a time.
        let tile = c.mma_tile()[1];
        let narrow = [32, 16, 8]
            .into_iter()
            .find(|width| tile.is_multiple_of(*width));
        return vec![staging(narrow.unwrap_or(8), 2)];
    }
    if c.swap_ab() {
        // A transposed store takes blocks of 16 × 16.
        let divides_tile = |width: &u32| c.tile_m.is_multiple_of(*width) && *width < c.tile_m;
        let narrow = [64, 48, 32, 16].into_iter().find(divides_tile);
        let narrow = narrow.map(|width| [staging(width, 2), staging(width, 1)]);
        let whole = std::iter::once(staging(c.tile_m, 1));
        return whole.chain(narrow.into_iter().flatten()).collect();
    }
    if !c.tile_n.is_multiple_of(16) && size == 4 {
        // A row of 8 columns is one swizzle span.
        return vec![staging(8, 2), staging(8, 1)];
    }
    if !c.tile_n.is_multiple_of(16) {
        // These tiles have no swizzle. With 16-bit elements a row has an odd number of 16-byte units,
        // so the tiles cause no bank conflicts.
        return vec![staging(c.tile_n, 2), staging(c.tile_n, 1), staging(8, 1)];
    }
    let wide = [128, 64, 32].map(|bytes| [2, 1].map(|stages| staging(bytes / size, stages)));
    let wide = wide.as_flattened().iter().copied();
    let divides_tile = |s: &Staging| c.tile_n.is_multiple_of(s.width);
    wide.filter(divides_tile).chain([staging(16, 1)]).collect()
}

/// With swap-AB, narrow staging tiles make room for at most this many stages: further ones gain less.
const MAX_STAGES_OF_NARROW: u32 = 4;

/// Returns whether a kernel with `bytes` of shared memory fits.
fn fits(bytes: u32, target: &Target) -> bool {
    bytes + RESERVED_BYTES <= target.shared_bytes
}

/// Returns the config with the widest staging tiles that fit beside its ring, or with the narrowest if
/// none fit.
fn with_staging(class: &Class, c: &Config, target: &Target) -> Result<Config, FamilyError> {
    // For split-K, select the staging tiles as if the kernel had no exchange ring: the ring then costs
    // a stage, and the staging tiles stay wide.
    let schedule = match c.schedule {
        Schedule::SplitK {
            consumers,
            swap_ab,
            raster,
            exchange: Exchange::Cluster,
            ..
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

/// Returns the config with its stages. If `stages` is 0, selects the largest number, at most
/// `max_stages`, that leaves room for wide staging tiles.
pub(super) fn with_stages(
    class: &Class,
    c: &Config,
    max_stages: u32,
    target: &Target,
) -> Result<Config, FamilyError> {
    if c.stages > 0 {
        return with_staging(class, c, target);
    }
    let with_stages = |stages: u32| Config { stages, ..*c };
    let is_narrow = |c: &Config| match c.tile_n % 32 {
        _ if c.schedule.exchanges_in_memory() => false,
        _ if c.swap_ab() => c.staging.width < c.tile_m && c.stages > MAX_STAGES_OF_NARROW,
        0 => c.staging.width * (class.out.dtype().bytes() as u32) < 64,
        _ => c.staging.width < c.tile_n && !c.tile_n.is_multiple_of(16),
    };
    let narrowest = staging(class, c).pop().unwrap_or(c.staging);
    let bytes = |stages: u32| {
        let config = Config {
            staging: narrowest,
            ..with_stages(stages)
        };
        shared_bytes(class, &config, target)
    };
    let (two_stages, three_stages) = (bytes(2)?, bytes(3)?);
    let free_bytes = target
        .shared_bytes
        .saturating_sub(RESERVED_BYTES + two_stages);
    // Each further stage has the size of the third.
    let more_stages = free_bytes / (three_stages - two_stages).max(1);
    for stages in (3..=max_stages.min(2 + more_stages)).rev() {
        let config = with_staging(class, &with_stages(stages), target)?;
        if fits(config.shared_bytes, target) && !is_narrow(&config) {
            return Ok(config);
        }
    }
    with_staging(class, &with_stages(2), target)
}
