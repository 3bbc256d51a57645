//! The map as Markdown.

use std::fmt::Write as _;

use super::axes::{EAGERNESS, LEVELS, LIMITS, RATIOS, SCHEDULERS, SHARES, hours, percent};
use super::cell::{BUDGET, CellRuns, MapCell, RECORD_BYTES, SETTINGS, StabilityMap};
use super::summary::{REFERENCE, Tally, compared, limits, tally};
use crate::host::Environment;
use crate::output::human::counted;
use crate::output::markdown::table;

/// Returns the document.
pub(super) fn document(map: &StabilityMap, environment: &Environment) -> String {
    let mut text = format!("# The map of stability\n\n{}\n", environment.markdown());
    let _ = write!(text, "{}\n## Schedulers\n\n", wrapped(&introduction(map)));
    text.push_str(&schedulers(map));
    let _ = write!(text, "\n## Limits\n\n{}", limit_tables(map));
    for eagerness in EAGERNESS {
        for limit in LIMITS {
            let _ = write!(text, "\n## `{eagerness}`, `limit={limit}`\n\n");
            text.push_str(&shares(map, eagerness, limit));
        }
    }
    text
}

/// Breaks paragraphs into lines of at most 120 columns.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    for paragraph in text.split("\n\n") {
        let mut width = 0;
        for word in paragraph.split_whitespace() {
            let length = word.chars().count();
            if width > 0 && width + 1 + length > 120 {
                lines.push('\n');
                width = 0;
            }
            if width > 0 {
                lines.push(' ');
                width += 1;
            }
            lines.push_str(word);
            width += length;
        }
        lines.push_str("\n\n");
    }
    lines.pop();
    lines
}

/// Returns the setting in words.
pub(super) fn introduction(map: &StabilityMap) -> String {
    let options = &map.options;
    let all = |of: fn(&CellRuns) -> usize| map.cells.iter().map(|(_, one)| of(one)).sum::<usize>();
    let (runs, checked, wrong) =
        (all(|one| one.runs), all(|one| one.checked), all(|one| one.contradictions));
    let verdicts =
        map.cells.len() as u64 * options.trees * (SHARES.len() * options.hours.len()) as u64;
    let phases: Vec<String> = options.hours.iter().map(|one| hours(*one)).collect();
    let phases = phases.join(" and ");
    let longest = options.hours.last().map_or(String::new(), |one| hours(*one));
    let shares = format!(
        "{} shares from {} to {}",
        SHARES.len(),
        percent(SHARES[0]),
        percent(SHARES[SHARES.len() - 1])
    );
    let trees = counted(options.trees, "tree");
    let slow: Vec<String> =
        options.hours.iter().map(|one| format!("{:.0} s", one * 36.0)).collect();
    let slow = slow.join(" and ");
    let mut text = format!(
        "The highest share of its maximum write rate that each design sustains, in the simulator: \
         size ratio × levels × scheduler × limit on runs, in phases of {phases}. A share holds for a \
         phase if the 99th percentile of write latency is at most a second and at least 99.5 % of the \
         writes that arrive complete. The maximum is that of the testing phase of {longest}, with the \
         fair scheduler and exact intake, measured for each limit. Every share of a design starts from \
         the same {trees} of random fill; the tables have the share that holds for all of them, and \
         a dash if not even the lowest one does; of two shares, each belongs to one phase. \
         One percent of the writes may be slow, which is {slow} \
         of writes, so some designs hold a share only in the longer phase. Shares above 100 % are \
         possible, because the maximum is that of another scheduler while writers stall. Records have \
         {RECORD_BYTES} bytes, a budget of {:.0} MB/s limits flushes and merges, and all designs have \
         `{SETTINGS}`.\n\n\
         {} cells × {trees} × {shares} × {} phases make {verdicts} verdicts, which take only {runs} \
         simulated runs: one run yields the verdicts for all phases and ends once they are settled, and \
         the search for each tree's threshold assumes that lower shares hold and higher ones fail.",
        BUDGET / 1e6,
        map.cells.len(),
        options.hours.len(),
    );
    if checked > 0 {
        let _ = write!(
            text,
            " From the first {} of each cell, every share was simulated: {wrong} of {checked} verdicts \
             contradict that order.",
            counted(options.complete, "tree")
        );
    }
    text
}

/// Formats the shares of trees that sustain less and more than with the reference.
pub(super) fn tally_words(tally: &Tally) -> String {
    let part = |count: usize| 100.0 * count as f64 / tally.trees().max(1) as f64;
    if tally.trees() == 0 {
        return String::new();
    }
    format!("{:.0} / {:.0}", part(tally.lower), part(tally.higher))
}

fn schedulers(map: &StabilityMap) -> String {
    let mut text = wrapped(&format!(
        "Percent of trees that sustain less / more than with `{REFERENCE}`, over all numbers of levels. \
         The others sustain the same."
    ));
    let last = map.options.hours.len().max(1) - 1;
    let columns: Vec<(&'static str, usize)> =
        compared().flat_map(|scheduler| (0..=last).map(move |phase| (scheduler, phase))).collect();
    let name = |(scheduler, phase): &(&str, usize)| {
        format!("`{scheduler}`, {}", hours(map.options.hours[*phase]))
    };
    for eagerness in EAGERNESS {
        let headers: Vec<String> = ["limit".to_owned(), "T".to_owned()]
            .into_iter()
            .chain(columns.iter().map(name))
            .collect();
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let mut rows = Vec::new();
        for limit in LIMITS {
            for (low, high) in [(2, 4), (6, 10)] {
                let is_wanted = |cell: &MapCell| {
                    cell.eagerness == eagerness
                        && cell.limit == limit
                        && (low..=high).contains(&cell.ratio)
                };
                let mut row = vec![format!("`{limit}`"), format!("{low} to {high}")];
                row.extend(columns.iter().map(|(scheduler, phase)| {
                    tally_words(&tally(map, scheduler, *phase, is_wanted))
                }));
                rows.push(row);
            }
        }
        let _ = write!(text, "\n`{eagerness}`:\n\n{}", table(&headers, &rows));
    }
    text
}

fn limit_tables(map: &StabilityMap) -> String {
    let mut text = wrapped(
        "The rate that each limit sustains, relative to the best of the three for the same tree: the \
         mean over trees, and in parentheses the percentage of trees in which no limit sustains more.",
    );
    text.push('\n');
    let headers: Vec<String> = ["design", "scheduler", "phase"]
        .into_iter()
        .map(str::to_owned)
        .chain(LIMITS.map(|limit| format!("`{limit}`")))
        .collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    for eagerness in EAGERNESS {
        for scheduler in SCHEDULERS {
            for (phase, length) in map.options.hours.iter().enumerate() {
                let mut row =
                    vec![format!("`{eagerness}`"), format!("`{scheduler}`"), hours(*length)];
                row.extend(
                    limits(map, eagerness, scheduler, phase).map(|rank| {
                        format!("{:.0} % ({:.0})", rank.mean * 100.0, rank.best * 100.0)
                    }),
                );
                rows.push(row);
            }
        }
    }
    text + &table(&headers, &rows)
}

/// Returns the table of one panel: the shares that all trees sustain in each phase.
fn shares(map: &StabilityMap, eagerness: &'static str, limit: &'static str) -> String {
    let headers: Vec<String> = ["T", "levels", "writes/s"]
        .into_iter()
        .map(str::to_owned)
        .chain(SCHEDULERS.map(str::to_owned))
        .collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    for (ratio, levels) in RATIOS.iter().flat_map(|ratio| LEVELS.map(|levels| (*ratio, levels))) {
        let found = SCHEDULERS
            .map(|scheduler| map.find(MapCell { eagerness, ratio, levels, scheduler, limit }));
        let Some(any) = found.iter().flatten().next() else { continue };
        let mut row = vec![ratio.to_string(), levels.to_string(), format!("{:.0}", any.maximum)];
        row.extend(found.map(|runs| {
            let Some(runs) = runs else { return String::new() };
            let mut shares: Vec<String> =
                (0..map.options.hours.len()).map(|phase| percent(runs.least(phase))).collect();
            shares.dedup();
            shares.join(", ")
        }));
        rows.push(row);
    }
    table(&headers, &rows)
}
