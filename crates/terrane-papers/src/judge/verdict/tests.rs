use super::*;
use crate::results::Metric;

const METRICS: &[&[Metric]] = &[&[
    Metric { name: "moved", about: "" },
    Metric { name: "nanos", about: "" },
    Metric { name: "runs", about: "" },
]];

/// Returns a file with one claim of these keys.
fn file(claim: &str) -> ClaimFile {
    let text = format!(
        "title = 'Test'\nintroduction = '{{verdicts}}'\n[sets]\npartial = ['lo+1', 'lo+2']\n\
         [[claim]]\nnumber = 'S2-99 O2'\nfigure = 'Fig. 4a'\nsays = 'sentence'\n{claim}"
    );
    ClaimFile::parse(&text).unwrap()
}

fn results(full: f64, second: f64) -> Results {
    let mut results = Results::new("test", METRICS);
    results.record("moved", &["full"], full);
    results.record("moved", &["lo+1"], 20.0);
    results.record("moved", &["lo+2"], second);
    results
}

fn judged(claim: &str, results: &Results) -> ClaimVerdict {
    let file = file(claim);
    assert_eq!(file.problems(METRICS), [""; 0]);
    file.judge(results).remove(0)
}

const SAVED: &str = "metric = '100 * (1 - moved[@partial] / moved[full])'\nshown = '{x:.0}'\n\
                     paper = [34, 56]\ndirection = '> 0'\n";

#[test]
fn figures_are_compared_with_the_paper_s_interval() {
    let outcome = |full, second| judged(SAVED, &results(full, second)).outcome;
    assert_eq!(outcome(40.0, 25.0), ClaimOutcome::Reproduced);
    assert_eq!(outcome(40.0, 28.0), ClaimOutcome::SameDirection);
    assert_eq!(outcome(40.0, 41.0), ClaimOutcome::Contradicted);
    assert_eq!(outcome(f64::NAN, 28.0), ClaimOutcome::NotMeasured);
    let verdict = judged(SAVED, &results(40.0, 25.0));
    assert_eq!(verdict.source(), "Fig. 4a, S2-99 O2");
    assert_eq!(verdict.stated.as_deref(), Some("34 to 56"));
    assert_eq!(verdict.rule, "reproduced: 33.5 to 56.5; direction: > 0");
    assert_eq!(verdict.measured, "50, 38");
    assert_eq!(verdict.figures[1].label, "lo+2");
}

#[test]
fn a_number_without_a_direction_is_reproduced_or_contradicted() {
    let claim = "metric = 'moved[full] / moved[lo+1]'\nshown = '{x:x}'\npaper = 2\n";
    assert_eq!(judged(claim, &results(40.0, 0.0)).outcome, ClaimOutcome::Reproduced);
    assert_eq!(judged(claim, &results(80.0, 0.0)).outcome, ClaimOutcome::Contradicted);
}

#[test]
fn a_direction_alone_is_what_the_paper_states() {
    let claim = "metric = 'moved[full] / moved[lo+1]'\nshown = '{x:x}'\ndirection = '> 1'\n";
    assert_eq!(judged(claim, &results(21.0, 0.0)).outcome, ClaimOutcome::Reproduced);
    assert_eq!(judged(claim, &results(19.0, 0.0)).outcome, ClaimOutcome::Contradicted);
}

#[test]
fn rounds_that_overlap_show_no_difference() {
    let claim = "metric = 'nanos[slow] / nanos[fast]'\nshown = '{x:x}'\ndirection = '> 1'\n";
    let outcome = |slow: &[f64], fast: &[f64]| {
        let mut results = Results::new("test", METRICS);
        results.record_rounds("nanos", &["slow"], slow[0], slow);
        results.record_rounds("nanos", &["fast"], fast[0], fast);
        let verdict = judged(claim, &results);
        (verdict.outcome, verdict.notes)
    };
    assert_eq!(outcome(&[3.0, 2.5], &[1.0, 2.4]).0, ClaimOutcome::Reproduced);
    assert_eq!(outcome(&[1.0, 2.4], &[3.0, 2.5]).0, ClaimOutcome::Contradicted);
    let (verdict, notes) = outcome(&[3.0, 2.0], &[1.0, 2.5]);
    assert_eq!(verdict, ClaimOutcome::NotComparable);
    assert_eq!(notes, ["the rounds of both sides overlap: 0.80 to 3.00"]);
}

#[test]
fn a_set_up_that_cannot_show_the_claim_is_not_comparable() {
    let claim = format!(
        "{SAVED}not_comparable = {{ reason = 'one level of {{moved[full]:.0}}', when = 'moved[full] < 30' }}\n"
    );
    let verdict = judged(&claim, &results(25.0, 15.0));
    assert_eq!(verdict.outcome, ClaimOutcome::NotComparable);
    assert_eq!(verdict.notes, ["one level of 25"]);
    assert_eq!(judged(&claim, &results(40.0, 25.0)).outcome, ClaimOutcome::Reproduced);
}

#[test]
fn equality_to_the_last_digit_needs_a_proof_that_it_can_fail() {
    let claim = "metric = 'moved[full] / moved[lo+1]'\nshown = '{x:x}'\npaper = 1\n";
    assert_eq!(judged(claim, &results(20.0, 1.0)).outcome, ClaimOutcome::NotComparable);
    assert_eq!(judged(claim, &results(20.5, 1.0)).outcome, ClaimOutcome::Reproduced);
    let shown = format!("{claim}can_fail = 'moved[lo+2] > 0'\n");
    assert_eq!(judged(&shown, &results(20.0, 1.0)).outcome, ClaimOutcome::Reproduced);
    assert_eq!(judged(&shown, &results(20.0, 0.0)).outcome, ClaimOutcome::NotComparable);
}

#[test]
fn ours_differs_by_design_only_if_the_ablation_is_as_the_paper_says() {
    let claim = "modes = ['published', 'ours']\nmetric = 'nanos[slow] / nanos[fast]'\n\
                 shown = '{x:x}'\npaper = 10\ndirection = '> 1'\n\
                 by_design = { reason = 'ours sorts once', mode = 'published' }\n";
    let outcomes = |published: f64, ours: f64| {
        let mut results = Results::new("test", METRICS);
        for (mode, ratio) in [("published", published), ("ours", ours)] {
            results.record("nanos", &[mode, "slow"], ratio);
            results.record("nanos", &[mode, "fast"], 1.0);
        }
        let file = file(claim);
        assert_eq!(file.problems(METRICS), [""; 0]);
        let verdicts = file.judge(&results);
        (verdicts[0].outcome, verdicts[1].outcome, verdicts[1].notes.clone())
    };
    let (published, ours, notes) = outcomes(10.0, 2.0);
    assert_eq!((published, ours), (ClaimOutcome::Reproduced, ClaimOutcome::ByDesign));
    assert_eq!(notes, ["ours sorts once; without it: 10.0×"]);
    assert_eq!(outcomes(5.0, 2.0).1, ClaimOutcome::SameDirection);
    assert_eq!(outcomes(5.0, 0.5).1, ClaimOutcome::ByDesign);
    let (_, ours, notes) = outcomes(0.9, 0.5);
    assert_eq!(ours, ClaimOutcome::Contradicted);
    assert!(notes[0].contains("0.90×"), "{notes:?}");
    assert_eq!(outcomes(0.9, 10.0).1, ClaimOutcome::Reproduced);
}

#[test]
fn an_ablation_may_be_another_expression() {
    let claim = format!(
        "{SAVED}by_design = {{ reason = 'lo+2 alone', metric = '100 * (1 - moved[lo+1] / moved[full])' }}\n"
    );
    assert_eq!(judged(&claim, &results(40.0, 41.0)).outcome, ClaimOutcome::ByDesign);
    assert_eq!(judged(&claim, &results(15.0, 41.0)).outcome, ClaimOutcome::Contradicted);
}

#[test]
fn explanations_are_printed_only_if_their_figure_confirms_them() {
    let claim = format!(
        "{SAVED}[[claim.explanation]]\ntext = 'Full moves {{figure:x}} alone'\n\
         figure = 'moved[full]'\nbound = '< 63'\n"
    );
    let verdict = judged(&claim, &results(22.0, 40.0));
    assert_eq!(verdict.notes, ["Full moves 22.0× alone"]);
    let verdict = judged(&claim, &results(70.0, 20.0));
    assert_eq!(
        verdict.notes,
        ["an explanation failed: its condition '< 63' does not hold, the figure is 70.0"]
    );
    assert!(judged(&claim, &results(40.0, 25.0)).notes.is_empty());
}

#[test]
fn verdicts_are_counted_in_words() {
    let outcomes = [ClaimOutcome::Reproduced, ClaimOutcome::ByDesign, ClaimOutcome::Reproduced];
    assert_eq!(
        counted(outcomes),
        "3 checks: 2 reproduced, 0 same direction, 0 contradicted, 0 not comparable, \
         1 ours differs by design"
    );
}

#[test]
fn times_of_one_round_are_marked() {
    let claim = "metric = 'nanos[slow] / moved[full]'\nshown = '{x:x}'\ndirection = '> 1'\n";
    let notes = |rounds: &[f64], timed: &[&str]| {
        let mut results = results(1.0, 1.0);
        results.timed = timed.iter().map(|&name| name.to_owned()).collect();
        results.record_rounds("nanos", &["slow"], 3.0, rounds);
        judged(claim, &results).notes
    };
    assert_eq!(notes(&[3.0], &["nanos"]), ["timed in one round"]);
    assert_eq!(notes(&[3.0, 3.5], &["nanos"]), [""; 0]);
    assert_eq!(notes(&[], &["runs"]), [""; 0]);
}
