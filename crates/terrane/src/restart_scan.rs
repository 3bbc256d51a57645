//! FloDB's scan protocol, for comparison (§4.4, Algorithm 3): `scan=restart`.
//!
//! A *master* drains the Membuffers of its tree and takes a snapshot. Then it scans its range in the
//! lower levels. If it meets a newer version it restarts, because FloDB may have overwritten the
//! version that it should see; after [`RESTARTS_MAX`] restarts it blocks writers. Scans that begin
//! while a master's snapshot is in use *piggyback*: they share the snapshot without draining, up to
//! [`CHAIN_MAX`] in a row. A master sees all writes that returned before it began; a piggybacking
//! scan sees a consistent state that may be older.
//!
//! This engine keeps versions while a snapshot is held, so scans are correct without the protocol.
//! The module measures the protocol's cost and the frequency of restarts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use terrane_policy::MemtableKind;
use terrane_policy::flodb::ScanMode;

use crate::engine::{Engine, ReadView, Tree};
use crate::error::Result;
use crate::range::HalfOpen;
use crate::snapshot_pin::SnapshotPin;
use crate::stats::Counter;
use crate::types::{KeyspaceId, SeqNo};

/// The number of restarts before a scan blocks writers, from the paper's implementation.
const RESTARTS_MAX: usize = 10;

/// The number of scans that may share one master's snapshot, from the paper's implementation.
const CHAIN_MAX: usize = 10_000;

/// The snapshots that scans may share.
#[derive(Debug, Default)]
pub(crate) struct RestartScans {
    chains: Mutex<HashMap<KeyspaceId, Chain>>,
}

/// The snapshot of a tree's last master, and the number of scans that shared it.
#[derive(Debug, Default)]
struct Chain {
    master: Weak<SnapshotPin>,
    piggybacks: usize,
}

/// Returns true if scans of a tree use FloDB's protocol.
fn restarts(tree: &Tree) -> bool {
    matches!(tree.design().memtable, MemtableKind::FloDb(flodb) if flodb.scan == ScanMode::Restart)
}

impl RestartScans {
    /// Begins a scan of a range. Returns its view, and the snapshot that it holds if a memtable may
    /// reclaim versions; only then does the design's scan protocol apply.
    ///
    /// # Errors
    /// The database was closed.
    pub(crate) fn begin_scan(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        bounds: &HalfOpen<'_>,
    ) -> Result<(ReadView, Option<Arc<SnapshotPin>>)> {
        let view = engine.view(tree, None)?;
        if !view.needs_snapshot() {
            return Ok((view, None));
        }
        let held = match bounds {
            (start, Some(end)) if restarts(tree) => self.begin(engine, tree, (start, end)),
            _ => SnapshotPin::new(engine),
        };
        let view = engine.view(tree, Some(held.seq()))?;
        Ok((view, Some(held)))
    }

    /// Runs the protocol for a scan of a range and returns the snapshot to read.
    fn begin(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        (start, end): (&[u8], &[u8]),
    ) -> Arc<SnapshotPin> {
        let mut newer_than = None;
        for _ in 0..=RESTARTS_MAX {
            let held = self.snapshot(engine, tree, newer_than);
            if !engine.is_overtaken(tree, start, end, held.seq()) {
                return held;
            }
            engine.context().counters.add(Counter::ScanRestarts, 1);
            newer_than = Some(held.seq());
        }
        engine.context().counters.add(Counter::ScanFallbacks, 1);
        engine.while_writers_wait(|| {
            engine.drain_tree(tree);
            let held = SnapshotPin::new(engine);
            // The scan that the protocol runs while writers are blocked. Only aborted writes can be
            // newer, and the snapshot does not see them.
            let _is_overtaken = engine.is_overtaken(tree, start, end, held.seq());
            held
        })
    }

    /// Shares the last master's snapshot if it is in use and newer than `newer_than`; otherwise
    /// becomes a master.
    fn snapshot(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        newer_than: Option<SeqNo>,
    ) -> Arc<SnapshotPin> {
        // Held while draining, so that concurrent scans wait for this snapshot instead of draining
        // as well.
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let chain = chains.entry(tree.id).or_default();
        let master = chain.master.upgrade().filter(|held| Some(held.seq()) > newer_than);
        if let Some(held) = master.filter(|_| chain.piggybacks < CHAIN_MAX) {
            chain.piggybacks += 1;
            engine.context().counters.add(Counter::ScanPiggybacks, 1);
            return held;
        }
        engine.drain_tree(tree);
        let held = SnapshotPin::new(engine);
        *chain = Chain { master: Arc::downgrade(&held), piggybacks: 0 };
        held
    }
}
