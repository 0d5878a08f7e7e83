//! One heat from kernels to rows: build, draw, check, race.

use super::check::Check;
use super::contender::{Contender, Copy, Planned};
use super::data::Data;
use super::limits::Bound;
use super::report::{HeatReport, Measured, Row, Twice};
use super::rounds::{Lineup, shuffled};
use super::statistics::Quartiles;
use super::suite::Heat;
use super::timer::Timer;
use super::{BenchOptions, LEAST_ROUNDS};
use crate::device::Device;
use crate::error::Error;
use crate::gpu::Ready;
use crate::prepare::prepare_exactly;
use std::time::{Duration, Instant};
use warpline_kernels::AnyWork;
use warpline_kernels::numbers::Random;

/// Untimed rounds at the start go on for at least so many rounds and so long:
/// clocks fall while the host compares.
const WARM_ROUNDS: u32 = 5;
const WARM_TIME: Duration = Duration::from_millis(200);
/// Sensors are read in one of so many rounds: that takes longer than a short
/// kernel, and the GPU rests meanwhile.
const READ_EVERY: usize = 4;

/// What all heats of a measurement share.
pub(crate) struct Track<'a> {
    device: &'a Device,
    options: &'a BenchOptions,
    product: Option<&'a dyn AnyWork>,
    timer: Timer,
    copy: Copy,
    /// The product on the device, from the first heat on that needs it.
    limit: Option<(Planned, Data)>,
    /// Why there is no product to hold work against.
    no_product: Option<String>,
    random: Random,
}

/// A heat on the device.
struct Laid {
    data: Data,
    /// Those that were built, each with the number of its row.
    planned: Vec<(usize, Planned)>,
}

impl<'a> Track<'a> {
    pub(crate) fn new(
        device: &'a Device,
        product: Option<&'a dyn AnyWork>,
        options: &'a BenchOptions,
    ) -> Result<Self, Error> {
        let timer = Timer::new(device)?;
        let copy = Copy::new(&timer.stream)?;
        Ok(Self {
            device,
            options,
            product,
            timer,
            copy,
            limit: None,
            no_product: None,
            random: Random::new(options.seed),
        })
    }

    /// Bytes that are read before each launch.
    pub(crate) fn flush_bytes(&self) -> u64 {
        self.timer.flush_bytes()
    }

    /// Why there are no clocks and no power.
    pub(crate) fn no_sensors(&self) -> Option<String> {
        self.timer.sensors.why_not().map(str::to_owned)
    }

    /// Measures one heat; its memory is free again afterwards.
    pub(crate) fn run(
        &mut self,
        heat: &Heat,
        tell: &dyn Fn(&'static str),
    ) -> Result<HeatReport, Error> {
        let first = heat.works()[0].as_ref();
        let cost = first.cost();
        let mut report = HeatReport {
            family: heat.family(),
            problem: first.problem(),
            bound: Bound::of(&cost),
            cost,
            limit: None,
            limit_sustained: None,
            no_limit: None,
            twice: None,
            rows: (heat.works().iter().enumerate())
                .map(|(i, work)| Row::new(work.as_ref(), i == 0 && !heat.has_steps()))
                .collect(),
        };
        if report.bound == Bound::Compute {
            tell("sets up the product that is the limit");
            self.lay_limit()?;
            report.no_limit = self.no_product.clone();
        }
        match self.lay(heat, &mut report, tell) {
            Ok(mut laid) => {
                let raced = self.race(&mut laid, &mut report, tell);
                if raced.as_ref().is_err_and(Error::is_lost) {
                    // Freeing anything would wait for a kernel that does not end.
                    std::mem::forget(laid);
                }
                raced?;
            }
            Err(e) if e.is_lost() => return Err(e),
            Err(e) => report.fail(&e),
        }
        match heat.has_steps() {
            true => report.state_gains(),
            false => report.rank(),
        }
        Ok(report)
    }

    /// Builds all contenders and brings their tensors to the device.
    fn lay(
        &self,
        heat: &Heat,
        report: &mut HeatReport,
        tell: &dyn Fn(&'static str),
    ) -> Result<Laid, Error> {
        tell("builds and compiles");
        let mut ready = Vec::new();
        for (i, work) in heat.works().iter().enumerate() {
            match self.load(work.as_ref()) {
                Ok(one) => {
                    report.rows[i].kernels = one.0.footprints().collect();
                    ready.push((i, one));
                }
                Err(e) if e.is_lost() => return Err(e),
                Err(e) => report.rows[i].failure = Some(e.to_string()),
            }
        }
        tell("draws the inputs and computes the reference");
        let workspace = ready.iter().map(|(_, (_, bytes))| bytes).sum();
        let (seed, stream) = (self.options.seed, &self.timer.stream);
        let data = Data::new(heat.works()[0].as_ref(), seed, workspace, stream)?;
        let mut planned = Vec::new();
        for (i, (ready, bytes)) in ready {
            let work = heat.works()[i].as_ref();
            match Planned::new(work, &ready, bytes, &data, stream) {
                Ok(one) => planned.push((i, one)),
                Err(e) if e.is_lost() => return Err(e),
                Err(e) => report.rows[i].failure = Some(e.to_string()),
            }
        }
        Ok(Laid { data, planned })
    }

    /// The kernels of work on the device, and the workspace they need.
    fn load(&self, work: &dyn AnyWork) -> Result<(Ready, u64), Error> {
        let prepared = prepare_exactly(work, &self.device.target())?;
        Ok((prepared.load(self.device)?, prepared.workspace))
    }

    /// Brings the product that is the limit to the device, once.
    fn lay_limit(&mut self) -> Result<(), Error> {
        if self.limit.is_some() || self.no_product.is_some() {
            return Ok(());
        }
        let wrong = match self.product {
            None => Some("no product was given to hold it against".into()),
            Some(work) => match self.try_limit(work) {
                Err(e) if e.is_lost() => return Err(e),
                Err(e) => Some(e.to_string()),
                Ok(check) => check.sentence(),
            },
        };
        if let Some(wrong) = wrong {
            self.no_product = Some(format!("the limit was not measured: {wrong}"));
            self.limit = None;
        }
        Ok(())
    }

    fn try_limit(&mut self, work: &dyn AnyWork) -> Result<Check, Error> {
        let (ready, workspace) = self.load(work)?;
        let stream = &self.timer.stream;
        let data = Data::new(work, self.options.seed, workspace, stream)?;
        let planned = Planned::new(work, &ready, workspace, &data, stream)?;
        // From here on it is kept, whatever the kernel does.
        let (planned, data) = self.limit.insert((planned, data));
        check(&self.timer, planned, data)
    }

    /// Checks every contender and times those that are right.
    fn race(
        &mut self,
        laid: &mut Laid,
        report: &mut HeatReport,
        tell: &dyn Fn(&'static str),
    ) -> Result<(), Error> {
        tell("compares with the reference");
        let mut field = Field::default();
        for (i, planned) in &mut laid.planned {
            let row = &mut report.rows[*i];
            let check = match check(&self.timer, planned, &mut laid.data) {
                Ok(check) => check,
                Err(e) if e.is_lost() => return Err(e),
                Err(e) => {
                    row.failure = Some(e.to_string());
                    continue;
                }
            };
            row.failure = check.sentence();
            if check.passed() {
                field.rows.push(*i);
                field.contenders.push(planned);
            }
            row.check = Some(check);
        }
        if field.rows.is_empty() {
            return Ok(());
        }
        match (report.bound, &mut self.limit) {
            (Bound::Memory, _) => field.contenders.push(&mut self.copy),
            (Bound::Compute, Some((product, _))) => field.contenders.push(product),
            (Bound::Compute, None) => {}
        }
        tell("times");
        field.time(&self.timer, self.options.rounds, &mut self.random, report)?;
        if self.options.sustained {
            tell("runs each alone for more than a second");
            field.sustain(&self.timer, &mut self.random, report)?;
        }
        Ok(())
    }
}

/// Runs a contender on poisoned outputs and compares what comes out.
pub(crate) fn check(
    timer: &Timer,
    contender: &mut Planned,
    data: &mut Data,
) -> Result<Check, Error> {
    data.poison(&timer.stream)?;
    timer.once(contender)?;
    data.check(&timer.stream)
}

/// Who is timed: work that is right, and behind it the limit, if there is one.
#[derive(Default)]
struct Field<'a> {
    contenders: Vec<&'a mut dyn Contender>,
    /// The row of each contender that is work.
    rows: Vec<usize>,
}

impl Field<'_> {
    /// Times all in rounds.
    fn time(
        &mut self,
        timer: &Timer,
        rounds: u32,
        random: &mut Random,
        report: &mut HeatReport,
    ) -> Result<(), Error> {
        let lineup = Lineup::new(self.contenders.len(), 0);
        let (start, mut warm_rounds) = (Instant::now(), 0);
        let warm = || {
            warm_rounds += 1;
            warm_rounds <= WARM_ROUNDS || start.elapsed() < WARM_TIME
        };
        let mut launches = 0;
        let samples = lineup.run(rounds.max(LEAST_ROUNDS), random, warm, |i| {
            launches += 1;
            let read = (launches / lineup.len()).is_multiple_of(READ_EVERY);
            timer.time(self.contenders[i], read)
        })?;

        let measured: Vec<_> = (self.contenders.iter().zip(&samples))
            .map(|(contender, samples)| Measured::new(samples, &contender.cost(), report.bound))
            .collect();
        report.limit = measured.get(self.rows.len()).cloned().flatten();
        let first = measured[0].as_ref().map(|m| m.seconds.median);
        let again = Quartiles::new(
            samples
                .iter()
                .last()
                .into_iter()
                .flatten()
                .map(|s| s.seconds),
        );
        report.twice = first.zip(again).map(|(a, b)| Twice::new(a, b.median));
        for (&row, measured) in self.rows.iter().zip(measured) {
            let row = &mut report.rows[row];
            let rates = measured.as_ref().zip(report.limit.as_ref());
            row.share = rates.map(|(m, limit)| m.rate / limit.rate);
            row.measured = measured;
        }
        Ok(())
    }

    /// Runs each alone for more than a second, in random order.
    fn sustain(
        &mut self,
        timer: &Timer,
        random: &mut Random,
        report: &mut HeatReport,
    ) -> Result<(), Error> {
        for i in shuffled(self.contenders.len(), random) {
            let contender = &mut *self.contenders[i];
            let samples = timer.sustain(contender)?;
            let measured = Measured::new(&samples, &contender.cost(), report.bound);
            match self.rows.get(i) {
                Some(&row) => report.rows[row].sustained = measured,
                None => report.limit_sustained = measured,
            }
        }
        Ok(())
    }
}
