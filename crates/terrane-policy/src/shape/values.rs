//! Value files of a shape: policy's view of values that are stored separately from their keys.
//!
//! A value file is append-only and immutable once complete. A table refers to it by pointers, each
//! of which belongs to one entry. A value is live as long as some table of the shape has a pointer
//! to it; all other bytes of the file are garbage, or belong to unflushed writes.

use std::fmt;
use std::sync::Arc;

use super::TreeShape;

/// The number of a value file; never reused within a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueFileId(pub u64);

impl fmt::Display for ValueFileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The phase in the life of a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueFileState {
    /// Values are still being appended.
    Open,
    /// The file is complete, but some of its values belong to writes that are only in memtables.
    Unflushed,
    /// The file is complete, and every value in it was flushed: all live values have a pointer in a
    /// table. Only such files can be collected.
    Settled,
}

/// What policy knows about a value file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFileInfo {
    /// The file's number.
    pub id: ValueFileId,
    /// Bytes of all values written to the file, including record overhead.
    pub bytes: u64,
    /// The number of values written to the file.
    pub values: u64,
    /// The phase in its life.
    pub state: ValueFileState,
    /// When the file was created, in microseconds since the Unix epoch.
    pub created_micros: u64,
    /// When the first of its dead values was deleted or overwritten, or an earlier time, in
    /// microseconds since the Unix epoch; `None` if no value is dead. If the merge that drops a
    /// pointer does not know the time of the delete, it uses the time of the oldest tombstone among
    /// its inputs.
    pub oldest_dead_micros: Option<u64>,
}

impl ValueFileInfo {
    /// Returns a settled file with the given number and bytes; all other fields are zero.
    pub fn new(id: u64, bytes: u64) -> Self {
        Self {
            id: ValueFileId(id),
            bytes,
            values: 0,
            state: ValueFileState::Settled,
            created_micros: 0,
            oldest_dead_micros: None,
        }
    }
}

/// The pointers of one table into one value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRef {
    /// The value file.
    pub file: ValueFileId,
    /// Bytes of the values, including record overhead.
    pub bytes: u64,
    /// The number of values.
    pub values: u64,
}

/// A value file and its live values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFileUsage {
    /// The file.
    pub file: Arc<ValueFileInfo>,
    /// Bytes of the values to which tables of the shape point.
    pub live_bytes: u64,
    /// The number of these values.
    pub live_values: u64,
}

/// All settled value files together, except those that can be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettledValues {
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of the values in them to which tables of the shape point.
    pub live_bytes: u64,
}

impl SettledValues {
    /// Returns the sum over the settled files in `usage` that cannot be removed.
    pub fn of(usage: &[ValueFileUsage]) -> Self {
        let is_settled = |one: &&ValueFileUsage| one.file.state == ValueFileState::Settled;
        let settled = usage.iter().filter(is_settled).filter(|one| !one.is_dead());
        settled.fold(Self::default(), |sum, one| Self {
            bytes: sum.bytes + one.file.bytes,
            live_bytes: sum.live_bytes + one.live_bytes,
        })
    }

    /// Returns the bytes of the files divided by the bytes of live values, in percent; 100 if there
    /// are no live values.
    pub fn percent(&self) -> u64 {
        if self.bytes == 0 {
            return 100;
        }
        let percent = u128::from(self.bytes) * 100 / u128::from(self.live_bytes.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}

impl ValueFileUsage {
    /// Returns the bytes to which no table points. In a file that is not settled, these may be
    /// values of unflushed writes.
    pub fn garbage_bytes(&self) -> u64 {
        self.file.bytes.saturating_sub(self.live_bytes)
    }

    /// Returns true if no table points into the file and none ever will: the file can be removed.
    pub fn is_dead(&self) -> bool {
        self.live_bytes == 0 && self.file.state == ValueFileState::Settled
    }
}

impl TreeShape {
    /// Returns the value file with the number `id`.
    pub fn value_file(&self, id: ValueFileId) -> Option<&Arc<ValueFileInfo>> {
        let at = self.value_files.binary_search_by_key(&id, |file| file.id).ok()?;
        self.value_files.get(at)
    }

    /// Returns every value file with its live values, in ascending order. Visits the references of
    /// all tables.
    pub fn value_usage(&self) -> Vec<ValueFileUsage> {
        let unused = |file: &Arc<ValueFileInfo>| ValueFileUsage {
            file: Arc::clone(file),
            live_bytes: 0,
            live_values: 0,
        };
        let mut usage: Vec<ValueFileUsage> = self.value_files.iter().map(unused).collect();
        if usage.is_empty() {
            return usage;
        }
        for used in self.tables().flat_map(|table| table.value_refs.iter()) {
            if let Ok(at) = usage.binary_search_by_key(&used.file, |one| one.file.id) {
                usage[at].live_bytes += used.bytes;
                usage[at].live_values += used.values;
            }
        }
        usage
    }

    /// Returns the bytes of all settled value files, and of the live values in them. Visits the
    /// references of all tables.
    pub fn settled_values(&self) -> SettledValues {
        SettledValues::of(&self.value_usage())
    }

    /// Returns the bytes of all value files.
    pub fn value_bytes(&self) -> u64 {
        self.value_files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the bytes of all values to which tables point.
    pub fn live_value_bytes(&self) -> u64 {
        self.tables().flat_map(|table| table.value_refs.iter()).map(|used| used.bytes).sum()
    }
}
