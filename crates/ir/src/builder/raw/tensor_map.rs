//! TMA copies with tensor maps.

use super::barrier::MbarrierHandle;
use crate::builder::reg::{Coords, Value};
use crate::builder::state::{emit, with};
use crate::builder::tile::TileRef;
use crate::ops::bulk::{CacheHint, Reduction};
use crate::ops::tensor::{TensorLoad, TensorPrefetch, TensorPrefetchBox, TensorStore};
use crate::types::Element;
use crate::value::{Operand, ParamId};

/// A tensor-map parameter.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap {
    pub(crate) id: ParamId,
    pub(crate) bytes: u32,
}

impl TensorMap {
    /// Returns the bytes of one box.
    pub fn bytes(self) -> u32 {
        self.bytes
    }

    /// Prefetches the tensor map itself (`prefetch.tensormap`).
    #[track_caller]
    pub fn prefetch(self) {
        emit(TensorPrefetch { map: self.id });
    }

    /// Issues a TMA load of the box at `coords` (innermost first) into a view; its bytes complete
    /// on `bar`.
    #[track_caller]
    pub fn load<T: Element, const R: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        bar: MbarrierHandle,
    ) {
        self.load_with(to, coords, bar, None, None);
    }

    /// Like [`load`](Self::load), with a multicast CTA mask and an L2 cache hint.
    #[track_caller]
    pub fn load_with<T: Element, const R: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        bar: MbarrierHandle,
        mask: Option<Operand>,
        hint: Option<CacheHint>,
    ) {
        if mask.is_some() {
            with(|s| s.accesses_peers = true);
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

    /// Issues an im2col TMA load: `coords` as for a tiled load, `offsets` inside the window.
    #[track_caller]
    pub fn load_im2col<T: Element, const R: usize, const O: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        offsets: [impl Value<u16>; O],
        bar: MbarrierHandle,
    ) {
        self.load_im2col_with(to, coords, offsets, bar, None, None);
    }

    /// Like [`load_im2col`](Self::load_im2col), with a multicast CTA mask and an L2 cache hint.
    #[track_caller]
    pub fn load_im2col_with<T: Element, const R: usize, const O: usize>(
        self,
        to: TileRef<T>,
        coords: impl Coords<R>,
        offsets: [impl Value<u16>; O],
        bar: MbarrierHandle,
        mask: Option<Operand>,
        hint: Option<CacheHint>,
    ) {
        if mask.is_some() {
            with(|s| s.accesses_peers = true);
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

    /// Issues a TMA store of a view to the box at `coords`, which are not negative, in the
    /// thread's bulk group.
    #[track_caller]
    pub fn store<T: Element, const R: usize>(self, from: TileRef<T>, coords: impl Coords<R>) {
        self.store_with(from, coords, None);
    }

    /// Like [`store`](Self::store), with an L2 cache hint.
    #[track_caller]
    pub fn store_with<T: Element, const R: usize>(
        self,
        from: TileRef<T>,
        coords: impl Coords<R>,
        hint: Option<CacheHint>,
    ) {
        emit(TensorStore {
            hint,
            ..self.tensor_store(from, coords)
        });
    }

    /// Issues a TMA reduction of a view into the box at `coords`, in the thread's bulk group.
    #[track_caller]
    pub fn reduce<T: Element, const R: usize>(
        self,
        op: Reduction,
        from: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        emit(TensorStore {
            reduce: Some(op),
            ..self.tensor_store(from, coords)
        });
    }

    /// Issues an im2col TMA store of a view, in the thread's bulk group.
    #[track_caller]
    pub fn store_im2col<T: Element, const R: usize>(
        self,
        from: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        emit(TensorStore {
            im2col: true,
            ..self.tensor_store(from, coords)
        });
    }

    fn tensor_store<T: Element, const R: usize>(
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

    /// Prefetches the box at `coords` into L2.
    #[track_caller]
    pub fn prefetch_box<const R: usize>(self, coords: impl Coords<R>, hint: Option<CacheHint>) {
        emit(TensorPrefetchBox {
            map: self.id,
            coords: coords.coords().to_vec(),
            offsets: Vec::new(),
            hint,
        });
    }

    /// Prefetches an im2col box into L2.
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
