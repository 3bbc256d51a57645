//! Derives a workload's settings from the options, and checks their combination.

use super::Workload;
use crate::distribution::Distribution;
use crate::error::OptionsError;
use crate::key::{KeyOrder, KeySpace};
use crate::options::RunOptions;

/// The maximum number of client threads: more than the cores of any machine, but few enough that
/// their histograms fit in memory.
const THREADS_MAX: u32 = 4096;

impl Workload {
    /// Returns the distribution of key choices under `options`; `None` if the workload chooses no
    /// keys.
    pub fn distribution(self, options: &RunOptions) -> Option<Distribution> {
        let default = self.distribution_default()?;
        Some(options.distribution.unwrap_or(default))
    }

    /// Returns the keys of the workload under `options`.
    ///
    /// # Errors
    /// The keys are too short for their number.
    pub fn key_space(self, options: &RunOptions) -> Result<KeySpace, OptionsError> {
        let order = match self {
            Self::FillSeq => KeyOrder::Ordered,
            _ => options.key_order,
        };
        KeySpace::new(order, options.key_size_bytes, options.num)
    }

    /// Checks that the workload can run with `options`.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn check(self, options: &RunOptions) -> Result<(), OptionsError> {
        if options.num == 0 {
            return Err(OptionsError::new("num", "at least one key is needed"));
        }
        if options.threads == 0 || options.threads > THREADS_MAX {
            let reason = format!("{} threads; 1 to {THREADS_MAX} are possible", options.threads);
            return Err(OptionsError::new("threads", reason));
        }
        let is_elsewhere =
            |placement| placement != KeyOrder::Hashed && placement != options.key_order;
        if self == Self::Mix
            && options.key_order != KeyOrder::Ordered
            && is_elsewhere(options.mix.placement())
        {
            let reason = "the placement of the loaded keys differs from that of the mix's inserts";
            return Err(OptionsError::new("key_order", reason));
        }
        if self == Self::Mix && options.num < u64::from(options.threads) {
            let reason = "a mix needs at least one key per thread";
            return Err(OptionsError::new("num", reason));
        }
        if self == Self::Mix && options.mix.deletes_ranges() && options.threads > 1 {
            let reason = "delete-range needs a single thread, because a range has others' keys";
            return Err(OptionsError::new("threads", reason));
        }
        if !(0.0..=1.0).contains(&options.compressibility) {
            let reason = format!("{} is not a fraction from 0 to 1", options.compressibility);
            return Err(OptionsError::new("compressibility", reason));
        }
        let keys = self.key_space(options)?;
        // Inserts take indexes beyond the loaded ones, in one stripe per thread.
        let stripes = u64::from(options.threads);
        let inserts = match self {
            Self::Ycsb(_) | Self::Mix => options.operations().saturating_add(stripes),
            _ => 0,
        };
        if keys.capacity() - keys.count() < inserts {
            let reason = format!("{} bytes leave no keys for inserts", options.key_size_bytes);
            return Err(OptionsError::new("key_size_bytes", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &RunOptions) -> &'static str {
        "ycsb-d".parse::<Workload>().unwrap().check(options).unwrap_err().option
    }

    #[test]
    fn invalid_options_are_rejected_by_name() {
        let good = RunOptions::default();
        assert_eq!(Workload::ReadRandom.check(&good), Ok(()));
        assert_eq!(refused(&RunOptions { num: 0, ..good.clone() }), "num");
        assert_eq!(refused(&RunOptions { threads: 0, ..good.clone() }), "threads");
        assert_eq!(
            refused(&RunOptions { compressibility: 1.5, ..good.clone() }),
            "compressibility"
        );
        assert_eq!(refused(&RunOptions { key_size_bytes: 2, ..good.clone() }), "key_size_bytes");
        let tight = RunOptions { key_size_bytes: 2, num: 30_000, ..good };
        assert_eq!(Workload::ReadRandom.check(&tight), Ok(()));
        assert_eq!(refused(&tight), "key_size_bytes");
    }

    #[test]
    fn distributions_come_from_the_options_or_the_workload() {
        let zipf = Distribution::Zipf { theta: 1.0 };
        let options = RunOptions { distribution: Some(zipf), ..RunOptions::default() };
        assert_eq!(Workload::ReadRandom.distribution(&options), Some(zipf));
        assert_eq!(Workload::FillRandom.distribution(&options), None);
        let default = RunOptions::default();
        assert_eq!(Workload::Overwrite.distribution(&default), Some(Distribution::Uniform));
    }
}
