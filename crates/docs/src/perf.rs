//! The performance pages in `docs/perf`: one chart and one table each, from a recorded run.

use crate::Generated;
use crate::bench::{Measured, Run, geomean};
use crate::chart::{Chart, Row};
use anyhow::Result;
use std::fmt::Write;
use std::path::Path;

/// A page: its file name, its title, and its text before the chart.
struct Page {
    name: &'static str,
    title: &'static str,
    about: &'static str,
}

const PAGES: [Page; 5] = [
    Page {
        name: "gemm",
        title: "GEMM and linear layers",
        about: "`matmul` and `linear` (bias and tanh GELU) in bf16 and fp8. torch calls cuBLAS.",
    },
    Page {
        name: "swiglu",
        title: "SwiGLU in one kernel",
        about: "`swiglu`: the gate and up projections of a gated layer, the SiLU gate and the product, in one launch.",
    },
    Page {
        name: "nvfp4",
        title: "SwiGLU with NVFP4 weights",
        about: "`nvfp4_dual_gemm`: the same with both weights in NVFP4. The peers compute with dequantized f16 weights; \
                every kernel of a call is counted.",
    },
    Page {
        name: "memory",
        title: "Softmax, LayerNorm, RMSNorm, add",
        about: "Memory-bound ops. A device copy of as many bytes takes part in every round; *of copy* is our bandwidth \
                divided by the copy's.",
    },
    Page {
        name: "msda",
        title: "Multi-scale deformable attention",
        about: "`ms_deform_attn` against torch's `grid_sample`, which computes the same.",
    },
];

/// Returns the pages and their charts.
pub fn pages(root: &Path) -> Result<Vec<Generated>> {
    let (mut files, mut runs) = (Vec::new(), Vec::new());
    for page in &PAGES {
        let run = Run::load(&root.join(format!("docs/perf/data/{}.json", page.name)))?;
        files.push(Generated {
            path: format!("docs/perf/{}.svg", page.name).into(),
            text: chart(page, &run).svg(),
        });
        files.push(Generated {
            path: format!("docs/perf/{}.md", page.name).into(),
            text: text(page, &run),
        });
        runs.push(run);
    }
    files.push(Generated {
        path: "docs/perf/overview.svg".into(),
        text: overview(&runs).svg(),
    });
    Ok(files)
}

fn text(page: &Page, run: &Run) -> String {
    let machine = &run.machine;
    let mut out = format!(
        "<!-- Written by `cargo xtask docs` from docs/perf/data/{}.json. -->\n\n",
        page.name
    );
    let _ = writeln!(out, "# {}\n\n{}\n", page.title, page.about);
    let _ = writeln!(out, "![Speedup over each peer]({}.svg)\n", page.name);
    let mut versions = format!("torch {}", machine.torch);
    if let Some(triton) = &machine.triton {
        let _ = write!(versions, ", Triton {triton}");
    }
    if let Some(driver) = &machine.driver {
        let _ = write!(versions, ", driver {driver}");
    }
    let _ = writeln!(
        out,
        "{}, {versions}, {}. Command: `{}`, from the [GPU bundle](../../CONTRIBUTING.md). Each time is the median of the \
         rounds; every round runs all implementations in a new random order with a cold L2 cache, and every output is compared \
         with float64 first. Speedup is the peer's time divided by ours: above 1, Warpline is faster.\n",
        machine.device,
        run.day(),
        command(&run.command),
    );
    table(&mut out, run);
    summary(&mut out, run);
    out
}

/// Returns the command without the options that only name output files.
fn command(words: &[String]) -> String {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match &**word {
            "--json" | "--plot" => drop(words.next()),
            _ => kept.push(&**word),
        }
    }
    kept.join(" ")
}

fn table(out: &mut String, run: &Run) {
    let peers = run.peers();
    let has_copies = run
        .problems
        .iter()
        .all(|p| copy_share(p).is_some() && !p.compute_bound);
    let _ = write!(out, "| op | shape | dtype | time | rate |");
    if has_copies {
        out.push_str(" of copy |");
    }
    for peer in &peers {
        let _ = write!(out, " {peer} |");
    }
    let columns = 5 + usize::from(has_copies) + peers.len();
    let _ = writeln!(out, "\n|{}", "---|".repeat(columns));
    for p in &run.problems {
        let time = p
            .ours()
            .map_or("failed".to_owned(), |s| format!("{:.1} µs", s * 1e6));
        let _ = write!(
            out,
            "| {} | {} | {} | {time} | {} |",
            p.op,
            p.shape,
            p.dtype,
            rate(p)
        );
        if has_copies {
            let _ = write!(
                out,
                " {} |",
                copy_share(p).map_or(String::new(), |s| format!("{s:.3}"))
            );
        }
        let best = p.best_peer().map(|(name, _)| name);
        for peer in &peers {
            let cell = match p.speedup(peer) {
                Some(ratio) if best == Some(peer) => format!("**{ratio:.3}**"),
                Some(ratio) => format!("{ratio:.3}"),
                None => "–".to_owned(),
            };
            let _ = write!(out, " {cell} |");
        }
        out.push('\n');
    }
    out.push_str("\nThe fastest peer of each problem is bold.\n");
}

/// Returns Warpline's bandwidth divided by that of the device copy.
fn copy_share(p: &Measured) -> Option<f64> {
    let copy = p.implementations.iter().find(|c| c.kind == "copy")?;
    Some(copy.seconds?.median / p.ours()?)
}

fn rate(p: &Measured) -> String {
    let Some(seconds) = p.ours() else {
        return String::new();
    };
    match p.compute_bound {
        true => format!("{:.0} TFLOP/s", p.flops / seconds / 1e12),
        false => format!("{:.2} TB/s", p.bytes / seconds / 1e12),
    }
}

fn summary(out: &mut String, run: &Run) {
    let ratios: Vec<f64> = run
        .problems
        .iter()
        .filter_map(Measured::best_peer)
        .map(|(_, ratio)| ratio)
        .collect();
    let behind = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    if let Some(mean) = geomean(ratios.iter().copied()) {
        let _ = writeln!(
            out,
            "\nAgainst the fastest peer of each problem the geometric mean is **{mean:.3}**. Warpline is ahead in {} of {} \
             problems, a peer in {behind}.",
            ratios.len() - behind,
            ratios.len()
        );
    }
}

/// Formats the extents for a chart.
fn shape(p: &Measured) -> String {
    let words: Vec<&str> = p.shape.split(' ').collect();
    let named = |key: &str| {
        words
            .iter()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    match (
        named("batch"),
        named("num_query"),
        named("heads"),
        named("points"),
    ) {
        (Some(batch), Some(queries), Some(heads), Some(points)) => {
            let layout = named("layout").unwrap_or("standard");
            let locations = named("locations").unwrap_or("uniform");
            format!("{batch} × {queries} queries, {heads} × {points} points, {layout}, {locations}")
        }
        _ => p.shape.replace('x', " × ").replace(" scales", ", scaled"),
    }
}

/// Returns the chart of the README: geometric means by op.
fn overview(runs: &[Run]) -> Chart {
    let labels = [
        ("matmul", "bf16", "GEMM, bf16"),
        ("matmul", "e4m3", "GEMM, fp8"),
        ("linear", "bf16", "Linear + GELU, bf16"),
        ("swiglu", "bf16", "SwiGLU, bf16"),
        ("nvfp4_dual_gemm", "", "SwiGLU, NVFP4 weights"),
        ("softmax", "", "Softmax"),
        ("layer_norm", "", "LayerNorm"),
        ("rms_norm", "", "RMSNorm"),
    ];
    let problems: Vec<&Measured> = runs.iter().flat_map(|run| &run.problems).collect();
    let problems_of = |op: &str, dtype: &str| -> Vec<&Measured> {
        let matches = |p: &&&Measured| p.op == op && (dtype.is_empty() || p.dtype == dtype);
        problems.iter().filter(matches).copied().collect()
    };
    let rows = labels.map(|(op, dtype, label)| {
        let all = problems_of(op, dtype);
        let torch = geomean(all.iter().filter_map(|p| p.speedup("torch")));
        let best = geomean(
            all.iter()
                .filter_map(|p| p.best_peer())
                .map(|(_, ratio)| ratio),
        );
        Row {
            label: format!("{label} ({} shapes)", all.len()),
            values: vec![torch, best],
            group: None,
        }
    });
    let run = &runs[0];
    let deformable = geomean(
        problems_of("ms_deform_attn", "")
            .iter()
            .filter_map(|p| p.speedup("torch")),
    );
    Chart {
        title: "Speed against torch (cuBLAS), torch.compile and Triton".into(),
        subtitle: format!(
            "Geometric means, {}, torch {}, {}; above 1× Warpline is faster",
            run.machine.device,
            run.machine.torch,
            run.day()
        ),
        series: vec!["over torch".into(), "over the fastest of the three".into()],
        rows: rows.into(),
        footer: format!(
            "Not drawn: deformable attention, {:.0}× torch. Nothing was tuned. Every shape: docs/perf",
            deformable.unwrap_or(0.0)
        ),
    }
}

fn chart(page: &Page, run: &Run) -> Chart {
    let mut last_op = "";
    let rows = run.problems.iter().map(|p| {
        let group = (p.op != last_op).then(|| p.op.clone());
        last_op = &p.op;
        Row {
            label: format!("{} {}", shape(p), p.dtype),
            values: vec![p.speedup("torch"), p.best_peer().map(|(_, ratio)| ratio)],
            group,
        }
    });
    Chart {
        title: format!("{}: speedup of Warpline", page.title),
        subtitle: format!(
            "{}, {}; above 1× Warpline is faster; gray: a peer is faster",
            run.machine.device,
            run.day()
        ),
        series: vec!["over torch".into(), "over the fastest peer".into()],
        rows: rows.collect(),
        footer: format!(
            "Median times, cold L2, random order. Data: docs/perf/data/{}.json",
            page.name
        ),
    }
}
