//! Numbers along a length, with round ones to name.

/// A scale from a low number to a high one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// About five steps around these numbers, from 0 where that is asked for
    /// or not far.
    pub(super) fn around(numbers: impl IntoIterator<Item = f64>, from_zero: bool) -> Self {
        let numbers = numbers.into_iter().filter(|x| x.is_finite());
        let ends = numbers.fold(None, |ends: Option<(f64, f64)>, x| {
            let (low, high) = ends.unwrap_or((x, x));
            Some((low.min(x), high.max(x)))
        });
        let (low, high) = ends.unwrap_or((0.0, 1.0));
        let low = match from_zero || low < 0.6 * high {
            true => low.min(0.0),
            false => low,
        };
        // Equal numbers need a length too.
        let length = match high - low {
            length if length > 0.0 => length,
            _ if high == 0.0 => 1.0,
            _ => 0.1 * high.abs(),
        };
        let step = round(length / 5.0);
        Self {
            low: (low / step).floor() * step,
            high: ((low + length) / step).ceil() * step,
            step,
        }
    }

    /// Where a number lies: 0 at the low end, 1 at the high one.
    pub(super) fn share(&self, x: f64) -> f64 {
        (x - self.low) / (self.high - self.low)
    }

    /// The numbers that are named.
    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> {
        let (low, step) = (self.low, self.step);
        let count = ((self.high - low) / step).round() as usize;
        (0..=count).map(move |i| low + i as f64 * step)
    }

    /// A number with the digits that tell neighbours apart.
    pub(super) fn name(&self, x: f64) -> String {
        let prefixes = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")];
        let (by, prefix) = match prefixes.iter().find(|(least, _)| self.high >= *least) {
            // From ten thousand on, in thousands.
            Some((1e4, prefix)) => (1e3, *prefix),
            Some((by, prefix)) => (*by, *prefix),
            None => (1.0, ""),
        };
        let digits = -(self.step / by).log10().floor();
        let places = digits.clamp(0.0, 9.0) as usize;
        match x {
            0.0 => "0".into(),
            x => format!("{:.places$}{prefix}", x / by),
        }
    }
}

/// The next of 1, 2, 5, 10, … that is not below.
fn round(x: f64) -> f64 {
    let ten = 10f64.powf(x.log10().floor());
    let round = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|n| n * ten >= x * (1.0 - 1e-9));
    round.unwrap_or(10.0) * ten
}

/// Where labels lie across, if all of them are numbers: by their logarithm
/// where they go over more than a factor of eight.
pub(super) fn places(labels: &[String]) -> Option<Vec<f64>> {
    let number = |label: &String| label.parse::<f64>().ok().filter(|x| x.is_finite());
    let numbers: Vec<f64> = labels.iter().map(number).collect::<Option<_>>()?;
    let ends = |all: &[f64]| {
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (low, high)
    };
    let (low, high) = ends(&numbers);
    let numbers: Vec<f64> = match low > 0.0 && high / low > 8.0 {
        true => numbers.iter().map(|x| x.log2()).collect(),
        false => numbers,
    };
    let (low, high) = ends(&numbers);
    let share = |x: &f64| match high > low {
        true => (x - low) / (high - low),
        false => 0.5,
    };
    Some(numbers.iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: &[f64], from_zero: bool) -> Vec<String> {
        let axis = Axis::around(numbers.iter().copied(), from_zero);
        axis.ticks().map(|x| axis.name(x)).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_numbers() {
        assert_eq!(
            names(&[93.0, 101.0], false),
            ["92", "94", "96", "98", "100", "102"]
        );
        assert_eq!(names(&[93.0, 101.0], true), ["0", "50", "100", "150"]);
        assert_eq!(
            names(&[10.0, 100.0], false),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            names(&[0.31], false),
            ["0.31", "0.32", "0.33", "0.34", "0.35"]
        );
        assert_eq!(
            names(&[0.0], false),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            names(&[52030.0, 12.0], false),
            ["0", "20 k", "40 k", "60 k"]
        );
        assert_eq!(names(&[], false).len(), 6);
        assert_eq!(names(&[f64::NAN, f64::INFINITY], false).len(), 6);
    }

    #[test]
    fn a_number_lies_between_the_ends() {
        let axis = Axis::around([10.0, 100.0], false);
        assert_eq!((axis.share(0.0), axis.share(100.0)), (0.0, 1.0));
    }

    #[test]
    fn numbers_lie_where_they_belong_and_names_do_not() {
        let of = |text: &str| {
            let labels: Vec<_> = text.split(' ').map(str::to_owned).collect();
            places(&labels)
        };
        assert_eq!(of("1 2 5"), Some(vec![0.0, 0.25, 1.0]));
        assert_eq!(of("4 64 16"), Some(vec![0.0, 1.0, 0.5]));
        assert_eq!(of("0 100"), Some(vec![0.0, 1.0]));
        assert_eq!(of("7"), Some(vec![0.5]));
        assert_eq!(of("1 two"), None);
        assert_eq!(of("nan 1"), None);
    }
}
