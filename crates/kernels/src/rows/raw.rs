//! Units of a row as they lie in memory.

use super::cell::Cell;
use super::config::Config;
use super::seat::{Io, Unit};
use warpline_ir::build::*;

/// A unit as it lies in memory.
#[derive(Clone)]
pub(super) enum Raw<E: Cell> {
    Vector([Reg<E::Word>; 4]),
    One(Reg<E::Reg>),
}

impl<E: Cell> Raw<E> {
    /// Reads a unit of what starts at `from`.
    #[track_caller]
    pub(super) fn load(from: Global<E>, unit: Unit, c: &Config) -> Self {
        let size = c.unit(Io::<E>::SIZE);
        let from = from.offset(unit.first * size);
        match c.vectors {
            true => Raw::Vector(from.load_as(unit.plus * size)),
            false => Raw::One(from.load(unit.plus * size)),
        }
    }

    /// Writes a unit of what starts at `to`.
    #[track_caller]
    pub(super) fn store(self, to: Global<E>, unit: Unit, c: &Config) {
        let size = c.unit(Io::<E>::SIZE);
        let to = to.offset(unit.first * size);
        match self {
            Raw::Vector(words) => to.store_as(unit.plus * size, words),
            Raw::One(x) => to.store(unit.plus * size, x),
        }
    }

    #[track_caller]
    pub(super) fn widen(self) -> Vec<Reg<f32>> {
        match self {
            Raw::Vector(words) => E::widen(words),
            Raw::One(x) => vec![E::widen_one(x)],
        }
    }

    #[track_caller]
    pub(super) fn narrow(values: &[Reg<f32>], c: &Config) -> Self {
        match c.vectors {
            true => Raw::Vector(E::narrow(values)),
            false => Raw::One(E::narrow_one(values[0])),
        }
    }
}
