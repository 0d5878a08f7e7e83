//! The last accesses of each byte of global memory, stored per range.
//!
//! Memory is divided into nodes of 512 bytes, the size of a full-warp access. A node whose bytes all
//! have the same accesses is one cell. Other nodes are split into 16-byte nodes, and those into
//! bytes.

use std::ops::Range;

/// A number that the caller assigns to an access; 0 is none.
pub(crate) type Mark = u32;

/// The last accesses of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Cell {
    /// The last write.
    pub(crate) write: Mark,
    /// The reads since the last write; of several unordered reads, the first and the last.
    pub(crate) reads: [Mark; 2],
}

/// The value of `write` in a split node; `reads[0]` is then the index of its first child.
const SPLIT: Mark = Mark::MAX;

/// The bytes of the node levels, from the largest.
const BYTES: [u64; 3] = [512, 16, 1];

impl Cell {
    fn is_split(&self) -> bool {
        self.write == SPLIT
    }
}

/// The cells of one buffer.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    nodes: Vec<Cell>,
    /// The children of split nodes, contiguous per node.
    children: Vec<Cell>,
    /// By level: the first children of freed groups, for reuse.
    free: [Vec<u32>; 3],
}

/// A node: its first byte and its level.
#[derive(Clone, Copy)]
struct Node {
    start: u64,
    level: usize,
}

impl Node {
    fn top(i: usize) -> Self {
        let start = i as u64 * BYTES[0];
        Self { start, level: 0 }
    }

    fn end(self) -> u64 {
        self.start + BYTES[self.level]
    }

    /// Returns the number of children.
    fn child_count(self) -> usize {
        (BYTES[self.level] / BYTES[self.level + 1]) as usize
    }

    fn child(self, i: usize) -> Self {
        let level = self.level + 1;
        let start = self.start + i as u64 * BYTES[level];
        Self { start, level }
    }

    /// Returns the children that a range overlaps.
    fn overlapped_children(self, range: &Range<u64>) -> Range<usize> {
        let bytes = BYTES[self.level + 1];
        let from = range.start.max(self.start) - self.start;
        let to = range.end.min(self.end()) - self.start;
        (from / bytes) as usize..to.div_ceil(bytes) as usize
    }

    fn is_inside(self, range: &Range<u64>) -> bool {
        range.start <= self.start && self.end() <= range.end
    }

    fn overlap(self, range: &Range<u64>) -> Range<u64> {
        range.start.max(self.start)..range.end.min(self.end())
    }
}

/// Returns the top-level nodes that a range overlaps.
fn top_nodes(range: &Range<u64>) -> Range<usize> {
    (range.start / BYTES[0]) as usize..range.end.div_ceil(BYTES[0]) as usize
}

impl Cells {
    /// Calls `f` for the cells of a range and their bytes until it returns a value.
    pub(crate) fn find<T>(
        &self,
        range: &Range<u64>,
        f: &mut impl FnMut(&Cell, Range<u64>) -> Option<T>,
    ) -> Option<T> {
        top_nodes(range).find_map(|i| {
            let cell = self.nodes.get(i)?;
            self.find_in_node(Node::top(i), cell, range, f)
        })
    }

    fn find_in_node<T>(
        &self,
        node: Node,
        cell: &Cell,
        range: &Range<u64>,
        f: &mut impl FnMut(&Cell, Range<u64>) -> Option<T>,
    ) -> Option<T> {
        if *cell == Cell::default() {
            return None;
        }
        if !cell.is_split() {
            return f(cell, node.overlap(range));
        }
        let first = cell.reads[0] as usize;
        node.overlapped_children(range)
            .find_map(|i| self.find_in_node(node.child(i), &self.children[first + i], range, f))
    }

    /// Calls `f` for every cell with an access until it returns a value.
    pub(crate) fn find_anywhere<T>(
        &self,
        f: &mut impl FnMut(&Cell, Range<u64>) -> Option<T>,
    ) -> Option<T> {
        let all = 0..self.nodes.len() as u64 * BYTES[0];
        self.find(&all, f)
    }

    /// Sets all cells of a range.
    pub(crate) fn fill(&mut self, range: &Range<u64>, with: Cell) {
        self.put(range, &mut |_| with, true);
    }

    /// Maps the cells of a range through `f`.
    pub(crate) fn update(&mut self, range: &Range<u64>, f: &mut impl FnMut(Cell) -> Cell) {
        self.put(range, f, false);
    }

    fn put(&mut self, range: &Range<u64>, f: &mut impl FnMut(Cell) -> Cell, replace: bool) {
        let top_nodes = top_nodes(range);
        if self.nodes.len() < top_nodes.end {
            self.nodes.resize(top_nodes.end, Cell::default());
        }
        for i in top_nodes {
            self.nodes[i] = self.put_in_node(Node::top(i), self.nodes[i], range, f, replace);
        }
    }

    /// Returns the new cell of a node. With `replace`, a node inside the range loses its children.
    fn put_in_node(
        &mut self,
        node: Node,
        cell: Cell,
        range: &Range<u64>,
        f: &mut impl FnMut(Cell) -> Cell,
        replace: bool,
    ) -> Cell {
        if node.is_inside(range) && (replace || !cell.is_split()) {
            self.release(node, cell);
            return f(cell);
        }
        let cell = match cell.is_split() {
            true => cell,
            false => self.split(node, cell),
        };
        let first = cell.reads[0] as usize;
        for i in node.overlapped_children(range) {
            let child = self.children[first + i];
            self.children[first + i] = self.put_in_node(node.child(i), child, range, f, replace);
        }
        cell
    }

    fn split(&mut self, node: Node, cell: Cell) -> Cell {
        let child_count = node.child_count();
        let first = match self.free[node.level].pop() {
            Some(first) => {
                let at = first as usize;
                self.children[at..at + child_count].fill(cell);
                first
            }
            None => {
                let first = self.children.len();
                self.children.resize(first + child_count, cell);
                first as u32
            }
        };
        Cell {
            write: SPLIT,
            reads: [first, 0],
        }
    }

    /// Frees the children of a node.
    fn release(&mut self, node: Node, cell: Cell) {
        if !cell.is_split() {
            return;
        }
        for i in 0..node.child_count() {
            let child = self.children[cell.reads[0] as usize + i];
            self.release(node.child(i), child);
        }
        self.free[node.level].push(cell.reads[0]);
    }

    /// Maps every mark through `f`.
    pub(crate) fn map_marks(&mut self, f: &mut impl FnMut(Mark) -> Mark) {
        for c in self.nodes.iter_mut().chain(&mut self.children) {
            if !c.is_split() {
                c.write = f(c.write);
                c.reads = c.reads.map(&mut *f);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(write: Mark) -> Cell {
        let reads = [0; 2];
        Cell { write, reads }
    }

    /// Returns the last write of each byte.
    fn bytes(cells: &Cells, range: Range<u64>) -> Vec<Mark> {
        let mut all = vec![0; (range.end - range.start) as usize];
        let none: Option<()> = cells.find(&range, &mut |c, bytes| {
            for b in bytes {
                all[(b - range.start) as usize] = c.write;
            }
            None
        });
        assert!(none.is_none());
        all
    }

    #[test]
    fn each_byte_keeps_its_own_mark() {
        let mut cells = Cells::default();
        let mut expected = vec![0; 2048];
        let ranges = [
            0..2048,
            3..5,
            512..1024,
            500..530,
            16..32,
            700..701,
            0..512,
            1023..1600,
        ];
        for (i, range) in (1..).zip(ranges) {
            cells.fill(&range, wrote(i));
            expected[range.start as usize..range.end as usize].fill(i);
            assert_eq!(bytes(&cells, 0..2048), expected, "{range:?}");
        }
        cells.update(&(510..520), &mut |c| wrote(c.write + 100));
        expected[510..520].iter_mut().for_each(|m| *m += 100);
        assert_eq!(bytes(&cells, 0..2048), expected);
        cells.map_marks(&mut |m| 2 * m);
        expected.iter_mut().for_each(|m| *m *= 2);
        assert_eq!(bytes(&cells, 0..2048), expected);
    }

    #[test]
    fn freed_children_are_reused() {
        let mut cells = Cells::default();
        for _ in 0..100 {
            cells.fill(&(3..40), wrote(1));
            cells.fill(&(0..512), wrote(2));
        }
        assert!(cells.children.len() <= 32 + 2 * 16);
        assert_eq!(bytes(&cells, 0..512), [2; 512]);
    }
}
