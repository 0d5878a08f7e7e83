//! What stored tensors say of a problem: levels, layout, extents.

use super::problem::{INPUTS, Layout, MOST_PIXELS, Problem, Shapes};
use warpline_family::error::FamilyError;
use warpline_family::stored::{Asked, Stored};

/// Takes the levels and their layout from the tensors that hold them, and
/// other extents from the shapes of tensors that are stored with one.
pub(super) fn learn(
    p: &mut Problem,
    asked: Asked<'_>,
    stored: &dyn Stored,
) -> Result<(), FamilyError> {
    stored.has(&INPUTS)?;
    extents(p, asked, stored)?;
    let shapes = levels(&stored.integers("spatial_shapes")?)?;
    if asked("shapes") && p.shapes != shapes {
        let text = format!("--shapes {} and spatial_shapes, {shapes}, differ", p.shapes);
        return Err(FamilyError::Data(text));
    }
    p.shapes = shapes;
    let levels = p.shapes.0.len();
    if let Some(said) = p.levels.filter(|&n| n as usize != levels) {
        let text = format!(
            "--levels {said} and the {levels} levels of spatial_shapes, {}, differ",
            p.shapes
        );
        return Err(FamilyError::Data(text));
    }
    p.layout = layout(p, asked, stored)?;
    let pixels = p.spatial();
    if let Some(said) = p.spatial_size.filter(|&n| u64::from(n) != pixels) {
        let text = format!(
            "--spatial-size {said} and the {pixels} pixels of spatial_shapes, {}, in the layout {} differ",
            p.shapes,
            p.layout.word()
        );
        return Err(FamilyError::Data(text));
    }
    Ok(())
}

/// Batches, queries, heads, channels and points, where shapes say them.
fn extents(p: &mut Problem, asked: Asked<'_>, stored: &dyn Stored) -> Result<(), FamilyError> {
    let take = |extent: &mut u32, option: &str, side: usize| {
        // One that is too large is no extent; the shapes then differ.
        if let Some(side) = u32::try_from(side).ok().filter(|_| !asked(option)) {
            *extent = side;
        }
    };
    if let Some([batch, _, heads, channels]) = stored.shape("value")?.as_deref() {
        take(&mut p.batch, "batch", *batch);
        take(&mut p.heads, "heads", *heads);
        take(&mut p.channels, "channels", *channels);
    }
    if let Some([_, queries, _, _, points, _]) = stored.shape("sampling_locations")?.as_deref() {
        take(&mut p.num_query, "num_query", *queries);
        take(&mut p.points, "points", *points);
    }
    Ok(())
}

/// The levels whose heights and widths these are.
fn levels(sides: &[i64]) -> Result<Shapes, FamilyError> {
    if !sides.len().is_multiple_of(2) {
        let text = format!(
            "spatial_shapes holds a height and a width for each level, and not {} numbers",
            sides.len()
        );
        return Err(FamilyError::Data(text));
    }
    let side = |n: i64| {
        u32::try_from(n)
            .ok()
            .filter(|n| (1..=MOST_PIXELS).contains(&u64::from(*n)))
    };
    let level = |(i, level): (usize, &[i64])| match (side(level[0]), side(level[1])) {
        (Some(height), Some(width)) => Ok([height, width]),
        _ => Err(FamilyError::Data(format!(
            "heights and widths are 1 to {MOST_PIXELS}; level {i} of spatial_shapes is {}x{}",
            level[0], level[1]
        ))),
    };
    let all: Result<_, _> = sides.chunks(2).enumerate().map(level).collect();
    all.map(Shapes)
}

/// The layout whose levels start where the stored ones do.
fn layout(p: &Problem, asked: Asked<'_>, stored: &dyn Stored) -> Result<Layout, FamilyError> {
    let starts = stored.integers("level_start_index")?;
    let of = |layout| Problem {
        layout,
        ..p.clone()
    };
    let layouts = match asked("layout") {
        true => vec![p.layout],
        false => Layout::ALL.to_vec(),
    };
    let same = |layout: &Layout| {
        let theirs = of(*layout).starts().into_iter();
        theirs.map(|n| n as i64).eq(starts.iter().copied())
    };
    let fitting: Vec<Layout> = layouts.iter().copied().filter(same).collect();
    // One level starts at 0 in each: then the pixels tell.
    let pixels = pixels(p, stored)?;
    let by_pixels = |layout: &&Layout| Some(of(**layout).spatial()) == pixels;
    let found = fitting.iter().find(by_pixels).or(fitting.first());
    found.copied().ok_or_else(|| {
        let would = layouts.iter().map(|&layout| {
            let starts = list(&of(layout).starts());
            format!("{starts} in the layout {}", layout.word())
        });
        FamilyError::Data(format!(
            "the levels {} start at {}, and level_start_index is {}",
            p.shapes,
            would.collect::<Vec<_>>().join(", or at "),
            list(&starts)
        ))
    })
}

/// The pixels of a batch, as an option or the length of the values says.
fn pixels(p: &Problem, stored: &dyn Stored) -> Result<Option<u64>, FamilyError> {
    if let Some(said) = p.spatial_size {
        return Ok(Some(said.into()));
    }
    let pixel = u64::from(p.class().pixel_bytes()).checked_mul(p.heads.into());
    let all = pixel.and_then(|pixel| pixel.checked_mul(p.batch.into()));
    Ok(stored.bytes("value")?.checked_div(all.unwrap_or(0)))
}

/// `0, 192, 240`.
fn list(numbers: &[impl ToString]) -> String {
    let all: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tensors of integers, and the shapes that others are stored with.
    struct Held {
        shapes: Vec<i64>,
        starts: Vec<i64>,
        value: Option<Vec<usize>>,
        locations: Option<Vec<usize>>,
    }

    impl Stored for Held {
        fn has(&self, _: &[&str]) -> Result<(), FamilyError> {
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

    fn held(shapes: &[i64], starts: &[i64]) -> Held {
        Held {
            shapes: shapes.to_vec(),
            starts: starts.to_vec(),
            value: None,
            locations: None,
        }
    }

    fn problem() -> Problem {
        Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6]])
    }

    fn learned(held: &Held, asked: &[&str], mut p: Problem) -> Result<Problem, String> {
        let asked = |option: &str| asked.contains(&option);
        learn(&mut p, &asked, held).map_err(|e| e.to_string())?;
        Ok(p)
    }

    #[test]
    fn starts_tell_the_layout() {
        let sides = [92, 160, 46, 80, 23, 40, 12, 20];
        let halo = held(&sides, &[0, 15228, 19164, 20214]);
        let p = learned(&halo, &[], problem()).unwrap();
        assert_eq!((p.layout, p.spatial()), (Layout::Halo, 20522));
        assert_eq!(p.shapes.to_string(), "92x160,46x80,23x40,12x20");
        let standard = held(&sides, &[0, 14720, 18400, 19320]);
        let p = learned(&standard, &[], problem()).unwrap();
        assert_eq!(p.layout, Layout::Standard);
    }

    #[test]
    fn pixels_tell_the_layout_of_one_level() {
        for (pixels, layout) in [(12, Layout::Standard), (30, Layout::Halo)] {
            let one = Held {
                value: Some(vec![2, pixels, 2, 32]),
                ..held(&[3, 4], &[0])
            };
            assert_eq!(learned(&one, &[], problem()).unwrap().layout, layout);
            let said = Problem {
                spatial_size: Some(pixels as u32),
                ..problem()
            };
            let one = held(&[3, 4], &[0]);
            assert_eq!(learned(&one, &[], said).unwrap().layout, layout);
        }
    }

    #[test]
    fn shapes_tell_the_extents_that_no_option_gives() {
        let tensors = Held {
            value: Some(vec![3, 240, 8, 64]),
            locations: Some(vec![3, 50, 8, 2, 6, 2]),
            ..held(&[16, 12, 8, 6], &[0, 192])
        };
        let p = learned(&tensors, &["heads"], problem()).unwrap();
        let found = [p.batch, p.num_query, p.heads, p.channels, p.points];
        assert_eq!(found, [3, 50, 2, 64, 6]);
    }

    #[test]
    fn what_differs_gets_a_sentence_with_both() {
        let good = || held(&[16, 12, 8, 6], &[0, 192]);
        assert_eq!(learned(&good(), &["shapes"], problem()), Ok(problem()));
        for (tensors, asked, p, sentence) in [
            (
                held(&[16, 12, 8, 7], &[0, 192]),
                "shapes",
                problem(),
                "--shapes 16x12,8x6 and spatial_shapes, 16x12,8x7, differ",
            ),
            (
                held(&[16, 12, 8], &[0, 192]),
                "",
                problem(),
                "spatial_shapes holds a height and a width for each level, and not 3 numbers",
            ),
            (
                held(&[16, 12, 8, -6], &[0, 192]),
                "",
                problem(),
                "heights and widths are 1 to 4194304; level 1 of spatial_shapes is 8x-6",
            ),
            (
                held(&[1 << 40, 12], &[0]),
                "",
                problem(),
                "heights and widths are 1 to 4194304; level 0 of spatial_shapes is 1099511627776x12",
            ),
            (
                held(&[16, 12, 8, 6], &[0, 193]),
                "",
                problem(),
                "the levels 16x12,8x6 start at 0, 192 in the layout standard, or at 0, 252 in the layout halo, and level_start_index is 0, 193",
            ),
            (
                held(&[16, 12, 8, 6], &[0, 252]),
                "layout",
                problem(),
                "the levels 16x12,8x6 start at 0, 192 in the layout standard, and level_start_index is 0, 252",
            ),
            (
                good(),
                "levels",
                Problem {
                    levels: Some(3),
                    ..problem()
                },
                "--levels 3 and the 2 levels of spatial_shapes, 16x12,8x6, differ",
            ),
            (
                good(),
                "spatial_size",
                Problem {
                    spatial_size: Some(241),
                    ..problem()
                },
                "--spatial-size 241 and the 240 pixels of spatial_shapes, 16x12,8x6, in the layout standard differ",
            ),
        ] {
            assert_eq!(learned(&tensors, &[asked], p), Err(sentence.to_owned()));
        }
    }
}
