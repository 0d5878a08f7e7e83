//! Scales and tick labels of an axis.

/// A linear scale with round ends and steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Returns a scale of about five steps that contains the numbers; it starts at 0 if
    /// `from_zero` or if the smallest number is below 60 % of the largest.
    pub(super) fn enclosing(numbers: impl IntoIterator<Item = f64>, from_zero: bool) -> Self {
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
        // Equal numbers need a scale of positive length.
        let length = match high - low {
            length if length > 0.0 => length,
            _ if high == 0.0 => 1.0,
            _ => 0.1 * high.abs(),
        };
        let step = round_up(length / 5.0);
        Self {
            low: (low / step).floor() * step,
            high: ((low + length) / step).ceil() * step,
            step,
        }
    }

    /// Returns the position of a number: 0 at the low end, 1 at the high end.
    pub(super) fn fraction(&self, x: f64) -> f64 {
        (x - self.low) / (self.high - self.low)
    }

    /// Returns the ticks.
    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> {
        let (low, step) = (self.low, self.step);
        let count = ((self.high - low) / step).round() as usize;
        (0..=count).map(move |i| low + i as f64 * step)
    }

    /// Formats a tick with enough digits to distinguish neighbors.
    pub(super) fn label(&self, x: f64) -> String {
        let prefixes = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")];
        let (divisor, prefix) = match prefixes.iter().find(|(least, _)| self.high >= *least) {
            // From 10000 on, in thousands.
            Some((1e4, prefix)) => (1e3, *prefix),
            Some((divisor, prefix)) => (*divisor, *prefix),
            None => (1.0, ""),
        };
        let decimals = -(self.step / divisor).log10().floor();
        let places = decimals.clamp(0.0, 9.0) as usize;
        match x {
            0.0 => "0".into(),
            x => format!("{:.places$}{prefix}", x / divisor),
        }
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let round = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|n| n * power >= x * (1.0 - 1e-9));
    round.unwrap_or(10.0) * power
}

/// Returns the position of each label on the axis, from 0 to 1; none if a label is not a
/// number. The axis is logarithmic if the numbers span more than a factor of eight.
pub(super) fn axis_positions(labels: &[String]) -> Option<Vec<f64>> {
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
    let fraction = |x: &f64| match high > low {
        true => (x - low) / (high - low),
        false => 0.5,
    };
    Some(numbers.iter().map(fraction).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(numbers: &[f64], from_zero: bool) -> Vec<String> {
        let axis = Axis::enclosing(numbers.iter().copied(), from_zero);
        axis.ticks().map(|x| axis.label(x)).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_numbers() {
        assert_eq!(
            labels(&[93.0, 101.0], false),
            ["92", "94", "96", "98", "100", "102"]
        );
        assert_eq!(labels(&[93.0, 101.0], true), ["0", "50", "100", "150"]);
        assert_eq!(
            labels(&[10.0, 100.0], false),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            labels(&[0.31], false),
            ["0.31", "0.32", "0.33", "0.34", "0.35"]
        );
        assert_eq!(
            labels(&[0.0], false),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&[52030.0, 12.0], false),
            ["0", "20 k", "40 k", "60 k"]
        );
        assert_eq!(labels(&[], false).len(), 6);
        assert_eq!(labels(&[f64::NAN, f64::INFINITY], false).len(), 6);
    }

    #[test]
    fn fraction_is_0_and_1_at_the_ends() {
        let axis = Axis::enclosing([10.0, 100.0], false);
        assert_eq!((axis.fraction(0.0), axis.fraction(100.0)), (0.0, 1.0));
    }

    #[test]
    fn numbers_have_positions_and_names_do_not() {
        let positions = |text: &str| {
            let labels: Vec<_> = text.split(' ').map(str::to_owned).collect();
            axis_positions(&labels)
        };
        assert_eq!(positions("1 2 5"), Some(vec![0.0, 0.25, 1.0]));
        assert_eq!(positions("4 64 16"), Some(vec![0.0, 1.0, 0.5]));
        assert_eq!(positions("0 100"), Some(vec![0.0, 1.0]));
        assert_eq!(positions("7"), Some(vec![0.5]));
        assert_eq!(positions("1 two"), None);
        assert_eq!(positions("nan 1"), None);
    }
}
