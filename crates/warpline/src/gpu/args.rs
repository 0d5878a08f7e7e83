//! Arguments and tensor maps as the driver takes them.

use warpline_cuda::{
    Args, Context, CudaError, DataType, Im2col, Swizzle, Tensor, TensorMap, Tiled,
};
use warpline_ir::{Arg, DType, Launch, MapMode, ParamKind, TensorMapValue, Type};

/// Bytes of a parameter, as it is declared in PTX.
pub(super) fn size(kind: &ParamKind) -> usize {
    match kind {
        ParamKind::Scalar(ty) => ty.bytes().max(1),
        ParamKind::Pointer(_) => 8,
        ParamKind::TensorMap(_) => 128,
    }
}

/// The arguments as the driver takes them.
pub(super) fn args(launch: &Launch, context: &Context) -> Result<Args, CudaError> {
    let mut args = Args::new();
    for arg in &launch.args {
        match arg {
            Arg::Pointer(address) => args.pointer(*address),
            Arg::Scalar(ty, bits) => scalar(&mut args, *ty, *bits),
            Arg::TensorMap(map) => args.tensor_map(&tensor_map(map, context)?),
        };
    }
    Ok(args)
}

/// Appends a number, as wide as its type is in PTX.
fn scalar(args: &mut Args, ty: Type, bits: u64) -> &mut Args {
    match ty.bytes() {
        0 | 1 => args.push(bits as u8),
        2 => args.push(bits as u16),
        8 => args.push(bits),
        _ => args.push(bits as u32),
    }
}

fn tensor_map(map: &TensorMapValue, context: &Context) -> Result<TensorMap, CudaError> {
    let decl = &map.decl;
    let dtype = data_type(decl.dtype);
    let mut tensor = Tensor::new(dtype, map.base, &map.extents, &map.strides);
    tensor.swizzle = swizzle(decl.swizzle);
    let (lower, upper, channels, pixels, element_strides) = match &decl.mode {
        MapMode::Tiled | MapMode::Stepped { .. } => {
            let sides: Vec<_> = (0..decl.rank()).map(|i| decl.box_side(i)).collect();
            let steps: Vec<_> = (0..decl.rank()).map(|i| decl.step(i)).collect();
            let mut tiled = Tiled::new(tensor, &sides);
            tiled.element_strides = &steps;
            return TensorMap::tiled(context, &tiled);
        }
        MapMode::Im2col {
            lower,
            upper,
            channels,
            pixels,
            steps,
        } => (lower, upper, *channels, *pixels, steps),
    };
    let im2col = Im2col {
        tensor,
        lower,
        upper,
        channels,
        pixels,
        element_strides,
    };
    TensorMap::im2col(context, &im2col)
}

fn swizzle(swizzle: warpline_ir::Swizzle) -> Swizzle {
    match swizzle {
        warpline_ir::Swizzle::None => Swizzle::None,
        warpline_ir::Swizzle::B32 => Swizzle::B32,
        warpline_ir::Swizzle::B64 => Swizzle::B64,
        warpline_ir::Swizzle::B128 => Swizzle::B128,
    }
}

fn data_type(dtype: DType) -> DataType {
    match dtype {
        DType::U8 | DType::E4m3 | DType::E5m2 => DataType::U8,
        DType::U16 => DataType::U16,
        DType::U32 => DataType::U32,
        DType::I32 => DataType::I32,
        DType::U64 => DataType::U64,
        DType::I64 => DataType::I64,
        DType::F32 => DataType::F32,
        DType::Tf32 => DataType::Tf32,
        DType::F16 => DataType::F16,
        DType::Bf16 => DataType::Bf16,
    }
}
