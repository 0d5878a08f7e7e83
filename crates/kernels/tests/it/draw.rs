//! Drawn problems: valid, and of every value of every field.

use std::collections::{BTreeMap, BTreeSet};
use warpline_kernels::draw::{self, DEVICE};
use warpline_kernels::field::FieldKind;
use warpline_kernels::numbers::Random;
use warpline_kernels::{AnyFamily, Request, registry};
use warpline_testkit::kernel::TARGET;

/// Draws problems of a family.
fn problems(family: &dyn AnyFamily) -> Vec<Request> {
    let mut random = Random::new(1);
    (0..400).map(|_| family.draw_problem(&mut random)).collect()
}

#[test]
fn every_field_is_drawn() {
    for family in registry() {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for problem in problems(family) {
            for field in family.fields(DEVICE).problem {
                let default = || field.default.as_ref().map(ToString::to_string);
                let value = problem.get(field.name).map(str::to_owned).or_else(default);
                let value = value.unwrap_or_default().trim_matches('"').to_owned();
                values
                    .entry(field.name.to_owned())
                    .or_default()
                    .insert(value);
            }
        }
        // A field with `requires` belongs to a family that this one redirects to.
        let own = family.fields(DEVICE).problem.into_iter();
        for field in own.filter(|field| field.requires.is_none()) {
            let (name, drawn) = (field.name, &values[field.name]);
            let family_name = family.name();
            assert!(
                drawn.len() > 1,
                "{family_name} never draws --{name}: {drawn:?}"
            );
            if let FieldKind::Keywords(words) = &field.kind {
                // A redirect of dual-gemm adds nvfp4; the others are not in the documented domain.
                let invalid = [
                    ("dual-gemm", "nvfp4"),
                    ("nvfp4-dual-gemm", "interleaved"),
                    ("nvfp4-dual-gemm", "f32"),
                    ("nvfp4-linear", "f32"),
                ];
                let is_missing = |word: &&str| {
                    !drawn.contains(*word) && !invalid.contains(&(family_name, *word))
                };
                let missing: Vec<&str> = words.iter().map(|w| w.name).filter(is_missing).collect();
                assert!(
                    missing.is_empty(),
                    "{family_name} never draws --{name} {missing:?}"
                );
            }
        }
    }
}

#[test]
fn extents_include_1_odd_and_huge_ones() {
    for (family, extent) in [
        ("vector-add", "n"),
        ("softmax", "rows"),
        ("softmax", "cols"),
        ("gemm", "m"),
        ("dual-gemm", "m"),
        ("nvfp4-dual-gemm", "m"),
        ("nvfp4-linear", "m"),
        ("ms-deform-attn", "num_query"),
        ("attention", "queries"),
        ("attention", "keys"),
    ] {
        let family = registry().into_iter().find(|f| f.name() == family).unwrap();
        let drawn = problems(family);
        let extents = drawn.iter().filter_map(|problem| problem.get(extent));
        let extents: Vec<u64> = extents.map(|text| text.parse().unwrap()).collect();
        let name = family.name();
        assert!(extents.contains(&1), "{name}: {extent} is never 1");
        let is_odd = |n: &&u64| **n > 100 && *n % 2 == 1;
        assert!(
            extents.iter().any(|n| is_odd(&n)),
            "{name}: no odd {extent}"
        );
        let is_huge = |n: &u64| *n > 1_000_000;
        assert!(extents.iter().any(is_huge), "{name}: no huge {extent}");
    }
}

#[test]
fn the_flags_of_a_call_reproduce_it() {
    for family in registry() {
        let mut random = Random::new(7);
        for _ in 0..8 {
            let call = draw::call(family, &mut random, &TARGET);
            let flags = call.request.flags();
            let words = flags.split(' ').filter(|word| !word.is_empty());
            let read = Request::from_flags(words).unwrap();
            assert_eq!(read, call.request, "{flags}");
            let work = family.workload(&read, DEVICE, None, &TARGET);
            let work = work.unwrap_or_else(|e| panic!("{} {flags}: {e}", family.name()));
            for (name, value) in work.problem().as_object().unwrap() {
                let text = value.as_str().map_or(value.to_string(), str::to_owned);
                let default = family.default_problem(DEVICE);
                let is_default = default.get(name) == Some(value);
                assert!(
                    is_default || read.get(name) == Some(&text),
                    "{flags}: {name}"
                );
            }
        }
    }
}
