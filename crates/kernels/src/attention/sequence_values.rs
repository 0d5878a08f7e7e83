//! The values of the tensors of sequences: drawn, checked, and read for the reference.

use super::problem::Problem;
use super::sequence::{KEY_ENDS, LENGTHS, QUERY_ENDS, Sequence, TABLE};
use warpline_family::error::FamilyError;
use warpline_family::numbers::Random;
use warpline_family::tensor::{HostTensor, TensorSpec};

impl Problem {
    /// Draws a tensor of sequences; `None` for another tensor.
    pub(super) fn draw_sequences(
        &self,
        spec: &TensorSpec,
        random: &mut Random,
    ) -> Option<HostTensor> {
        let batch = self.batch;
        let mut ends = |total: u32| {
            let cuts = (1..batch).map(|_| random.extent(0..=u64::from(total)) as u32);
            let mut cuts: Vec<_> = [0, total].into_iter().chain(cuts).collect();
            cuts.sort_unstable();
            cuts.truncate(batch as usize + 1);
            cuts
        };
        // A cache without pages has no keys.
        let capacity = if self.keys > 0 { self.max_keys() } else { 0 };
        let values: Vec<f64> = match spec.name {
            QUERY_ENDS => ends(self.queries).into_iter().map(f64::from).collect(),
            KEY_ENDS if self.page.is_none() => ends(self.keys).into_iter().map(f64::from).collect(),
            // In a cache with pages each batch has any number of keys up to the capacity.
            KEY_ENDS => {
                let mut end = 0.0;
                let mut next = || {
                    end += random.extent(0..=u64::from(capacity)) as f64;
                    end
                };
                [0.0]
                    .into_iter()
                    .chain((0..batch).map(|_| next()))
                    .collect()
            }
            LENGTHS => (0..batch)
                .map(|_| random.extent(0..=u64::from(capacity)) as f64)
                .collect(),
            TABLE => {
                let pages = u64::from(self.keys / self.page?);
                let entry = |_| match pages {
                    0 => -1.0,
                    pages => random.extent(0..=pages - 1) as f64,
                };
                (0..spec.elements()).map(entry).collect()
            }
            _ => return None,
        };
        Some(HostTensor::round(spec.clone(), values))
    }

    /// Rejects tensors of sequences whose values are out of range.
    pub(super) fn check_sequence_values(&self, inputs: &[HostTensor]) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(format!("attention: {text}")));
        let capacity = i64::from(self.max_keys());
        let specs = self.inputs();
        let values = |name: &str| -> Vec<i64> {
            let found = specs.iter().position(|spec| spec.name == name);
            found.map_or(vec![], |i| inputs[i].values().map(|x| x as i64).collect())
        };
        let mut lengths = values(LENGTHS);
        for (name, rows) in [(QUERY_ENDS, self.queries), (KEY_ENDS, self.keys)] {
            let ends = values(name);
            if ends.is_empty() {
                continue;
            }
            if let Some(i) = (1..ends.len()).find(|&i| ends[i] < ends[i - 1]) {
                return reject(format!(
                    "{name} must ascend, but element {i} is {} after {}",
                    ends[i],
                    ends[i - 1]
                ));
            }
            let counts_only = name == KEY_ENDS && self.page.is_some();
            if counts_only {
                lengths = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
                continue;
            }
            let last = ends.last().copied().unwrap_or(0);
            if ends.first().is_some_and(|&first| first < 0) || last > i64::from(rows) {
                return reject(format!(
                    "{name} goes from {} to {last}, but the tensor has {rows} rows",
                    ends[0]
                ));
            }
        }
        for (b, &len) in lengths.iter().enumerate() {
            if !(0..=capacity).contains(&len) {
                return reject(format!(
                    "batch {b} has {len} keys; there can be 0 to {capacity}"
                ));
            }
        }
        let (Some(page), Some(columns)) = (self.page, self.max_pages) else {
            return Ok(());
        };
        let (table, pages) = (values(TABLE), i64::from(self.keys / page));
        for (b, (row, &len)) in table
            .chunks(columns.max(1) as usize)
            .zip(&lengths)
            .enumerate()
        {
            let used = (len as u64).div_ceil(page.into()) as usize;
            if let Some(i) = row[..used].iter().position(|i| !(0..pages).contains(i)) {
                return reject(format!(
                    "block_table[{b}, {i}] is {}, but there are {pages} pages",
                    row[i]
                ));
            }
        }
        Ok(())
    }
}

/// The extents and rows of all sequences, from their tensors.
pub(super) struct SequenceTables {
    sequences: Vec<Sequence<usize>>,
    table: Vec<usize>,
    columns: usize,
    page: Option<usize>,
}

impl SequenceTables {
    /// Reads the tensors of `p.inputs()`.
    pub(super) fn read(p: &Problem, inputs: &[HostTensor]) -> Self {
        let specs = p.inputs();
        let named = |name: &str| -> Option<Vec<usize>> {
            let input = specs.iter().position(|spec| spec.name == name)?;
            Some(
                inputs[input]
                    .values()
                    .map(|x| x.max(0.0) as usize)
                    .collect(),
            )
        };
        let [query_ends, key_ends] = [named(QUERY_ENDS), named(KEY_ENDS)];
        let lengths = named(LENGTHS);
        let range = |ends: &Option<Vec<usize>>, b: usize| {
            let ends = ends.as_ref()?;
            Some((ends[b], ends[b + 1].saturating_sub(ends[b])))
        };
        let sequence = |b: usize| {
            let (query_start, queries) = range(&query_ends, b).unwrap_or((0, p.queries as usize));
            let (key_start, keys) = range(&key_ends, b).unwrap_or((0, p.keys as usize));
            Sequence {
                batch: b,
                query_start,
                queries,
                key_start: if p.page.is_some() { 0 } else { key_start },
                keys: lengths.as_ref().map_or(keys, |lengths| lengths[b]),
            }
        };
        Self {
            sequences: (0..p.batch as usize).map(sequence).collect(),
            table: named(TABLE).unwrap_or_default(),
            columns: p.max_pages.unwrap_or(0) as usize,
            page: p.page.map(|page| page as usize),
        }
    }

    /// Returns the sequence and the query of a row of Q; `None` if no sequence has the row.
    pub(super) fn query(
        &self,
        p: &Problem,
        row: usize,
        batch: usize,
    ) -> Option<(&Sequence<usize>, u32)> {
        let sequence = match p.packed_queries {
            false => self.sequences.get(batch),
            true => {
                let has_row = |s: &&Sequence<usize>| {
                    (s.query_start..s.query_start + s.queries).contains(&row)
                };
                self.sequences.iter().find(has_row)
            }
        }?;
        Some((sequence, (row - sequence.query_start) as u32))
    }

    /// Returns the row and the batch, or page, of a key in K and V.
    pub(super) fn key(&self, p: &Problem, sequence: &Sequence<usize>, key: usize) -> [usize; 2] {
        match self.page {
            Some(page) => [
                key % page,
                self.table[sequence.batch * self.columns + key / page],
            ],
            None if p.packed_keys => [sequence.key_start + key, 0],
            None => [key, sequence.batch],
        }
    }
}
