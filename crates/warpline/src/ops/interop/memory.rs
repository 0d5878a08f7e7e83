//! cudarc's memory that ops take, and its elements.

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DevicePtr, DevicePtrMut};
use warpline_ir::DType;

/// An element type that ops have.
///
/// No op takes f64:
///
/// ```compile_fail,E0277
/// fn element<T: warpline::ops::interop::Element>() {}
/// element::<f64>();
/// ```
///
/// For slices of `half::f16` and `half::bf16`, cudarc needs its feature `f16`.
pub trait Element: sealed::Element {
    /// The same type in our words.
    const DTYPE: DType;
}

/// Memory of cudarc's that an op can read. Sealed, as cudarc's [`DevicePtr`]
/// is not: anyone may implement that one, with any address.
pub trait Readable<T>: DevicePtr<T> + sealed::Memory {}

/// Memory of cudarc's that an op can write. Sealed, as [`Readable`] is.
pub trait Writable<T>: DevicePtrMut<T> + sealed::Memory {}

impl<T> Readable<T> for CudaSlice<T> {}
impl<T> Readable<T> for CudaView<'_, T> {}
impl<T> Readable<T> for CudaViewMut<'_, T> {}
impl<T> Writable<T> for CudaSlice<T> {}
impl<T> Writable<T> for CudaViewMut<'_, T> {}

mod sealed {
    use super::{CudaSlice, CudaView, CudaViewMut};

    pub trait Element {}
    pub trait Memory {}

    impl<T> Memory for CudaSlice<T> {}
    impl<T> Memory for CudaView<'_, T> {}
    impl<T> Memory for CudaViewMut<'_, T> {}
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),+ $(,)?) => {$(
        impl sealed::Element for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )+};
}

elements! {
    u8 => U8,
    u16 => U16,
    u32 => U32,
    i32 => I32,
    u64 => U64,
    i64 => I64,
    f32 => F32,
    half::f16 => F16,
    half::bf16 => Bf16,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees<T: Element>() {
        assert_eq!(T::DTYPE.bytes(), size_of::<T>(), "{}", T::DTYPE);
    }

    #[test]
    fn elements_are_as_wide_as_ours() {
        agrees::<u8>();
        agrees::<u16>();
        agrees::<u32>();
        agrees::<i32>();
        agrees::<u64>();
        agrees::<i64>();
        agrees::<f32>();
        agrees::<half::f16>();
        agrees::<half::bf16>();
    }
}
