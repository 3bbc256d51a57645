//! Compaction filters: compactions ask a function of the application whether to keep a value.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::{Error, Result};

/// Decides which values compactions keep.
///
/// [`Keyspace::set_compaction_filter`](crate::Keyspace::set_compaction_filter) gives a keyspace a filter.
/// Every compaction of the keyspace then passes to the filter each value that it rewrites and that
/// is the newest of its key among the compaction's tables.
///
/// - **When.** The engine chooses the time. A value in a memtable, or in a table that no compaction rewrites,
///   is not filtered. [`Keyspace::compact_range`](crate::Keyspace::compact_range) filters the whole range. A
///   value may be passed several times, even by several threads concurrently.
/// - **Snapshots.** No reader sees a filter at work. A snapshot, transaction, iterator or checkpoint that
///   exists when a compaction ends reads afterwards what it read before. Compactions do not filter values
///   that are visible to a snapshot or transaction that is open when they begin, so a long-lived one defers
///   the filter, as do short ones that always overlap.
/// - **Transactions.** A removed or replaced value counts as unchanged: no commit fails because of a filter.
///   To decide reliably whether a value is still wanted, call the same function when reading.
/// - **Change feed.** [`Db::changes`](crate::Db::changes) does not report changes made by filters, because
///   they are not writes: a copy of the database needs the filter as well.
/// - **Older values.** Removing a value does not uncover an older one.
/// - **Operands.** A value is filtered with the operands of [`Keyspace::merge`](crate::Keyspace::merge)
///   that the compaction combines with it. Newer operands, which are not in the same compaction, later
///   apply to the result. A value below operands that a compaction cannot combine with it, because it is
///   stored apart or expires, is not filtered until the key is put again.
/// - **Expiry.** A value that replaces one that expires has the same expiry time.
///
/// A filter runs in the compaction threads, so it must be fast. One that keeps everything adds about 40 ns
/// per value, a tenth of the processor time of a compaction of values of 100 bytes. A filter may read the
/// database but must not write to it or wait for its background work, which may be waiting for the filter. A
/// filter that panics is not called again for the keyspace while the database is open, unless it is removed
/// and set again: compactions keep all values from then on, and
/// [`Event::CompactionFilterInactive`](crate::Event::CompactionFilterInactive) reports it.
pub trait CompactionFilter: Send + Sync + fmt::Debug + 'static {
    /// The name, 1 to 255 bytes long, which the database stores with each keyspace that uses the filter.
    fn name(&self) -> &str;

    /// Decides by the key alone; `None` if the value is needed. This avoids reading values that are
    /// stored apart from their keys.
    fn decide_by_key(&self, key: &[u8]) -> Option<FilterDecision> {
        let _ = key;
        None
    }

    /// Decides by key and value, unless [`Self::decide_by_key`] has decided.
    fn decide(&self, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// A filter's decision about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterDecision {
    /// The value is kept.
    Keep,
    /// The key is deleted, as of the time at which the value was written.
    Remove,
    /// The key gets another value, as of the time at which the old value was written. If the new value is
    /// longer than [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN), including 8 bytes for an expiry time if it has
    /// one, the old value is kept.
    Replace(Vec<u8>),
}

/// The maximum length of a name, which the manifest stores.
const NAME_BYTES_MAX: usize = 255;

/// The filters that an application registered, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompactionFilters {
    all: Vec<Arc<dyn CompactionFilter>>,
    accepts_unknown: bool,
}

impl CompactionFilters {
    /// Adds a filter, in place of one with the same name.
    pub(crate) fn add(&mut self, filter: Arc<dyn CompactionFilter>) {
        self.all.retain(|other| other.name() != filter.name());
        self.all.push(filter);
    }

    /// Allows keyspaces to use filters that are not registered.
    pub(crate) fn accept_unknown(&mut self) {
        self.accepts_unknown = true;
    }

    /// Returns the filter of this name, which does nothing if it is not registered.
    pub(crate) fn find(&self, name: &str) -> KeyspaceFilter {
        let function = self.all.iter().find(|filter| filter.name() == name).cloned();
        let (has_panicked, is_reported) = (AtomicBool::new(false), AtomicBool::new(false));
        KeyspaceFilter { name: name.to_owned(), function, has_panicked, is_reported }
    }

    /// Returns the filter of this name.
    ///
    /// # Errors
    /// No filter of this name is registered, or the length of the name is invalid.
    pub(crate) fn find_registered(&self, name: &str, keyspace: &str) -> Result<KeyspaceFilter> {
        let filter = self.find(name);
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let found = format!("{} bytes long", name.len());
            return Err(Error::invalid(
                "name of a compaction filter",
                found,
                "1 to 255 bytes long",
            ));
        }
        if filter.function.is_some() || self.accepts_unknown {
            return Ok(filter);
        }
        let names: Vec<_> = self.all.iter().map(|filter| filter.name()).collect();
        let expected = match &names[..] {
            [] => "one that Options::compaction_filter registers".to_owned(),
            names => format!(
                "one of {}, or another one that Options::compaction_filter registers",
                names.join(", ")
            ),
        };
        Err(Error::invalid(
            "compaction filter",
            format!("'{name}' for keyspace '{keyspace}'"),
            expected,
        ))
    }
}

/// The filter of a keyspace.
#[derive(Debug)]
pub(crate) struct KeyspaceFilter {
    name: String,
    /// `None` if no function of this name is registered.
    function: Option<Arc<dyn CompactionFilter>>,
    has_panicked: AtomicBool,
    is_reported: AtomicBool,
}

impl KeyspaceFilter {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns why the filter does nothing; `None` if it is applied.
    pub(crate) fn inactive_reason(&self) -> Option<&'static str> {
        if self.function.is_none() {
            return Some("no function of this name is registered by Options::compaction_filter");
        }
        // Relaxed: a merge that misses another merge's panic calls the function once more.
        let has_panicked = self.has_panicked.load(Ordering::Relaxed);
        has_panicked.then_some(
            "the function panicked, and is not called until the next opening or until the filter is taken \
             off and set again",
        )
    }

    /// Returns why the filter does nothing, unless it was returned before.
    pub(crate) fn unreported_reason(&self) -> Option<&'static str> {
        let reason = self.inactive_reason()?;
        (!self.is_reported.swap(true, Ordering::Relaxed)).then_some(reason)
    }

    pub(crate) fn decide_by_key(&self, key: &[u8]) -> Option<FilterDecision> {
        self.call(|function| function.decide_by_key(key)).unwrap_or(Some(FilterDecision::Keep))
    }

    pub(crate) fn decide(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        self.call(|function| function.decide(key, value)).unwrap_or(FilterDecision::Keep)
    }

    /// Calls the function; returns `None` if it panics or if it is not called. After a panic its state may
    /// be broken, so it is not called again until the database is opened or the filter is set again.
    fn call<T>(&self, code: impl FnOnce(&dyn CompactionFilter) -> T) -> Option<T> {
        let function = self.function.as_deref()?;
        if self.has_panicked.load(Ordering::Relaxed) {
            return None;
        }
        let called = catch_unwind(AssertUnwindSafe(|| code(function)));
        if called.is_err() {
            self.has_panicked.store(true, Ordering::Relaxed);
        }
        called.ok()
    }
}

/// How many values a merge filtered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FilterCounts {
    pub(crate) removed: u64,
    pub(crate) replaced: u64,
}

impl FilterCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.removed += other.removed;
        self.replaced += other.replaced;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Odd;

    impl CompactionFilter for Odd {
        fn name(&self) -> &'static str {
            "odd"
        }

        fn decide_by_key(&self, key: &[u8]) -> Option<FilterDecision> {
            (key == b"key").then_some(FilterDecision::Remove)
        }

        fn decide(&self, key: &[u8], value: &[u8]) -> FilterDecision {
            assert_ne!(key, b"panic");
            FilterDecision::Replace(value.repeat(2))
        }
    }

    #[test]
    fn a_filter_that_panics_keeps_everything_from_then_on() {
        let mut filters = CompactionFilters::default();
        filters.add(Arc::new(Odd));
        let filter = filters.find_registered("odd", "k").unwrap();
        assert_eq!(filter.inactive_reason(), None);
        assert_eq!(filter.decide_by_key(b"key"), Some(FilterDecision::Remove));
        assert_eq!(filter.decide_by_key(b"k"), None);
        assert_eq!(filter.decide(b"k", b"ab"), FilterDecision::Replace(b"abab".to_vec()));
        assert_eq!(filter.decide(b"panic", b""), FilterDecision::Keep);
        assert!(filter.inactive_reason().unwrap().contains("panicked"));
        assert_eq!(filter.unreported_reason(), filter.inactive_reason());
        assert_eq!(filter.unreported_reason(), None);
        assert_eq!(filter.decide_by_key(b"key"), Some(FilterDecision::Keep));
        assert_eq!(filter.decide(b"k", b"ab"), FilterDecision::Keep);
    }

    #[test]
    fn an_unknown_filter_is_refused_when_set_and_does_nothing_when_found() {
        let mut filters = CompactionFilters::default();
        let error = filters.find_registered("odd", "k").unwrap_err().to_string();
        assert!(error.contains("'odd' for keyspace 'k'"), "{error}");
        let unknown = filters.find("odd");
        assert!(unknown.inactive_reason().unwrap().contains("registered"));
        assert_eq!(unknown.decide(b"k", b"v"), FilterDecision::Keep);
        filters.add(Arc::new(Odd));
        let error = filters.find_registered("other", "k").unwrap_err().to_string();
        assert!(error.contains("one of odd, or another"), "{error}");
        filters.accept_unknown();
        assert_eq!(filters.find_registered("other", "k").unwrap().name(), "other");
    }
}
