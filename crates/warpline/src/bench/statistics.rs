//! Medians and quartiles.

use serde::Serialize;

/// The five-number summary of a sample.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Quartiles {
    /// The number of values.
    pub count: usize,
    /// The minimum.
    pub min: f64,
    /// The first quartile.
    pub q1: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub q3: f64,
    /// The maximum.
    pub max: f64,
}

impl Quartiles {
    /// Computes the summary of values in any order; `None` for no values.
    ///
    /// ```
    /// use warpline::bench::statistics::Quartiles;
    /// let five = Quartiles::new([5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
    /// assert_eq!((five.q1, five.median, five.q3), (2.0, 3.0, 4.0));
    /// assert_eq!(five.spread(), 2.0 / 3.0);
    /// assert!(Quartiles::new([]).is_none());
    /// ```
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self {
            count: sorted.len(),
            min,
            q1: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            q3: quantile(&sorted, 0.75),
            max,
        })
    }

    /// Returns the interquartile range divided by the median.
    pub fn spread(&self) -> f64 {
        (self.q3 - self.q1) / self.median
    }
}

/// Returns a quantile of a sorted sample by linear interpolation between neighbors.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let position = p * (sorted.len() - 1) as f64;
    let (below, fraction) = (position.floor() as usize, position.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let four = Quartiles::new([40.0, 10.0, 30.0, 20.0]).unwrap();
        assert_eq!((four.min, four.max, four.count), (10.0, 40.0, 4));
        assert_eq!((four.q1, four.median, four.q3), (17.5, 25.0, 32.5));
    }

    #[test]
    fn a_single_value_has_no_spread() {
        let one = Quartiles::new([7.0]).unwrap();
        assert_eq!((one.q1, one.median, one.q3), (7.0, 7.0, 7.0));
        assert_eq!(one.spread(), 0.0);
    }

    #[test]
    fn one_outlier_moves_no_quartile() {
        let even = Quartiles::new((0..15).map(|_| 1.0)).unwrap();
        let one_slow = Quartiles::new((0..15).map(|i| if i == 3 { 50.0 } else { 1.0 })).unwrap();
        assert_eq!(one_slow.median, even.median);
        assert_eq!((one_slow.spread(), one_slow.max), (0.0, 50.0));
    }
}
