//! The op: from a call to a problem.

use super::config::Choice;
use super::problem::{Layout, MOST, MOST_PIXELS, Problem, Shapes};
use warpline_family::error::FamilyError;
use warpline_family::float::Float;
use warpline_family::op::{Call, Output, Param, Side, Signature, TensorView, Value};

const ABOUT: &str =
    "Multi-scale deformable attention: weighed sums of points between pixels of several maps";

/// `ms_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights)`.
pub(super) fn signature() -> Signature {
    let params = vec![
        Param::tensor(
            "value",
            "[B, S, heads, C] in f32, f16 or bf16: the pixels of all levels, each level row by row, \
             or with a border of one pixel of zeros around it. C is a multiple of 8 up to 256.",
        ),
        Param::pairs(
            "spatial_shapes",
            "[L, 2], height and width of each level without its border: pairs, or integers in a tensor. \
             A tensor on a GPU is read when it is first seen and after it was written, which waits for the GPU.",
        ),
        Param::integers(
            "level_start_index",
            "[L], the first pixel of each level: integers, or a tensor as above. \
             They and S tell whether levels have borders.",
        ),
        Param::tensor(
            "sampling_locations",
            "[B, Q, heads, L, P, 2] in f32, f16 or bf16: x and y of each point, 0 to 1 over its level.",
        ),
        Param::tensor(
            "attention_weights",
            "[B, Q, heads, L, P], what each point counts; of the type of sampling_locations.",
        ),
        Param::integer(
            "im2col_step",
            64,
            "Batches that other implementations work on at a time; changes nothing here.",
        ),
    ];
    Signature {
        name: "ms_deform_attn",
        about: ABOUT,
        params,
        outputs: vec![Output {
            name: "y",
            sides: &[
                Side::At("value", 0),
                Side::At("sampling_locations", 1),
                Side::Joined("value", 2),
            ],
            dtype_of: "value",
            dtype_by: None,
        }],
        example: EXAMPLE,
    }
}

/// Returns the arguments that ask for a problem.
pub(super) fn args(p: &Problem) -> Vec<Value> {
    let [value, _, _, locations, weights] = p.specs().map(|spec| {
        let shape: Vec<u64> = spec.shape.iter().map(|&n| n as u64).collect();
        Value::Tensor(TensorView::dense(spec.dtype, &shape, 0))
    });
    let sides = p.shapes.0.iter().flatten().map(|&side| i64::from(side));
    let starts = p.starts().into_iter().map(|start| start as i64);
    vec![
        value,
        Value::Integers(sides.collect()),
        Value::Integers(starts.collect()),
        locations,
        weights,
        Value::Integer(64),
    ]
}

/// Returns the problem that a call asks for, which leaves the config open.
pub(super) fn asked(call: &Call<'_>) -> Result<(Problem, Choice), FamilyError> {
    let [value, locations, weights] = [
        call.tensor("value")?,
        call.tensor("sampling_locations")?,
        call.tensor("attention_weights")?,
    ];
    let step = call.integer("im2col_step")?;
    if step < 1 {
        return call.refuse(format!("im2col_step is at least 1, not {step}"));
    }
    let [batch, pixels, heads, channels] = sides(call, "value", value, "[B, S, heads, C]")?;
    let [of_batch, queries, of_heads, levels, points, two] = sides(
        call,
        "sampling_locations",
        locations,
        "[B, Q, heads, L, P, 2]",
    )?;
    let dtype = float(call, "value", value)?;
    let point_dtype = float(call, "sampling_locations", locations)?;
    if [of_batch, of_heads, two] != [batch, heads, 2] {
        return call.refuse(format!(
            "sampling_locations is [{batch}, Q, {heads}, L, P, 2] beside a value of {:?}, not {:?}",
            value.shape, locations.shape
        ));
    }
    let points_alone = &locations.shape[..5];
    if (weights.dtype, &weights.shape[..]) != (locations.dtype, points_alone) {
        return call.refuse(format!(
            "attention_weights is {} {points_alone:?}, as sampling_locations, not {weights}",
            locations.dtype
        ));
    }
    let [most_channels, most_levels, most_points] = MOST.map(u64::from);
    if channels == 0 || channels % 8 != 0 || channels > most_channels {
        return call.refuse(format!(
            "value has a multiple of 8 channels up to {most_channels}, not {channels}"
        ));
    }
    if heads == 0 {
        return call.refuse("value has at least 1 head, not 0".into());
    }
    for (name, n, most) in [
        ("levels", levels, most_levels),
        ("points", points, most_points),
    ] {
        if n == 0 || n > most {
            return call.refuse(format!(
                "sampling_locations has 1 to {most} {name}, not {n}"
            ));
        }
    }
    placed(call)?;
    let count = |name: &str, n: u64| match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => call.refuse(format!("there are less than 4294967296 {name}, not {n}")),
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
    Ok((laid(call, problem, pixels)?, Choice::default()))
}

/// The sides of a tensor, as many as its shape is written with.
fn sides<const N: usize>(
    call: &Call<'_>,
    name: &str,
    view: &TensorView,
    shape: &str,
) -> Result<[u64; N], FamilyError> {
    match view.shape[..].try_into() {
        Ok(sides) => Ok(sides),
        Err(_) => call.refuse(format!(
            "{name} has {N} dimensions, {shape}, not {}",
            view.shape.len()
        )),
    }
}

fn float(call: &Call<'_>, name: &str, view: &TensorView) -> Result<Float, FamilyError> {
    match Float::of(view.dtype) {
        Some(float) => Ok(float),
        None => call.refuse(format!("{name} is f32, f16 or bf16, not {}", view.dtype)),
    }
}

/// Refuses tensors with gaps, and such as do not start on 16 bytes.
fn placed(call: &Call<'_>) -> Result<(), FamilyError> {
    let names = ["value", "sampling_locations", "attention_weights", "y"];
    for (name, view) in names.into_iter().zip(call.inputs().chain(call.outs)) {
        if !view.is_dense() {
            return call.refuse(format!(
                "{name} is dense, and its strides are {:?} over shape {:?}: make it contiguous",
                view.strides, view.shape
            ));
        }
        if !view.on_16_bytes() {
            return call.refuse(format!(
                "tensors start on 16 bytes, and {name} starts at {:#x}: clone it",
                view.address
            ));
        }
    }
    Ok(())
}

/// Height and width of every level.
fn shapes(call: &Call<'_>, levels: u64) -> Result<Shapes, FamilyError> {
    let sides = call.integers("spatial_shapes")?;
    if sides.len() as u64 != 2 * levels {
        return call.refuse(format!(
            "spatial_shapes is [{levels}, 2], as sampling_locations has {levels} levels, not [{}, 2]",
            sides.len() / 2
        ));
    }
    let mut all = Vec::new();
    for (i, pair) in sides.chunks_exact(2).enumerate() {
        let side = |j: usize| u32::try_from(pair[j]).ok().filter(|&side| side > 0);
        // With a border.
        let fits = |&[height, width]: &[u32; 2]| {
            (u64::from(height) + 2) * (u64::from(width) + 2) <= MOST_PIXELS
        };
        match side(0).zip(side(1)).map(|(h, w)| [h, w]).filter(fits) {
            Some(shape) => all.push(shape),
            None => {
                return call.refuse(format!(
                    "a level has 1 to {MOST_PIXELS} pixels with its border; level {i} of spatial_shapes is {}x{}",
                    pair[0], pair[1]
                ));
            }
        }
    }
    Ok(Shapes(all))
}

/// The problem in the layout whose pixels and starts the call has.
fn laid(call: &Call<'_>, problem: Problem, pixels: u64) -> Result<Problem, FamilyError> {
    let starts = call.integers("level_start_index")?;
    let [standard, halo] = [Layout::Standard, Layout::Halo].map(|layout| Problem {
        layout,
        ..problem.clone()
    });
    let is = |p: &Problem| {
        let theirs = p.starts().into_iter().map(|start| start as i64);
        p.spatial() == pixels && theirs.eq(starts.iter().copied())
    };
    match [&standard, &halo].into_iter().find(|p| is(p)) {
        Some(found) => Ok(found.clone()),
        None => call.refuse(format!(
            "levels of {} start at {:?} in a value of {} pixels, or with borders of one pixel at {:?} \
             in one of {}; level_start_index is {starts:?}, and value has {pixels} pixels",
            problem.shapes,
            standard.starts(),
            standard.spatial(),
            halo.starts(),
            halo.spatial()
        )),
    }
}

const EXAMPLE: &str = "\
>>> value = np.ones((1, 4 * 6, 1, 8), np.float32)  # a map of 4 by 6 pixels
>>> places = np.full((1, 1, 1, 1, 2, 2), 0.5, np.float32)
>>> warpline.ms_deform_attn(value, [(4, 6)], [0], places, np.ones((1, 1, 1, 1, 2), np.float32))
array([[[2., 2., 2., 2., 2., 2., 2., 2.]]], dtype=float32)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;
    use warpline_ir::{DType, Target};

    fn solved(args: &[Value], y: &TensorView) -> Result<serde_json::Value, String> {
        let op = ops().into_iter().find(|op| op.family == "ms-deform-attn");
        let work = op
            .unwrap()
            .solve(args, std::slice::from_ref(y), &Target::SM_90A);
        work.map(|work| work.unwrap().problem())
            .map_err(|e| e.to_string())
    }

    fn y() -> TensorView {
        TensorView::dense(DType::F16, &[2, 5, 64], 0)
    }

    /// Two levels, with borders or without.
    fn call(layout: Layout) -> Vec<Value> {
        args(&Problem {
            layout,
            ..Problem::new(2, 5, 2, 4, &[[16, 12], [8, 6]])
        })
    }

    #[test]
    fn the_layout_follows_from_starts_and_pixels() {
        for (layout, name) in [(Layout::Standard, "standard"), (Layout::Halo, "halo")] {
            assert_eq!(solved(&call(layout), &y()).unwrap()["layout"], name);
        }
        let mut one = args(&Problem {
            layout: Layout::Halo,
            ..Problem::new(2, 5, 2, 4, &[[16, 12]])
        });
        assert_eq!(solved(&one, &y()).unwrap()["layout"], "halo");
        one[2] = vec![1].into();
        assert_eq!(
            solved(&one, &y()).unwrap_err(),
            "ms_deform_attn: levels of 16x12 start at [0] in a value of 192 pixels, or with borders of \
             one pixel at [0] in one of 252; level_start_index is [1], and value has 252 pixels"
        );
    }

    #[test]
    fn sides_come_in_pairs() {
        let mut args = call(Layout::Standard);
        args[1] = vec![16, 12, 8].into();
        assert_eq!(
            solved(&args, &y()).unwrap_err(),
            "ms_deform_attn: spatial_shapes is pairs of integers, not [16, 12, 8]"
        );
    }

    #[test]
    fn points_may_have_another_type_than_values() {
        let mut args = call(Layout::Standard);
        for i in [3, 4] {
            if let Value::Tensor(view) = &mut args[i] {
                view.dtype = DType::F32;
            }
        }
        assert_eq!(solved(&args, &y()).unwrap()["point_dtype"], "f32");
    }

    #[test]
    fn what_has_gaps_or_starts_between_16_bytes_is_refused() {
        let with = |change: &dyn Fn(&mut TensorView)| {
            let mut args = call(Layout::Standard);
            let Value::Tensor(view) = &mut args[3] else {
                panic!("a tensor");
            };
            change(view);
            solved(&args, &y())
        };
        let gaps = with(&|view| view.strides[0] += 2).unwrap_err();
        assert!(gaps.contains("sampling_locations is dense"), "{gaps}");
        let between = with(&|view| view.address = 24).unwrap_err();
        assert!(
            between.contains("sampling_locations starts at 0x18"),
            "{between}"
        );
        // The stride of a single index leads nowhere.
        let mut one = args(&Problem::new(1, 5, 2, 4, &[[16, 12]]));
        if let Value::Tensor(view) = &mut one[0] {
            view.strides[0] = 7;
        }
        let y = TensorView::dense(DType::F16, &[1, 5, 64], 0);
        assert!(solved(&one, &y).is_ok());
    }
}
