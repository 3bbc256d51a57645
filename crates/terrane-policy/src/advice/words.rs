//! Describes differences in words, and designs as short texts.

use super::costs::{DesignCosts, OperationShares};
use crate::design::Design;

/// Differences below this fraction are not mentioned.
const ALIKE: f64 = 0.05;

/// Returns the shortest text that parses to a design.
pub fn summary(design: &Design) -> String {
    let name = design.strategy.eagerness.to_string();
    let settings = design.settings();
    let mut kept: Vec<(&str, &str)> = Vec::new();
    if let Some((_, runs)) = settings.iter().find(|(key, _)| *key == "runs") {
        kept.push(("runs", runs));
    }
    for (key, value) in &settings {
        let said = kept.iter().any(|(known, _)| known == key);
        let plain = Design::from_settings(&name, kept.iter().copied()).ok();
        let usual = plain.is_some_and(|plain| {
            plain.settings().iter().any(|(known, usual)| known == key && usual == value)
        });
        if !said && !usual {
            kept.push((key, value));
        }
    }
    // Settings of the first part precede those after a semicolon.
    let is_first = |key: &str| matches!(key, "T" | "L0" | "base");
    let mut text = name;
    for (key, value) in kept.iter().filter(|(key, _)| is_first(key)) {
        text.push_str(&format!(" {key}={value}"));
    }
    for (key, value) in kept.iter().filter(|(key, _)| !is_first(key)) {
        text.push_str(&format!("; {key}={value}"));
    }
    text
}

/// Describes how the costs of one design differ from those of another, such as "31 % fewer blocks per
/// lookup, for 1.4× the bytes written". It mentions only space and the operations of the workload.
pub fn difference(one: &DesignCosts, other: &DesignCosts, shares: &OperationShares) -> String {
    let (mut better, mut worse) = (Vec::new(), Vec::new());
    let mut compare = |counts: bool, fewer: &str, more: &str, one: f64, other: f64| {
        if !counts || other <= 0.0 && one <= 0.0 {
            return;
        }
        let ratio = one / other.max(1e-12);
        if ratio < 1.0 - ALIKE {
            better.push(format!("{:.0} % {fewer}", (1.0 - ratio) * 100.0));
        } else if ratio > 1.0 + ALIKE {
            worse.push(format!("{} {more}", times(ratio)));
        }
    };
    let (writes, reads) = (shares.writes > 0.0, shares.lookups() > 0.0);
    compare(writes, "fewer bytes written", "the bytes written", one.written, other.written);
    compare(
        reads,
        "fewer blocks per lookup",
        "the blocks per lookup",
        one.lookup_blocks(shares),
        other.lookup_blocks(shares),
    );
    compare(shares.scans > 0.0, "fewer runs to scan", "the runs to scan", one.runs, other.runs);
    compare(true, "less space", "the space", one.space, other.space);
    if let (Some(mine), Some(others)) = (one.stalled, other.stalled) {
        let significant = |part: f64| if part < 0.005 { 0.0 } else { part };
        let (mine, others) = (significant(mine), significant(others));
        compare(writes, "less time stalled", "the time stalled", mine, others);
    }
    if (reads || shares.scans > 0.0) && one.value_reads != other.value_reads {
        let is_more = one.value_reads > other.value_reads;
        let words = if is_more { &mut worse } else { &mut better };
        let read = if is_more { "a" } else { "no" };
        words.push(format!("{read} separate read of each value found"));
    }
    match (better.is_empty(), worse.is_empty()) {
        (true, true) => "costs the same, within 5 %".into(),
        (false, true) => better.join(", "),
        (true, false) => format!("{}, with no gain", worse.join(", ")),
        (false, false) => format!("{}, for {}", better.join(", "), worse.join(", ")),
    }
}

fn times(ratio: f64) -> String {
    if ratio > 1e3 { "many times".into() } else { format!("{ratio:.1}×") }
}
