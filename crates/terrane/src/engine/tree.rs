//! One tree: the memtables and the tables of a keyspace.

pub(crate) mod retired;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::{ArcSwap, Guard};
use terrane_memtable::{Config, HashView, Memtable, Padded, Pool, VectorQuery};
use terrane_policy::memtable_choice::{self, Choice, Mix, choose};
use terrane_policy::{
    self as policy, Admission, Compaction, Cursors, Design, MemtableKind, OrderedView, Pressure,
    TableId, admit,
};

use crate::engine::jobs::drain;
use crate::engine::jobs::drop_covered::Covered;
use crate::engine::tree::retired::Retired;
use crate::engine::tree::usage::Usage;
use crate::error::Error;
use crate::event::{FlushReason, WriteStall};
use crate::iter::DeadRanges;
use crate::types::{KeyspaceId, Lsn, SeqNo};
use crate::version::Version;

/// A memtable and the part of the log that it covers.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) memtable: Arc<Memtable>,
    /// All its entries are at or after this position of the log.
    pub(crate) begins: Lsn,
    /// When its first entry came, in microseconds since the Unix epoch; 0 as long as that is not
    /// known.
    since_micros: AtomicU64,
    /// Bytes that it is known to have room for; used with the writer's lock held. Every write changes
    /// it, and all threads read what is beside it.
    room: Padded<AtomicU64>,
}

impl Buffer {
    pub(crate) fn new(memtable: Arc<Memtable>, begins: Lsn) -> Self {
        Self { memtable, begins, since_micros: AtomicU64::new(0), room: Padded::default() }
    }

    /// Takes so many bytes of the room that it is known to have; false if that is too little, and
    /// it has to be measured again.
    #[inline]
    pub(crate) fn take_room(&self, bytes: u64) -> bool {
        // Relaxed, and not exchanged: one writer at a time.
        let room = self.room.load(Ordering::Relaxed).checked_sub(bytes);
        room.is_some_and(|room| {
            self.room.store(room, Ordering::Relaxed);
            true
        })
    }

    /// It has been measured.
    pub(crate) fn set_room(&self, bytes: u64) {
        self.room.store(bytes, Ordering::Relaxed);
    }

    /// When its first entry came; `None` as long as that is not known.
    pub(crate) fn since_micros(&self) -> Option<u64> {
        // Relaxed: a time that is read late has a flush begin late, by what reading takes.
        Some(self.since_micros.load(Ordering::Relaxed)).filter(|&since| since > 0)
    }

    /// Its first entry has come by now. Answers whether that was not known.
    pub(crate) fn note_entry(&self, now_micros: impl FnOnce() -> u64) -> bool {
        let is_first = self.since_micros.load(Ordering::Relaxed) == 0;
        if is_first {
            self.since_micros.store(now_micros().max(1), Ordering::Relaxed);
        }
        is_first
    }
}

/// A memtable that takes no more writes.
#[derive(Debug)]
pub(crate) struct FullBuffer {
    pub(crate) memtable: Arc<Memtable>,
    /// All its entries are before this position of the log.
    pub(crate) ends: Lsn,
    /// No entry has a larger sequence number. Entries are all there once it is visible.
    pub(crate) last_seq: SeqNo,
    /// When its first entry came, in microseconds since the Unix epoch, where that is kept.
    pub(crate) since_micros: Option<u64>,
    /// Why it is flushed.
    pub(crate) reason: FlushReason,
}

/// What readers see of a tree: never changed, only replaced.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) active: Arc<Buffer>,
    /// Memtables that wait to be flushed, newest first.
    pub(crate) full: Vec<Arc<FullBuffer>>,
    pub(crate) version: Arc<Version>,
    /// Whether writers may go on.
    pub(crate) admission: Admission,
    /// Since when what holds writers up has done so.
    pub(crate) held_since: Option<Instant>,
    /// The time that each operation takes at the greatest rate that the design allows; 0 if it
    /// allows any.
    pub(crate) nanos_per_write: u64,
    /// How its memtables are used, where the design leaves their kind open.
    pub(crate) usage: Arc<Usage>,
    /// How many states of the tree were before it.
    number: u64,
}

/// What is going on in the background.
#[derive(Debug, Default)]
pub(crate) struct TreeJobs {
    pub(crate) is_flushing: bool,
    /// What the flush that goes on merges, if it does.
    pub(crate) flushing: Option<Compaction>,
    pub(crate) compactions: Vec<Compaction>,
    pub(crate) cursors: Cursors,
    /// Tables that could not be read, and why: they are left alone.
    pub(crate) unreadable: BTreeMap<TableId, Error>,
    /// Tables that are being dropped, as range tombstones cover them.
    pub(crate) dropping: Vec<TableId>,
    pub(crate) covered: Covered,
    /// It was told that a delete is late, and still is.
    pub(crate) are_deletes_late: bool,
}

/// A choice of memtable.
#[derive(Debug)]
struct Chosen {
    choice: Choice,
    /// It differs from the one before, and this was not told yet.
    is_news: bool,
    /// Operations that were too few to choose by.
    left_over: Mix,
}

/// A tree of a database.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Arc<str>,
    design: ArcSwap<Design>,
    /// The design before, if it was ever changed.
    design_before: Mutex<Option<Design>>,
    state: ArcSwap<TreeState>,
    /// The number of the state: to look whether one that was loaded is still the newest takes less
    /// than to load it again.
    newest: AtomicU64,
    /// Held while the state is replaced.
    replacing: Mutex<()>,
    retired: Retired,
    jobs: Mutex<TreeJobs>,
    is_dropped: AtomicBool,
    /// Up to when the writes so far are spread by the greatest rate that is allowed, in nanoseconds
    /// since the tree was opened.
    pub(crate) paced_until_nanos: AtomicU64,
    pub(crate) opened_at: Instant,
    /// What of this tree holding writers up was told, until it is told that they go on.
    pub(crate) told_stall: Mutex<Option<WriteStall>>,
    /// What was chosen for a design that leaves its memtable open.
    choice: Mutex<Option<Chosen>>,
    usage: Arc<Usage>,
    /// Up to where the tree is written, and where walks have found nothing.
    dead: Arc<DeadRanges>,
}

impl Tree {
    pub(crate) fn new(
        id: KeyspaceId,
        name: &str,
        design: Design,
        version: Version,
        buffer: Buffer,
    ) -> Arc<Self> {
        let admission = admit(version.shape(), 0, &design);
        let cursors = Cursors::resumed(version.shape());
        let (active, version) = (Arc::new(buffer), Arc::new(version));
        let held_since = pressure_of(&admission).map(|_| Instant::now());
        let nanos_per_write = nanos_per_write(&design);
        let full = Vec::new();
        let usage = Arc::new(Usage::default());
        usage.count(design.memtable == MemtableKind::Auto);
        let state = TreeState {
            active,
            full,
            version,
            admission,
            held_since,
            nanos_per_write,
            usage: Arc::clone(&usage),
            number: 0,
        };
        Arc::new(Self {
            usage,
            id,
            name: name.into(),
            design: ArcSwap::from_pointee(design),
            design_before: Mutex::new(None),
            state: ArcSwap::from_pointee(state),
            newest: AtomicU64::new(0),
            replacing: Mutex::new(()),
            retired: Retired::default(),
            jobs: Mutex::new(TreeJobs { cursors, ..TreeJobs::default() }),
            is_dropped: AtomicBool::new(false),
            told_stall: Mutex::new(None),
            paced_until_nanos: AtomicU64::new(0),
            opened_at: Instant::now(),
            choice: Mutex::new(None),
            dead: Arc::default(),
        })
    }

    /// An empty memtable of the kind that the design asks for, to take the place of `before`.
    pub(crate) fn new_memtable(
        design: &Design,
        pool: &Arc<Pool>,
        before: Option<&Memtable>,
    ) -> Arc<Memtable> {
        Self::memtable_of(design.memtable, design.buffer_bytes, pool, before)
    }

    fn memtable_of(
        kind: MemtableKind,
        buffer_bytes: u64,
        pool: &Arc<Pool>,
        before: Option<&Memtable>,
    ) -> Arc<Memtable> {
        let config = memtable_config(kind, buffer_bytes, before);
        match before {
            Some(before) => Memtable::new_after(before, config, pool),
            None => Memtable::new_to_learn(config, pool),
        }
    }

    /// An empty memtable to take the place of the active one. Where the design leaves the kind open,
    /// it follows from the operations of the tree since the last one.
    pub(crate) fn next_memtable(&self, pool: &Arc<Pool>) -> Arc<Memtable> {
        let design = self.design();
        let active = Arc::clone(&self.state().active.memtable);
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        if design.memtable != MemtableKind::Auto {
            *choice = None;
            return Self::new_memtable(&design, pool, Some(&active));
        }
        let before = choice.take();
        let present = before.as_ref().map(|before| before.choice.kind);
        let left_over = before.as_ref().map(|before| before.left_over).unwrap_or_default();
        let recent = self.operations(&active).and(&left_over);
        let next = choose(&recent, present, design.buffer_bytes);
        let is_too_little = recent.total() < memtable_choice::OPERATIONS_MIN;
        let chosen = choice.insert(Chosen {
            is_news: before.is_some_and(|before| before.is_news) || present != Some(next.kind),
            left_over: if is_too_little { recent } else { Mix::default() },
            choice: next,
        });
        Self::memtable_of(chosen.choice.kind, design.buffer_bytes, pool, Some(&active))
    }

    /// What the tree was asked for as long as it had this memtable.
    fn operations(&self, active: &Memtable) -> Mix {
        let state = self.state();
        let levels = &state.version.shape().levels;
        let tables = levels.iter().flat_map(|level| &level.runs).flat_map(|run| &run.tables);
        let in_tables: u64 = tables.map(|table| table.entries).sum();
        let in_memory = active.len() as u64;
        let share = in_memory as f64 / in_memory.saturating_add(in_tables).max(1) as f64;
        self.usage.take(in_memory, active.memory().data_bytes as u64, share)
    }

    /// What is kept of how the memtables are used.
    #[inline]
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The last choice, if it differs from the one before and was not taken by this yet.
    pub(crate) fn take_new_choice(&self) -> Option<Choice> {
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = choice.as_mut().filter(|chosen| chosen.is_news)?;
        chosen.is_news = false;
        Some(chosen.choice.clone())
    }

    /// What was chosen at the last rotation, if the design leaves it open.
    pub(crate) fn memtable_choice(&self) -> Option<Choice> {
        let choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        choice.as_ref().map(|chosen| chosen.choice.clone())
    }

    /// The current state, for the time of one operation.
    #[inline]
    pub(crate) fn state(&self) -> Guard<Arc<TreeState>> {
        self.state.load()
    }

    /// Has `state` be the current one, as it was loaded some time before. Where it has changed by
    /// now under a lock that the caller holds, that is seen; otherwise it may be about to.
    #[inline]
    pub(crate) fn refresh(&self, state: &mut Guard<Arc<TreeState>>) {
        if self.newest.load(Ordering::Acquire) != state.number {
            *state = self.state();
        }
    }

    /// The current state, to be kept.
    pub(crate) fn state_arc(&self) -> Arc<TreeState> {
        self.state.load_full()
    }

    /// The size at which the design has a memtable be full, in bytes.
    #[inline]
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.design.load().buffer_bytes
    }

    pub(crate) fn design(&self) -> Arc<Design> {
        self.design.load_full()
    }

    /// Replaces the design; memtables follow at the next rotation, tables by compactions.
    pub(crate) fn set_design(&self, design: Design) {
        self.usage.count(design.memtable == MemtableKind::Auto);
        let before = self.design.swap(Arc::new(design));
        if *before != *self.design() {
            self.set_design_before(Some((*before).clone()));
        }
        self.replace(|state| state);
    }

    /// The design before the last change, if there was one.
    pub(crate) fn design_before(&self) -> Option<Design> {
        self.design_before.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_design_before(&self, before: Option<Design>) {
        *self.design_before.lock().unwrap_or_else(PoisonError::into_inner) = before;
    }

    /// Replaces the state by what `change` makes of it.
    pub(crate) fn replace(&self, change: impl FnOnce(NextState) -> NextState) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.state.load();
        let next = change(NextState {
            active: Arc::clone(&current.active),
            full: current.full.clone(),
            version: Arc::clone(&current.version),
        });
        let design = self.design.load();
        let admission = admit(next.version.shape(), next.full.len(), &design);
        let held_since = pressure_of(&admission).map(|pressure| {
            let before = pressure_of(&current.admission);
            let goes_on = before.is_some_and(|before| before.cause == pressure.cause);
            current.held_since.filter(|_| goes_on).unwrap_or_else(Instant::now)
        });
        let nanos_per_write = nanos_per_write(&design);
        let NextState { active, full, version } = next;
        let usage = Arc::clone(&self.usage);
        let number = current.number + 1;
        let state = TreeState {
            active,
            full,
            version,
            admission,
            held_since,
            nanos_per_write,
            usage,
            number,
        };
        self.retired.add(self.state.swap(Arc::new(state)));
        self.newest.store(number, Ordering::Release);
    }

    /// States that were replaced, and may be in use.
    pub(crate) fn retired(&self) -> &Retired {
        &self.retired
    }

    pub(crate) fn jobs(&self) -> MutexGuard<'_, TreeJobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write of this tree is given sequence numbers up to `seq`; under the writer's lock.
    #[inline]
    pub(crate) fn set_last_seq(&self, seq: SeqNo) {
        self.dead.set_last_seq(seq);
    }

    /// The largest sequence number that was given to a write of this tree.
    pub(crate) fn last_seq(&self) -> SeqNo {
        self.dead.last_seq()
    }

    /// Where walks have found nothing.
    #[inline]
    pub(crate) fn dead(&self) -> &Arc<DeadRanges> {
        &self.dead
    }

    pub(crate) fn mark_dropped(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }
}

/// What holds writers up, if anything.
pub(crate) fn pressure_of(admission: &Admission) -> Option<Pressure> {
    match admission {
        Admission::Proceed => None,
        Admission::Delay(pressure) | Admission::Stop(pressure) => Some(*pressure),
    }
}

fn nanos_per_write(design: &Design) -> u64 {
    design.constraint.max_rate.map_or(0, |rate| 1_000_000_000 / u64::from(rate.max(1)))
}

/// What a memtable of a kind is made with. A kind that is left open is the usual one until there
/// is something to choose by.
pub(crate) fn memtable_config(
    kind: MemtableKind,
    buffer_bytes: u64,
    before: Option<&Memtable>,
) -> Config {
    let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let hash_view = |view| match view {
        OrderedView::Kept => HashView::Kept,
        OrderedView::Copy => HashView::Copy,
    };
    match kind {
        MemtableKind::Auto | MemtableKind::BTree => Config::BTree,
        MemtableKind::SkipList { branching, height } => Config::SkipList { branching, height },
        MemtableKind::Vector { prealloc_bytes, query } => Config::Vector {
            prealloc_bytes: in_memory(prealloc_bytes),
            query: match query {
                policy::VectorQuery::Resort => VectorQuery::Resort,
                policy::VectorQuery::Copy => VectorQuery::Copy,
                policy::VectorQuery::Scan => VectorQuery::Scan,
            },
        },
        MemtableKind::HashSkipList { prefix, buckets, height, view } => Config::HashSkipList {
            prefix: prefix.into(),
            buckets: buckets as usize,
            height,
            view: hash_view(view),
        },
        MemtableKind::HashLinkedList { prefix, buckets, threshold, view } => {
            Config::HashLinkedList {
                prefix: prefix.into(),
                buckets: buckets as usize,
                threshold: threshold as usize,
                view: hash_view(view),
            }
        }
        MemtableKind::HashVector { prefix, buckets, view } => Config::HashVector {
            prefix: prefix.into(),
            buckets: buckets as usize,
            view: hash_view(view),
        },
        MemtableKind::FloDb(flodb) => Config::FloDb(drain::config(flodb, buffer_bytes, before)),
    }
}

/// The parts of a state that a change may replace.
#[derive(Debug)]
pub(crate) struct NextState {
    pub(crate) active: Arc<Buffer>,
    pub(crate) full: Vec<Arc<FullBuffer>>,
    pub(crate) version: Arc<Version>,
}

impl TreeState {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active.memtable).chain(self.full.iter().map(|full| &full.memtable))
    }

    /// Whether a memtable forgets what no one reads: then who reads more than once at the same
    /// sequence number must hold it.
    pub(crate) fn forgets(&self) -> bool {
        self.memtables().any(|memtable| memtable.forgets())
    }

    /// Bytes that memtables have taken from the allocator.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.memtables().map(|memtable| memtable.memory().total_bytes()).sum()
    }

    /// The oldest position of the log that the memtables need; `None` if they hold nothing.
    pub(crate) fn log_begins(&self) -> Option<Lsn> {
        // The positions of full memtables are known by their ends only; the oldest one begins
        // where the tables end, which the manifest knows.
        (self.full.is_empty() && !self.active.memtable.is_empty()).then_some(self.active.begins)
    }

    /// Whether no memtable holds anything.
    pub(crate) fn is_flushed(&self) -> bool {
        self.full.is_empty() && self.active.memtable.is_empty()
    }
}
