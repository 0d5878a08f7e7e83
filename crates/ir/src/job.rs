//! Asynchronous operations in flight: copies and matrix instructions that an op issued.
//!
//! A job reads its operands in memory when it *completes*, through [`Engine`];
//! addresses and coordinates are fixed at issue. A multicast copy is one job
//! per receiving CTA, because each CTA's bytes arrive independently.

use crate::machine::{Fault, Mask, ResolvedAddress, ResolvedBarrier};
pub use crate::ops::bulk::BulkJob;
pub use crate::ops::copy::CopyJob;
pub use crate::ops::remote::RemoteJob;
pub use crate::ops::tensor::TensorJob;
pub use crate::ops::wgmma::WgmmaJob;
use crate::value::RegId;

/// Consecutive bytes in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Span {
    /// In the shared memory of a CTA of the cluster; length in bytes.
    Shared(ResolvedAddress, u32),
    /// In global memory; length in bytes.
    Global(u64, u32),
}

/// The completion mechanism of a job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobCompletion {
    /// Each completed piece adds its transaction bytes to an mbarrier.
    Bytes(ResolvedBarrier),
    /// The bulk async-group of the issuing lane.
    BulkGroup {
        /// The issuing lane.
        lane: u32,
    },
    /// The `cp.async` groups of the issuing lanes.
    CopyGroup {
        /// The issuing lanes.
        lanes: Mask,
    },
    /// The wgmma-group of the warpgroup.
    WgmmaGroup,
    /// No completion signal (prefetch).
    None,
}

/// An asynchronous operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Job {
    /// A bulk copy between global and shared memory, or between CTAs.
    Bulk(BulkJob),
    /// A `cp.async`: up to 16 bytes per lane from global to shared memory.
    Copy(CopyJob),
    /// A `st.async` or `red.async` to the shared memory of a peer.
    Remote(RemoteJob),
    /// A TMA copy of a box of a tensor.
    Tensor(TensorJob),
    /// One warp's part of a `wgmma`.
    Wgmma(WgmmaJob),
}

impl Job {
    /// Returns the completion mechanism.
    pub fn completion(&self) -> JobCompletion {
        match self {
            Job::Bulk(j) => j.completion,
            Job::Copy(j) => JobCompletion::CopyGroup { lanes: j.lanes() },
            Job::Remote(j) => j.completion,
            Job::Tensor(j) => j.completion,
            Job::Wgmma(_) => JobCompletion::WgmmaGroup,
        }
    }

    /// Calls `each` with the shared and global bytes that the job will read; no span is empty.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        match self {
            Job::Bulk(j) => j.reads(each),
            Job::Copy(j) => j.reads(each),
            Job::Remote(_) => {}
            Job::Tensor(j) => j.reads(each),
            Job::Wgmma(j) => j.reads(each),
        }
    }

    /// Calls `each` with the shared and global bytes that the job will write; no span is empty.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        match self {
            Job::Bulk(j) => j.writes(each),
            Job::Copy(j) => j.writes(each),
            Job::Remote(j) => j.writes(each),
            Job::Tensor(j) => j.writes(each),
            Job::Wgmma(_) => {}
        }
    }

    /// Returns whether the job is a reduction into memory. Reductions do not conflict with each other.
    pub fn is_reduction(&self) -> bool {
        match self {
            Job::Bulk(j) => j.is_reduction(),
            Job::Copy(_) => false,
            Job::Remote(j) => j.is_reduction(),
            Job::Tensor(j) => j.is_reduction(),
            Job::Wgmma(_) => false,
        }
    }

    /// Returns whether the job accesses shared memory through the async proxy.
    pub fn is_async_proxy(&self) -> bool {
        !matches!(self, Job::Copy(_) | Job::Remote(_))
    }

    /// Returns the number of pieces that complete independently, in any order; at least one.
    pub fn pieces(&self) -> u32 {
        match self {
            Job::Bulk(j) => j.pieces(),
            Job::Copy(j) => j.pieces(),
            Job::Remote(j) => j.pieces(),
            Job::Tensor(j) => j.pieces(),
            Job::Wgmma(_) => 1,
        }
    }

    /// Completes one piece and returns the bytes it moved.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        match self {
            Job::Bulk(j) => j.complete(piece, e),
            Job::Copy(j) => j.complete(piece, e),
            Job::Remote(j) => j.complete(piece, e),
            Job::Tensor(j) => j.complete(piece, e),
            Job::Wgmma(j) => j.complete(e).map(|()| 0),
        }
    }
}

/// Maximum number of pieces of a copy: enough to expose an assumption about
/// the order of arrival, and few enough to be cheap.
pub(crate) const PIECES: u32 = 4;

/// Returns the range of `0..len` that piece `i` of `pieces` covers.
pub(crate) fn piece_range(len: u32, i: u32, pieces: u32) -> std::ops::Range<u32> {
    let start = |i: u32| (u64::from(len) * u64::from(i) / u64::from(pieces)) as u32;
    start(i)..start(i + 1)
}

impl Span {
    /// Returns the length in bytes.
    pub fn len(&self) -> u32 {
        match *self {
            Span::Shared(_, len) | Span::Global(_, len) => len,
        }
    }

    /// Returns whether the span has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the `len` bytes that start at byte `at` of the span.
    pub(crate) fn slice(self, at: u32, len: u32) -> Span {
        match self {
            Span::Shared(s, _) => Span::Shared(
                ResolvedAddress {
                    byte: s.byte + at,
                    ..s
                },
                len,
            ),
            Span::Global(g, _) => Span::Global(g.wrapping_add(u64::from(at)), len),
        }
    }

    /// Returns both spans as one if `next` starts where this span ends.
    fn join(self, next: Span) -> Option<Span> {
        match (self, next) {
            (Span::Shared(a, n), Span::Shared(b, m)) if a.cta == b.cta && a.byte + n == b.byte => {
                Some(Span::Shared(a, n + m))
            }
            (Span::Global(a, n), Span::Global(b, m)) if a.wrapping_add(u64::from(n)) == b => {
                Some(Span::Global(a, n + m))
            }
            _ => None,
        }
    }
}

/// Calls `each` with the spans of `walk`, after joining adjacent spans and dropping empty ones.
pub(crate) fn join_spans(each: &mut dyn FnMut(Span), walk: impl FnOnce(&mut dyn FnMut(Span))) {
    let mut pending: Option<Span> = None;
    walk(&mut |next| {
        if next.is_empty() {
            return;
        }
        pending = match pending {
            None => Some(next),
            Some(run) => run.join(next).or_else(|| {
                each(run);
                Some(next)
            }),
        };
    });
    if let Some(run) = pending {
        each(run);
    }
}

/// Computes an element of a reduction: `f(old, new, result)`.
pub type Combine<'a> = &'a (dyn Fn(&[u8], &[u8], &mut [u8]) + 'a);

/// The memory, and for `wgmma` the registers of the issuing warp, that a job
/// accesses when it completes.
pub trait Engine {
    /// Reads bytes.
    fn read(&mut self, span: Span, out: &mut [u8]) -> Result<(), Fault>;
    /// Writes bytes.
    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault>;
    /// Atomically combines each element of `size` bytes in `data` with the one in memory.
    fn reduce(&mut self, span: Span, data: &[u8], size: usize, f: Combine<'_>)
    -> Result<(), Fault>;
    /// Reads a 32-bit register of the issuing warp, all lanes.
    fn register(&mut self, r: RegId) -> [u32; 32];
    /// Writes a 32-bit register of the issuing warp, all lanes.
    fn set_register(&mut self, r: RegId, v: &[u32; 32]);
}

#[cfg(test)]
pub(crate) mod fake;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piece_ranges_partition_the_length() {
        for (len, pieces) in [(0, 1), (1, 1), (7, 4), (16, 4), (u32::MAX, 3)] {
            let ranges: Vec<_> = (0..pieces).map(|i| piece_range(len, i, pieces)).collect();
            assert_eq!((ranges[0].start, ranges[pieces as usize - 1].end), (0, len));
            assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
        }
    }

    #[test]
    fn adjacent_spans_are_joined_and_empty_ones_dropped() {
        let at = |cta, byte| ResolvedAddress { cta, byte };
        let mut runs = Vec::new();
        join_spans(&mut |s| runs.push(s), |each| {
            each(Span::Shared(at(0, 0), 16));
            each(Span::Shared(at(0, 16), 0));
            each(Span::Shared(at(0, 16), 8));
            each(Span::Shared(at(1, 24), 8));
            each(Span::Global(32, 4));
            each(Span::Global(36, 4));
            each(Span::Global(32, 4));
        });
        let want = [
            Span::Shared(at(0, 0), 24),
            Span::Shared(at(1, 24), 8),
            Span::Global(32, 8),
            Span::Global(32, 4),
        ];
        assert_eq!(runs, want);
    }
}
