//! The rounds of both programs on one workload.

use super::talk::ProgramRun;

/// Both programs on one workload, in rounds.
#[derive(Debug, Clone)]
pub(super) struct ProgramPair {
    /// Our program: the best round of each operation.
    pub(super) ours: ProgramRun,
    /// Dent's program likewise; `None` without it.
    pub(super) dent: Option<ProgramRun>,
    pub(super) our_rounds: Vec<ProgramRun>,
    /// At most as many rounds as ours.
    pub(super) dent_rounds: Vec<ProgramRun>,
}

impl ProgramPair {
    /// Combines the rounds; `None` without rounds of our program.
    pub(super) fn of(our_rounds: Vec<ProgramRun>, dent_rounds: Vec<ProgramRun>) -> Option<Self> {
        let best = |rounds: &[ProgramRun]| rounds.iter().copied().reduce(ProgramRun::best);
        let (ours, dent) = (best(&our_rounds)?, best(&dent_rounds));
        Some(Self { ours, dent, our_rounds, dent_rounds })
    }

    /// Returns a number for each round, computed from both programs in that round, because other
    /// load on the machine affects both.
    pub(super) fn of_pairs(&self, of: impl Fn(ProgramRun, ProgramRun) -> Option<f64>) -> Vec<f64> {
        let pairs = self.our_rounds.iter().zip(&self.dent_rounds);
        pairs.filter_map(|(ours, dent)| of(*ours, *dent)).collect()
    }

    /// Returns our puts a second over Dent's, by round.
    pub(super) fn puts_over_dent(&self) -> Vec<f64> {
        self.of_pairs(|ours, dent| Some(ours.puts_per_second / dent.puts_per_second))
    }

    /// Returns our gets a second over Dent's, by round.
    pub(super) fn gets_over_dent(&self) -> Vec<f64> {
        self.of_pairs(|ours, dent| Some(ours.gets_per_second? / dent.gets_per_second?))
    }

    /// Returns one number of our program for each round.
    pub(super) fn our_rounds(&self, of: fn(ProgramRun) -> Option<f64>) -> Vec<f64> {
        self.our_rounds.iter().filter_map(|run| of(*run)).collect()
    }

    /// Returns one number of Dent's program for each round.
    pub(super) fn dent_rounds(&self, of: fn(ProgramRun) -> Option<f64>) -> Vec<f64> {
        self.dent_rounds.iter().filter_map(|run| of(*run)).collect()
    }
}

/// Returns the median; for an even number of values, the upper of the two middle values.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
