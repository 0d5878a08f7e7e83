//! Kernel arguments and tensor maps for the driver.

use warpline_cuda::{
    Args, Context, CudaError, EncodedTensorMap, GlobalTensor, Im2colMap, TensorMapSwizzle,
    TensorMapType, TiledMap,
};
use warpline_ir::{Arg, DType, Launch, ParamKind, TensorMapMode, TensorMapValue, Type};

/// Returns the size of a parameter in PTX, in bytes.
pub(super) fn param_bytes(kind: &ParamKind) -> usize {
    match kind {
        ParamKind::Scalar(ty) => ty.bytes().max(1),
        ParamKind::Pointer(_) => 8,
        ParamKind::TensorMap(_) => 128,
    }
}

/// Encodes the arguments for the driver.
pub(super) fn encode_args(launch: &Launch, context: &Context) -> Result<Args, CudaError> {
    let mut args = Args::new();
    for arg in &launch.args {
        match arg {
            Arg::Pointer(address) => args.pointer(*address),
            Arg::Scalar(ty, bits) => push_scalar(&mut args, *ty, *bits),
            Arg::TensorMap(map) => args.tensor_map(&encode_tensor_map(map, context)?),
        };
    }
    Ok(args)
}

/// Appends a scalar with the size of its PTX type.
fn push_scalar(args: &mut Args, ty: Type, bits: u64) -> &mut Args {
    match ty.bytes() {
        0 | 1 => args.push(bits as u8),
        2 => args.push(bits as u16),
        8 => args.push(bits),
        _ => args.push(bits as u32),
    }
}

fn encode_tensor_map(
    map: &TensorMapValue,
    context: &Context,
) -> Result<EncodedTensorMap, CudaError> {
    let decl = &map.decl;
    let dtype = data_type(decl.dtype);
    let mut tensor = GlobalTensor::new(dtype, map.base, &map.extents, &map.strides);
    tensor.swizzle = swizzle(decl.swizzle);
    let (lower, upper, channels, pixels, element_strides) = match &decl.mode {
        TensorMapMode::Tiled | TensorMapMode::Strided { .. } => {
            let box_sides: Vec<_> = (0..decl.rank()).map(|i| decl.box_extent(i)).collect();
            let strides: Vec<_> = (0..decl.rank()).map(|i| decl.element_stride(i)).collect();
            let mut tiled = TiledMap::new(tensor, &box_sides);
            tiled.element_strides = &strides;
            return EncodedTensorMap::tiled(context, &tiled);
        }
        TensorMapMode::Im2col {
            lower,
            upper,
            channels,
            pixels,
            element_strides,
        } => (lower, upper, *channels, *pixels, element_strides),
    };
    let im2col = Im2colMap {
        tensor,
        lower,
        upper,
        channels,
        pixels,
        element_strides,
    };
    EncodedTensorMap::im2col(context, &im2col)
}

fn swizzle(swizzle: warpline_ir::Swizzle) -> TensorMapSwizzle {
    match swizzle {
        warpline_ir::Swizzle::None => TensorMapSwizzle::None,
        warpline_ir::Swizzle::B32 => TensorMapSwizzle::B32,
        warpline_ir::Swizzle::B64 => TensorMapSwizzle::B64,
        warpline_ir::Swizzle::B128 => TensorMapSwizzle::B128,
    }
}

fn data_type(dtype: DType) -> TensorMapType {
    match dtype {
        DType::U8 | DType::E4m3 | DType::E5m2 => TensorMapType::U8,
        DType::U16 => TensorMapType::U16,
        DType::U32 => TensorMapType::U32,
        DType::I32 => TensorMapType::I32,
        DType::U64 => TensorMapType::U64,
        DType::I64 => TensorMapType::I64,
        DType::F32 => TensorMapType::F32,
        DType::Tf32 => TensorMapType::Tf32,
        DType::F16 => TensorMapType::F16,
        DType::Bf16 => TensorMapType::Bf16,
    }
}
