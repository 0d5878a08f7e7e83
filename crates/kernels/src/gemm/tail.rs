//! Tiles of two widths: full waves of wide tiles, then one last wave of narrow tiles.
//!
//! A half-empty wave takes as long as a full one. A second kernel therefore computes the columns of
//! the partial wave with tiles narrow enough that every SM gets one.

use super::config::{Choice, Config, TileAssignment};
use super::pack::Pack;
use super::problem::{OperandLayout, Problem};
use std::ops::Range;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// The columns of C that one kernel computes, and its config.
pub(super) struct SubGemm {
    /// The config; all tiles have the same shape.
    pub(super) config: Config,
    /// The columns of C.
    pub(super) cols: Range<u32>,
}

impl Config {
    /// Returns the columns of C in full waves of wide tiles, a multiple of 16.
    fn head_columns(&self, p: &Problem) -> u32 {
        let [m_tiles, n_tiles] = self.tiles(p);
        let waves = m_tiles * n_tiles / u64::from(self.ctas.max(1));
        let tiles = (waves * u64::from(self.ctas) / m_tiles.max(1)).min(n_tiles) as u32;
        let tiles_per_unit = if self.tile_n.is_multiple_of(16) { 1 } else { 2 };
        (tiles / tiles_per_unit * tiles_per_unit * self.tile_n).min(p.n)
    }

    /// Returns the kernels of the GEMM after packing, each with its columns.
    pub(super) fn sub_gemms(
        &self,
        p: &Problem,
        target: &Target,
    ) -> Result<Vec<SubGemm>, FamilyError> {
        // The operands of `p` are packed already.
        let uniform = Self {
            tail_n: None,
            pack: Pack::None,
            ..*self
        };
        let Some(tail_n) = self.tail_n else {
            return Ok(vec![SubGemm {
                config: uniform,
                cols: 0..p.n,
            }]);
        };
        let head = self.head_columns(p);
        let tail_problem = Problem {
            n: p.n - head,
            ..p.clone()
        };
        let tail_choice = Choice {
            tile_n: Some(tail_n),
            tail_n: None,
            pack: None,
            stages: None,
            load_registers: None,
            math_registers: None,
            ..Choice::from(self).without_grid()
        };
        let mut sub_gemms = Vec::new();
        if head > 0 {
            sub_gemms.push(SubGemm {
                config: uniform,
                cols: 0..head,
            });
        }
        if head < p.n {
            let config = Self::new(&tail_problem, &tail_choice, &Choice::default(), target)?;
            sub_gemms.push(SubGemm {
                config,
                cols: head..p.n,
            });
        }
        Ok(sub_gemms)
    }

    /// Returns the narrowest tile that covers the columns after the full waves in one wave; `None` if
    /// there is none, or if it saves too little for a second launch.
    pub(super) fn narrow_tail(&self, p: &Problem) -> Option<u32> {
        let head = self.head_columns(p);
        let [m_tiles, _] = self.tiles(p);
        let ctas_per_row = (u64::from(self.ctas) / m_tiles.max(1)) as u32;
        let unit = 16 / p.class().b_operands();
        if head == 0 || head == p.n || ctas_per_row == 0 {
            return None;
        }
        let width = (p.n - head).div_ceil(ctas_per_row).next_multiple_of(unit);
        (3 * width <= 2 * self.tile_n).then_some(width.max(2 * unit))
    }

    /// Rejects a tail with options that do not divide C by columns alone.
    pub(super) fn check_tail(&self, p: &Problem, target: &Target) -> Result<(), FamilyError> {
        if self.tail_n.is_none() {
            return Ok(());
        }
        let reject = |text: &str| Err(FamilyError::Config(text.into()));
        let is_dynamic = matches!(self.schedule.tiles(), TileAssignment::Dynamic(_));
        let splits_k = self.schedule.split_k() > 1 || self.schedule.is_stream_k();
        if self.swap_ab() || splits_k || is_dynamic {
            return reject(
                "--tail-n supports neither --swap-ab, --split-k, --stream-k nor --raster dynamic\n\
                 help: leave --tail-n out",
            );
        }
        if !p.class().epilogue.reductions().is_empty() {
            return reject(
                "--tail-n does not support --row-sums, --col-sums and --amax\nhelp: leave --tail-n out",
            );
        }
        if p.batch.is_some() || p.layout == OperandLayout::Kn || p.class().b.gather.is_some() {
            return reject(
                "--tail-n supports neither --batch, --layout kn nor weights that TMA cannot address\n\
                 help: leave --tail-n out",
            );
        }
        self.sub_gemms(p, target).map(|_| ())
    }
}
