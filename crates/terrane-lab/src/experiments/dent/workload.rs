//! Commands for both programs, and the right answers.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Random numbers: SplitMix64.
struct SplitMixStream(u64);

impl SplitMixStream {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number from 0 to 1, exclusive.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// The distribution of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyDistribution {
    /// All numbers of 32 bits with the same probability.
    Uniform,
    /// Normally distributed around 0, with the standard deviation of the course's generator: a
    /// third of the largest number.
    Gaussian,
}

impl KeyDistribution {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Gaussian => "Gaussian",
        }
    }
}

/// Commands, and the answers of the gets.
pub(super) struct CommandWorkload {
    /// The puts, a line each.
    pub(super) puts: String,
    /// The gets, a line each; half of them request keys that were put.
    pub(super) gets: String,
    /// The answer to each get.
    pub(super) answers: Vec<Option<i32>>,
    pub(super) put_count: u64,
}

impl CommandWorkload {
    /// Draws `puts` puts and `gets` gets.
    pub(super) fn new(keys: KeyDistribution, puts: u64, gets: u64, seed: u64) -> Self {
        let mut random = SplitMixStream(seed);
        let mut text = String::with_capacity(puts as usize * 24);
        let mut all = Vec::with_capacity(puts as usize);
        let mut map = HashMap::with_capacity(puts as usize);
        for _ in 0..puts {
            let key = draw(keys, &mut random);
            // The least number is Dent's tombstone.
            let value = (random.bits() as i32).max(-i32::MAX);
            let _ = writeln!(text, "p {key} {value}");
            map.insert(key, value);
            all.push(key);
        }
        let mut get_text = String::with_capacity(gets as usize * 14);
        let mut answers = Vec::with_capacity(gets as usize);
        for _ in 0..gets {
            let put = all.get((random.bits() % puts.max(1)) as usize);
            let key = match (random.bits().is_multiple_of(2), put) {
                (true, Some(put)) => *put,
                _ => draw(keys, &mut random),
            };
            let _ = writeln!(get_text, "g {key}");
            answers.push(map.get(&key).copied());
        }
        Self { puts: text, gets: get_text, answers, put_count: puts }
    }

    /// Returns the same workload with all gets repeated `times` times.
    pub(super) fn with_gets_again(&self, times: usize) -> Self {
        Self {
            puts: self.puts.clone(),
            gets: self.gets.repeat(times),
            answers: self.answers.repeat(times),
            put_count: self.put_count,
        }
    }
}

fn draw(keys: KeyDistribution, random: &mut SplitMixStream) -> i32 {
    match keys {
        KeyDistribution::Uniform => random.bits() as i32,
        KeyDistribution::Gaussian => loop {
            let (first, second) = (1.0 - random.unit(), random.unit());
            let standard = (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos();
            let key = standard * f64::from(i32::MAX) / 3.0;
            if key.abs() < f64::from(i32::MAX) {
                return key as i32;
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_gets_have_an_answer() {
        for keys in [KeyDistribution::Uniform, KeyDistribution::Gaussian] {
            let workload = CommandWorkload::new(keys, 1000, 1000, 7);
            assert_eq!(workload.puts.lines().count(), 1000);
            assert_eq!(workload.gets.lines().count(), 1000);
            let found = workload.answers.iter().flatten().count();
            assert!((430..570).contains(&found), "{found}");
        }
    }
}
