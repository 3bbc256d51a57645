//! The clock of the drivers. It is an interface, so that tests can run in virtual time.
//!
//! [`SystemClock`] waits precisely, and sleeps where precision allows it: it sleeps until shortly
//! before the deadline and then spins. The spin time is the oversleep of this machine, measured at
//! creation of the clock. If writes arrive too fast for sleeping, a client spins all the time and
//! takes one core, as in a closed loop.

use std::fs;
use std::time::Duration;

/// The source of time for the drivers.
pub trait Clock: Send + Sync {
    /// Returns nanoseconds since an arbitrary origin.
    fn now(&self) -> u64;

    /// Waits until `nanos`, and returns the time on waking.
    fn wait_until(&self, nanos: u64) -> u64;

    /// Registers the calling thread; virtual time advances only when all registered threads wait.
    fn enter(&self) {}

    /// Deregisters the calling thread.
    fn leave(&self) {}
}

/// The number of sleeps that measure the oversleep, and the length of each.
const SLEEPS_TRIED: usize = 20;
const SLEEP_TRIED: Duration = Duration::from_micros(100);
/// The maximum spin time, even on a machine that oversleeps by more.
const SPIN_NANOS_MAX: u64 = 200_000;
const SPIN_NANOS_MIN: u64 = 5_000;

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    clock: quanta::Clock,
    base: u64,
    /// The time before a deadline at which a client stops sleeping and spins.
    spin_nanos: u64,
}

impl SystemClock {
    /// Measures the oversleep, and returns a clock that starts at zero.
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
        // The first quartile: longer oversleeps come from other programs, for which the scheduler
        // would preempt a spinning thread as well.
        let usual = late.get(SLEEPS_TRIED / 4).copied().unwrap_or(SPIN_NANOS_MAX);
        this.spin_nanos = usual.clamp(SPIN_NANOS_MIN, SPIN_NANOS_MAX);
        this
    }
}

impl SystemClock {
    /// Returns a clock that never spins, for many concurrent phases. Clients wake late by the
    /// oversleep, some tens of microseconds, but do not occupy a core.
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

    /// Sets the timer slack of this thread to the minimum. By default Linux groups wake-ups, which
    /// delays them by up to 50 µs.
    fn enter(&self) {
        // The link resolves to PID/task/TID, which has the file for each thread.
        let Ok(link) = fs::read_link("/proc/thread-self") else { return };
        if let Some(thread) = link.file_name() {
            let mut path = std::path::PathBuf::from("/proc");
            path.push(thread);
            path.push("timerslack_ns");
            // If this fails, sleeps keep their slack, which is not an error.
            let _ = fs::write(path, "1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_the_deadline_and_not_before() {
        let clock = SystemClock::new();
        for wait in [0, 1_000, 30_000, 3_000_000] {
            let moment = clock.now() + wait;
            let end = clock.wait_until(moment);
            assert!(end >= moment);
            assert!(clock.now() >= end);
        }
        assert!(clock.wait_until(0) > 0, "a past deadline returns at once");
        assert!((SPIN_NANOS_MIN..=SPIN_NANOS_MAX).contains(&clock.spin_nanos));
    }
}
