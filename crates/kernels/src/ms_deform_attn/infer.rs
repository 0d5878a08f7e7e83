//! Infers problem fields (levels, layout, extents) from stored tensors.

use super::problem::{INPUTS, LevelLayout, LevelShapes, MAX_LEVEL_PIXELS, Problem};
use warpline_family::error::FamilyError;
use warpline_family::stored::{IsOptionSet, StoredTensors};

/// Completes the problem from stored tensors: levels and layout from the values of two tensors, other extents
/// from tensor shapes.
pub(super) fn complete(
    p: &mut Problem,
    is_set: IsOptionSet<'_>,
    stored: &dyn StoredTensors,
) -> Result<(), FamilyError> {
    stored.require(&INPUTS)?;
    extents(p, is_set, stored)?;
    let shapes = levels(&stored.integers("spatial_shapes")?)?;
    if is_set("shapes") && p.shapes != shapes {
        let text = format!(
            "--shapes {} does not match spatial_shapes {shapes}",
            p.shapes
        );
        return Err(FamilyError::Data(text));
    }
    p.shapes = shapes;
    let levels = p.shapes.0.len();
    if let Some(given) = p.levels.filter(|&n| n as usize != levels) {
        let text = format!(
            "--levels {given} does not match the {levels} levels of spatial_shapes {}",
            p.shapes
        );
        return Err(FamilyError::Data(text));
    }
    p.layout = layout(p, is_set, stored)?;
    let pixels = p.total_pixels();
    if let Some(given) = p.spatial_size.filter(|&n| u64::from(n) != pixels) {
        let text = format!(
            "--spatial-size {given} does not match the {pixels} pixels of spatial_shapes {} in layout {}",
            p.shapes,
            p.layout.keyword()
        );
        return Err(FamilyError::Data(text));
    }
    Ok(())
}

/// Infers batch, queries, heads, channels and points from tensor shapes, except those that options set.
fn extents(
    p: &mut Problem,
    is_set: IsOptionSet<'_>,
    stored: &dyn StoredTensors,
) -> Result<(), FamilyError> {
    let infer = |extent: &mut u32, option: &str, side: usize| {
        // A size above u32 is no extent; the later shape check reports the difference.
        if let Some(side) = u32::try_from(side).ok().filter(|_| !is_set(option)) {
            *extent = side;
        }
    };
    if let Some([batch, _, heads, channels]) = stored.shape("value")?.as_deref() {
        infer(&mut p.batch, "batch", *batch);
        infer(&mut p.heads, "heads", *heads);
        infer(&mut p.channels, "channels", *channels);
    }
    if let Some([_, queries, _, _, points, _]) = stored.shape("sampling_locations")?.as_deref() {
        infer(&mut p.num_query, "num_query", *queries);
        infer(&mut p.points, "points", *points);
    }
    Ok(())
}

/// Returns the levels with the given heights and widths.
fn levels(sides: &[i64]) -> Result<LevelShapes, FamilyError> {
    if !sides.len().is_multiple_of(2) {
        let text = format!(
            "spatial_shapes has {} numbers, but needs a height and a width for each level",
            sides.len()
        );
        return Err(FamilyError::Data(text));
    }
    let side = |n: i64| {
        u32::try_from(n)
            .ok()
            .filter(|n| (1..=MAX_LEVEL_PIXELS).contains(&u64::from(*n)))
    };
    let level = |(i, level): (usize, &[i64])| match (side(level[0]), side(level[1])) {
        (Some(height), Some(width)) => Ok([height, width]),
        _ => Err(FamilyError::Data(format!(
            "level {i} of spatial_shapes is {}x{}, but heights and widths must be 1 to {MAX_LEVEL_PIXELS}",
            level[0], level[1]
        ))),
    };
    let all: Result<_, _> = sides.chunks(2).enumerate().map(level).collect();
    all.map(LevelShapes)
}

/// Returns the layout whose level starts match the stored ones.
fn layout(
    p: &Problem,
    is_set: IsOptionSet<'_>,
    stored: &dyn StoredTensors,
) -> Result<LevelLayout, FamilyError> {
    let starts = stored.integers("level_start_index")?;
    let with_layout = |layout| Problem {
        layout,
        ..p.clone()
    };
    let layouts = match is_set("layout") {
        true => vec![p.layout],
        false => LevelLayout::ALL.to_vec(),
    };
    let starts_match = |layout: &LevelLayout| {
        let expected = with_layout(*layout).level_starts().into_iter();
        expected.map(|n| n as i64).eq(starts.iter().copied())
    };
    let matching: Vec<LevelLayout> = layouts.iter().copied().filter(starts_match).collect();
    // A single level starts at 0 in every layout; then the number of pixels decides.
    let pixels = pixels(p, stored)?;
    let pixels_match = |layout: &&LevelLayout| Some(with_layout(**layout).total_pixels()) == pixels;
    let found = matching.iter().find(pixels_match).or(matching.first());
    found.copied().ok_or_else(|| {
        let expected = layouts.iter().map(|&layout| {
            let starts = list(&with_layout(layout).level_starts());
            format!("{starts} in layout {}", layout.keyword())
        });
        FamilyError::Data(format!(
            "levels {} start at {}, but level_start_index is {}",
            p.shapes,
            expected.collect::<Vec<_>>().join(", or at "),
            list(&starts)
        ))
    })
}

/// Returns the pixels of a batch, from an option or from the length of the values.
fn pixels(p: &Problem, stored: &dyn StoredTensors) -> Result<Option<u64>, FamilyError> {
    if let Some(given) = p.spatial_size {
        return Ok(Some(given.into()));
    }
    let pixel = u64::from(p.class().pixel_bytes()).checked_mul(p.heads.into());
    let all = pixel.and_then(|pixel| pixel.checked_mul(p.batch.into()));
    Ok(stored.bytes("value")?.checked_div(all.unwrap_or(0)))
}

/// Formats numbers as `0, 192, 240`.
fn list(numbers: &[impl ToString]) -> String {
    let all: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two integer tensors, and optional shapes of others.
    struct FakeTensors {
        shapes: Vec<i64>,
        starts: Vec<i64>,
        value: Option<Vec<usize>>,
        locations: Option<Vec<usize>>,
    }

    impl StoredTensors for FakeTensors {
        fn require(&self, _: &[&str]) -> Result<(), FamilyError> {
            Ok(())
        }
        fn shape(&self, name: &str) -> Result<Option<Vec<usize>>, FamilyError> {
            Ok(match name {
                "value" => self.value.clone(),
                "sampling_locations" => self.locations.clone(),
                _ => None,
            })
        }
        fn bytes(&self, _: &str) -> Result<u64, FamilyError> {
            let sides = self.value.iter().flatten();
            Ok(sides.map(|&n| n as u64).product::<u64>() * 2)
        }
        fn integers(&self, name: &str) -> Result<Vec<i64>, FamilyError> {
            Ok(match name {
                "spatial_shapes" => self.shapes.clone(),
                _ => self.starts.clone(),
            })
        }
    }

    fn tensors(shapes: &[i64], starts: &[i64]) -> FakeTensors {
        FakeTensors {
            shapes: shapes.to_vec(),
            starts: starts.to_vec(),
            value: None,
            locations: None,
        }
    }

    fn problem() -> Problem {
        Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6]])
    }

    fn completed(
        tensors: &FakeTensors,
        is_set: &[&str],
        mut p: Problem,
    ) -> Result<Problem, String> {
        let is_set = |option: &str| is_set.contains(&option);
        complete(&mut p, &is_set, tensors).map_err(|e| e.to_string())?;
        Ok(p)
    }

    #[test]
    fn layout_follows_from_level_starts() {
        let sides = [92, 160, 46, 80, 23, 40, 12, 20];
        let halo = tensors(&sides, &[0, 15228, 19164, 20214]);
        let p = completed(&halo, &[], problem()).unwrap();
        assert_eq!((p.layout, p.total_pixels()), (LevelLayout::Halo, 20522));
        assert_eq!(p.shapes.to_string(), "92x160,46x80,23x40,12x20");
        let standard = tensors(&sides, &[0, 14720, 18400, 19320]);
        let p = completed(&standard, &[], problem()).unwrap();
        assert_eq!(p.layout, LevelLayout::Standard);
    }

    #[test]
    fn layout_of_one_level_follows_from_pixels() {
        for (pixels, layout) in [(12, LevelLayout::Standard), (30, LevelLayout::Halo)] {
            let one = FakeTensors {
                value: Some(vec![2, pixels, 2, 32]),
                ..tensors(&[3, 4], &[0])
            };
            assert_eq!(completed(&one, &[], problem()).unwrap().layout, layout);
            let given = Problem {
                spatial_size: Some(pixels as u32),
                ..problem()
            };
            let one = tensors(&[3, 4], &[0]);
            assert_eq!(completed(&one, &[], given).unwrap().layout, layout);
        }
    }

    #[test]
    fn extents_without_an_option_follow_from_shapes() {
        let tensors = FakeTensors {
            value: Some(vec![3, 240, 8, 64]),
            locations: Some(vec![3, 50, 8, 2, 6, 2]),
            ..tensors(&[16, 12, 8, 6], &[0, 192])
        };
        let p = completed(&tensors, &["heads"], problem()).unwrap();
        let found = [p.batch, p.num_query, p.heads, p.channels, p.points];
        assert_eq!(found, [3, 50, 2, 64, 6]);
    }

    #[test]
    fn mismatch_errors_show_both_values() {
        let matching = || tensors(&[16, 12, 8, 6], &[0, 192]);
        assert_eq!(
            completed(&matching(), &["shapes"], problem()),
            Ok(problem())
        );
        for (tensors, is_set, p, message) in [
            (
                tensors(&[16, 12, 8, 7], &[0, 192]),
                "shapes",
                problem(),
                "--shapes 16x12,8x6 does not match spatial_shapes 16x12,8x7",
            ),
            (
                tensors(&[16, 12, 8], &[0, 192]),
                "",
                problem(),
                "spatial_shapes has 3 numbers, but needs a height and a width for each level",
            ),
            (
                tensors(&[16, 12, 8, -6], &[0, 192]),
                "",
                problem(),
                "level 1 of spatial_shapes is 8x-6, but heights and widths must be 1 to 4194304",
            ),
            (
                tensors(&[1 << 40, 12], &[0]),
                "",
                problem(),
                "level 0 of spatial_shapes is 1099511627776x12, but heights and widths must be 1 to 4194304",
            ),
            (
                tensors(&[16, 12, 8, 6], &[0, 193]),
                "",
                problem(),
                "levels 16x12,8x6 start at 0, 192 in layout standard, or at 0, 252 in layout halo, but level_start_index is 0, 193",
            ),
            (
                tensors(&[16, 12, 8, 6], &[0, 252]),
                "layout",
                problem(),
                "levels 16x12,8x6 start at 0, 192 in layout standard, but level_start_index is 0, 252",
            ),
            (
                matching(),
                "levels",
                Problem {
                    levels: Some(3),
                    ..problem()
                },
                "--levels 3 does not match the 2 levels of spatial_shapes 16x12,8x6",
            ),
            (
                matching(),
                "spatial_size",
                Problem {
                    spatial_size: Some(241),
                    ..problem()
                },
                "--spatial-size 241 does not match the 240 pixels of spatial_shapes 16x12,8x6 in layout standard",
            ),
        ] {
            assert_eq!(completed(&tensors, &[is_set], p), Err(message.to_owned()));
        }
    }
}
