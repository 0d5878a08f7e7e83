//! The Python op: signature, and from a call to a problem.

use super::config::Choice;
use super::problem::{LevelLayout, LevelShapes, MAX_EXTENTS, MAX_LEVEL_PIXELS, Problem};
use crate::batch_invariant::BATCH_INVARIANT;
use warpline_family::error::FamilyError;
use warpline_family::float::FloatType;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};

const ABOUT: &str =
    "Multi-scale deformable attention: weighted sums of bilinear samples of several feature maps";

/// Returns the signature
/// `ms_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights)`.
pub(super) fn signature() -> Signature {
    let params = vec![
        OpParam::tensor(
            "value",
            "[B, S, heads, C] in f32, f16 or bf16: the pixels of all levels, each level row-major, \
             with or without a border of one zero pixel. C is a multiple of 8 up to 256.",
        ),
        OpParam::pairs(
            "spatial_shapes",
            "[L, 2], height and width of each level without its border: pairs of integers, or a tensor. \
             A tensor on a GPU is read on first use and after each write, which synchronizes with the GPU.",
        ),
        OpParam::integers(
            "level_start_index",
            "[L], the first pixel of each level: integers, or a tensor as above. \
             With S it determines whether levels have borders.",
        ),
        OpParam::tensor(
            "sampling_locations",
            "[B, Q, heads, L, P, 2] in f32, f16 or bf16: x and y of each point, normalized to 0 to 1 over its level.",
        ),
        OpParam::tensor(
            "attention_weights",
            "[B, Q, heads, L, P], the weight of each point; same type as sampling_locations.",
        ),
        OpParam::integer(
            "im2col_step",
            64,
            "Batches that other implementations process at once; ignored.",
        ),
        BATCH_INVARIANT,
    ];
    Signature {
        name: "ms_deform_attn",
        about: ABOUT,
        params,
        outputs: vec![OpOutput {
            name: "y",
            dims: &[
                OutputDim::Index("value", 0),
                OutputDim::Index("sampling_locations", 1),
                OutputDim::Flattened("value", 2),
            ],
            dtype_of: "value",
            dtype_override: None,
            fixed_dtype: None,
        }],
        optional_output: None,
        example: EXAMPLE,
    }
}

/// Returns dense arguments of a call that has this problem.
pub(super) fn args(p: &Problem) -> Vec<ArgValue> {
    let [value, _, _, locations, weights] = p.input_specs().map(|spec| {
        let shape: Vec<u64> = spec.shape.iter().map(|&n| n as u64).collect();
        ArgValue::Tensor(TensorView::dense(spec.dtype, &shape, 0))
    });
    let sides = p.shapes.0.iter().flatten().map(|&side| i64::from(side));
    let starts = p.level_starts().into_iter().map(|start| start as i64);
    vec![
        value,
        ArgValue::Integers(sides.collect()),
        ArgValue::Integers(starts.collect()),
        locations,
        weights,
        ArgValue::Integer(64),
        ArgValue::Flag(false),
    ]
}

/// Returns the problem of a call; the config stays open.
pub(super) fn problem_of_call(call: &OpArgs<'_>) -> Result<(Problem, Choice), FamilyError> {
    let [value, locations, weights] = [
        call.tensor("value")?,
        call.tensor("sampling_locations")?,
        call.tensor("attention_weights")?,
    ];
    let step = call.integer("im2col_step")?;
    if step < 1 {
        return call.reject(format!("im2col_step must be at least 1, not {step}"));
    }
    let [batch, pixels, heads, channels] = dims(call, "value", value, "[B, S, heads, C]")?;
    let [
        location_batch,
        queries,
        location_heads,
        levels,
        points,
        axes,
    ] = dims(
        call,
        "sampling_locations",
        locations,
        "[B, Q, heads, L, P, 2]",
    )?;
    let dtype = float(call, "value", value)?;
    let point_dtype = float(call, "sampling_locations", locations)?;
    if [location_batch, location_heads, axes] != [batch, heads, 2] {
        return call.reject(format!(
            "sampling_locations must be [{batch}, Q, {heads}, L, P, 2] if value is {:?}, not {:?}",
            value.shape, locations.shape
        ));
    }
    let point_shape = &locations.shape[..5];
    if (weights.dtype, &weights.shape[..]) != (locations.dtype, point_shape) {
        return call.reject(format!(
            "attention_weights must be {} {point_shape:?} like sampling_locations, not {weights}",
            locations.dtype
        ));
    }
    if heads == 0 {
        return call.reject("value must have at least 1 head, not 0".into());
    }
    check_dense_and_aligned(call)?;
    let count = |name: &str, n: u64| match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => call.reject(format!("{n} {name} are more than the limit of 4294967295")),
    };
    let problem = Problem {
        channels: channels as u32,
        dtype,
        point_dtype: (point_dtype != dtype).then_some(point_dtype),
        shapes: shapes(call, levels)?,
        ..Problem::new(
            count("batches", batch)?,
            count("queries", queries)?,
            count("heads", heads)?,
            points as u32,
            &[],
        )
    };
    let problem = with_layout(call, problem, pixels)?;
    // Valid input is checked for support last.
    check_limits(call, channels, levels, points)?;
    let choice = Choice {
        batch_invariant: call.flag("batch_invariant").then_some(true),
        ..Choice::default()
    };
    Ok((problem, choice))
}

/// Rejects extents that no kernel supports.
fn check_limits(
    call: &OpArgs<'_>,
    channels: u64,
    levels: u64,
    points: u64,
) -> Result<(), FamilyError> {
    let [max_channels, max_levels, max_points] = MAX_EXTENTS.map(u64::from);
    let limits = [
        (
            channels.is_multiple_of(8) && channels <= max_channels,
            channels,
            format!(
                "the channels of value must be a multiple of 8 up to {max_channels}, not {channels}"
            ),
        ),
        (
            levels <= max_levels,
            levels,
            format!("sampling_locations must have 1 to {max_levels} levels, not {levels}"),
        ),
        (
            points <= max_points,
            points,
            format!("sampling_locations must have 1 to {max_points} points, not {points}"),
        ),
    ];
    for (is_supported, extent, text) in limits {
        if extent == 0 {
            return call.reject(text);
        }
        if !is_supported {
            return call.unsupported(text);
        }
    }
    Ok(())
}

/// Returns the dimensions of a tensor, or an error that shows the expected shape.
fn dims<const N: usize>(
    call: &OpArgs<'_>,
    name: &str,
    view: &TensorView,
    shape: &str,
) -> Result<[u64; N], FamilyError> {
    match view.shape[..].try_into() {
        Ok(sides) => Ok(sides),
        Err(_) => call.reject(format!(
            "{name} must have {N} dimensions {shape}, not {}",
            view.shape.len()
        )),
    }
}

fn float(call: &OpArgs<'_>, name: &str, view: &TensorView) -> Result<FloatType, FamilyError> {
    match FloatType::from_dtype(view.dtype) {
        Some(float) => Ok(float),
        None => call.reject(format!(
            "{name} must be f32, f16 or bf16, not {}",
            view.dtype
        )),
    }
}

/// Rejects tensors that are not dense or not aligned to 16 bytes.
fn check_dense_and_aligned(call: &OpArgs<'_>) -> Result<(), FamilyError> {
    let names = ["value", "sampling_locations", "attention_weights", "y"];
    for (name, view) in names.into_iter().zip(call.inputs().chain(call.outs)) {
        if !view.is_dense() {
            return call.unsupported_layout(format!(
                "{name} must be dense, but has strides {:?} over shape {:?}\nhelp: make it contiguous",
                view.strides, view.shape
            ));
        }
        if !view.is_16_byte_aligned() {
            return call.unsupported_layout(format!(
                "{name} starts at {:#x}, but must be aligned to 16 bytes\nhelp: clone it",
                view.address
            ));
        }
    }
    Ok(())
}

/// Returns height and width of every level.
fn shapes(call: &OpArgs<'_>, levels: u64) -> Result<LevelShapes, FamilyError> {
    let sides = call.integers("spatial_shapes")?;
    if sides.len() as u64 != 2 * levels {
        return call.reject(format!(
            "spatial_shapes must have the shape [{levels}, 2] for the {levels} levels of sampling_locations, not [{}, 2]",
            sides.len() / 2
        ));
    }
    let mut all = Vec::new();
    for (i, pair) in sides.chunks_exact(2).enumerate() {
        let side = |j: usize| u32::try_from(pair[j]).ok().filter(|&side| side > 0);
        // The limit includes a border, because the layout is not known yet.
        let fits = |&[height, width]: &[u32; 2]| {
            (u64::from(height) + 2) * (u64::from(width) + 2) <= MAX_LEVEL_PIXELS
        };
        match side(0).zip(side(1)).map(|(h, w)| [h, w]).filter(fits) {
            Some(shape) => all.push(shape),
            None => {
                return call.reject(format!(
                    "level {i} of spatial_shapes is {}x{}, but a level must have 1 to {MAX_LEVEL_PIXELS} pixels including its border",
                    pair[0], pair[1]
                ));
            }
        }
    }
    Ok(LevelShapes(all))
}

/// Returns the problem in the layout that matches the number of pixels and the level starts.
fn with_layout(call: &OpArgs<'_>, problem: Problem, pixels: u64) -> Result<Problem, FamilyError> {
    let starts = call.integers("level_start_index")?;
    let [standard, halo] = [LevelLayout::Standard, LevelLayout::Halo].map(|layout| Problem {
        layout,
        ..problem.clone()
    });
    let matches = |p: &Problem| {
        let level_starts = p.level_starts().into_iter().map(|start| start as i64);
        p.total_pixels() == pixels && level_starts.eq(starts.iter().copied())
    };
    match [&standard, &halo].into_iter().find(|p| matches(p)) {
        Some(found) => Ok(found.clone()),
        None => call.reject(format!(
            "level_start_index is {starts:?} and value has {pixels} pixels, but levels of {} start at {:?} with {} \
             pixels, or with borders at {:?} with {} pixels",
            problem.shapes,
            standard.level_starts(),
            standard.total_pixels(),
            halo.level_starts(),
            halo.total_pixels()
        )),
    }
}

const EXAMPLE: &str = "\
>>> value = np.ones((1, 4 * 6, 1, 8), np.float32)  # a map of 4 by 6 pixels
>>> locations = np.full((1, 1, 1, 1, 2, 2), 0.5, np.float32)
>>> warpline.ms_deform_attn(value, [(4, 6)], [0], locations, np.ones((1, 1, 1, 1, 2), np.float32))
array([[[2., 2., 2., 2., 2., 2., 2., 2.]]], dtype=float32)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;
    use warpline_ir::{DType, Target};

    fn problem_of(args: &[ArgValue], y: &TensorView) -> Result<serde_json::Value, String> {
        let op = ops().into_iter().find(|op| op.family == "ms-deform-attn");
        let work = op
            .unwrap()
            .workload(args, std::slice::from_ref(y), &Target::SM_90A);
        work.map(|work| work.unwrap().problem())
            .map_err(|e| e.to_string())
    }

    fn y() -> TensorView {
        TensorView::dense(DType::F16, &[2, 5, 64], 0)
    }

    /// Returns arguments with two levels, with or without borders.
    fn call(layout: LevelLayout) -> Vec<ArgValue> {
        args(&Problem {
            layout,
            ..Problem::new(2, 5, 2, 4, &[[16, 12], [8, 6]])
        })
    }

    #[test]
    fn layout_follows_from_starts_and_pixels() {
        for (layout, name) in [
            (LevelLayout::Standard, "standard"),
            (LevelLayout::Halo, "halo"),
        ] {
            assert_eq!(problem_of(&call(layout), &y()).unwrap()["layout"], name);
        }
        let mut one = args(&Problem {
            layout: LevelLayout::Halo,
            ..Problem::new(2, 5, 2, 4, &[[16, 12]])
        });
        assert_eq!(problem_of(&one, &y()).unwrap()["layout"], "halo");
        one[2] = vec![1].into();
        assert_eq!(
            problem_of(&one, &y()).unwrap_err(),
            "ms_deform_attn: level_start_index is [1] and value has 252 pixels, but levels of 16x12 start at [0] \
             with 192 pixels, or with borders at [0] with 252 pixels"
        );
    }

    #[test]
    fn spatial_shapes_come_in_pairs() {
        let mut args = call(LevelLayout::Standard);
        args[1] = vec![16, 12, 8].into();
        assert_eq!(
            problem_of(&args, &y()).unwrap_err(),
            "ms_deform_attn: spatial_shapes must be pairs of integers, not [16, 12, 8]"
        );
    }

    #[test]
    fn points_may_have_another_type_than_values() {
        let mut args = call(LevelLayout::Standard);
        for i in [3, 4] {
            if let ArgValue::Tensor(view) = &mut args[i] {
                view.dtype = DType::F32;
            }
        }
        assert_eq!(problem_of(&args, &y()).unwrap()["point_dtype"], "f32");
    }

    #[test]
    fn strided_and_unaligned_tensors_are_rejected() {
        let with = |change: &dyn Fn(&mut TensorView)| {
            let mut args = call(LevelLayout::Standard);
            let ArgValue::Tensor(view) = &mut args[3] else {
                panic!("a tensor");
            };
            change(view);
            problem_of(&args, &y())
        };
        let strided = with(&|view| view.strides[0] += 2).unwrap_err();
        assert!(
            strided.contains("sampling_locations must be dense"),
            "{strided}"
        );
        let unaligned = with(&|view| view.address = 24).unwrap_err();
        assert!(
            unaligned.contains("sampling_locations starts at 0x18"),
            "{unaligned}"
        );
        // The stride of a dimension of size 1 has no effect.
        let mut one = args(&Problem::new(1, 5, 2, 4, &[[16, 12]]));
        if let ArgValue::Tensor(view) = &mut one[0] {
            view.strides[0] = 7;
        }
        let y = TensorView::dense(DType::F16, &[1, 5, 64], 0);
        assert!(problem_of(&one, &y).is_ok());
    }
}
