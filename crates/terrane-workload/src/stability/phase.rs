//! One phase of the evaluation: clients that write, clients that read, and periodic samples of the
//! engine.
//!
//! The calling thread is the observer. It waits on the same clock as the clients, so in virtual
//! time a phase is a sequence of events.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use super::client::{Client, Shared};
use super::clock::Clock;
use super::mixed_load::MixedLoad;
use super::query::Query;
use super::recorder::Recorder;
use super::report::{KindLatency, PhaseReport, ReaderReport, Sample};
use super::schedule::Schedule;
use crate::error::{OptionsError, RunError, StoreError};
use crate::key::KeySpace;
use crate::latency::Latency;
use crate::operation_mix::MixPart;
use crate::options::RunOptions;
use crate::store::{Glance, Store};

/// The time between the start of the first thread and the start of the phase.
const LEAD_NANOS: u64 = 20_000_000;
/// The minimum interval between samples of the engine.
const SAMPLE_NANOS_MIN: u64 = 250_000_000;
/// The maximum number of samples in a phase.
const SAMPLES_MAX: u64 = 2_000;
/// The maximum duration of a phase: a day.
const DURATION_MAX: Duration = Duration::from_secs(86_400);

/// What starts the next write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Closed system: the end of a client's previous write (Fig. 5a).
    Closed,
    /// Open system: a schedule that is independent of the engine (Fig. 5b).
    Open(Schedule),
}

/// The parameters of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseOptions {
    /// What starts the next write.
    pub load: Load,
    /// The duration of the phase, including its warm-up.
    pub duration: Duration,
    /// The initial part of the duration, which only the timelines include.
    pub warm_up: Duration,
    /// The number of writers, which take arrivals in order.
    pub writers: u32,
    /// The number of readers, each in a closed loop.
    pub readers: u32,
    /// The queries of the readers.
    pub query: Query,
    /// The loaded keys, sizes, distribution and seed. The counts of threads and reads are ignored.
    pub run: RunOptions,
}

impl PhaseOptions {
    pub(super) fn duration_nanos(&self) -> u64 {
        nanos(self.duration)
    }

    pub(super) fn warm_up_nanos(&self) -> u64 {
        nanos(self.warm_up)
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn check(&self) -> Result<(), OptionsError> {
        let bad = |option, reason: &str| Err(OptionsError::new(option, reason));
        if self.duration.is_zero() || self.duration > DURATION_MAX {
            return bad("duration", "must be above zero and at most a day");
        }
        if self.warm_up >= self.duration {
            return bad("warm_up", "the warm-up must be shorter than its phase");
        }
        if self.writers == 0 {
            return bad("writers", "at least one writer is needed");
        }
        if self.writers > 1024 || self.readers > 1024 {
            return bad("readers", "at most 1024 writers and 1024 readers");
        }
        if self.run.num == 0 {
            return bad("num", "at least one key is needed");
        }
        Ok(())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Receives the progress of a phase several times a second.
pub trait Watch {
    /// Reports that `elapsed` of `total` has passed, with the current gauges of the engine.
    fn look(&self, elapsed: Duration, total: Duration, glance: &Glance);
}

/// A [`Watch`] that ignores all reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn look(&self, _elapsed: Duration, _total: Duration, _glance: &Glance) {}
}

type Joining<'scope> = ScopedJoinHandle<'scope, Result<Finished, StoreError>>;

/// The results of a client.
struct Finished {
    recorder: Recorder,
    bytes_written: u64,
    wrong_answers: u64,
    /// The latencies of each operation of the mix.
    kinds: Vec<Latency>,
}

/// Runs a phase on a store loaded with the keys of `options`.
///
/// # Errors
/// Invalid options, or the first error of the store.
///
/// # Panics
/// When the store panics.
pub fn run_phase(
    store: &dyn Store,
    options: &PhaseOptions,
    clock: &dyn Clock,
    watch: &dyn Watch,
) -> Result<PhaseReport, RunError> {
    run_phase_of(None, store, options, clock, watch)
}

/// Runs a phase in which the writers carry out `mix`, which must be made for as many writers.
///
/// # Errors
/// As for [`run_phase`].
///
/// # Panics
/// When the store panics.
pub fn run_phase_of(
    mix: Option<&MixedLoad>,
    store: &dyn Store,
    options: &PhaseOptions,
    clock: &dyn Clock,
    watch: &dyn Watch,
) -> Result<PhaseReport, RunError> {
    options.check()?;
    let run = &options.run;
    let keys = KeySpace::new(run.key_order, run.key_size_bytes, run.num)?;
    let counters = store.counters();
    let begin = clock.now() + LEAD_NANOS;
    let shared = Shared {
        store,
        clock,
        options,
        mix,
        keys,
        begin,
        end: begin + options.duration_nanos(),
        next: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
    };
    let (writers, readers, samples) = scope(|scope| {
        let writers: Vec<_> = (0..options.writers)
            .map(|number| spawn(scope, &shared, number, move |client| client.write(number)))
            .collect();
        let readers: Vec<_> = (options.writers..options.writers + options.readers)
            .map(|number| spawn(scope, &shared, number, Client::read))
            .collect();
        clock.enter();
        let samples = observe(&shared, watch);
        clock.leave();
        let join = |threads: Vec<Joining<'_>>| threads.into_iter().map(joined).collect::<Vec<_>>();
        (join(writers), join(readers), samples)
    });
    let writers = writers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let readers = readers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut report = report(&shared, &writers, &readers);
    report.samples = samples;
    report.counters = store.counters().since(&counters);
    Ok(report)
}

fn spawn<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'scope Shared<'_>,
    number: u32,
    work: impl FnOnce(&mut Client<'scope>) -> Result<(), StoreError> + Send + 'scope,
) -> Joining<'scope> {
    scope.spawn(move || {
        let mut client = Client::new(shared, number);
        shared.clock.enter();
        let outcome = work(&mut client);
        if outcome.is_err() {
            shared.stopped.store(true, Ordering::Relaxed);
        }
        shared.clock.leave();
        let wrong_answers = client.tally.wrong_answers();
        let Client { recorder, tally, kinds, .. } = client;
        let bytes_written = tally.bytes_written;
        outcome.map(|()| Finished { recorder, bytes_written, wrong_answers, kinds })
    })
}

fn joined(handle: Joining<'_>) -> Result<Finished, StoreError> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Samples the engine until the phase ends.
fn observe(shared: &Shared<'_>, watch: &dyn Watch) -> Vec<Sample> {
    let total = shared.options.duration_nanos();
    let every = total.div_ceil(SAMPLES_MAX).max(SAMPLE_NANOS_MIN);
    let mut samples = Vec::with_capacity((total / every + 2) as usize);
    let mut at = 0;
    loop {
        let now = shared.wait_until(shared.begin + at).saturating_sub(shared.begin);
        let glance = shared.store.glance();
        samples.push(Sample { seconds: now as f64 / 1e9, glance });
        watch.look(Duration::from_nanos(now.min(total)), Duration::from_nanos(total), &glance);
        if at == total || shared.is_stopped() {
            return samples;
        }
        at = (at + every).min(total);
    }
}

fn report(shared: &Shared<'_>, writers: &[Finished], readers: &[Finished]) -> PhaseReport {
    let options = shared.options;
    let together = |clients: &[Finished]| {
        let mut all = Recorder::new(options.duration_nanos(), options.warm_up_nanos());
        clients.iter().for_each(|client| all.add(&client.recorder));
        all
    };
    let mut all = together(writers);
    let mut offered = None;
    if let Load::Open(schedule) = options.load {
        let due = schedule.arrivals_before(options.duration_nanos());
        let taken = shared.next.load(Ordering::Relaxed).min(due);
        count_waiting(&mut all, &schedule, taken..due, options);
        offered = Some(due);
    }
    let measured = options.duration - options.warm_up;
    // In a closed system, the phase waits for writes that are in progress at its end.
    let overtime = all.last_end.saturating_sub(options.duration_nanos());
    let seconds = match options.load {
        Load::Closed => (measured + Duration::from_nanos(overtime)).as_secs_f64(),
        Load::Open(_) => measured.as_secs_f64(),
    };
    let sum = |clients: &[Finished], of: fn(&Finished) -> u64| clients.iter().map(of).sum::<u64>();
    PhaseReport {
        load: options.load,
        writers: options.writers,
        seconds,
        warm_up_seconds: options.warm_up.as_secs_f64(),
        offered,
        completed: all.completed,
        unfinished: all.unfinished,
        longest_wait_left_seconds: all.longest_wait as f64 / 1e9,
        write: all.whole,
        processing: all.processing,
        late: all.late,
        timeline: all.timeline,
        samples: Vec::new(),
        readers: (options.readers > 0).then(|| {
            let all = together(readers);
            ReaderReport {
                query: options.query,
                threads: options.readers,
                completed: all.completed,
                seconds: measured.as_secs_f64(),
                latency: all.processing,
                timeline: all.timeline,
                wrong_answers: sum(readers, |reader| reader.wrong_answers),
            }
        }),
        kinds: kinds(shared.mix, writers),
        wrong_answers: sum(writers, |writer| writer.wrong_answers),
        user_bytes_written: sum(writers, |writer| writer.bytes_written),
        counters: crate::store::StoreCounters::default(),
    }
}

/// Returns the latencies of each operation of the mix, over all writers.
fn kinds(mix: Option<&MixedLoad>, writers: &[Finished]) -> Vec<KindLatency> {
    let parts = mix.map_or(&[][..], MixedLoad::parts);
    let of_part = |(at, part): (usize, &MixPart)| {
        let mut latency = Latency::new();
        writers.iter().filter_map(|writer| writer.kinds.get(at)).for_each(|one| latency.add(one));
        KindLatency { part: *part, latency }
    };
    parts.iter().enumerate().map(of_part).collect()
}

/// Counts each arrival that no client took, with its waiting time. If there are many such arrivals,
/// one sample stands for several neighbouring ones.
fn count_waiting(
    all: &mut Recorder,
    schedule: &Schedule,
    waiting: std::ops::Range<u64>,
    options: &PhaseOptions,
) {
    const COUNTED_MAX: u64 = 1_000_000;
    let end = options.duration_nanos();
    let step = (waiting.end - waiting.start).div_ceil(COUNTED_MAX).max(1);
    let mut index = waiting.start;
    while index < waiting.end {
        let count = step.min(waiting.end - index);
        all.many_unfinished(end - schedule.time_of(index).min(end), count);
        index += count;
    }
}
