//! The numbers of a config that its time depends on.

use crate::gemm::access::OperandAccess;
use crate::gemm::config::{Config, ScheduleKind, TileAssignment};
use crate::gemm::mainloop::gather::THREADS as GATHER_THREADS;
use crate::gemm::problem::{Accumulation, Matrix, Problem};
use crate::gemm::tail::SubGemm;
use crate::gemm::tile_scheduler::Cluster;
use warpline_ir::Target;
use warpline_ir::builder::Rasterization;

/// The copies and the kernels of a config.
#[derive(Clone, Debug)]
pub struct Features {
    /// Bytes that copies of operands read and write.
    pub(super) copied_bytes: f64,
    pub(super) kernels: Vec<Kernel>,
}

/// One operand of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// Rows of a k-tile; gate and up are one operand.
    pub(super) tile_rows: f64,
    /// The share of a k-tile that one CTA of a cluster loads.
    pub(super) share: f64,
    /// CTAs that load the same rows at the same time.
    pub(super) sharing: f64,
    /// The share of the rows of all k-tiles that exist.
    pub(super) in_bounds: f64,
    /// Whether rows straddle 32-byte sectors.
    pub(super) straddles: bool,
    /// Bytes of the operand in memory.
    pub(super) bytes: f64,
    /// Out-of-bounds bytes that all tiles load for one k-tile.
    pub(super) out_of_bounds: f64,
    /// Loads of one gathering thread for a k-tile, and the registers that they fill.
    pub(super) gathers: [f64; 2],
}

/// The features of one kernel. All its tiles have the same shape.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) schedule: ScheduleKind,
    pub(super) stages: f64,
    pub(super) consumers: f64,
    /// Parts of K of a tile, each for one CTA; 1: K is not divided.
    pub(super) split_k: f64,
    /// Whether these CTAs exchange accumulators in memory, not in a cluster.
    pub(super) exchanges_in_memory: bool,
    pub(super) stream_k: bool,
    pub(super) swap_ab: bool,
    /// CTAs of a cluster.
    pub(super) cluster: f64,
    /// Tiles of C, and the CTAs that compute them.
    pub(super) tiles: f64,
    pub(super) ctas: f64,
    /// CTAs that run at the same time, and the times that the grid exceeds them.
    pub(super) running: f64,
    pub(super) rounds: f64,
    pub(super) k_tiles: f64,
    /// A and B.
    pub(super) operands: [Operand; 2],
    /// Bytes of a row of a k-tile.
    pub(super) row_bytes: f64,
    /// Rows and columns of the wgmmas of a k-tile.
    pub(super) rows: f64,
    pub(super) cols: f64,
    /// Whether partial sums are added outside of the tensor cores.
    pub(super) is_promoted: bool,
    /// Values of C in a tile.
    pub(super) values: f64,
    /// Staging tiles of a tile of C, and whether there is only one buffer for them.
    pub(super) parts: f64,
    pub(super) one_staging_tile: bool,
    /// Bytes of an element of C.
    pub(super) out_bytes: f64,
    pub(super) by_element: bool,
    pub(super) activation: bool,
    pub(super) bias: bool,
    pub(super) residual: bool,
    /// Values of C of all batches.
    pub(super) outputs: f64,
    /// Operations.
    pub(super) flops: f64,
}

impl Features {
    /// Returns the features of a config.
    pub fn of(p: &Problem, c: &Config, target: &Target) -> Self {
        let packed = c.pack.problem(p);
        let sub_gemms = c.sub_gemms(&packed, target).unwrap_or_default();
        let kernel = |sub_gemm: &SubGemm| {
            let n = sub_gemm.cols.len() as u32;
            Kernel::of(
                &Problem {
                    n,
                    ..Problem::clone(&packed)
                },
                &sub_gemm.config,
                target,
            )
        };
        Self {
            copied_bytes: c.pack.traffic(p) as f64,
            kernels: sub_gemms.iter().map(kernel).collect(),
        }
    }
}

impl Kernel {
    fn of(p: &Problem, c: &Config, target: &Target) -> Self {
        let class = p.class();
        let size = p.dtype.a_dtype().bytes() as f64;
        let b_operands = f64::from(class.b_operands());
        let batches = p.batches() as f64;
        let [mma_rows, mma_cols] = c.mma_tile().map(f64::from);
        let (a_rows, b_rows) = match c.swap_ab() {
            false => (mma_rows, mma_cols * b_operands),
            true => (mma_cols, mma_rows * b_operands),
        };
        let (rows, cols) = match c.swap_ab() {
            false => (a_rows, b_rows),
            true => (b_rows, a_rows),
        };
        let [m_tiles, n_tiles] = c.tiles(p).map(|tiles| tiles as f64);
        let [m, n, k] = [p.m, p.n, p.k].map(f64::from);
        let row_bytes = f64::from(c.tile_k) * size;
        let k_tiles = f64::from(p.k.div_ceil(c.tile_k).max(1));
        let operand = |tile_rows: f64, extent: f64, [tiles, other_tiles]: [f64; 2]| Operand {
            tile_rows,
            share: 1.0,
            sharing: 1.0,
            in_bounds: extent / (tiles * tile_rows),
            straddles: false,
            bytes: extent * k * size * batches,
            out_of_bounds: (tiles * tile_rows - extent) * other_tiles * batches * row_bytes,
            gathers: [0.0; 2],
        };
        let gathers = |rows: f64, unit: Option<u32>| match unit {
            None => [0.0; 2],
            Some(bytes) => {
                let loads = rows * row_bytes / f64::from(bytes) / GATHER_THREADS;
                [loads, loads * f64::from(bytes.div_ceil(4))]
            }
        };
        let [a_sharing, b_sharing] = sharing(c, [m_tiles, n_tiles], f64::from(target.sms));
        let unit = |access: OperandAccess| access.gather.map(|unit| unit.bytes(size as u32));
        let a = Operand {
            share: if c.cluster() == Cluster::Cols {
                0.5
            } else {
                1.0
            },
            sharing: a_sharing,
            straddles: straddles_sectors(p.a()),
            gathers: gathers(a_rows, unit(class.a)),
            ..operand(a_rows, m, [m_tiles, n_tiles])
        };
        let b = Operand {
            share: if c.cluster() == Cluster::Rows {
                0.5
            } else {
                1.0
            },
            sharing: b_sharing,
            straddles: straddles_sectors(p.b()),
            gathers: gathers(b_rows, unit(class.b)),
            ..operand(b_rows, n * b_operands, [n_tiles, m_tiles])
        };
        let (ctas, sms) = (f64::from(c.ctas), f64::from(target.sms));
        let split_k = f64::from(c.schedule.split_k());
        let out_bytes = p.out().dtype().bytes() as f64;
        let staging = f64::from(c.staging.width);
        Self {
            schedule: c.schedule.kind(),
            stages: f64::from(c.stages),
            consumers: f64::from(c.consumers()),
            split_k,
            exchanges_in_memory: c.schedule.exchanges_in_memory(),
            stream_k: c.schedule.is_stream_k(),
            swap_ab: c.swap_ab(),
            cluster: f64::from(c.schedule.cluster_ctas()),
            tiles: m_tiles * n_tiles * batches,
            ctas,
            running: ctas.min(sms),
            rounds: (ctas / sms).ceil().max(1.0),
            k_tiles,
            operands: [a, b],
            row_bytes,
            rows,
            cols,
            is_promoted: p.accumulation == Accumulation::Promoted,
            values: mma_rows * mma_cols,
            parts: mma_cols / staging.max(1.0),
            one_staging_tile: c.staging.stages == 1,
            out_bytes,
            by_element: class.c_by_element,
            activation: p.activation.is_expensive(),
            bias: p.bias,
            residual: p.residual,
            outputs: m * n * batches,
            flops: 2.0 * m * n * b_operands * k * batches,
        }
    }

    /// Returns whether the consumers take turns.
    pub(super) fn is_ping_pong(&self) -> bool {
        self.schedule == ScheduleKind::PingPong
    }

    /// Returns the bytes of A and B in memory.
    pub(super) fn operand_bytes(&self) -> f64 {
        self.operands.iter().map(|operand| operand.bytes).sum()
    }
}

/// Returns the CTAs that load the same rows of A and of B at the same time. CTAs at different places of
/// K load different bytes.
fn sharing(c: &Config, [m_tiles, n_tiles]: [f64; 2], sms: f64) -> [f64; 2] {
    if c.schedule.is_stream_k() {
        return [1.0; 2];
    }
    let group = match c.schedule.tiles() {
        TileAssignment::Static(Rasterization::Grouped(group)) | TileAssignment::Dynamic(group) => {
            group
        }
        TileAssignment::Static(_) => 1,
    };
    // The tiles that run at the same time: whole columns of a raster group.
    let running = f64::from(c.ctas).min(sms) / f64::from(c.schedule.split_k());
    let running = running.clamp(1.0, m_tiles * n_tiles);
    let rows = m_tiles.min(f64::from(group)).min(running);
    [(running / rows).clamp(1.0, n_tiles), rows]
}

/// Returns whether rows straddle 32-byte sectors.
pub(super) fn straddles_sectors(m: Matrix) -> bool {
    !(m.stride * m.dtype.bytes() as u64).is_multiple_of(32)
}
