//! The report of `tune`.

use crate::{display, report};
use warpline::tune::{CandidateEstimate, CandidateOutcome, CandidateReport, Ranking, TuneReport};

/// Formats the outcome of every candidate, and the winner.
pub(crate) fn tuned(tuned: &TuneReport) -> String {
    let mut text = String::new();
    if !tuned.candidates.is_empty() {
        let mut table = report::table(["config", "median time", "spread", "outcome"]);
        let mut order: Vec<&CandidateReport> = tuned.candidates.iter().collect();
        order.sort_by(|a, b| sort_key(a).total_cmp(&sort_key(b)));
        for candidate in order {
            table.add_row(cells(candidate));
        }
        text = format!("{}\n\n", table.trim_fmt());
    }
    let mut rows = vec![
        ("device", tuned.device.description.clone()),
        ("problem", display::settings(&tuned.problem)),
        ("winner", display::settings(&tuned.config)),
        (
            "time",
            format!("{} (median)", display::seconds(tuned.median_s)),
        ),
    ];
    match (&tuned.cached_at, tuned.speedup) {
        (Some(when), _) => {
            rows.push(("cached", format!("tuned at {when}; --again measures again")))
        }
        (None, Some(speedup)) => rows.push((
            "speedup",
            format!("{speedup:.3}x over the config of the heuristic"),
        )),
        (None, None) => {}
    }
    if tuned.cached_at.is_none() {
        rows.push((
            "result",
            "PASS: compared with the reference at this problem".into(),
        ));
        rows.push(("cache", cache_location(tuned)));
        rows.push(("duration", display::seconds(tuned.seconds)));
    }
    text + &report::fields(&format!("{} on {}", tuned.family, tuned.device.name), &rows)
}

/// Returns the sort key: winner, runner-up, then by time; candidates without a time are last.
fn sort_key(c: &CandidateReport) -> f64 {
    match c.outcome {
        CandidateOutcome::Winner => f64::NEG_INFINITY,
        CandidateOutcome::RunnerUp => f64::MIN,
        _ => c.seconds.map_or(f64::INFINITY, |s| s.median),
    }
}

fn cache_location(tuned: &TuneReport) -> String {
    match &tuned.cache_file {
        Some(path) => path.display().to_string(),
        None => "in memory only, for this process".into(),
    }
}

fn cells(c: &CandidateReport) -> [String; 4] {
    let heuristic = if c.from_heuristic { " (heuristic)" } else { "" };
    let or_dash = |text: Option<String>| text.unwrap_or("–".into());
    let outcome = match &c.outcome {
        CandidateOutcome::Winner => "winner".into(),
        CandidateOutcome::RunnerUp => "runner-up".into(),
        CandidateOutcome::Slower => "slower".into(),
        CandidateOutcome::Dropped(rounds) => format!("dropped after {rounds} rounds"),
        CandidateOutcome::WrongResult(why) => format!("FAIL: {why}"),
        CandidateOutcome::Failed(why) => {
            format!("not launched: {}", why.lines().next().unwrap_or_default())
        }
        other => format!("{other:?}"),
    };
    [
        format!("{}{heuristic}", display::settings(&c.config)),
        or_dash(c.seconds.map(|s| format!("{:.1} µs", s.median * 1e6))),
        or_dash(c.seconds.map(|s| format!("{:.1} %", s.spread() * 100.0))),
        outcome,
    ]
}

/// Formats the candidates in the order of the model or the heuristic.
pub(crate) fn ranking(ranking: &Ranking) -> String {
    let mut table = report::table(["rank", "config", "estimated time", "checker"]);
    for (i, c) in ranking.candidates.iter().enumerate() {
        let CandidateEstimate {
            config,
            from_heuristic,
            estimate_s,
            rejected,
            ..
        } = c;
        let heuristic = if *from_heuristic { " (heuristic)" } else { "" };
        let checked = rejected.as_ref().map_or("proved".into(), |why| {
            format!("rejected: {}", why.lines().next().unwrap_or_default())
        });
        table.add_row([
            (i + 1).to_string(),
            format!("{}{heuristic}", display::settings(config)),
            estimate_s.map_or("–".into(), display::seconds),
            checked,
        ]);
    }
    format!(
        "{}: {}\n{}\nRanked by {}.\n",
        ranking.family,
        display::settings(&ranking.problem),
        table.trim_fmt(),
        ranking.ranked_by
    )
}
