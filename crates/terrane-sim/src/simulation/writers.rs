//! Writers: the rates of arrivals and of completed writes, and latencies.

use terrane_policy::{Admission, StallCause};

use super::state::TreeState;
use super::{SOON, Simulation, StopAt};
use crate::outcome::StallPeriod;
use crate::trace::TraceKind;
use crate::workload::Arrival;

/// The rates of writers until the next event.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriterRates {
    /// Arrivals per second; `None` for a closed loop.
    arriving: Option<f64>,
    /// Completed writes per second.
    pub(super) made: f64,
    /// The service time of a write, in seconds.
    service: f64,
    /// The part of the service time that is a delay by admission.
    delay: f64,
    /// The tree that stops writers, with the cause and the measured value.
    pub(super) blocked: Option<(usize, StallCause, u32)>,
    /// The time at which the arrival rate changes or the queue is drained.
    pub(super) until: f64,
    /// True once a load has written all records.
    pub(super) is_done: bool,
}

impl WriterRates {
    /// Delays writers so that a write takes `service` seconds: they write as fast as they may, so each write takes
    /// a share of the time.
    fn delay_to(&mut self, service: f64) {
        let more = (service - self.service).max(0.0);
        self.delay += more;
        self.service += more;
    }
}

/// The cumulative number of arrivals over time, piecewise linear.
#[derive(Debug, Clone, Default)]
pub(super) struct ArrivalCurve {
    /// Start time, cumulative number at the start, and rate of each segment.
    lines: Vec<(f64, f64, f64)>,
    /// The segment during which the next write to complete arrived.
    at: usize,
}

impl ArrivalCurve {
    pub(super) fn count_at(&self, time: f64) -> Option<f64> {
        self.lines.last().map(|(from, count, rate)| count + rate * (time - from))
    }

    fn set_rate(&mut self, now: f64, rate: f64) {
        let count = self.count_at(now).unwrap_or(0.0);
        if self.lines.last().is_none_or(|(_, _, before)| *before != rate) {
            self.lines.push((now, count, rate));
        }
    }

    /// Returns the arrival time of the `number`-th write, and the number at which its segment ends.
    fn arrival_of(&mut self, number: f64) -> (f64, f64) {
        while self.lines.get(self.at + 1).is_some_and(|(_, count, _)| *count <= number) {
            self.at += 1;
        }
        let ends = self.lines.get(self.at + 1).map_or(f64::INFINITY, |(_, count, _)| *count);
        let (from, count, rate) = self.lines.get(self.at).copied().unwrap_or((0.0, 0.0, 1.0));
        (from + (number - count) / rate, ends)
    }
}

impl Simulation<'_> {
    /// Returns the number of writes that fill a memtable of a tree.
    pub(super) fn buffer_writes(&self, tree: &TreeState<'_>) -> f64 {
        let expiry = match self.goal {
            StopAt::Loaded => 0.0,
            StopAt::Time(_) => self.setup.workload.mix.expiry_bytes(),
        };
        let entry = self.bytes_per_write() + expiry + self.setup.machine.costs.memtable_entry_bytes;
        (tree.design.buffer_bytes as f64 / entry).max(1.0)
    }

    /// Returns the mean bytes of key and value per write; a load writes only records.
    pub(super) fn bytes_per_write(&self) -> f64 {
        match self.goal {
            StopAt::Loaded => self.setup.workload.record_bytes,
            StopAt::Time(_) => self.setup.workload.bytes_per_write(),
        }
    }

    pub(super) fn left_to_load(&self) -> f64 {
        self.setup.workload.records - self.departed
    }

    /// Computes the current rates.
    pub(super) fn pace(&mut self) -> WriterRates {
        let workload = &self.setup.workload;
        let costs = &self.setup.machine.costs;
        let mut pace = WriterRates {
            arriving: None,
            made: 0.0,
            service: costs.write_seconds,
            delay: 0.0,
            blocked: None,
            until: f64::INFINITY,
            is_done: self.goal == StopAt::Loaded && self.left_to_load() < 0.5,
        };
        for (number, tree) in self.trees.iter().enumerate() {
            let is_full = tree.active >= self.buffer_writes(tree) * (1.0 - 1e-12);
            match tree.admission {
                Admission::Stop(pressure) if is_full || pressure.stops_at_once() => {
                    let period = (number, pressure.cause, pressure.measured);
                    pace.blocked = pace.blocked.or(Some(period));
                }
                Admission::Delay(pressure) => {
                    let nanos = self.bytes_per_write() * pressure.delay_nanos_per_byte();
                    pace.delay += tree.share * (nanos * 1e-9);
                }
                _ => {}
            }
        }
        pace.service += pace.delay;
        let mut can = if pace.blocked.is_some() || pace.is_done {
            0.0
        } else {
            f64::from(workload.writers.max(1)) / pace.service
        };
        for tree in &self.trees {
            if let Some(most) = tree.design.constraint.max_rate {
                can = can.min(f64::from(most) / tree.share);
            }
        }
        let rate_limits = &self.setup.rate_limits;
        let next = rate_limits.partition_point(|(from, _)| *from <= self.now + SOON);
        if let Some((_, most)) = next.checked_sub(1).and_then(|at| rate_limits.get(at)) {
            can = can.min(*most);
        }
        let let_in = rate_limits.get(next).map_or(f64::INFINITY, |(from, _)| *from);
        let arrival = if self.goal == StopAt::Loaded { Arrival::Closed } else { workload.arrival };
        let (arriving, changes) = arrival.at(self.now);
        let undelayed = can;
        let spread = self.spread_rate().filter(|limit| limit.writes_per_second < undelayed);
        let can = spread.map_or(can, |limit| can.min(limit.writes_per_second));
        let until = changes.min(let_in).min(spread.map_or(f64::INFINITY, |limit| limit.until));
        (pace.arriving, pace.until, pace.made) = (arriving, until, can);
        if let Some(arriving) = arriving {
            self.arrived.set_rate(self.now, arriving);
            let queued = self.arrived.count_at(self.now).unwrap_or(0.0) - self.departed;
            // A queue below the tolerance counts as empty.
            if queued > arriving.max(can) * SOON {
                if can > arriving {
                    pace.until = pace.until.min(self.now + queued / (can - arriving));
                }
            } else if can >= arriving {
                pace.made = arriving;
            }
        }
        if pace.is_done {
            pace.blocked = None;
        }
        if can < undelayed && pace.made >= can {
            pace.delay_to(f64::from(workload.writers.max(1)) / can);
        }
        pace
    }

    /// Accounts for the writes of one step.
    pub(super) fn count_writes(&mut self, step: f64, pace: &WriterRates) {
        match (pace.blocked, self.blocked) {
            (Some((tree, cause, measured)), before) => {
                let since = before.map_or(self.now, |(since, _)| since);
                let period = before.map(|(_, period)| period);
                let period = period.filter(|one| (one.tree, one.cause) == (tree, cause));
                if let (None, Some((_, ended))) = (period, before) {
                    self.outcome.stalls.push(ended);
                    self.trace(ended.tree, || TraceKind::Unblocked);
                }
                let from = period.map_or(self.now, |period| period.from);
                let until = self.now + step;
                if period.is_none() {
                    self.trace(tree, || TraceKind::Blocked(cause, measured));
                }
                let largest = || self.trees[tree].largest_merge();
                let merging = period.map_or_else(largest, |period| period.merging);
                let period = StallPeriod { tree, cause, measured, merging, from, until };
                self.blocked = Some((since, period));
                self.window.stalled_seconds += step;
            }
            (None, Some(_)) => self.unblock(),
            (None, None) => {}
        }
        let count = pace.made * step;
        if self.setup.check && step > 0.0 {
            let made = [(self.now, self.departed), (self.now + step, self.departed + count)];
            self.outcome.departures.extend(made);
        }
        if count <= 0.0 {
            return;
        }
        let bytes = count * self.bytes_per_write();
        let totals = &mut self.outcome.totals;
        totals.writes += count;
        totals.user_bytes += bytes;
        totals.delayed_seconds += count * pace.delay;
        for tree in &mut self.trees {
            if tree.active == 0.0 {
                tree.active_from = self.now;
            }
            tree.active += count * tree.share;
        }
        let (slow, took) = self.take_waiting(count);
        self.outcome.processing.add(slow, took, took);
        self.outcome.processing.add(count - slow, pace.service, pace.service);
        if pace.arriving.is_none() {
            self.add_latencies(slow, took, took);
            self.add_latencies(count - slow, pace.service, pace.service);
        } else {
            self.count_latencies(count, pace);
        }
        self.departed += count;
        // Fill up a memtable that rounding left just below its size.
        for at in 0..self.trees.len() {
            let full = self.buffer_writes(&self.trees[at]);
            let tree = &mut self.trees[at];
            if full - tree.active <= pace.made * tree.share * SOON {
                tree.active = tree.active.max(full);
            }
        }
    }

    /// Records the latencies of the next `count` writes, which complete in the order of arrival.
    fn count_latencies(&mut self, count: f64, pace: &WriterRates) {
        let (from, upto) = (self.departed, self.departed + count);
        let mut next = from;
        while next < upto {
            let (came, ends) = self.arrived.arrival_of(next);
            let last = upto.min(ends);
            let rate = self.arrived.lines.get(self.arrived.at).map_or(1.0, |line| line.2);
            let made = |number: f64| self.now + (number - from) / pace.made;
            let first_waits = (made(next) - came).max(0.0);
            let last_waits = (made(last) - (came + (last - next) / rate)).max(0.0);
            // A wait below the tolerance is a rounding error.
            let clean = |wait: f64| if wait < SOON { 0.0 } else { wait };
            self.add_latencies(
                last - next,
                clean(first_waits) + pace.service,
                clean(last_waits) + pace.service,
            );
            next = last;
        }
    }

    /// Ends a stall. Each writer had one write in progress during the stall; these complete next.
    pub(super) fn unblock(&mut self) {
        let Some((since, period)) = self.blocked.take() else { return };
        self.outcome.stalls.push(period);
        self.trace(period.tree, || TraceKind::Unblocked);
        let writers = f64::from(self.setup.workload.writers.max(1));
        let took = self.now - since + self.setup.machine.costs.write_seconds;
        self.waiting = (writers, took);
    }

    /// Returns how many of the next `count` writes were in progress during the stall, and their
    /// latency.
    fn take_waiting(&mut self, count: f64) -> (f64, f64) {
        let (waiting, took) = self.waiting;
        let slow = waiting.min(count);
        self.waiting = (waiting - slow, took);
        (slow, took)
    }
}
