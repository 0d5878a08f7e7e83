//! The candidates: bases of schedule, tile shape and division of K, and neighbors of a config.

use crate::gemm::config::{Choice, Config, Exchange, MAX_PARTS, Raster, ScheduleKind};
use crate::gemm::problem::{Activation, Problem};
use crate::gemm::tile_scheduler::Cluster;
use warpline_ir::Target;

/// The maximum M of swap-AB. Above it, tiles of 128 rows waste little.
const MAX_SWAPPED_M: u32 = 2048;
/// The maximum rows of A in a tile of swap-AB: the columns of a wgmma.
const MAX_SWAPPED_ROWS: u32 = 256;
/// Up to this M only clusters divide K. An exchange in memory was faster in one of 48 measured problems.
const MAX_M_OF_CLUSTERS: u32 = 64;

/// The bases of a problem. Tile widths count columns of C: gate and up share the columns of a wgmma.
struct Bases<'a> {
    p: &'a Problem,
    sms: u32,
    b_operands: u32,
    all: Vec<Choice>,
}

/// Returns the bases of the candidates.
pub(super) fn bases(p: &Problem, target: &Target) -> Vec<Choice> {
    let mut bases = Bases {
        p,
        sms: target.sms,
        b_operands: p.class().b_operands(),
        all: Vec::with_capacity(512),
    };
    if p.m > 64 {
        bases.add_two_consumers();
        bases.add_tall();
        bases.add_clusters();
        bases.add_divided_k(128, 2);
    }
    bases.add_one_consumer();
    bases.add_divided_k(64, 1);
    if p.m <= MAX_SWAPPED_M {
        bases.add_swapped();
    }
    bases.all
}

impl Bases<'_> {
    fn add(&mut self, schedule: ScheduleKind, tile: [u32; 2], consumers: u32, more: Choice) {
        let [tile_m, tile_n] = tile;
        self.all.push(Choice {
            schedule: Some(schedule),
            tile_m: Some(tile_m),
            tile_n: Some(tile_n),
            consumers: Some(consumers),
            ..more
        });
    }

    /// Adds the cooperative configs that divide K among all SMs, or half of them, and exchange
    /// accumulators in memory.
    fn add_divided_in_memory(&mut self, tile: [u32; 2], consumers: u32, more: &Choice) {
        if self.p.m <= MAX_M_OF_CLUSTERS {
            return;
        }
        let [rows, cols] = [self.p.m.div_ceil(tile[0]), self.p.n.div_ceil(tile[1])].map(u64::from);
        let tiles = (rows * cols * self.p.batches()).max(1);
        let max_parts = (u64::from(self.sms) / tiles).min(MAX_PARTS.into()) as u32;
        for parts in [max_parts, max_parts / 2] {
            if parts > 1 {
                let more = Choice {
                    split_k: Some(parts),
                    exchange: Some(Exchange::Memory),
                    ..more.clone()
                };
                self.add(ScheduleKind::Cooperative, tile, consumers, more);
            }
        }
    }

    /// Returns whether tiles are not much wider than C.
    fn is_useful(&self, tile_n: u32) -> bool {
        tile_n <= self.p.n.next_multiple_of(16).max(64)
    }

    /// Returns the useful widths that are multiples of `step` columns of a wgmma, widest first.
    fn widths(&self, min: u32, max: u32, step: u32) -> Vec<u32> {
        let columns = (min / step..=max / step).rev().map(|i| step * i);
        let widths = columns.map(|n| n / self.b_operands);
        widths.filter(|&n| n > 0 && self.is_useful(n)).collect()
    }

    /// Adds tiles of 128 rows for two consumers.
    fn add_two_consumers(&mut self) {
        for n in self.widths(16, 256, 16) {
            self.add(ScheduleKind::Cooperative, [128, n], 2, Choice::default());
        }
        // The code of many narrow parts, each with erf, exceeds the instruction cache.
        let is_erf = self.p.activation == Activation::GeluErf;
        for n in self.widths(64, 208, 16) {
            if n.is_multiple_of(32) || !is_erf {
                self.add(ScheduleKind::PingPong, [128, n], 2, Choice::default());
            }
        }
        // A small K gains more from a second staging tile than from one more stage.
        for (n, stages) in [(192, 4), (128, 5)] {
            let n = n / self.b_operands;
            let stages = Choice {
                stages: Some(stages),
                ..Choice::default()
            };
            let is_16_bit = self.p.dtype.a_dtype().bytes() == 2;
            if self.p.k <= 3072 && is_16_bit && self.is_useful(n) {
                self.add(ScheduleKind::PingPong, [128, n], 2, stages);
            }
        }
        if self.b_operands == 2 {
            for n in [128, 96, 64] {
                if !self.is_useful(n) {
                    continue;
                }
                self.add(ScheduleKind::TwoConsumer, [128, n], 2, Choice::default());
            }
        }
    }

    /// Adds tiles of 192 and 256 rows.
    fn add_tall(&mut self) {
        if self.p.m <= 128 {
            return;
        }
        for n in self.widths(64, 208, 16) {
            self.add(ScheduleKind::Cooperative, [256, n], 2, Choice::default());
        }
        for n in self.widths(64, 192, 16) {
            self.add(ScheduleKind::Cooperative, [192, n], 3, Choice::default());
        }
    }

    /// Adds clusters of two CTAs, which share the loads of B or of A.
    fn add_clusters(&mut self) {
        for cluster in [Cluster::Rows, Cluster::Cols] {
            let cluster = Choice {
                cluster: Some(cluster),
                ..Choice::default()
            };
            for n in self.widths(128, 256, 64) {
                self.add(ScheduleKind::PingPong, [64, n], 2, cluster.clone());
            }
            for n in self.widths(128, 192, 32) {
                self.add(ScheduleKind::PingPong, [128, n], 2, cluster.clone());
            }
            for n in self.widths(128, 256, 64) {
                self.add(ScheduleKind::Cooperative, [128, n], 2, cluster.clone());
            }
            for n in self.widths(128, 192, 64) {
                self.add(ScheduleKind::Cooperative, [256, n], 2, cluster.clone());
            }
        }
    }

    /// Adds configs that divide K among CTAs: stream-K, and split-K in memory.
    fn add_divided_k(&mut self, tile_m: u32, consumers: u32) {
        let stream_k = Choice {
            stream_k: Some(true),
            ..Choice::default()
        };
        for n in self.widths(64, 256, 32) {
            self.add(
                ScheduleKind::Cooperative,
                [tile_m, n],
                consumers,
                stream_k.clone(),
            );
            self.add_divided_in_memory([tile_m, n], consumers, &Choice::default());
        }
    }

    /// Adds tiles of 64 rows: for one consumer, and for two with tiles of their own.
    fn add_one_consumer(&mut self) {
        for n in self.widths(32, 256, 32) {
            self.add(ScheduleKind::PingPong, [64, n], 2, Choice::default());
            self.add(ScheduleKind::Cooperative, [64, n], 1, Choice::default());
        }
        for n in [16, 32, 64, 128].map(|n| n / self.b_operands) {
            if self.is_useful(n) {
                self.add(ScheduleKind::DoubleBuffer, [64, n], 1, Choice::default());
            }
        }
    }

    /// Adds swap-AB configs: the N extent of a wgmma covers rows of A. They cover M with the fewest equal
    /// tiles, or with one more.
    fn add_swapped(&mut self) {
        // M innermost needs whole panels of 64 columns.
        let unit = if self.p.class().a.k_major { 16 } else { 64 };
        let fewest = self.p.m.div_ceil(MAX_SWAPPED_ROWS);
        let rows = |tiles: u32| self.p.m.div_ceil(tiles).next_multiple_of(unit);
        let widths = [rows(fewest), rows(fewest + 1)];
        let count = if widths[0] == widths[1] { 1 } else { 2 };
        let swap_ab = Choice {
            swap_ab: Some(true),
            ..Choice::default()
        };
        for &m in &widths[..count] {
            for (n, consumers) in [(64, 1), (128, 2), (192, 3), (128, 1), (256, 2)] {
                for stream_k in [false, true] {
                    let stream_k = Choice {
                        stream_k: Some(stream_k),
                        ..swap_ab.clone()
                    };
                    self.add(ScheduleKind::Cooperative, [m, n], consumers, stream_k);
                }
                self.add_divided_in_memory([m, n], consumers, &swap_ab);
                for parts in [2, 4, 8] {
                    let split_k = Choice {
                        split_k: Some(parts),
                        ..swap_ab.clone()
                    };
                    self.add(ScheduleKind::Cooperative, [m, n], consumers, split_k);
                }
            }
            let long_k_tile = Choice {
                tile_k: Some(256 / self.p.dtype.a_dtype().bytes() as u32),
                ..swap_ab.clone()
            };
            self.add(ScheduleKind::Cooperative, [m, 128], 2, long_k_tile);
        }
    }
}

/// Returns variations of a config that the model does not distinguish from it.
pub(super) fn neighbors(c: &Config) -> Vec<Choice> {
    let defaults = Choice::default;
    let group = Choice::from(c).group;
    let mut all = vec![
        Choice {
            group: Some(if group == Some(16) { 8 } else { 16 }),
            ..defaults()
        },
        Choice {
            stages: Some(c.stages - 1),
            ..defaults()
        },
    ];
    if c.swap_ab() {
        let (cache_hints, tile_k) = (Some(!c.cache_hints), Some(2 * c.tile_k));
        // A k-tile of twice the size leaves room for half the stages.
        let stages = Some(c.stages / 2);
        all.push(Choice {
            cache_hints,
            ..defaults()
        });
        all.push(Choice {
            tile_k,
            stages,
            ..defaults()
        });
        all.push(Choice {
            tile_k,
            stages,
            cache_hints,
            ..defaults()
        });
    } else {
        all.push(Choice {
            raster: Some(Raster::Dynamic),
            ..defaults()
        });
        all.push(Choice {
            cluster: Some(Cluster::Rows),
            ..defaults()
        });
    }
    all
}
