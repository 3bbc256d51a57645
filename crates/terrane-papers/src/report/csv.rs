//! Measurements in long form: a line for each number and each of its rounds.

use std::fmt::Write;

use terrane_lab::report::csv::quoted;

use crate::results::Results;

/// The columns for the keys of a measurement; no metric has more.
const KEYS: usize = 4;

/// Returns all measurements as CSV. Round 0 is the number that represents all rounds.
pub(super) fn long(results: &Results) -> String {
    let mut text = "experiment,metric,key1,key2,key3,key4,round,value\n".to_owned();
    let experiment = quoted(&results.experiment);
    for metric in results.measured() {
        for one in results.measurements(metric) {
            let keys =
                (0..KEYS).map(|at| one.keys.get(at).map_or(String::new(), |key| quoted(key)));
            let keys = keys.collect::<Vec<_>>().join(",");
            let rounds = std::iter::once(&one.value).chain(&one.rounds).enumerate();
            for (round, value) in rounds {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{experiment},{metric},{keys},{round},{value}");
            }
        }
    }
    text
}
