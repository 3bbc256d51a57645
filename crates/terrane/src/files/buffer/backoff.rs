//! Waiting for readers, which are pinned for microseconds unless they have lost their processor.

use std::time::Duration;

/// The number of waits that spin, and of those that offer the processor to others.
const SPINS: u32 = 4;
const YIELDS: u32 = 3;

/// Waits that become longer.
#[derive(Debug, Default)]
pub(super) struct Backoff(u32);

impl Backoff {
    /// Returns true if the readers have probably lost their processor.
    pub(super) fn is_long(&self) -> bool {
        self.0 >= SPINS + YIELDS
    }

    pub(super) fn wait(&mut self) {
        match self.0 {
            0..SPINS => (0..50 << self.0).for_each(|_| std::hint::spin_loop()),
            waits if waits < SPINS + YIELDS => std::thread::yield_now(),
            waits => {
                let doublings = (waits - SPINS - YIELDS).min(5);
                std::thread::sleep(Duration::from_micros(50 << doublings));
            }
        }
        self.0 = self.0.saturating_add(1);
    }
}
