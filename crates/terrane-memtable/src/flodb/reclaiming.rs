//! Passes that make room in an almost full memtable: they reclaim versions that no reader needs.
//!
//! A version that is replaced stays in its chain until the next write of the key or a drain reclaims it, and in
//! the lower level until a drain links the version that hides it. A pass does both for the whole Membuffer,
//! in steps of well below a millisecond, which drain threads and writers take. It first reclaims within the
//! chains. If that frees too little, it also drains, because the other hidden versions are in the lower level.
//!
//! A thread that takes a step locks a partition against other drains, and goes on where the previous step in this
//! partition ended. If another thread has locked it, the step is taken in the next partition. A thread that is
//! not running must not keep others from reclaiming, so a pass ends without partitions that stay locked.
//!
//! The place of a phase in a partition changes only with the partition locked, and does not go back. A thread that
//! loaded the number of a phase before it ended may still take a step of it, which does no harm.

use super::membuffer::Membuffer;
use super::partition::Partition;
use super::phase::{PassPlace, Phase, PhaseNumber};
use super::{DrainScope, FloDb, Update};
use crate::readers::{ReaderView, Readers};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// The number of buckets with dirty slots that a step visits, and of versions that it links. One chain more may
/// be linked, however long.
const STEP_BUCKETS: usize = 128;
const STEP_VERSIONS: usize = 1024;

/// A phase ends once this many steps in turn found all unfinished partitions locked.
const FUTILE_STEPS_MAX: usize = 4;

/// The number of partitions and of words of bits that a step reads at most, for a Membuffer with few dirty slots.
const STEP_PARTITIONS: usize = 64;
const STEP_WORDS: usize = 1024;

/// A memtable is not drained if reclaiming within chains frees at least one in this many of its bytes, so
/// that constantly overwritten keys stay in the Membuffer.
const PRUNED_SHARE_MIN: usize = 8;

/// A pass begins if, for this many versions that were added since the last pass, at least one replaced another one
/// in the Membuffer or was reclaimed.
const OVERWRITTEN_SHARE_MIN: usize = 64;

/// A pass begins once the memtable has grown by one part in this many since the last pass, or by one part in
/// [`LEFT_SHARE_MIN`] of the space that is left, if that is less. Draining visits the keys that were written
/// since the last pass, so frequent passes cost little more than rare ones.
const GROWN_SHARE_MIN: usize = 128;
const LEFT_SHARE_MIN: usize = 4;

/// The passes over a memtable.
pub(super) struct Reclaiming {
    /// The [`PhaseNumber`] of the phase under way.
    phase: AtomicU64,
    /// The steps in turn that found all unfinished partitions locked.
    futile_steps: AtomicUsize,
    /// The number of partitions that the phase has not finished. Changes with `pass` locked.
    partitions_left: AtomicUsize,
    /// About the number of buckets that the pass has yet to visit.
    buckets_left: AtomicUsize,
    /// The partition in which the next step looks first.
    next: AtomicUsize,
    pass: Mutex<Pass>,
}

#[derive(Debug, Default)]
struct Pass {
    /// The bytes of free versions before the pass.
    free_before: usize,
    /// The memtable when the last pass ended.
    last: Seen,
}

/// The state of a memtable.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The bytes in use.
    used: usize,
    /// The versions that were added.
    added: usize,
    /// The versions that replaced another one in the Membuffer, and those that were reclaimed: most are counted
    /// twice.
    overwritten: usize,
}

/// What a step may still do.
struct Budget {
    buckets: usize,
    words: usize,
    versions: usize,
    /// The number of versions that it has drained.
    drained: usize,
}

impl Reclaiming {
    pub(super) fn new() -> Self {
        Self {
            phase: AtomicU64::new(PhaseNumber::default().0),
            futile_steps: AtomicUsize::new(0),
            partitions_left: AtomicUsize::new(0),
            buckets_left: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            pass: Mutex::new(Pass::default()),
        }
    }

    fn phase(&self) -> PhaseNumber {
        // Acquire pairs with the store in `begin_phase`: the counts of the phase are seen.
        PhaseNumber(self.phase.load(Ordering::Acquire))
    }

    /// Returns about the number of steps that the pass under way still takes; 0 if none is.
    pub(super) fn steps(&self) -> usize {
        if self.phase().phase() == Phase::Over {
            return 0;
        }
        // Relaxed: an estimate.
        let buckets = self.buckets_left.load(Ordering::Relaxed);
        let partitions = self.partitions_left.load(Ordering::Relaxed);
        1 + buckets / STEP_BUCKETS + partitions / STEP_PARTITIONS
    }
}

impl FloDb {
    /// Begins a pass in a memtable with `left` free bytes, if none is under way, the memtable has grown, and enough
    /// versions were overwritten. Returns about the number of steps that the pass under way still takes.
    ///
    /// Overwritten keys that had left the Membuffer are known only once they are drained. Without drain threads,
    /// a pass may not begin for them.
    pub(super) fn begin_pass(&self, left: usize) -> usize {
        let under_way = self.reclaiming.steps();
        let may_reclaim = self.update == Update::InPlace
            // The skip-list keeps its versions. After its first pass, writes reclaim what they hide.
            && (self.lower.overwrites() || !self.is_scarce.load(Ordering::Relaxed));
        let Some(membuffer) = self.membuffer.get().filter(|_| under_way == 0 && may_reclaim) else {
            return under_way;
        };
        let mut pass = lock(&self.reclaiming.pass);
        let grown = self.lower.usage().0.saturating_sub(pass.last.used);
        if grown <= (pass.last.used / GROWN_SHARE_MIN).min(left / LEFT_SHARE_MIN) {
            return self.reclaiming.steps();
        }
        let (now, last) = (self.state_of(membuffer), pass.last);
        let overwritten = now.overwritten.saturating_sub(last.overwritten);
        let has_overwritten =
            overwritten * OVERWRITTEN_SHARE_MIN > now.added.saturating_sub(last.added);
        if self.reclaiming.steps() == 0 && has_overwritten {
            self.is_scarce.store(true, Ordering::Relaxed);
            pass.free_before = self.lower.free.usage().0;
            self.begin_phase(membuffer, Phase::Pruning);
        }
        self.reclaiming.steps()
    }

    /// Takes a step of the pass under way, if one is. Returns the number of versions that it drained.
    pub(super) fn step_pass(&self, readers: &dyn Readers) -> usize {
        let Some(membuffer) = self.membuffer.get().filter(|_| !self.pause.is_paused()) else {
            return 0;
        };
        let phase = self.reclaiming.phase();
        if phase.phase() == Phase::Over {
            return 0;
        }
        let view = ReaderView::new(readers);
        let mut budget = Budget {
            buckets: STEP_BUCKETS,
            words: STEP_WORDS,
            versions: STEP_VERSIONS,
            drained: 0,
        };
        let count = membuffer.partitions.len();
        let first = self.reclaiming.next.load(Ordering::Relaxed);
        for number in (first..first + count.min(STEP_PARTITIONS)).map(|number| number % count) {
            if self.step_in(membuffer, (number, phase), &mut budget, &view) {
                self.reclaiming.next.store(number + 1, Ordering::Relaxed);
            }
            if budget.buckets == 0 || budget.words == 0 || budget.versions == 0 {
                break;
            }
        }
        let futile = &self.reclaiming.futile_steps;
        if budget.words < STEP_WORDS {
            futile.store(0, Ordering::Relaxed);
        } else if futile.fetch_add(1, Ordering::Relaxed) + 1 >= FUTILE_STEPS_MAX {
            self.end_phase(membuffer, &mut lock(&self.reclaiming.pass), phase);
        }
        self.drained.fetch_add(budget.drained, Ordering::Relaxed);
        budget.drained
    }

    /// Takes a step in a partition. Returns true if the phase has finished the partition, or no longer lasts.
    fn step_in(
        &self,
        membuffer: &Membuffer,
        (number, phase): (usize, PhaseNumber),
        budget: &mut Budget,
        view: &ReaderView<'_>,
    ) -> bool {
        let part = &membuffer.partitions[number];
        let Ok(mut place) = part.draining.try_lock() else { return false };
        if place.phase < phase {
            *place = PassPlace { phase, word: 0 };
        }
        if place.phase > phase || place.word == part.words() {
            return true;
        }
        let (first, mut end, mut dirty) = (place.word, place.word, 0);
        while end < part.words() && dirty < budget.buckets && end - first < budget.words {
            dirty += part.dirty_buckets(end..end + 1).count();
            end += 1;
        }
        budget.buckets = budget.buckets.saturating_sub(dirty);
        budget.words -= end - first;
        let words = first..end;
        match phase.phase() {
            _ if dirty == 0 => {}
            Phase::Over => {}
            Phase::Pruning => membuffer.prune_words(&self.lower, (number, words), view),
            Phase::Draining => {
                // A version hides older ones only once it is visible. If it were linked before, they would stay.
                let scope = DrainScope::UpTo(view.bounds().visible);
                let (lower, insert, most) = (&self.lower, self.insert, budget.versions);
                let drained =
                    membuffer.drain_words(lower, (number, words), (scope, most), insert, view);
                budget.versions = most.saturating_sub(drained.versions);
                budget.drained += drained.versions;
                end = drained.end;
            }
        }
        place.word = end;
        let visited = |left: usize| Some(left.saturating_sub(dirty));
        let relaxed = Ordering::Relaxed;
        let _ = self.reclaiming.buckets_left.fetch_update(relaxed, relaxed, visited);
        let is_finished = end == part.words();
        drop(place);
        if is_finished {
            self.finish_partition(membuffer, phase);
        }
        is_finished
    }

    /// Ends the phase if this was its last partition.
    fn finish_partition(&self, membuffer: &Membuffer, phase: PhaseNumber) {
        let mut pass = lock(&self.reclaiming.pass);
        if self.reclaiming.phase() != phase {
            return;
        }
        // Relaxed: changes with the lock held.
        let left = self.reclaiming.partitions_left.load(Ordering::Relaxed) - 1;
        self.reclaiming.partitions_left.store(left, Ordering::Relaxed);
        if left == 0 {
            self.end_phase(membuffer, &mut pass, phase);
        }
    }

    fn begin_phase(&self, membuffer: &Membuffer, phase: Phase) {
        let parts = membuffer.partitions.iter();
        let buckets: usize = parts.map(|part| part.dirty_buckets(0..part.words()).count()).sum();
        let phases = if phase == Phase::Pruning && self.lower.overwrites() { 2 } else { 1 };
        let reclaiming = &self.reclaiming;
        reclaiming.futile_steps.store(0, Ordering::Relaxed);
        reclaiming.buckets_left.store(buckets * phases, Ordering::Relaxed);
        reclaiming.partitions_left.store(membuffer.partitions.len(), Ordering::Relaxed);
        // SeqCst: a release, and a drain thread that falls asleep sees the pass or is woken.
        reclaiming.phase.store(reclaiming.phase().next(phase).0, Ordering::SeqCst);
    }

    /// Ends a phase, if it has not ended yet.
    fn end_phase(&self, membuffer: &Membuffer, pass: &mut Pass, phase: PhaseNumber) {
        if self.reclaiming.phase() != phase {
            return;
        }
        let freed = self.lower.free.usage().0.saturating_sub(pass.free_before);
        let suffices = freed >= self.lower.usage().0 / PRUNED_SHARE_MIN;
        if phase.phase() == Phase::Pruning && !suffices && self.lower.overwrites() {
            self.begin_phase(membuffer, Phase::Draining);
            return;
        }
        pass.last = self.state_of(membuffer);
        self.begin_phase(membuffer, Phase::Over);
    }

    fn state_of(&self, membuffer: &Membuffer) -> Seen {
        Seen {
            used: self.lower.usage().0,
            added: membuffer.partitions.iter().map(Partition::entries).sum(),
            overwritten: membuffer.overwritten() + self.lower.free.reclaimed().0,
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::disallowed_methods, reason = "a writer that does other work sleeps instead")]
mod tests {
    use std::time::Duration;

    use terrane_testkit::Rng;

    use super::*;
    use crate::entry::{Entry, EntryKind};
    use crate::flodb::{DrainInsert, FloDbConfig, LowerLevel};
    use crate::key_span::KeySpan;
    use crate::pool::Pool;
    use crate::structure::Structure;

    /// The last partition may be left if its thread does not run, and the next pass takes it.
    #[test]
    fn a_pass_of_several_threads_leaves_no_visible_version_behind() {
        for partition_bits in [2, 5] {
            let config =
                FloDbConfig::of(2000, partition_bits, LowerLevel::BTree, DrainInsert::Multi);
            let memtable = FloDb::new(config, Some(KeySpan::all()), Pool::new(0));
            let mut rng = Rng::new(3);
            let keys = if cfg!(miri) { 300 } else { 8000 };
            // So few overwritten keys that pruning does not suffice.
            let last = keys + keys / 16;
            for seq in 1..=last {
                let number = if seq <= keys { seq } else { rng.below(keys) };
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                let version = Entry { key: &key, seq, kind: EntryKind::Value, value: b"value" };
                let readers = || seq - 1;
                memtable.insert(&version, &ReaderView::new(&readers));
            }
            let membuffer = memtable.membuffer.get().unwrap();
            let dirty = || membuffer.partitions.iter().map(Partition::dirty).sum::<usize>();
            let before = dirty();
            assert!(before > 0 && memtable.begin_pass(0) > 1);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while memtable.reclaiming.steps() > 0 {
                            memtable.step_pass(&|| last);
                            // What a writer does between two steps.
                            std::thread::sleep(Duration::from_micros(100));
                        }
                    });
                }
            });
            assert!(dirty() <= before / 2, "{partition_bits}: {} left of {before}", dirty());
            memtable.begin_phase(membuffer, Phase::Draining);
            while memtable.reclaiming.steps() > 0 {
                memtable.step_pass(&|| last);
            }
            assert_eq!(dirty(), 0, "{partition_bits}");
            assert_eq!(memtable.begin_pass(0), 0, "nothing was written since");
        }
    }
}
