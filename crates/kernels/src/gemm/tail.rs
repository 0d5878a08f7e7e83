//! Tiles of two widths: whole waves of wide ones, and behind them a last wave of narrow ones.
//!
//! A wave that is half empty takes as long as a full one. Where the last one
//! would be, its columns are given to a second kernel, whose tiles are so
//! narrow that all SMs have one.

use super::config::{Choice, Config, Tiles};
use super::problem::{Layout, Problem};
use std::ops::Range;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// What one kernel does of a product.
pub(super) struct Part {
    /// How; all its tiles are alike.
    pub(super) config: Config,
    /// Its columns of C.
    pub(super) cols: Range<u32>,
}

impl Config {
    /// Columns of C in whole waves of wide tiles, a multiple of 16.
    fn head(&self, p: &Problem) -> u32 {
        let [tall, wide] = self.tiles(p);
        let waves = tall * wide / u64::from(self.ctas.max(1));
        let tiles = (waves * u64::from(self.ctas) / tall.max(1)).min(wide) as u32;
        let whole = if self.tile_n.is_multiple_of(16) { 1 } else { 2 };
        (tiles / whole * whole * self.tile_n).min(p.n)
    }

    /// The kernels of the product, each with its columns.
    pub(super) fn parts(&self, p: &Problem, target: &Target) -> Result<Vec<Part>, FamilyError> {
        let alike = Self {
            tail_n: None,
            ..*self
        };
        let Some(tail_n) = self.tail_n else {
            return Ok(vec![Part {
                config: alike,
                cols: 0..p.n,
            }]);
        };
        let head = self.head(p);
        let rest = Problem {
            n: p.n - head,
            ..p.clone()
        };
        let narrow = Choice {
            tile_n: Some(tail_n),
            tail_n: None,
            stages: None,
            load_registers: None,
            math_registers: None,
            ..Choice::from(self).without_grid()
        };
        let mut parts = Vec::new();
        if head > 0 {
            parts.push(Part {
                config: alike,
                cols: 0..head,
            });
        }
        if head < p.n {
            let config = Self::new(&rest, &narrow, &Choice::default(), target)?;
            parts.push(Part {
                config,
                cols: head..p.n,
            });
        }
        Ok(parts)
    }

    /// The narrowest tail that leaves one wave for the columns behind whole
    /// waves; none where there is no such, or what it saves is not worth a kernel.
    pub(super) fn narrow_tail(&self, p: &Problem) -> Option<u32> {
        let head = self.head(p);
        let [tall, _] = self.tiles(p);
        let side_by_side = (u64::from(self.ctas) / tall.max(1)) as u32;
        let unit = 16 / p.class().factors();
        if head == 0 || head == p.n || side_by_side == 0 {
            return None;
        }
        let width = (p.n - head).div_ceil(side_by_side).next_multiple_of(unit);
        (3 * width <= 2 * self.tile_n).then_some(width.max(2 * unit))
    }

    /// Refuses a tail where the columns of C are not divided by tiles alone.
    pub(super) fn check_tail(&self, p: &Problem, target: &Target) -> Result<(), FamilyError> {
        if self.tail_n.is_none() {
            return Ok(());
        }
        let refuse = |text: &str| Err(FamilyError::Config(text.into()));
        let dynamic = matches!(self.schedule.tiles(), Tiles::Dynamic(_));
        let split = self.schedule.split_k() > 1 || self.schedule.is_stream_k();
        if self.swap_ab() || split || dynamic {
            return refuse(
                "--tail-n narrows the last wave of tiles: it goes with neither --swap, --split-k, --stream-k \
                 nor --order dynamic",
            );
        }
        if !p.class().epilogue.reductions().is_empty() {
            return refuse("--tail-n divides C: not with --row-sums, --col-sums and --amax");
        }
        if p.batch.is_some() || p.layout == Layout::Kn {
            return refuse(
                "--tail-n is for one product with B as [N, K]: neither --batch nor --layout kn",
            );
        }
        self.parts(p, target).map(|_| ())
    }
}
