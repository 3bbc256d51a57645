//! FloDB's scan protocol, for comparison (§4.4, Algorithm 3): `scan=restart`.
//!
//! A scan reads as of a *moment*, a sequence number. A *master* establishes it: the master pauses
//! background draining and the writers that find no room in the Membuffer, takes the moment, drains
//! the Membuffer up to it, with the help of the paused writers, and resumes both. Then it collects
//! its range from the lower level, the immutable memtables and the tables. If it meets a version
//! newer than its moment, it restarts with another moment, because FloDB may have overwritten the
//! version that it should see. After some restarts, the *fallback* scan keeps the writers of the
//! lower level paused until it has collected its range.
//!
//! Which scans share a moment is a setting of the design ([`ScanMoment`]). A scan that *piggybacks*
//! on another scan's moment drains nothing, even after a restart, if a newer moment exists by then.
//!
//! 1. A moment is held from before its drain until the last scan that reads as of it has ended, so
//!    no version that it needs is reclaimed, and a scan that meets no newer version is correct.
//! 2. A scan sees every write that was visible before the drain of its moment began. With
//!    [`ScanMoment::Fresh`] it joins a moment only before that drain begins, which `is_begun`
//!    states under the lock of `chains`; so the scan sees every write that returned before the scan
//!    began.
//! 3. A thread that pauses writers takes no lock that a writer may hold, so the pause ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use terrane_memtable::FrontLevel;
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{FloDb, ScanMode, ScanMoment};

use crate::base::error::Result;
use crate::base::range::HalfOpen;
use crate::base::stats::Counter;
use crate::base::types::{KeyspaceId, SeqNo};
use crate::engine::snapshot_pin::SnapshotPin;
use crate::engine::{Collected, Engine, NewerVersions, ReadView, Tree};

/// A moment; the first scan that needs its sequence number is the master.
#[derive(Debug, Default)]
struct Moment {
    held: OnceLock<Arc<SnapshotPin>>,
}

/// The latest moment of a tree, and the scans that shared it.
#[derive(Debug, Default)]
struct Chain {
    /// Alive while a scan uses it.
    moment: Weak<Moment>,
    /// Whether the drain of the moment has begun.
    is_begun: bool,
    /// The number of scans that joined or reused the moment.
    shared: u32,
    /// The sequence number of the latest moment that is kept for later scans.
    kept: Option<SeqNo>,
}

impl Chain {
    fn may_share(&self, flodb: &FloDb) -> bool {
        self.shared < flodb.chain_max
    }

    /// Returns the latest moment if a scan may join it. A scan that restarts needs a moment after
    /// `newer_than`.
    fn join(&mut self, flodb: &FloDb, newer_than: Option<SeqNo>) -> Option<Arc<Moment>> {
        let moment = self.moment.upgrade()?;
        let is_late = flodb.moment == ScanMoment::Fresh && self.is_begun;
        let is_old = moment.held.get().is_some_and(|held| Some(held.seq()) <= newer_than);
        if is_late || is_old || !self.may_share(flodb) {
            return None;
        }
        self.shared += 1;
        Some(moment)
    }

    /// Makes a moment the latest one.
    fn begin(&mut self, moment: Moment) -> Arc<Moment> {
        let moment = Arc::new(moment);
        self.moment = Arc::downgrade(&moment);
        moment
    }
}

/// The moments that scans may share.
#[derive(Debug, Default)]
pub(crate) struct RestartScans {
    chains: Mutex<HashMap<KeyspaceId, Chain>>,
}

/// Returns the settings of a tree whose scans use FloDB's protocol.
fn settings(tree: &Tree) -> Option<FloDb> {
    match tree.design().memtable {
        MemtableKind::FloDb(flodb) => Some(flodb).filter(|flodb| flodb.scan == ScanMode::Restart),
        _ => None,
    }
}

/// A view for an iterator, and the snapshot that it needs, if any.
type ScanView = (ReadView, Option<Arc<SnapshotPin>>);

impl RestartScans {
    /// Begins a scan of a range. Returns its view, and the snapshot that it holds if a memtable may
    /// reclaim versions; the design's scan protocol applies only in that case.
    ///
    /// # Errors
    /// The database was closed, or a table could not be read.
    pub(crate) fn begin_scan(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        bounds: &HalfOpen<'_>,
    ) -> Result<ScanView> {
        let view = engine.reader.view(tree, None)?;
        if !view.needs_snapshot() {
            return Ok((view, None));
        }
        if let ((start, Some(end)), Some(flodb)) = (bounds, settings(tree)) {
            drop(view);
            return self.scan(engine, tree, &flodb, (start, end));
        }
        let held = SnapshotPin::new(engine);
        let view = engine.reader.view(tree, Some(held.as_of()))?;
        Ok((view, Some(held)))
    }

    /// Algorithm 3. Returns a view of the results. Results that take more memory than the tree's
    /// buffer are not collected, but read through a view that holds the moment.
    fn scan(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        flodb: &FloDb,
        range: (&[u8], &[u8]),
    ) -> Result<ScanView> {
        let bytes_max = tree.design().buffer_bytes;
        let collect = |held: &Arc<SnapshotPin>, newer| -> Result<Option<ScanView>> {
            let view = engine.reader.view(tree, Some(held.as_of()))?;
            Ok(match view.collect(range, newer, bytes_max)? {
                Collected::Results(results) => Some((*results, None)),
                Collected::TooLarge => Some((view, Some(Arc::clone(held)))),
                Collected::Overtaken => None,
            })
        };
        let mut newer_than = None;
        for restarts in 0..=flodb.restarts_max {
            if restarts > 0 {
                engine.context.counters.add(Counter::ScanRestarts, 1);
            }
            let moment = self.moment(engine, tree, flodb, newer_than);
            let held = moment.held.get_or_init(|| self.establish(engine, tree, flodb, &moment));
            if let Some(found) = collect(held, NewerVersions::End)? {
                return Ok(found);
            }
            newer_than = Some(held.seq());
        }
        engine.context.counters.add(Counter::ScanFallbacks, 1);
        while_lower_level_waits(tree, || {
            let held = SnapshotPin::new(engine);
            drain(engine, tree, held.seq())?;
            // Another scan's cursor may drain newer versions meanwhile. They do not matter, because
            // the moment is held.
            let found = collect(&held, NewerVersions::Skip)?;
            let view = engine.reader.view(tree, Some(held.as_of()))?;
            Ok(found.unwrap_or((view, Some(held))))
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyspaceId, Chain>> {
        self.chains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the moment for a scan. A master must still establish it.
    fn moment(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        flodb: &FloDb,
        newer_than: Option<SeqNo>,
    ) -> Arc<Moment> {
        let mut chains = self.lock();
        let chain = chains.entry(tree.id).or_default();
        if let Some(moment) = chain.join(flodb, newer_than) {
            engine.context.counters.add(Counter::ScanPiggybacks, 1);
            return moment;
        }
        if flodb.moment == ScanMoment::Reused && chain.may_share(flodb) && chain.kept > newer_than {
            let kept = chain.kept.and_then(|seq| SnapshotPin::again(engine, seq));
            if let Some(held) = kept {
                engine.context.counters.add(Counter::ScanReuses, 1);
                chain.shared += 1;
                chain.is_begun = true;
                return chain.begin(Moment { held: OnceLock::from(held) });
            }
        }
        *chain = Chain::default();
        chain.begin(Moment::default())
    }

    /// Establishes a moment as its master.
    fn establish(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        flodb: &FloDb,
        moment: &Arc<Moment>,
    ) -> Arc<SnapshotPin> {
        engine.context.counters.add(Counter::ScanMasters, 1);
        let held = while_lower_level_waits(tree, || {
            self.change(tree, moment, |chain| chain.is_begun = true);
            let held = SnapshotPin::new(engine);
            // If this fails, the database was closed and there is nothing to drain; the scan fails
            // with that error when it takes its view.
            let _is_open = drain(engine, tree, held.seq()).is_ok();
            held
        });
        if flodb.moment == ScanMoment::Reused
            && engine.pipeline.keep_snapshot(tree, Some(held.seq()))
        {
            self.change(tree, moment, |chain| chain.kept = Some(held.seq()));
        }
        held
    }

    /// Changes a tree's chain, if this moment is still its latest one.
    fn change(&self, tree: &Tree, moment: &Arc<Moment>, change: impl FnOnce(&mut Chain)) {
        let mut chains = self.lock();
        let chain = chains.get_mut(&tree.id);
        let is_latest =
            |chain: &&mut Chain| std::ptr::eq(chain.moment.as_ptr(), &raw const **moment);
        if let Some(chain) = chain.filter(is_latest) {
            change(chain);
        }
    }
}

/// Drains the FloDB memtables of a tree up to a visible sequence number.
///
/// # Errors
/// The database was closed.
fn drain(engine: &Engine, tree: &Tree, seq: SeqNo) -> Result<()> {
    engine.reader.view(tree, None)?.drain_up_to(seq);
    Ok(())
}

/// Runs `action` while writers put nothing into the lower level of the active FloDB memtable, and
/// drain threads drain nothing.
fn while_lower_level_waits<T>(tree: &Tree, action: impl FnOnce() -> T) -> T {
    let state = tree.state_arc();
    let _paused = state.active.memtable.front_level().map(FrontLevel::pause);
    action()
}
