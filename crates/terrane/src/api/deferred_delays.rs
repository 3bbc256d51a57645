//! Delays of writes that the caller waits for by itself.

use std::time::Instant;

use crate::api::db::Db;
use crate::engine::collect_delays;

/// The delays of writes that did not sleep. Event loops use this to serve readers during a delay.
///
/// Writers are delayed if a tree falls behind, or if they exceed the maximum rate of a design. A write usually sleeps
/// for its delay. [`collect`](Self::collect) runs writes that do not sleep: they add their delays to this value, and
/// the caller must not write again before [`until`](Self::until).
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// use std::time::Instant;
/// use terrane::DeferredDelays;
///
/// let mut delays = DeferredDelays::new();
/// delays.collect(&db, || db.put("apple", "red"))?;
/// // An event loop would serve others instead.
/// if let Some(until) = delays.until() {
///     std::thread::sleep(until.saturating_duration_since(Instant::now()));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeferredDelays {
    until: Option<Instant>,
}

impl DeferredDelays {
    /// Returns no delays.
    pub const fn new() -> Self {
        Self { until: None }
    }

    /// Runs `writes`, and adds the delays of its writes to `db`, which do not sleep. Writes to other databases, and
    /// writes of other threads, sleep as usual. So do writes to `db` in an inner call for another database. Writers
    /// that are stopped still wait; see [`Keyspace::is_stalled`](crate::Keyspace::is_stalled).
    #[inline]
    pub fn collect<T>(&mut self, db: &Db, writes: impl FnOnce() -> T) -> T {
        collect_delays(db.engine().context.number, &mut self.until, writes)
    }

    /// Returns the time before which the caller should not write again; `None` if no write was delayed. The time may
    /// have passed.
    #[inline]
    pub const fn until(&self) -> Option<Instant> {
        self.until
    }
}
