//! The expected contents of a database: sorted maps, copied for snapshots.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// All keyspaces by name.
pub type State = BTreeMap<String, Map>;

/// One change of a batch.
#[derive(Debug, Clone)]
pub enum Change {
    Put(Vec<u8>, Vec<u8>),
    /// An operand of the operator `append`.
    Merge(Vec<u8>, Vec<u8>),
    /// A put of a value that expires.
    PutFor(Vec<u8>, Vec<u8>, Duration),
    Delete(Vec<u8>),
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

pub fn apply(map: &mut Map, change: &Change) {
    match change {
        Change::Put(key, value) | Change::PutFor(key, value, _) => {
            drop(map.insert(key.clone(), value.clone()));
        }
        Change::Merge(key, operand) => map.entry(key.clone()).or_default().extend(operand),
        Change::Delete(key) => drop(map.remove(key)),
        Change::DeleteRange(start, end) => map.retain(|key, _| !within(key, start, end)),
    }
}

pub fn within(key: &[u8], start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    let after_start = match start {
        Bound::Included(start) => key >= &start[..],
        Bound::Excluded(start) => key > &start[..],
        Bound::Unbounded => true,
    };
    let before_end = match end {
        Bound::Included(end) => key <= &end[..],
        Bound::Excluded(end) => key < &end[..],
        Bound::Unbounded => true,
    };
    after_start && before_end
}

/// The entries of a range, in order.
pub fn range(map: &Map, start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside = map.iter().filter(|(key, _)| within(key, start, end));
    inside.map(|(key, value)| (key.clone(), value.clone())).collect()
}
