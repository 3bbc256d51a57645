//! Checks that the choices of a design are valid, both individually and together.

use super::settings::{PROBES_ACCEPTED, out_of_range};
use super::{Design, FilterAllocation, FlushMode, Limit, NEVER, Stall, ValueSeparation, Violation};
use crate::error::ParseError;
use crate::strategy::SizeTiered;
use crate::units::format_bytes;

impl Design {
    /// Checks that the choices are valid together.
    ///
    /// # Errors
    /// The first value that is out of range or contradicts another, with the allowed values.
    pub fn validate(&self) -> Result<(), ParseError> {
        self.check_stored()?;
        self.check_runs_that_rest()
    }

    /// The rules that every design of an existing database satisfies. Do not add rules here: a
    /// database must still open with its stored design, so that the design can be changed.
    pub(super) fn check_stored(&self) -> Result<(), ParseError> {
        self.strategy.validate()?;
        let level0_runs = self.strategy.level0_runs;
        let limits = &self.constraint;
        let least_stop = level0_runs.max(limits.delay_runs).saturating_add(1);
        let checks = [
            (
                (1024..=1 << 40).contains(&self.buffer_bytes),
                "buffer",
                self.buffer_bytes,
                "1KiB to 1TiB",
            ),
            (
                (1024..=1 << 40).contains(&self.table_bytes),
                "table",
                self.table_bytes,
                "1KiB to 1TiB",
            ),
            (
                (64..=64 << 20).contains(&self.block_bytes),
                "block",
                self.block_bytes.into(),
                "64 bytes to 64MiB",
            ),
            (
                limits.delay_runs >= level0_runs,
                "delay",
                limits.delay_runs.into(),
                "at least L0; a smaller value would delay writers even while merges keep up",
            ),
            (
                limits.stop_runs >= least_stop,
                "stop",
                limits.stop_runs.into(),
                "more than delay and more than L0",
            ),
            (limits.max_rate != Some(0), "max-rate", 0, "at least one operation a second, or none"),
            (
                (1..=1000).contains(&limits.stop_buffers),
                "buffers",
                limits.stop_buffers.into(),
                "1 to 1000",
            ),
        ];
        for (holds, key, value, expected) in checks {
            if !holds {
                return Err(out_of_range(key, value, expected));
            }
        }
        self.validate_flush()?;
        self.memtable.validate(self.buffer_bytes)?;
        self.validate_filters()?;
        self.values.separation().map_or(Ok(()), ValueSeparation::validate)?;
        let stops = limits.violation != Violation::None
            && (limits.limit != Limit::Level0 || limits.stop_runs != NEVER);
        if self.strategy.is_manual() && (stops || limits.stall == Stall::Full) {
            let reason = "stop=never and stall=runs: compactions run only on request, so stopped writers would stall forever";
            return Err(out_of_range("trigger", "manual", reason));
        }
        Ok(())
    }

    fn validate_filters(&self) -> Result<(), ParseError> {
        if let Some(bits) =
            self.filter_bits.values().iter().find(|bits| !(0.0..=64.0).contains(*bits))
        {
            return Err(out_of_range("filter", bits, "0 to 64 bits per key"));
        }
        if let Some(probes) = self.filter_probes.filter(|probes| !(1..=16).contains(probes)) {
            return Err(out_of_range("probes", probes, PROBES_ACCEPTED));
        }
        let is_shared = self.filter_allocation == FilterAllocation::Monkey;
        if is_shared && self.filter_bits.values().len() > 1 {
            let bits = format!("monkey({})", self.filter_bits);
            return Err(out_of_range(
                "filter",
                bits,
                "a single average, which is allocated to levels",
            ));
        }
        Ok(())
    }

    fn validate_flush(&self) -> Result<(), ParseError> {
        if self.flush == FlushMode::New {
            return Ok(());
        }
        if self.strategy.level0_runs < 2 {
            let reason = "at least 2 for flush=merge: otherwise level 0 keeps no run to merge with";
            return Err(out_of_range("L0", self.strategy.level0_runs, reason));
        }
        if self.strategy.size_tiered().is_some() {
            let reason = "new: the policy of the trigger decides which runs of level 0 are merged";
            return Err(out_of_range("flush", self.flush, reason));
        }
        Ok(())
    }

    /// A flush writes about one buffer of data: if the policy no longer merges runs of that size,
    /// it never merges any.
    fn check_runs_that_rest(&self) -> Result<(), ParseError> {
        let resting = |policy: &dyn SizeTiered| !policy.merges_again(self.buffer_bytes);
        match self.strategy.size_tiered_trigger() {
            Some(trigger) if self.strategy.size_tiered().is_some_and(resting) => {
                let buffer = format_bytes(self.buffer_bytes);
                let expected = format!(
                    "a size above the buffer of {buffer}: larger runs are not merged again, and each flush creates one of about that size, so nothing would ever be merged"
                );
                Err(out_of_range("trigger", trigger, &expected))
            }
            _ => Ok(()),
        }
    }
}
