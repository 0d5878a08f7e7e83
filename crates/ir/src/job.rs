//! Asynchronous work: what engines do after an op has handed it over.
//!
//! Operands that live in memory are read when the job *completes*, through
//! [`Engine`]; only addresses and coordinates are fixed at issue. A multicast
//! copy is one job per receiver, as each receiver's bytes arrive on their own.

use crate::machine::{BarAt, Fault, Mask, SharedAt};
pub use crate::ops::bulk::BulkJob;
pub use crate::ops::copy::CopyJob;
pub use crate::ops::remote::RemoteJob;
pub use crate::ops::tensor::TensorJob;
pub use crate::ops::wgmma::WgmmaJob;
use crate::value::RegId;

/// A run of bytes in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Span {
    /// In the shared memory of a CTA of the cluster.
    Shared(SharedAt, u32),
    /// In global memory.
    Global(u64, u32),
}

/// How a job tells that it is done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Done {
    /// Bytes on an mbarrier, as pieces arrive.
    Bytes(BarAt),
    /// With the issuing lane's bulk group.
    BulkGroup {
        /// The issuing lane.
        lane: u32,
    },
    /// With the copy groups of the issuing lanes.
    CopyGroup {
        /// The issuing lanes.
        lanes: Mask,
    },
    /// With the warpgroup's wgmma group.
    WgmmaGroup,
    /// Nobody is told (prefetch).
    Nobody,
}

/// Work for an engine.
#[derive(Clone, PartialEq, Debug)]
pub enum Job {
    /// A run of bytes between global and shared memory, or between CTAs.
    Bulk(BulkJob),
    /// A few bytes per lane, from global to shared memory.
    Copy(CopyJob),
    /// Registers on their way to a peer.
    Remote(RemoteJob),
    /// A box of a tensor.
    Tensor(TensorJob),
    /// One warp's part of a warpgroup product.
    Wgmma(WgmmaJob),
}

impl Job {
    /// How the job tells that it is done.
    pub fn done(&self) -> Done {
        match self {
            Job::Bulk(j) => j.done,
            Job::Copy(j) => Done::CopyGroup { lanes: j.lanes() },
            Job::Remote(j) => j.done,
            Job::Tensor(j) => j.done,
            Job::Wgmma(_) => Done::WgmmaGroup,
        }
    }

    /// The shared and global bytes it will read, as runs; a run is never empty.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        match self {
            Job::Bulk(j) => j.reads(each),
            Job::Copy(j) => j.reads(each),
            Job::Remote(_) => {}
            Job::Tensor(j) => j.reads(each),
            Job::Wgmma(j) => j.reads(each),
        }
    }

    /// The shared and global bytes it will write, as runs; a run is never empty.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        match self {
            Job::Bulk(j) => j.writes(each),
            Job::Copy(j) => j.writes(each),
            Job::Remote(j) => j.writes(each),
            Job::Tensor(j) => j.writes(each),
            Job::Wgmma(_) => {}
        }
    }

    /// Does it combine what it writes with what is there? Such jobs do not conflict with each other.
    pub fn combines(&self) -> bool {
        match self {
            Job::Bulk(j) => j.combines(),
            Job::Copy(_) => false,
            Job::Remote(j) => j.combines(),
            Job::Tensor(j) => j.combines(),
            Job::Wgmma(_) => false,
        }
    }

    /// Does it reach shared memory through the async proxy?
    pub fn is_async_proxy(&self) -> bool {
        !matches!(self, Job::Copy(_) | Job::Remote(_))
    }

    /// Pieces the job may be done in, in any order and apart; at least one.
    pub fn pieces(&self) -> u32 {
        match self {
            Job::Bulk(j) => j.pieces(),
            Job::Copy(j) => j.pieces(),
            Job::Remote(j) => j.pieces(),
            Job::Tensor(j) => j.pieces(),
            Job::Wgmma(_) => 1,
        }
    }

    /// Does one piece of the work; gives the bytes it moved.
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

/// The most pieces a copy falls into: enough for every order of arrival to
/// matter, few enough to cost nothing.
pub(crate) const PIECES: u32 = 4;

/// The part of `0..len` that piece `i` of `of` covers.
pub(crate) fn part(len: u32, i: u32, of: u32) -> std::ops::Range<u32> {
    let at = |i: u32| (u64::from(len) * u64::from(i) / u64::from(of)) as u32;
    at(i)..at(i + 1)
}

impl Span {
    /// Its length in bytes.
    pub fn len(&self) -> u32 {
        match *self {
            Span::Shared(_, len) | Span::Global(_, len) => len,
        }
    }

    /// Has it no bytes?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` bytes of it, from byte `at` on.
    pub(crate) fn slice(self, at: u32, len: u32) -> Span {
        match self {
            Span::Shared(s, _) => Span::Shared(
                SharedAt {
                    byte: s.byte + at,
                    ..s
                },
                len,
            ),
            Span::Global(g, _) => Span::Global(g.wrapping_add(u64::from(at)), len),
        }
    }

    /// Both as one run, if `next` starts where this one ends.
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

/// Hands on the runs that `walk` gives, with neighbours joined and empty ones left out.
pub(crate) fn joined(each: &mut dyn FnMut(Span), walk: impl FnOnce(&mut dyn FnMut(Span))) {
    let mut open: Option<Span> = None;
    walk(&mut |next| {
        if next.is_empty() {
            return;
        }
        open = match open {
            None => Some(next),
            Some(run) => run.join(next).or_else(|| {
                each(run);
                Some(next)
            }),
        };
    });
    if let Some(run) = open {
        each(run);
    }
}

/// What becomes of an element: `f(old, new, result)`.
pub type Combine<'a> = &'a (dyn Fn(&[u8], &[u8], &mut [u8]) + 'a);

/// What an engine sees when it completes a job: memory through the async
/// proxy, and, for wgmma, the registers of the issuing warp.
pub trait Engine {
    /// Reads bytes.
    fn read(&mut self, span: Span, out: &mut [u8]) -> Result<(), Fault>;
    /// Writes bytes.
    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault>;
    /// Combines numbers with those in memory, each in one step: `f(old, new)` per element of `size` bytes.
    fn reduce(&mut self, span: Span, data: &[u8], size: usize, f: Combine<'_>)
    -> Result<(), Fault>;
    /// A 32-bit register of the issuing warp, all lanes.
    fn register(&mut self, r: RegId) -> [u32; 32];
    /// Sets a 32-bit register of the issuing warp, all lanes.
    fn set_register(&mut self, r: RegId, v: &[u32; 32]);
}

#[cfg(test)]
pub(crate) mod fake;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (len, of) in [(0, 1), (1, 1), (7, 4), (16, 4), (u32::MAX, 3)] {
            let parts: Vec<_> = (0..of).map(|i| part(len, i, of)).collect();
            assert_eq!((parts[0].start, parts[of as usize - 1].end), (0, len));
            assert!(parts.windows(2).all(|w| w[0].end == w[1].start));
        }
    }

    #[test]
    fn neighbouring_runs_are_joined_and_empty_ones_left_out() {
        let at = |cta, byte| SharedAt { cta, byte };
        let mut runs = Vec::new();
        joined(&mut |s| runs.push(s), |each| {
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
