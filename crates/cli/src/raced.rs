//! The report of a tuning.

use crate::{report, words};
use warpline::tune::{Candidate, Fate, Modelled, Ranking, Tuned};

/// What became of every candidate, and who won.
pub(crate) fn tuned(tuned: &Tuned) -> String {
    let mut text = String::new();
    if !tuned.candidates.is_empty() {
        let mut table = report::table(["config", "median", "spread", "what became of it"]);
        let mut order: Vec<&Candidate> = tuned.candidates.iter().collect();
        order.sort_by(|a, b| place(a).total_cmp(&place(b)));
        for candidate in order {
            table.add_row(cells(candidate));
        }
        text = format!("{}\n\n", table.trim_fmt());
    }
    let mut rows = vec![
        ("device", tuned.device.description.clone()),
        ("problem", words::settings(&tuned.problem)),
        ("winner", words::settings(&tuned.config)),
        ("time", words::seconds(tuned.median_s)),
    ];
    match (&tuned.remembered, tuned.gain) {
        (Some(when), _) => rows.push((
            "from",
            format!("what was tuned at {when}; --again tunes anew"),
        )),
        (None, Some(gain)) => rows.push(("gain", format!("{gain:.3} of the family's own choice"))),
        (None, None) => {}
    }
    if tuned.remembered.is_none() {
        rows.push(("checked", "against the reference, at this problem".into()));
        rows.push(("kept", kept(tuned)));
        rows.push(("took", words::seconds(tuned.seconds)));
    }
    text + &report::fields(&format!("{} on {}", tuned.family, tuned.device.name), &rows)
}

/// Winners first, then by time; who has none is last.
fn place(c: &Candidate) -> f64 {
    match c.fate {
        Fate::Won => f64::NEG_INFINITY,
        Fate::RunnerUp => f64::MIN,
        _ => c.seconds.map_or(f64::INFINITY, |s| s.median),
    }
}

fn kept(tuned: &Tuned) -> String {
    match &tuned.kept {
        Some(path) => format!("in {}", path.display()),
        None => "for this process alone".into(),
    }
}

fn cells(c: &Candidate) -> [String; 4] {
    let chosen = if c.chosen { " (chosen)" } else { "" };
    let or_dash = |text: Option<String>| text.unwrap_or("–".into());
    let fate = match &c.fate {
        Fate::Won => "won".into(),
        Fate::RunnerUp => "runner-up".into(),
        Fate::Slower => "slower".into(),
        Fate::Dropped(rounds) => format!("dropped after {rounds} rounds"),
        Fate::Wrong(why) => format!("wrong: {why}"),
        Fate::Failed(why) => format!("failed: {}", why.lines().next().unwrap_or_default()),
        other => format!("{other:?}"),
    };
    [
        format!("{}{chosen}", words::settings(&c.config)),
        or_dash(c.seconds.map(|s| format!("{:.1} µs", s.median * 1e6))),
        or_dash(c.seconds.map(|s| format!("{:.1} %", s.spread() * 100.0))),
        fate,
    ]
}

/// The candidates as a model ranks them.
pub(crate) fn ranking(ranking: &Ranking) -> String {
    let mut table = report::table(["rank", "config", "by the model", "checked"]);
    for (i, c) in ranking.candidates.iter().enumerate() {
        let Modelled {
            config,
            chosen,
            estimate_s,
            refused,
            ..
        } = c;
        let chosen = if *chosen { " (chosen)" } else { "" };
        let checked = refused.as_ref().map_or("proved".into(), |why| {
            format!("refused: {}", why.lines().next().unwrap_or_default())
        });
        table.add_row([
            (i + 1).to_string(),
            format!("{}{chosen}", words::settings(config)),
            estimate_s.map_or("–".into(), words::seconds),
            checked,
        ]);
    }
    format!(
        "{}: {}\n{}\nRanked by {}.\n",
        ranking.family,
        words::settings(&ranking.problem),
        table.trim_fmt(),
        ranking.by
    )
}
