//! A contest of candidates that were measured side by side in several rounds.
//!
//! In a metric, a candidate is better than another one if it is better in more of their paired
//! observations than chance explains: a sign test, which assumes nothing about the size of noise. An
//! observation is a round under one kind of arrivals, in which all candidates ran concurrently. A
//! candidate beats another one if it is better in more metrics than it is worse. The winner has the
//! largest number of beaten candidates minus candidates that beat it; several candidates may win.

/// A difference counts if chance alone would cause it with at most this probability.
const SIGNIFICANCE: f64 = 0.05;

/// The observations of a candidate: for each metric one number per pair; lower is better.
pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) observations: Vec<Vec<f64>>,
}

/// The results of a candidate against all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) beats: usize,
    pub(super) beaten_by: usize,
}

impl Standing {
    pub(super) fn score(&self) -> i64 {
        self.beats as i64 - self.beaten_by as i64
    }
}

/// Returns the probability that one of two equal sides is better at least as often as here: two-sided
/// sign test.
pub(super) fn sign_test(better: u32, worse: u32) -> f64 {
    let (count, most) = (better + worse, better.max(worse));
    let mut ways = 1.0;
    let mut tail = 0.0;
    for chosen in 0..=count {
        if chosen >= most {
            tail += ways;
        }
        ways *= f64::from(count - chosen) / f64::from(chosen + 1);
    }
    (2.0 * tail / 2f64.powi(i32::try_from(count).unwrap_or(i32::MAX))).min(1.0)
}

/// Returns the number of metrics in which `one` is better than `other`, and the number in which it is
/// worse.
pub(super) fn compare(one: &Contestant, other: &Contestant) -> (usize, usize) {
    let (mut better, mut worse) = (0, 0);
    for (ours, theirs) in one.observations.iter().zip(&other.observations) {
        let pairs = || ours.iter().zip(theirs);
        let wins = pairs().filter(|(ours, theirs)| ours < theirs).count() as u32;
        let losses = pairs().filter(|(ours, theirs)| ours > theirs).count() as u32;
        if sign_test(wins, losses) <= SIGNIFICANCE {
            better += usize::from(wins > losses);
            worse += usize::from(wins < losses);
        }
    }
    (better, worse)
}

/// Returns the standing of every contestant.
pub(super) fn standings(all: &[Contestant]) -> Vec<Standing> {
    let of = |one: &Contestant| {
        let results: Vec<(usize, usize)> = all.iter().map(|other| compare(one, other)).collect();
        let beats = results.iter().filter(|(better, worse)| better > worse).count();
        let beaten_by = results.iter().filter(|(better, worse)| better < worse).count();
        Standing { beats, beaten_by }
    };
    all.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_a_fair_coin() {
        for (better, worse, p) in
            [(6, 0, 0.03125), (5, 1, 0.21875), (0, 6, 0.03125), (9, 1, 0.021484375), (0, 0, 1.0)]
        {
            assert!((sign_test(better, worse) - p).abs() < 1e-12, "{better} {worse}");
        }
        assert_eq!(sign_test(3, 3), 1.0);
    }

    fn contestant(name: &str, observations: &[[f64; 6]]) -> Contestant {
        let observations = observations.iter().map(|metric| metric.to_vec()).collect();
        Contestant { name: name.to_owned(), observations }
    }

    #[test]
    fn any_candidate_may_win_and_noise_decides_nothing() {
        let noisy = [1.0, 9.0, 2.0, 8.0, 3.0, 7.0];
        let usual = contestant("usual", &[[5.0; 6], [5.0; 6], [5.0; 6]]);
        let same = contestant("noise", &[noisy, noisy, noisy]);
        assert_eq!(compare(&usual, &same), (0, 0));
        let faster = contestant("faster", &[[4.9; 6], [4.0; 6], [6.0; 6]]);
        assert_eq!(compare(&faster, &usual), (2, 1));
        let slower = contestant("slower", &[[5.1; 6], [5.0; 6], [5.0; 6]]);
        let all = [usual, same, faster, slower];
        let scores: Vec<i64> = standings(&all).iter().map(Standing::score).collect();
        assert_eq!(scores, [0, 0, 2, -2]);
    }
}
