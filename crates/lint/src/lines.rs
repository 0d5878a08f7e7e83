//! Counters by source line: an op that was written once may be many in the program.

use warpline_ir::Frame;

/// What was counted at one line of one role.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line<T> {
    pub(crate) role: String,
    pub(crate) at: Option<Frame>,
    pub(crate) counted: T,
}

/// Sums what shares a line and a role, in the order in which lines first come.
pub(crate) fn by_line<'a, T: Copy>(
    sites: impl Iterator<Item = (&'a str, Option<Frame>, T)>,
    add: impl Fn(&mut T, T),
) -> Vec<Line<T>> {
    let mut lines: Vec<Line<T>> = Vec::new();
    for (role, at, counted) in sites {
        match lines.iter_mut().find(|l| l.at == at && l.role == role) {
            Some(line) => add(&mut line.counted, counted),
            None => lines.push(Line {
                role: role.to_owned(),
                at,
                counted,
            }),
        }
    }
    lines
}

/// The lines that a measure finds wanting, worst first.
pub(crate) fn worst_first<T>(
    mut lines: Vec<Line<T>>,
    wanting: impl Fn(&T) -> bool,
    cost: impl Fn(&T) -> u64,
) -> Vec<Line<T>> {
    lines.retain(|l| wanting(&l.counted));
    lines.sort_by_key(|l| std::cmp::Reverse(cost(&l.counted)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_however_many_ops_it_makes() {
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
