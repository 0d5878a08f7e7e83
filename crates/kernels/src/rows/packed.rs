//! Units of a row in their memory format.

use super::config::Config;
use super::element::RowElement;
use super::partition::{RowParams, UnitIndex};
use warpline_ir::builder::*;

/// A unit in its memory format: 16 bytes, or one element.
#[derive(Clone)]
pub(super) enum PackedUnit<E: RowElement> {
    Vector([Reg<E::Word>; 4]),
    Scalar(Reg<E::Reg>),
}

impl<E: RowElement> PackedUnit<E> {
    /// Loads a unit of the row segment that starts at `from`.
    #[track_caller]
    pub(super) fn load(from: Global<E>, unit: UnitIndex, c: &Config) -> Self {
        let size = c.unit_len(RowParams::<E>::SIZE);
        let from = from.offset(unit.base * size);
        match c.vectors {
            true => PackedUnit::Vector(from.load_as(unit.offset * size)),
            false => PackedUnit::Scalar(from.load(unit.offset * size)),
        }
    }

    /// Stores a unit of the row segment that starts at `to`.
    #[track_caller]
    pub(super) fn store(self, to: Global<E>, unit: UnitIndex, c: &Config) {
        let size = c.unit_len(RowParams::<E>::SIZE);
        let to = to.offset(unit.base * size);
        match self {
            PackedUnit::Vector(words) => to.store_as(unit.offset * size, words),
            PackedUnit::Scalar(x) => to.store(unit.offset * size, x),
        }
    }

    #[track_caller]
    pub(super) fn widen(self) -> Vec<Reg<f32>> {
        match self {
            PackedUnit::Vector(words) => E::widen(words),
            PackedUnit::Scalar(x) => vec![E::widen_one(x)],
        }
    }

    #[track_caller]
    pub(super) fn narrow(values: &[Reg<f32>], c: &Config) -> Self {
        match c.vectors {
            true => PackedUnit::Vector(E::narrow(values)),
            false => PackedUnit::Scalar(E::narrow_one(values[0])),
        }
    }
}
