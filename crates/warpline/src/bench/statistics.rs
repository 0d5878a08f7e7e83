//! Medians and quartiles.

use serde::Serialize;

/// A sample in five numbers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Quartiles {
    /// How many values.
    pub count: usize,
    /// The least.
    pub least: f64,
    /// A quarter lie below.
    pub lower: f64,
    /// Half lie below.
    pub median: f64,
    /// A quarter lie above.
    pub upper: f64,
    /// The greatest.
    pub most: f64,
}

impl Quartiles {
    /// Of values in any order; none of no values.
    ///
    /// ```
    /// use warpline::bench::statistics::Quartiles;
    /// let five = Quartiles::new([5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
    /// assert_eq!((five.lower, five.median, five.upper), (2.0, 3.0, 4.0));
    /// assert_eq!(five.spread(), 2.0 / 3.0);
    /// assert!(Quartiles::new([]).is_none());
    /// ```
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        Some(Self {
            count: sorted.len(),
            least,
            lower: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper: quantile(&sorted, 0.75),
            most,
        })
    }

    /// The middle half, as a share of the median.
    pub fn spread(&self) -> f64 {
        (self.upper - self.lower) / self.median
    }
}

/// The value below which the given share of a sorted sample lies, between
/// neighbours in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours_in_proportion() {
        let four = Quartiles::new([40.0, 10.0, 30.0, 20.0]).unwrap();
        assert_eq!((four.least, four.most, four.count), (10.0, 40.0, 4));
        assert_eq!((four.lower, four.median, four.upper), (17.5, 25.0, 32.5));
    }

    #[test]
    fn one_value_is_every_quartile_and_has_no_spread() {
        let one = Quartiles::new([7.0]).unwrap();
        assert_eq!((one.lower, one.median, one.upper), (7.0, 7.0, 7.0));
        assert_eq!(one.spread(), 0.0);
    }

    #[test]
    fn one_slow_run_moves_no_quartile_of_many() {
        let even = Quartiles::new((0..15).map(|_| 1.0)).unwrap();
        let one_slow = Quartiles::new((0..15).map(|i| if i == 3 { 50.0 } else { 1.0 })).unwrap();
        assert_eq!(one_slow.median, even.median);
        assert_eq!((one_slow.spread(), one_slow.most), (0.0, 50.0));
    }
}
