//! Contenders on a GPU: each on rotated buffers, with a cold level-2 cache.

use super::build::Built;
use super::race::Field;
use crate::bench::contender::Planned;
use crate::bench::data::Data;
use crate::bench::heat::check;
use crate::bench::timer::Timer;
use crate::device::Device;
use crate::error::Error;
use std::time::{Duration, Instant};
use warpline_kernels::AnyWork;

/// Places that the tensors rotate through, at most.
const PLACES: u64 = 4;
/// Tensors of more bytes lie in one place: rotating them changes nothing that
/// the flush has not, and copying them takes long.
const LARGE: f64 = 1e9;

/// Contenders on a GPU.
pub(super) struct Track {
    timer: Timer,
    places: Vec<Data>,
    /// By contender, in each place.
    contenders: Vec<Vec<Planned>>,
    /// The place of the next launch.
    next: usize,
    start: Instant,
}

impl Track {
    /// Draws the tensors and gives them to all who were built; those whom they
    /// cannot be given to come back with their reason.
    pub(super) fn new(
        built: &[(&dyn AnyWork, &Built)],
        device: &Device,
        seed: u64,
    ) -> Result<(Self, Vec<Result<(), Error>>), Error> {
        let timer = Timer::new(device)?;
        let Some((work, _)) = built.first() else {
            return Err(Error::NoGpu);
        };
        let workspace = built.iter().map(|(_, b)| b.workspace).sum();
        let most = if work.cost().bytes > LARGE { 1 } else { PLACES };
        let places = Data::places(*work, seed, workspace, most, &timer.stream)?;
        let mut track = Self {
            timer,
            places,
            contenders: Vec::new(),
            next: 0,
            start: Instant::now(),
        };
        let mut laid = Vec::new();
        for (work, built) in built {
            laid.push(match track.lay(*work, built) {
                Ok(planned) => {
                    track.contenders.push(planned);
                    Ok(())
                }
                Err(e) if e.is_lost() => {
                    // Freeing anything would wait for what does not end.
                    std::mem::forget(track);
                    return Err(e);
                }
                Err(e) => Err(e),
            });
        }
        track.start = Instant::now();
        Ok((track, laid))
    }

    fn lay(&self, work: &dyn AnyWork, built: &Built) -> Result<Vec<Planned>, Error> {
        let stream = &self.timer.stream;
        let workspace = Planned::workspace(&built.ready, built.workspace, stream)?;
        let places = self.places.iter();
        places
            .map(|data| Planned::in_workspace(work, &built.ready, workspace.clone(), data))
            .collect()
    }
}

impl Field for Track {
    fn time(&mut self, contender: usize) -> Result<f64, Error> {
        self.next = (self.next + 1) % self.places.len();
        let planned = &mut self.contenders[contender][self.next];
        Ok(self.timer.time(planned, false)?.seconds)
    }

    fn wrong(&mut self, contender: usize) -> Result<Option<String>, Error> {
        let planned = &mut self.contenders[contender][0];
        Ok(check(&self.timer, planned, &mut self.places[0])?.sentence())
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
