//! Time as the drivers of the evaluation see it, so that they can be tested in virtual time.
//!
//! [`SystemClock`] waits precisely without burning a core where that is possible: far from the
//! moment it sleeps, close to it it spins. How close follows from how late sleeps end on this
//! machine, which is measured when the clock is made. Where writes arrive more often than a sleep
//! is precise, a client spins between them, and takes one core as it does when it writes as fast
//! as it can.

use std::fs;
use std::time::Duration;

/// Where the drivers have the time from.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some moment.
    fn now(&self) -> u64;

    /// Returns at `nanos` or as soon after it as possible, with the time then.
    fn wait_until(&self, nanos: u64) -> u64;

    /// The calling thread begins to wait on this clock; whoever makes time go by waits for it.
    fn enter(&self) {}

    /// The calling thread waits no more on this clock.
    fn leave(&self) {}
}

/// Sleeps are tried this often to see how late they end, for this long each.
const SLEEPS_TRIED: usize = 20;
const SLEEP_TRIED: Duration = Duration::from_micros(100);
/// Longer than this no one should spin, however badly the machine sleeps.
const SPIN_NANOS_MAX: u64 = 200_000;
const SPIN_NANOS_MIN: u64 = 5_000;

/// The time of the machine.
#[derive(Debug)]
pub struct SystemClock {
    clock: quanta::Clock,
    base: u64,
    /// How long before a moment a client stops to sleep and begins to spin.
    spin_nanos: u64,
}

impl SystemClock {
    /// A clock that starts at zero now, after it has tried how precise sleeping is.
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        let base = clock.raw();
        let mut this = Self { clock, base, spin_nanos: SPIN_NANOS_MIN };
        this.enter();
        let mut late = [0; SLEEPS_TRIED];
        for late in &mut late {
            let start = this.now();
            std::thread::sleep(SLEEP_TRIED);
            *late = (this.now() - start).saturating_sub(SLEEP_TRIED.as_nanos() as u64);
        }
        late.sort_unstable();
        // A quarter end within this. What others are later by is the work of other programs, and
        // who spins then is the first to be put off.
        let usual = late.get(SLEEPS_TRIED / 4).copied().unwrap_or(SPIN_NANOS_MAX);
        this.spin_nanos = usual.clamp(SPIN_NANOS_MIN, SPIN_NANOS_MAX);
        this
    }
}

impl SystemClock {
    /// A clock by which no one spins: clients are late by what sleeps are late by, some tens of
    /// microseconds, and none of them takes a core. For many phases side by side.
    pub fn sleeping() -> Self {
        let clock = quanta::Clock::new();
        let base = clock.raw();
        Self { clock, base, spin_nanos: 0 }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> u64 {
        self.clock.delta_as_nanos(self.base, self.clock.raw())
    }

    fn wait_until(&self, nanos: u64) -> u64 {
        loop {
            let now = self.now();
            let left = nanos.saturating_sub(now);
            if left == 0 {
                return now;
            }
            if left > self.spin_nanos {
                std::thread::sleep(Duration::from_nanos(left - self.spin_nanos));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Asks Linux to wake this thread on time rather than together with others, 50 µs late.
    fn enter(&self) {
        // The link leads to PID/task/TID, and the file is there for every thread as for a process.
        let Ok(link) = fs::read_link("/proc/thread-self") else { return };
        if let Some(thread) = link.file_name() {
            let mut path = std::path::PathBuf::from("/proc");
            path.push(thread);
            path.push("timerslack_ns");
            // Sleeps are then as late as they were: nothing to tell anyone.
            let _ = fs::write(path, "1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_its_moment_and_not_before() {
        let clock = SystemClock::new();
        for wait in [0, 1_000, 30_000, 3_000_000] {
            let moment = clock.now() + wait;
            let end = clock.wait_until(moment);
            assert!(end >= moment);
            assert!(clock.now() >= end);
        }
        assert!(clock.wait_until(0) > 0, "a moment that has passed is not waited for");
        assert!((SPIN_NANOS_MIN..=SPIN_NANOS_MAX).contains(&clock.spin_nanos));
    }
}
