//! Points as they are given, and as they are worked out.

use super::lanes::Lanes;
use super::level::Level;
use super::line::Line;
use super::problem::Class;
use super::record::{Made, Record};
use super::texel::{Number, Texel};
use warpline_ir::build::*;

/// Points as they were given: x and y of each, and weights, in words as they
/// were read, or one number a word.
#[derive(Clone)]
pub(super) struct Raw {
    pub(super) words: Vec<Reg<u32>>,
    /// Of these, words of places; the others are of weights.
    places: usize,
}

impl Raw {
    /// The same, with other words.
    pub(super) fn with(&self, words: Vec<Reg<u32>>) -> Self {
        Self {
            words,
            places: self.places,
        }
    }
}

/// Which points a lane works out, when the lanes of a query share them.
pub(super) struct Own<'a, E, N> {
    line: &'a Line<E, N>,
    /// Its place among the lanes of its query.
    within: Reg<u32>,
    /// The level of its points, where all lie in one.
    level: Option<Level>,
}

impl<'a, E: Texel, N: Number> Own<'a, E, N> {
    #[track_caller]
    pub(super) fn new(line: &'a Line<E, N>, within: Reg<u32>) -> Self {
        let (class, lanes) = (&line.class, &line.lanes);
        let each = lanes.per_lane(class);
        let single = lanes.is_dense(class) && class.points.is_multiple_of(each);
        let level = single.then(|| line.level_of(point(class, lanes, within, 0) / class.points));
        Self {
            line,
            within,
            level,
        }
    }

    /// Reads a lane's points of the query and head of that number.
    #[track_caller]
    pub(super) fn read(&self, number: Reg<u32>) -> Raw {
        let (class, lanes) = (&self.line.class, &self.line.lanes);
        let (all, each) = (class.all_points(), lanes.per_lane(class));
        let places = self.line.locations.offset(number.mul_wide(2 * all));
        let weights = self.line.weights.offset(number.mul_wide(all));
        if self.packed() {
            let first = self.within * each;
            let mut words = N::words(places, first * 2, 2 * each);
            let count = words.len();
            words.extend(N::words(weights, first, each));
            return Raw {
                words,
                places: count,
            };
        }
        let one = |from: Global<N>, at: Reg<u32>| N::one(from, at).bitcast::<u32>();
        let points = (0..each).map(|i| point(class, lanes, self.within, i));
        let points: Vec<_> = points.collect();
        let mut words: Vec<_> = (points.iter())
            .flat_map(|&p| [one(places, p * 2), one(places, p * 2 + 1)])
            .collect();
        words.extend(points.iter().map(|&p| one(weights, p)));
        Raw {
            words,
            places: 2 * each as usize,
        }
    }

    /// Does a lane read its points as whole words?
    fn packed(&self) -> bool {
        let (class, lanes) = (&self.line.class, &self.line.lanes);
        lanes.is_dense(class) && lanes.per_lane(class).is_multiple_of(N::PER_WORD)
    }

    /// The records of a lane's points.
    #[track_caller]
    pub(super) fn records(&self, raw: &Raw) -> Vec<Record> {
        let (class, lanes) = (&self.line.class, &self.line.lanes);
        let numbers = |words: &[Reg<u32>]| -> Vec<Reg<f32>> {
            match self.packed() {
                true => words.iter().flat_map(|&w| N::of_word(w)).collect(),
                false => words.iter().map(|w| w.bitcast()).collect(),
            }
        };
        let (places, weights) = raw.words.split_at(raw.places);
        let (places, weights) = (numbers(places), numbers(weights));
        let points: Vec<Made> = (places.chunks(2).zip(weights).enumerate())
            .map(|(i, (place, weight))| {
                let level = self.level.unwrap_or_else(|| {
                    let point = point(class, lanes, self.within, i as u32);
                    self.line.level_of(point / class.points)
                });
                made::<E>(lanes.sides, &level, [place[0], place[1]], weight)
            })
            .collect();
        self.line.format().records(&points)
    }
}

/// The point of a lane of that number: its points are neighbours, or those of
/// neighbouring lanes are. What is behind the last is worked out, and not read.
#[track_caller]
fn point(class: &Class, lanes: &Lanes, within: Reg<u32>, i: u32) -> Reg<u32> {
    match lanes.is_dense(class) {
        true => within * lanes.per_lane(class) + i,
        false => (within + i * lanes.group()).min(class.all_points() - 1),
    }
}

/// A point, for as many sides.
#[track_caller]
pub(super) fn made<E: Texel>(
    sides: u32,
    level: &Level,
    place: [Reg<f32>; 2],
    weight: Reg<f32>,
) -> Made {
    let window = level.window(place, weight);
    let [up, down] = window.weights;
    let weights = match sides {
        1 => vec![E::hand(&[up[0], up[1], down[0], down[1]])],
        _ => (0..2).map(|i| E::hand(&[up[i], down[i]])).collect(),
    };
    Made {
        pixel: level.pixel(&window),
        weights,
    }
}
