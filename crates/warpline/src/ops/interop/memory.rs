//! cudarc memory and element types that ops accept.

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DevicePtr, DevicePtrMut};
use warpline_ir::DType;

/// An element type that ops support.
///
/// No op takes f64:
///
/// ```compile_fail,E0277
/// fn element<T: warpline::ops::interop::CudarcElement>() {}
/// element::<f64>();
/// ```
///
/// For slices of `half::f16` and `half::bf16`, cudarc needs its feature `f16`.
pub trait CudarcElement: sealed::CudarcElement {
    /// The Warpline element type.
    const DTYPE: DType;
}

/// cudarc memory that an op can read. Sealed, because any crate can implement cudarc's [`DevicePtr`]
/// with any address.
pub trait Readable<T>: DevicePtr<T> + sealed::Memory {}

/// cudarc memory that an op can write. Sealed like [`Readable`].
pub trait Writable<T>: DevicePtrMut<T> + sealed::Memory {}

impl<T> Readable<T> for CudaSlice<T> {}
impl<T> Readable<T> for CudaView<'_, T> {}
impl<T> Readable<T> for CudaViewMut<'_, T> {}
impl<T> Writable<T> for CudaSlice<T> {}
impl<T> Writable<T> for CudaViewMut<'_, T> {}

mod sealed {
    use super::{CudaSlice, CudaView, CudaViewMut};

    pub trait CudarcElement {}
    pub trait Memory {}

    impl<T> Memory for CudaSlice<T> {}
    impl<T> Memory for CudaView<'_, T> {}
    impl<T> Memory for CudaViewMut<'_, T> {}
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),+ $(,)?) => {$(
        impl sealed::CudarcElement for $ty {}
        impl CudarcElement for $ty {
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

    fn check_size<T: CudarcElement>() {
        assert_eq!(T::DTYPE.bytes(), size_of::<T>(), "{}", T::DTYPE);
    }

    #[test]
    fn element_sizes_match() {
        check_size::<u8>();
        check_size::<u16>();
        check_size::<u32>();
        check_size::<i32>();
        check_size::<u64>();
        check_size::<i64>();
        check_size::<f32>();
        check_size::<half::f16>();
        check_size::<half::bf16>();
    }
}
