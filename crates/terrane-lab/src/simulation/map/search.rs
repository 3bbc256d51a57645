//! The search for the highest share that holds.

use std::collections::BTreeMap;

use super::axes::SHARES;

/// How many of the shares hold, counted from the lowest one.
pub(super) type Threshold = usize;

/// The runs of one tree. A run yields a verdict on each phase.
pub(super) struct Search<R: FnMut(usize) -> Vec<bool>> {
    phases: usize,
    run: R,
    held: BTreeMap<usize, Vec<bool>>,
}

impl<R: FnMut(usize) -> Vec<bool>> Search<R> {
    /// Returns a search without runs; `run` carries out the run at a share, by its index.
    pub(super) fn new(phases: usize, run: R) -> Self {
        Self { phases, run, held: BTreeMap::new() }
    }

    /// Returns the number of runs.
    pub(super) fn runs(&self) -> usize {
        self.held.len()
    }

    /// Runs all shares.
    pub(super) fn run_all(&mut self) {
        for share in 0..SHARES.len() {
            for phase in 0..self.phases {
                self.holds(share, phase);
            }
        }
    }

    fn holds(&mut self, share: usize, phase: usize) -> bool {
        let run = &mut self.run;
        self.held.entry(share).or_insert_with(|| run(share)).get(phase).copied().unwrap_or(false)
    }

    /// Returns the threshold of each phase. The search begins at a guess.
    pub(super) fn thresholds(&mut self, guess: &[Threshold]) -> Vec<Threshold> {
        let complete = self.held.len() == SHARES.len();
        let guess = |phase: usize| guess.get(phase).copied().unwrap_or(SHARES.len());
        (0..self.phases)
            .map(
                |phase| {
                    if complete { self.counted(phase) } else { self.found(phase, guess(phase)) }
                },
            )
            .collect()
    }

    /// Returns the number of shares below the first one that fails.
    fn counted(&self, phase: usize) -> Threshold {
        let holds = |share: &usize| self.held.get(share).is_some_and(|held| held[phase]);
        (0..SHARES.len()).take_while(holds).count()
    }

    fn found(&mut self, phase: usize, guess: Threshold) -> Threshold {
        let (mut low, mut high) = (0, SHARES.len());
        let mut next = [guess, guess + 1].into_iter();
        while low < high {
            let is_useful = |at: &usize| (low + 1..=high).contains(at);
            let middle = next.find(is_useful).unwrap_or((low + high).div_ceil(2));
            if self.holds(middle - 1, phase) { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// Returns how many runs hold above the first share that fails.
    pub(super) fn contradictions(&self) -> usize {
        let above = |phase: usize| {
            let first = self.counted(phase);
            self.held.range(first..).filter(|(_, held)| held[phase]).count()
        };
        (0..self.phases).map(above).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_every_threshold_from_every_guess() {
        for threshold in 0..=SHARES.len() {
            for guess in 0..=SHARES.len() {
                // The second phase holds up to two shares more.
                let run = |share: usize| vec![share < threshold, share < threshold + 2];
                let mut search = Search::new(2, run);
                let expected = [threshold, (threshold + 2).min(SHARES.len())];
                assert_eq!(search.thresholds(&[guess, guess]), expected, "{guess}");
                assert!(search.runs() <= 10, "{threshold} {guess}: {}", search.runs());
                let mut search = Search::new(1, |share: usize| vec![share < threshold]);
                search.thresholds(&[threshold]);
                assert!(search.runs() <= 2);
            }
        }
    }

    #[test]
    fn all_shares_show_runs_that_contradict_the_order() {
        let mut search = Search::new(1, |share: usize| vec![share < 4 || share == 7]);
        search.run_all();
        assert_eq!(search.runs(), SHARES.len());
        assert_eq!(search.thresholds(&[9]), [4]);
        assert_eq!(search.contradictions(), 1);
    }
}
