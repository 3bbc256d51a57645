//! This commit against an earlier one: both commands run the same workloads in turns.
//!
//! Other work on the machine changes the speed of whole minutes, so each round runs all commands, and what is
//! compared are the ratios within a round. A copy of this command takes part as well: its ratio says what
//! differences mean nothing. Processor time is compared too, because it varies less than throughput.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::flags::{are_flags, number_after};
use crate::step::{StepResult, cargo, root, step, target_dir};
use crate::tool::output;

/// What each command runs in a round.
const WORKLOADS: &str =
    "fillrandom,overwrite,readrandom,readmissing,multireadrandom,seekrandom,readseq";

/// A workload is slower than before if this commit and its copy both have less throughput and more processor time than
/// this. Where the system reports no processor time, none is.
const RATIO_MIN: f64 = 0.9;

/// The arguments of `cargo xtask pair`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PairArguments {
    /// The earlier commit; the last release if there is none.
    pub(crate) revision: Option<String>,
    pub(crate) rounds: usize,
}

impl PairArguments {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let (revision, rest) = match words {
            [revision, rest @ ..] if !revision.starts_with('-') => (Some(*revision), rest),
            rest => (None, rest),
        };
        if !are_flags(rest, &["--rounds"]) {
            return None;
        }
        let rounds = usize::try_from(number_after(rest, "--rounds", 5)?).ok()?;
        Some(Self { revision: revision.map(str::to_owned), rounds })
    }
}

/// What one command did in one workload of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    ops_per_second: f64,
    cpu_seconds: f64,
}

/// Compares the commits. Fails if a workload became slower.
pub(crate) fn run(arguments: &PairArguments) -> StepResult {
    let Some(revision) = arguments.revision.clone().or_else(last_release) else {
        println!("==> pair SKIPPED: no release yet; name a commit");
        return Ok(());
    };
    let dir = target_dir().join("pair");
    let earlier = earlier_command(&revision, &dir)?;
    step("pair, build", &mut cargo(["build", "--release", "--package", "terrane-cli"]))?;
    let current = target_dir().join("release/terrane");
    let copy = dir.join("copy");
    std::fs::copy(&current, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let commands = [earlier, current, copy];
    let mut rounds: Vec<[Vec<(String, Run)>; 3]> = Vec::new();
    for round in 0..arguments.rounds.max(1) {
        let mut results = [const { Vec::new() }; 3];
        for turn in 0..commands.len() {
            // None of them is always the first.
            let index = (round + turn) % commands.len();
            results[index] = measure(&commands[index])?;
        }
        rounds.push(results);
    }
    let rows: Vec<Row> =
        (0..rounds[0][1].len()).filter_map(|workload| Row::of(&rounds, workload)).collect();
    println!("\n{revision} (before), this commit (now), and this commit's copy (same):\n");
    println!(
        "| workload | before/s | now/s | now : before | same : now | processor time, now : before |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    rows.iter().for_each(|row| println!("{row}"));
    let slower: Vec<&str> =
        rows.iter().filter(|row| row.is_slower()).map(|row| &row.workload[..]).collect();
    if slower.is_empty() {
        return Ok(());
    }
    Err(format!("slower than {revision}: {}", slower.join(", ")))
}

/// Returns the newest tag of a release.
fn last_release() -> Option<String> {
    let mut git = git(&["describe", "--tags", "--abbrev=0", "--match", "v*"]);
    let found = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&found.stdout).trim().to_owned())
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root());
    command
}

/// Builds the command of a commit, once, and returns its path.
fn earlier_command(revision: &str, dir: &Path) -> Result<PathBuf, String> {
    let commit = output(&mut git(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")]))?;
    // Another compiler makes another program.
    let rustc = output(Command::new("rustc").arg("--version"))?;
    let version = rustc.split(' ').nth(1).unwrap_or_default();
    let built = dir.join(format!("{}-{version}", commit.trim()));
    if built.exists() {
        return Ok(built);
    }
    let source = dir.join("source");
    let tree = source.display().to_string();
    let remove = || git(&["worktree", "remove", "--force", "--force", &tree]).output();
    // What an interrupted run left.
    let _ = remove();
    step("pair, check out", &mut git(&["worktree", "add", "--detach", &tree, commit.trim()]))?;
    let mut build = cargo(["build", "--release", "--package", "terrane-cli"]);
    build.current_dir(&source).env("CARGO_TARGET_DIR", dir.join("build"));
    let result = step("pair, build the earlier commit", &mut build);
    let _ = remove();
    result?;
    // Under its name only once it is complete.
    let copied = dir.join("incomplete");
    std::fs::copy(dir.join("build/release/terrane"), &copied)
        .and_then(|_| std::fs::rename(&copied, &built))
        .map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(built)
}

/// Runs the workloads with a command.
fn measure(command: &Path) -> Result<Vec<(String, Run)>, String> {
    let lines = output(Command::new(command).args(["bench", "--json", "--workload", WORKLOADS]))?;
    let runs: Vec<(String, Run)> = lines
        .lines()
        .map(|line| parse(line).ok_or_else(|| format!("no result: {line}")))
        .collect::<Result<_, _>>()?;
    // A name may have a parameter, such as multireadrandom:32.
    let is_named = |(run, name): (&(String, Run), &str)| run.0.split(':').next() == Some(name);
    if runs.len() == WORKLOADS.split(',').count()
        && runs.iter().zip(WORKLOADS.split(',')).all(is_named)
    {
        Ok(runs)
    } else {
        Err(format!("{} ran other workloads than {WORKLOADS}", command.display()))
    }
}

/// Parses a line of `terrane bench --json`.
fn parse(line: &str) -> Option<(String, Run)> {
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
        Some(rest.split([',', '}']).next()?.trim_matches('"'))
    };
    let number = |name| field(name)?.parse().ok();
    // A system may not report processor time.
    let cpu_seconds = if field("cpu_seconds")? == "null" { 0.0 } else { number("cpu_seconds")? };
    let run = Run { ops_per_second: number("ops_per_second")?, cpu_seconds };
    Some((field("workload")?.to_owned(), run))
}

/// A workload in all rounds, as medians.
#[derive(Debug, PartialEq)]
struct Row {
    workload: String,
    before: f64,
    now: f64,
    ratio: f64,
    same: f64,
    cpu_ratio: f64,
    /// The ratios of the copy.
    copy_ratio: f64,
    copy_cpu_ratio: f64,
}

impl Row {
    fn of(rounds: &[[Vec<(String, Run)>; 3]], workload: usize) -> Option<Self> {
        let name = &rounds.first()?[1].get(workload)?.0;
        let of = |command: usize, value: fn(&Run) -> f64| -> Vec<f64> {
            let runs = rounds.iter().filter_map(|round| round[command].get(workload));
            runs.map(|(_, run)| value(run)).collect()
        };
        let speed = |command| of(command, |run| run.ops_per_second);
        // Short runs take less than the resolution of processor time.
        let cpu = |command| of(command, |run| run.cpu_seconds.max(0.01));
        Some(Self {
            workload: name.clone(),
            before: median(speed(0)),
            now: median(speed(1)),
            ratio: median(ratios(&speed(1), &speed(0))),
            same: median(ratios(&speed(2), &speed(1))),
            cpu_ratio: median(ratios(&cpu(1), &cpu(0))),
            copy_ratio: median(ratios(&speed(2), &speed(0))),
            copy_cpu_ratio: median(ratios(&cpu(2), &cpu(0))),
        })
    }

    fn is_slower(&self) -> bool {
        self.ratio.max(self.copy_ratio) < RATIO_MIN
            && self.cpu_ratio.min(self.copy_cpu_ratio) > 1.0 / RATIO_MIN
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { workload, before, now, ratio, same, cpu_ratio, .. } = self;
        write!(
            f,
            "| {workload} | {before:.0} | {now:.0} | {ratio:.2} | {same:.2} | {cpu_ratio:.2} |"
        )
    }
}

fn ratios(numerators: &[f64], denominators: &[f64]) -> Vec<f64> {
    numerators.iter().zip(denominators).map(|(a, b)| a / b).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(workload: &str, ops: f64, cpu: f64) -> String {
        format!(
            "{{\"schema\":1,\"workload\":\"{workload}\",\"ops_per_second\":{ops},\"cpu_seconds\":{cpu}}}"
        )
    }

    #[test]
    fn lines_of_bench_are_parsed() {
        let (workload, run) = parse(&line("readseq", 1234.5, 0.25)).unwrap();
        assert_eq!(workload, "readseq");
        assert_eq!(run, Run { ops_per_second: 1234.5, cpu_seconds: 0.25 });
        let unknown =
            line("readseq", 1.0, 0.0).replace("\"cpu_seconds\":0", "\"cpu_seconds\":null");
        assert_eq!(parse(&unknown).unwrap().1.cpu_seconds, 0.0);
        assert_eq!(parse("{\"workload\":\"readseq\"}"), None);
    }

    #[test]
    fn ratios_are_those_of_a_round() {
        let round = |speed: f64| {
            let of = |ops: f64, cpu: f64| vec![parse(&line("w", ops * speed, cpu)).unwrap()];
            [of(100.0, 1.0), of(80.0, 1.2), of(84.0, 1.2)]
        };
        // The machine is three times as fast in one round.
        let row = Row::of(&[round(1.0), round(3.0), round(1.5)], 0).unwrap();
        assert_eq!((row.before, row.now), (150.0, 120.0));
        assert!((row.ratio - 0.8).abs() < 1e-9 && (row.same - 1.05).abs() < 1e-9, "{row}");
        assert!(row.is_slower(), "{row}");
        assert!(!Row { copy_ratio: 0.95, workload: String::new(), ..row }.is_slower());
        assert!(!Row { cpu_ratio: 1.0, ..row }.is_slower());
    }

    #[test]
    fn arguments_are_a_commit_and_rounds() {
        let parsed = |words: &[&str]| PairArguments::parse(words);
        let arguments = |revision: Option<&str>, rounds| PairArguments {
            revision: revision.map(Into::into),
            rounds,
        };
        assert_eq!(parsed(&[]), Some(arguments(None, 5)));
        assert_eq!(parsed(&["v1", "--rounds", "3"]), Some(arguments(Some("v1"), 3)));
        assert_eq!(parsed(&["--rounds", "x"]), None);
        assert_eq!(parsed(&["v1", "v2"]), None);
    }
}
