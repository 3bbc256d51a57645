//! Estimates how many entries of a tree lie below a key, from the ranges and counts of its tables.
//!
//! A run counts its entries exactly at the borders of its tables. Inside a table the count is
//! estimated from the entries that the other runs have there and, where these are few, from keys
//! read as fractions after the common prefix of the table. A single key far from all others thus
//! takes no more of a picture than the table that holds it.

use terrane_policy::{KeyRange, TableInfo, TreeShape};

/// More keys take time and memory, and a picture has fewer cells.
const KEYS_MAX: usize = 2048;

/// The share of entries below some keys of a tree.
#[derive(Debug)]
pub(super) struct KeyRanks {
    /// The borders of tables, in ascending order.
    keys: Vec<Vec<u8>>,
    /// The share of all entries below each key, ascending.
    shares: Vec<f64>,
}

/// A table on the axis of keys.
struct Placed {
    run: usize,
    entries: f64,
    /// The positions of its first and its last key among the keys.
    first: usize,
    last: usize,
    /// Entries of the run in earlier tables.
    before: f64,
}

impl KeyRanks {
    /// Estimates the ranks of the first and last keys of tables; `None` without tables.
    pub(super) fn of(shape: &TreeShape) -> Option<Self> {
        let hull = KeyRange::hull_of(shape.tables().map(|table| &table.range))?;
        let ends = shape.tables().filter_map(|table| last_key(table));
        let mut keys: Vec<Vec<u8>> =
            shape.tables().map(|table| table.range.start.to_vec()).chain(ends).collect();
        if hull.end.is_none() {
            // An unbounded table holds an unbounded range tombstone; its point keys are bounded.
            keys.push(vec![0xff; hull.start.len() + 8]);
        }
        keys.sort();
        keys.dedup();
        let step = keys.len().div_ceil(KEYS_MAX);
        let last = keys.len() - 1;
        let mut number = 0;
        keys.retain(|_| {
            number += 1;
            (number - 1) % step == 0 || number - 1 == last
        });
        let tables = placed(shape, &keys);
        let runs = shape.levels.iter().map(|level| level.runs.len()).sum();
        let mut below = vec![vec![0.0; keys.len()]; runs];
        fill(&mut below, &tables, |table, at| fraction_of(&keys, table, at));
        let total = sums(&below);
        let refined = |table: &Placed, at: usize| {
            // The entries of the other runs below `at`, within the table.
            let others = |at: usize| total[at] - below[table.run][at];
            let within = others(table.last) - others(table.first);
            let by_fraction = fraction_of(&keys, table, at);
            if within <= 0.0 {
                return by_fraction;
            }
            let by_others = (others(at) - others(table.first)) / within;
            let trust = within / (within + table.entries);
            trust * by_others + (1.0 - trust) * by_fraction
        };
        let mut again = vec![vec![0.0; keys.len()]; runs];
        fill(&mut again, &tables, refined);
        let sums = sums(&again);
        let all = sums.last().copied().filter(|all| *all > 0.0).unwrap_or(1.0);
        let shares = sums.into_iter().map(|sum| sum / all).collect();
        Some(Self { keys, shares })
    }

    /// Returns the share of all entries below a key.
    pub(super) fn share_below(&self, key: &[u8]) -> f64 {
        let at = self.keys.partition_point(|known| known.as_slice() <= key);
        at.checked_sub(1).and_then(|at| self.shares.get(at)).copied().unwrap_or(0.0)
    }

    /// Returns the first key.
    pub(super) fn first(&self) -> &[u8] {
        self.keys.first().map_or(&[], Vec::as_slice)
    }

    /// Returns the last key.
    pub(super) fn last(&self) -> &[u8] {
        self.keys.last().map_or(&[], Vec::as_slice)
    }
}

/// Returns the last key of a table, or its end if it has no last key; `None` if it is unbounded.
pub(super) fn last_key(table: &TableInfo) -> Option<Vec<u8>> {
    match table.range.end.as_deref()? {
        [last @ .., 0] => Some(last.to_vec()),
        end => Some(end.to_vec()),
    }
}

fn placed(shape: &TreeShape, keys: &[Vec<u8>]) -> Vec<Placed> {
    let at = |key: &[u8]| keys.partition_point(|known| known.as_slice() < key).min(keys.len() - 1);
    let runs = shape.levels.iter().flat_map(|level| &level.runs);
    let mut all = Vec::new();
    for (run, tables) in runs.enumerate().map(|(run, one)| (run, &one.tables)) {
        let mut before = 0.0;
        for table in tables {
            let entries = table.entries.saturating_add(table.range_tombstones).max(1) as f64;
            let first = at(&table.range.start);
            let last = last_key(table).map_or(keys.len() - 1, |key| at(&key)).max(first);
            all.push(Placed { run, entries, first, last, before });
            before += entries;
        }
    }
    all
}

/// Fills in the entries of each run below each key; `share` estimates the share of a table's entries
/// below a key inside it.
fn fill(below: &mut [Vec<f64>], tables: &[Placed], share: impl Fn(&Placed, usize) -> f64) {
    for table in tables {
        let Some(run) = below.get_mut(table.run) else { continue };
        for (at, sum) in run.iter_mut().enumerate().skip(table.first) {
            *sum = match at {
                at if at >= table.last => table.before + table.entries,
                at => table.before + table.entries * share(table, at).clamp(0.0, 1.0),
            };
        }
    }
}

fn sums(below: &[Vec<f64>]) -> Vec<f64> {
    let keys = below.first().map_or(0, Vec::len);
    (0..keys).map(|at| below.iter().map(|run| run[at]).sum()).collect()
}

/// Returns the position of a key within a table, if keys are read as fractions after the prefix that
/// the table's keys share.
fn fraction_of(keys: &[Vec<u8>], table: &Placed, at: usize) -> f64 {
    let (first, last) = (&keys[table.first], &keys[table.last]);
    let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let [low, key, high] = [first, &keys[at], last].map(|key| fraction(key, prefix));
    if high > low { (key - low) / (high - low) } else { 0.0 }
}

/// Reads the eight bytes after the prefix as a fraction.
fn fraction(key: &[u8], prefix_len: usize) -> f64 {
    let mut bytes = [0; 8];
    for (byte, &of_key) in bytes.iter_mut().zip(key.iter().skip(prefix_len)) {
        *byte = of_key;
    }
    u64::from_be_bytes(bytes) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(shape: &str) -> KeyRanks {
        KeyRanks::of(&shape.parse().unwrap()).unwrap()
    }

    #[test]
    fn borders_of_a_run_have_exact_ranks() {
        let ranks = ranks("L1 r7: 1=a..=b:1MiB,entries=10 2=c..=x:1MiB,entries=30\n");
        for (key, share) in [("a", 0.0), ("b", 0.25), ("c", 0.25), ("x", 1.0), ("z", 1.0)] {
            assert!((ranks.share_below(key.as_bytes()) - share).abs() < 1e-9, "{key}: {ranks:?}");
        }
        assert_eq!((ranks.first(), ranks.last()), (&b"a"[..], &b"x"[..]));
    }

    #[test]
    fn one_distant_key_takes_little_of_the_axis() {
        let ranks = ranks(
            "L0 r9: 9=a..=user-9:1MiB,entries=100\n\
             L1 r7: 1=user-0..=user-4:1MiB,entries=1000 2=user-5..=user-9:1MiB,entries=1000\n",
        );
        assert!(ranks.share_below(b"user-0") < 0.02, "{ranks:?}");
        let middle = ranks.share_below(b"user-5");
        assert!((0.45..0.55).contains(&middle), "{ranks:?}");
    }

    #[test]
    fn runs_that_begin_a_little_apart_do_so_on_the_axis() {
        let ranks = ranks(
            "L0 r9: 9=k001..=k997:1MiB,entries=100\nL0 r8: 8=k002..=k998:1MiB,entries=100\n\
             L0 r7: 7=k003..=k999:1MiB,entries=100\n",
        );
        assert!(ranks.share_below(b"k003") < 0.02, "{ranks:?}");
        assert!(ranks.share_below(b"k997") > 0.97, "{ranks:?}");
    }
}
