//! Writers that carry out a mix of operations instead of updates.
//!
//! Each operation of a mix takes one arrival of the phase, so a lookup or a scan waits for its turn
//! like a write, and its latency counts from its arrival. The set of existing keys carries over from
//! phase to phase, because the running phase works on the tree that the testing phase left.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::distribution::{Distribution, IndexChooser};
use crate::error::{OptionsError, RunError};
use crate::key::KeySpace;
use crate::mixed::OwnKeys;
use crate::operation_mix::{MixOrder, MixPart, OperationMix};
use crate::options::RunOptions;

/// A mix, and the keys of the clients that carry it out.
#[derive(Debug)]
pub struct MixedLoad {
    parts: Vec<MixPart>,
    keys: Vec<Mutex<OwnKeys>>,
}

impl MixedLoad {
    /// Returns the load of `writers` clients, on the keys that `run` loads.
    ///
    /// # Errors
    /// [`check_mix`] refuses the mix, or the keys are invalid.
    pub fn new(mix: &OperationMix, writers: u32, run: &RunOptions) -> Result<Self, RunError> {
        check_mix(mix, writers, 0)?;
        let keys = KeySpace::new(run.key_order, run.key_size_bytes, run.num)?;
        let for_ranges = mix.deletes_ranges().then_some(&keys);
        let own = |number| Mutex::new(OwnKeys::of(run.num, (number, writers), for_ranges));
        Ok(Self { parts: mix.parts().to_vec(), keys: (0..writers).map(own).collect() })
    }

    /// Returns the operations, which are drawn by their shares.
    pub(super) fn parts(&self) -> &[MixPart] {
        &self.parts
    }

    /// Returns the keys of a client; `None` if it is not one of the writers.
    pub(super) fn keys(&self, writer: u32) -> Option<MutexGuard<'_, OwnKeys>> {
        let keys = self.keys.get(writer as usize)?;
        Some(keys.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a chooser of existing keys for each operation.
    pub(super) fn choosers(&self, run: &RunOptions, keys: &OwnKeys) -> Vec<IndexChooser> {
        let chooser = |part: &MixPart| {
            let chosen = part.distribution.or(run.distribution);
            IndexChooser::new(chosen.unwrap_or(Distribution::Uniform), keys.known(), 0)
        };
        self.parts.iter().map(chooser).collect()
    }

    /// Returns the operation at position `dice`, below 1, when the shares are laid end to end.
    pub(super) fn drawn(&self, dice: f64) -> usize {
        let all: f64 = self.parts.iter().map(|part| part.share).sum();
        let mut left = dice * all;
        let at = self.parts.iter().position(|part| {
            left -= part.share;
            left < 0.0
        });
        at.unwrap_or(self.parts.len() - 1)
    }
}

/// Checks that writers can carry out a mix for a given time.
///
/// # Errors
/// The mix has several phases or an order, which require a number of operations instead of a time,
/// or some clients delete keys that others expect to exist.
pub fn check_mix(mix: &OperationMix, writers: u32, readers: u32) -> Result<(), OptionsError> {
    let bad = |reason: &str| Err(OptionsError::new("mix", reason));
    if mix.phases().count() != 1 {
        return bad("a mix with several phases needs a number of operations, not a time");
    }
    if mix.order == MixOrder::Serial {
        return bad("operations that take arrivals are interleaved");
    }
    if !mix.writes() {
        return bad("an operation must write, because the rate is that of an engine under writes");
    }
    if mix.deletes_ranges() && writers > 1 {
        return bad("delete-range needs a single writer, because a range has others' keys");
    }
    if mix.deletes() && readers > 0 {
        return bad("readers expect every key to exist; put their queries into the mix instead");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_that_a_phase_cannot_carry_out_are_refused() {
        let refused = |mix: &str, writers, readers| {
            check_mix(&mix.parse().unwrap(), writers, readers).is_err()
        };
        assert!(!refused("update=50,get=40,scan:10=5,insert=5", 4, 2));
        assert!(!refused("delete-range:3=1,insert=9", 1, 0));
        assert!(refused("insert=1; get=1", 1, 0));
        assert!(refused("get=1,scan:10=1", 1, 0));
        assert!(refused("delete-range:3=1,insert=9", 2, 0));
        assert!(refused("delete=1,insert=1", 1, 1));
    }

    #[test]
    fn operations_are_drawn_by_their_shares() {
        let run = RunOptions { num: 10, ..RunOptions::default() };
        let load = MixedLoad::new(&"update=1,get=3".parse().unwrap(), 1, &run).unwrap();
        let drawn: Vec<_> = [0.0, 0.24, 0.25, 0.99].map(|dice| load.drawn(dice)).into();
        assert_eq!(drawn, [0, 0, 1, 1]);
    }
}
