//! Tests AsterixDB's published policies with the cases of its own unit tests, as text.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Write;

use terrane_policy::strategy::SizedRun;
use terrane_policy::{Design, PickContext, ScheduledMerge, Scheduler, TreeShape, allocate, pick};
use terrane_testkit::datadriven::{self, Case};

#[test]
fn policies_decide_as_asterixdb_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/asterixdb.txt");
    datadriven::run(path, |case| match case.directive.as_str() {
        "choose" => choose(case),
        "lag" => lag(case),
        "grow" => grow(case),
        "schedule" => schedule(case),
        other => panic!("line {}: unknown directive {other}", case.line),
    });
}

fn design(case: &Case, rest: &str) -> Design {
    let policy = case.argument("policy").unwrap();
    format!("tiering; granularity=run; movement=none; buffer=1KiB; trigger={policy}{rest}")
        .parse()
        .unwrap()
}

/// The unit of sizes, because no design has runs of a few bytes.
const UNIT: u64 = 1024;

/// Parses sizes of runs, newest first; `*` marks runs that a merge has claimed.
fn runs(text: &str) -> Vec<SizedRun> {
    let run = |word: &str| SizedRun {
        is_free: !word.ends_with('*'),
        ..SizedRun::free(UNIT * word.trim_end_matches('*').parse::<u64>().unwrap())
    };
    text.split_whitespace().map(run).collect()
}

/// Returns the sizes of the runs that the policy merges.
fn choose(case: &Case) -> String {
    let design = design(case, "");
    let runs = runs(&case.input);
    let chosen = design.strategy.size_tiered().unwrap().choose(&runs);
    let Some(merge) = chosen else { return "nothing".into() };
    sizes(&runs[merge.runs])
}

fn sizes(runs: &[SizedRun]) -> String {
    runs.iter().map(|run| (run.bytes / UNIT).to_string()).collect::<Vec<_>>().join(" ")
}

/// Does the same for a tree in which writers stop at a number of runs.
fn lag(case: &Case) -> String {
    let limit = case.argument("limit").unwrap();
    let design = design(case, &format!("; limit=global({limit}); violation=stop"));
    let runs = runs(&case.input);
    let mut shape = String::new();
    for (age, run) in runs.iter().enumerate() {
        let number = runs.len() - age;
        writeln!(shape, "L0 r{number}: {number}=a..=z:{}", run.bytes).unwrap();
    }
    let shape: TreeShape = shape.parse().unwrap();
    let Some(job) = pick(&PickContext::new(&shape, &design)) else { return "nothing".into() };
    job.tables().map(|table| (table.size_bytes / UNIT).to_string()).collect::<Vec<_>>().join(" ")
}

/// Adds runs of size 1 until the oldest reaches a size. Returns the maximum and average number of
/// runs, and the number of sizes that the oldest run had.
fn grow(case: &Case) -> String {
    let design = design(case, "");
    let policy = design.strategy.size_tiered().unwrap();
    let until: u64 = case.argument("until").unwrap().parse().unwrap();
    let mut runs: Vec<SizedRun> = Vec::new();
    let (mut most, mut sum, mut passes) = (0, 0, 0);
    let mut oldest = BTreeSet::new();
    while runs.last().is_none_or(|run| run.bytes < until * UNIT) {
        passes += 1;
        runs.insert(0, SizedRun::free(UNIT));
        if let Some(merge) = policy.choose(&runs) {
            let bytes = runs[merge.runs.clone()].iter().map(|run| run.bytes).sum();
            runs.splice(merge.runs, [SizedRun::free(bytes)]);
        }
        most = most.max(runs.len());
        sum += runs.len();
        oldest.extend(runs.last().map(|run| run.bytes).filter(|bytes| *bytes > UNIT));
    }
    let average = sum as f64 / f64::from(passes);
    format!("most {most}, average {average:.2}, {} sizes of the oldest", oldest.len())
}

/// Plays merges that begin (`op1 tree=1 left=10`) and end (`op1 ends`). Returns the running merges
/// after each line.
fn schedule(case: &Case) -> String {
    let scheduler: Scheduler = case.argument("scheduler").unwrap().parse().unwrap();
    let mut merges: Vec<(String, ScheduledMerge)> = Vec::new();
    let mut answer = String::new();
    for (line, id) in case.input.lines().zip(0..) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap().to_owned();
        let facts: Vec<&str> = words.collect();
        if facts == ["ends"] {
            merges.retain(|(other, _)| *other != name);
        } else {
            let number = |at: usize| facts[at].split_once('=').unwrap().1.parse::<u64>().unwrap();
            let merge = ScheduledMerge {
                id,
                tree: u32::try_from(number(0)).unwrap(),
                scheduler,
                remaining_bytes: number(1),
                refilled: 0.0,
                is_running: false,
            };
            merges.push((name, merge));
        }
        let all: Vec<ScheduledMerge> = merges.iter().map(|(_, merge)| *merge).collect();
        let shares = allocate(&all, 8);
        let mut running = Vec::new();
        for ((name, merge), share) in merges.iter_mut().zip(shares) {
            merge.is_running = share > 0.0;
            if merge.is_running {
                running.push(name.as_str());
            }
        }
        writeln!(answer, "{}", running.join(" ")).unwrap();
    }
    answer.trim_end().to_owned()
}
