//! Counters by source line: one line of the author may create many ops.

use warpline_ir::Frame;

/// The counters of one line of one role.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LineCounters<T> {
    pub(crate) role: String,
    pub(crate) at: Option<Frame>,
    pub(crate) counted: T,
}

/// Sums the counters of each line and role, in the order of first occurrence.
pub(crate) fn by_line<'a, T: Copy>(
    sites: impl Iterator<Item = (&'a str, Option<Frame>, T)>,
    add: impl Fn(&mut T, T),
) -> Vec<LineCounters<T>> {
    let mut lines: Vec<LineCounters<T>> = Vec::new();
    for (role, at, counted) in sites {
        match lines.iter_mut().find(|l| l.at == at && l.role == role) {
            Some(line) => add(&mut line.counted, counted),
            None => lines.push(LineCounters {
                role: role.to_owned(),
                at,
                counted,
            }),
        }
    }
    lines
}

/// Returns the lines that `selects` accepts, those with the highest cost first.
pub(crate) fn worst_first<T>(
    mut lines: Vec<LineCounters<T>>,
    selects: impl Fn(&T) -> bool,
    cost: impl Fn(&T) -> u64,
) -> Vec<LineCounters<T>> {
    lines.retain(|l| selects(&l.counted));
    lines.sort_by_key(|l| std::cmp::Reverse(cost(&l.counted)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_one_line_are_summed() {
        let here = Some(Frame::caller());
        let sites = [
            ("a", here, 2),
            ("b", here, 1),
            ("a", here, 3),
            ("a", None, 9),
        ];
        let lines = by_line(sites.into_iter(), |sum, x| *sum += x);
        let counted: Vec<_> = lines.iter().map(|l| (&*l.role, l.counted)).collect();
        assert_eq!(counted, [("a", 5), ("b", 1), ("a", 9)]);
        let worst = worst_first(lines, |&x| x > 1, |&x| x);
        let counted: Vec<_> = worst.iter().map(|l| (&*l.role, l.counted)).collect();
        assert_eq!(counted, [("a", 9), ("a", 5)]);
    }
}
