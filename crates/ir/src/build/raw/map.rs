//! Copies by tensor maps.

use super::barrier::BarHandle;
use crate::build::reg::{Coords, Value};
use crate::build::state::{emit, with};
use crate::build::tile::TileRef;
use crate::ops::bulk::{CacheHint, Reduction};
use crate::ops::tensor::{TensorLoad, TensorPrefetch, TensorPrefetchBox, TensorStore};
use crate::types::Element;
use crate::value::{Operand, ParamId};

/// A declared tensor map.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub(crate) id: ParamId,
    pub(crate) bytes: u32,
}

impl Map {
    /// Bytes that one copy moves.
    pub fn bytes(self) -> u32 {
        self.bytes
    }

    /// Brings the map itself close (`prefetch.tensormap`).
    #[track_caller]
    pub fn prefetch(self) {
        emit(TensorPrefetch { map: self.id });
    }

    /// Copies the box at `coords` (innermost first) into a view; its bytes complete on `bar`.
    #[track_caller]
    pub fn load<T: Element, const R: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        bar: BarHandle,
    ) {
        self.load_with(to, coords, bar, None, None);
    }

    /// As [`load`](Self::load), to every CTA of the cluster in `mask`, with a cache hint.
    #[track_caller]
    pub fn load_with<T: Element, const R: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        bar: BarHandle,
        mask: Option<Operand>,
        hint: Option<CacheHint>,
    ) {
        if mask.is_some() {
            with(|s| s.remote = true);
        }
        emit(TensorLoad {
            map: self.id,
            dst: to.view,
            coords: coords.coords().to_vec(),
            offsets: Vec::new(),
            bar: bar.0,
            multicast: mask,
            hint,
        });
    }

    /// Copies pixels of an im2col map: `coords` as for a tile, `offsets` inside the window.
    #[track_caller]
    pub fn load_im2col<T: Element, const R: usize, const O: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        offsets: [impl Value<u16>; O],
        bar: BarHandle,
    ) {
        self.load_im2col_with(to, coords, offsets, bar, None, None);
    }

    /// As [`load_im2col`](Self::load_im2col), to every CTA of the cluster in `mask`, with a cache hint.
    #[track_caller]
    pub fn load_im2col_with<T: Element, const R: usize, const O: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        offsets: [impl Value<u16>; O],
        bar: BarHandle,
        mask: Option<Operand>,
        hint: Option<CacheHint>,
    ) {
        if mask.is_some() {
            with(|s| s.remote = true);
        }
        emit(TensorLoad {
            map: self.id,
            dst: to.view,
            coords: coords.coords().to_vec(),
            offsets: offsets.iter().map(|o| o.operand()).collect(),
            bar: bar.0,
            multicast: mask,
            hint,
        });
    }

    /// Copies a view to the box at `coords`, none of them negative, as part of the thread's
    /// bulk group.
    #[track_caller]
    pub fn store<T: Element, const R: usize>(self, from: TileRef<T>, coords: impl Coords<R>) {
        self.store_with(from, coords, None);
    }

    /// As [`store`](Self::store), with a cache hint.
    #[track_caller]
    pub fn store_with<T: Element, const R: usize>(
        self,
        from: TileRef<T>,
        coords: impl Coords<R>,
        hint: Option<CacheHint>,
    ) {
        emit(TensorStore {
            hint,
            ..self.storing(from, coords)
        });
    }

    /// Combines a view with the box at `coords`, as part of the thread's bulk group.
    #[track_caller]
    pub fn reduce<T: Element, const R: usize>(
        self,
        how: Reduction,
        from: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        emit(TensorStore {
            reduce: Some(how),
            ..self.storing(from, coords)
        });
    }

    /// Copies a view to pixels of an im2col map, as part of the thread's bulk group.
    #[track_caller]
    pub fn store_im2col<T: Element, const R: usize>(
        self,
        from: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        emit(TensorStore {
            im2col: true,
            ..self.storing(from, coords)
        });
    }

    fn storing<T: Element, const R: usize>(
        self,
        from: TileRef<T>,
        coords: impl Coords<R>,
    ) -> TensorStore {
        TensorStore {
            map: self.id,
            src: from.view,
            coords: coords.coords().to_vec(),
            im2col: false,
            reduce: None,
            hint: None,
        }
    }

    /// Brings the box at `coords` to the L2.
    #[track_caller]
    pub fn prefetch_box<const R: usize>(self, coords: impl Coords<R>, hint: Option<CacheHint>) {
        emit(TensorPrefetchBox {
            map: self.id,
            coords: coords.coords().to_vec(),
            offsets: Vec::new(),
            hint,
        });
    }

    /// Brings pixels of an im2col map to the L2.
    #[track_caller]
    pub fn prefetch_im2col<const R: usize, const O: usize>(
        self,
        coords: impl Coords<R>,
        offsets: [impl Value<u16>; O],
        hint: Option<CacheHint>,
    ) {
        emit(TensorPrefetchBox {
            map: self.id,
            coords: coords.coords().to_vec(),
            offsets: offsets.iter().map(|o| o.operand()).collect(),
            hint,
        });
    }
}
