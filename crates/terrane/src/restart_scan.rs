//! FloDB's scans, for comparison (§4.4, Algorithm 3): `scan=restart`.
//!
//! A *master* drains the memtables of its tree and takes a moment. Then it goes through its range in
//! the lists: if it meets something newer, it begins again, as with values that are overwritten it
//! could have missed one; after some times it has writers wait until it is through. Scans that
//! begin while another is still in use *piggyback*: they take its moment, without draining, up to so
//! many of them in a row. A master sees all writes that returned before it began; a piggybacking
//! scan sees all of some moment, which may be before that.
//!
//! Here versions are kept for as long as a moment is held, so that what a scan reads in the end is
//! right in any case: what this shows is what the protocol costs, and how often it begins again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::engine::{Engine, Tree};
use crate::held_snapshot::HeldSnapshot;
use crate::stats::Counter;
use crate::types::{KeyspaceId, SeqNo};

/// After so many restarts writers wait (the published program).
const RESTARTS_MAX: usize = 10;

/// So many scans may take the moment of one master (the published program).
const CHAIN_MAX: usize = 10_000;

/// The moments that scans may share.
#[derive(Debug, Default)]
pub(crate) struct RestartScans {
    chains: Mutex<HashMap<KeyspaceId, Chain>>,
}

/// The last master of a tree, and how many have taken its moment.
#[derive(Debug, Default)]
struct Chain {
    master: Weak<HeldSnapshot>,
    piggybacks: usize,
}

impl RestartScans {
    /// The moment at which a scan of a range reads, once the protocol lets it.
    pub(crate) fn begin(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        (start, end): (&[u8], &[u8]),
    ) -> Arc<HeldSnapshot> {
        let mut newer_than = None;
        for _ in 0..=RESTARTS_MAX {
            let held = self.moment(engine, tree, newer_than);
            if !engine.is_overtaken(tree, start, end, held.seq()) {
                return held;
            }
            engine.counters.add(Counter::ScanRestarts, 1);
            newer_than = Some(held.seq());
        }
        engine.counters.add(Counter::ScanFallbacks, 1);
        engine.while_writers_wait(|| {
            engine.drain_tree(tree);
            let held = HeldSnapshot::new(engine);
            // The walk that writers wait for; there is nothing newer but what was broken off, which
            // the snapshot does not show.
            let _is_overtaken = engine.is_overtaken(tree, start, end, held.seq());
            held
        })
    }

    /// The moment of a scan that is in use, if it is newer than what was tried; or one of its own.
    fn moment(
        &self,
        engine: &Arc<Engine>,
        tree: &Tree,
        newer_than: Option<SeqNo>,
    ) -> Arc<HeldSnapshot> {
        // Held while draining: others wait for this moment, and do not drain as well.
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let chain = chains.entry(tree.id).or_default();
        let master = chain.master.upgrade().filter(|held| Some(held.seq()) > newer_than);
        if let Some(held) = master.filter(|_| chain.piggybacks < CHAIN_MAX) {
            chain.piggybacks += 1;
            engine.counters.add(Counter::ScanPiggybacks, 1);
            return held;
        }
        engine.drain_tree(tree);
        let held = HeldSnapshot::new(engine);
        *chain = Chain { master: Arc::downgrade(&held), piggybacks: 0 };
        held
    }
}
