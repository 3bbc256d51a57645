//! The costs of operations in instructions, atomic operations, system calls, allocations and bytes, compared with
//! the table in `docs/cost.md`.
//!
//! callgrind executes the same instructions in every run, so a difference is one of the code, not of the machine.
//! Another compiler makes other code: the table names the one that it was counted with, and is compared with that
//! one only.
//!
//! | module | one line |
//! |---|---|
//! | `callgrind` | reads the counts of functions from the output of callgrind |
//! | `table` | the table as text, and the differences between two tables |

mod callgrind;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{StepResult, cargo, root, step, target_dir, text};
use table::{Row, Table};

/// The document with the table.
const DOCUMENT: &str = "docs/cost.md";

/// The commands of the server, and how often each is sent in the two runs whose difference is its cost.
const COMMANDS: [&str; 3] = ["SET", "GET", "INCR"];
const FEW: u64 = 1_000;
const MANY: u64 = 5_000;

/// What `cargo xtask cost` does with the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Compare those of the engine with the table, which CI does: the interfaces take longer to compile.
    CheckEngine,
    /// Compare all with the table.
    Check,
    /// Write the table.
    Write,
}

impl Mode {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        match words {
            [] => Some(Self::Check),
            ["--write"] => Some(Self::Write),
            _ => None,
        }
    }
}

/// Counts the operations.
pub(crate) fn run(mode: Mode) -> StepResult {
    if let Some(reason) = reason_to_skip() {
        println!("==> cost SKIPPED: {reason}");
        return Ok(());
    }
    let (path, compiler) = (root().join(DOCUMENT), compiler()?);
    let document =
        std::fs::read_to_string(&path).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let stored = Table::parse(&document)?;
    if mode != Mode::Write && stored.compiler != compiler {
        println!(
            "==> cost SKIPPED: {DOCUMENT} was counted with {}, and this is {compiler}; \
             'cargo xtask cost --write' counts it anew",
            stored.compiler
        );
        return Ok(());
    }
    // The profile of releases; its artifacts are apart, so that this can run concurrently with the tests.
    let target = target_dir().join("cost");
    let mut build = cargo(["build", "--release", "--package", "terrane-cost"]);
    if mode != Mode::CheckEngine {
        build.args(["--features", "interfaces"]);
    }
    step("cost, build", build.env("CARGO_TARGET_DIR", &target))?;
    let program = target.join("release/terrane-cost");
    let mut rows = operations(&program, &[], &target)?;
    if mode != Mode::CheckEngine {
        rows.extend(operations(&program, &["capi"], &target)?);
        rows.extend(commands(&program, &target)?);
    }
    let counted = Table { compiler, rows };
    println!("{counted}");
    match mode {
        Mode::CheckEngine | Mode::Check => stored.compare(&counted),
        Mode::Write => std::fs::write(&path, stored.replaced_in(&document, &counted)?)
            .map_err(|error| format!("{DOCUMENT}: {error}")),
    }
}

/// Returns why the operations cannot be counted on this machine.
fn reason_to_skip() -> Option<&'static str> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("the table is of Linux on x86-64");
    }
    let found = Command::new("valgrind").arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    (!is_there).then_some("valgrind is not installed")
}

/// Returns the version of the compiler.
fn compiler() -> Result<String, String> {
    let output = cargo(["--version"]).output().map_err(|error| error.to_string())?;
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = line.split_whitespace().nth(1).ok_or("cargo --version has no version")?;
    Ok(format!("Rust {version}"))
}

/// Runs operations under callgrind; the program prints a line for each.
fn operations(program: &Path, words: &[&str], target: &Path) -> Result<Vec<Row>, String> {
    let (counts, printed) = callgrind(program, words, target)?;
    let row = |line: &str| {
        let name = line.split('\t').next().unwrap_or_default();
        let counts = counts.functions.get(name);
        let counts = counts.ok_or_else(|| format!("callgrind saw no call of {name}"))?;
        Row::of_operation(line, counts)
    };
    printed.lines().map(row).collect()
}

/// Runs the server under callgrind, twice for each command.
fn commands(program: &Path, target: &Path) -> Result<Vec<Row>, String> {
    let row = |command: &&str| {
        let total = |count: u64| {
            let words = ["server", command, &count.to_string()];
            callgrind(program, &words, target).map(|(counts, _)| counts.total)
        };
        Ok(Row::of_server(command, &total(FEW)?, &total(MANY)?, MANY - FEW))
    };
    COMMANDS.iter().map(row).collect()
}

/// Runs the program under callgrind. Returns the counts and what the program printed.
fn callgrind(
    program: &Path,
    words: &[&str],
    target: &Path,
) -> Result<(callgrind::Output, String), String> {
    let out: PathBuf = target.join("callgrind.out");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--quiet", "--collect-bus=yes", "--collect-systime=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(words)
        // The copies of libc depend on the processor unless it hides what it has.
        .env("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-ERMS,-FSRM")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    println!("==> cost: {}", text(&command));
    let output = command.output().map_err(|error| format!("cost: {error}"))?;
    if !output.status.success() {
        return Err(format!("cost failed: {}", text(&command)));
    }
    let file =
        std::fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    Ok((callgrind::parse(&file)?, String::from_utf8_lossy(&output.stdout).into_owned()))
}
