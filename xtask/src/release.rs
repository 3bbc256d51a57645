//! A release: checks that everything is ready, and with `--execute` publishes the crates and sets the tag.
//!
//! The tag starts `.github/workflows/release.yml`, which makes and publishes the files for users without
//! a compiler. `--dry-run` makes and uses these files on this machine and publishes nothing.
//!
//! The checks read files and ask git, and need no network. `--execute` refuses to begin unless all of
//! them pass, then runs the steps of CI and those that CI leaves to releases, publishes the crates in the
//! order of their dependencies, and sets the tag last, because a published version cannot be
//! taken back.

use std::process::Command;

use crate::dist::{self, version_of};
use crate::package;
use crate::pair::PairArguments;
use crate::platforms;
use crate::report::{Report, Stop};
use crate::step::{StepResult, cargo, host, root, step};
use crate::tool::require;

/// The sentence by which FORMAT.md promises that later versions read a database.
const PROMISE: &str = "opens in every later release";

/// Files outside of the workspace that repeat its version, and the line that does.
const VERSIONED: [(&str, &str); 2] =
    [("python/Cargo.toml", "version = \"VERSION\""), ("CITATION.cff", "version: VERSION")];

/// How to get cargo-deny.
const DENY_HINT: &str = "cargo install cargo-deny --locked";

/// The remaining tasks of a release; empty if it can be made.
type Problems = Vec<String>;

/// Checks that a release can be made, and makes it if `executes`.
pub(crate) fn run(executes: bool) -> StepResult {
    let (version, mut problems) = readiness()?;
    println!("==> release {version}");
    problems.extend(package::check().err());
    for problem in &problems {
        println!("==> to do: {problem}");
    }
    if !problems.is_empty() {
        return Err(format!("{version} cannot be released yet"));
    }
    if !executes {
        println!("==> {version} can be released: cargo xtask release --execute");
        return Ok(());
    }
    crate::ci::run(&[])?;
    crate::ci::minimum_rust(&["--workspace"])?;
    crate::cost::run(crate::cost::Mode::Check)?;
    crate::mutants::run(&[])?;
    crate::ci::compare()?;
    crate::pair::run(&PairArguments { revision: None, rounds: 5 })?;
    package::publish()?;
    let tag = format!("v{version}");
    step("tag", &mut git(["tag", "--annotate", &tag, "--message", &format!("Terrane {version}")]))?;
    println!("==> released {version}; publish the tag: git push origin {tag}");
    Ok(())
}

/// Returns the version, and what a maintainer has to do before it can be released.
fn readiness() -> Result<(String, Problems), String> {
    let manifest = read("Cargo.toml")?;
    let version = version_of(&manifest).ok_or("Cargo.toml has no workspace version")?;
    let mut problems = version_problems(&manifest, &version);
    for (path, line) in VERSIONED {
        problems.extend(line_problem(path, &read(path)?, &line.replace("VERSION", &version)));
    }
    problems.extend(changelog_problems(&read("CHANGELOG.md")?, &version));
    problems.extend(promise_problems(&read("docs/FORMAT.md")?));
    problems.extend(golden_problems()?);
    problems.extend(crate::figures::problems()?);
    problems.extend(git_problems(&version)?);
    Ok((version, problems))
}

/// Rehearses a release: runs every step that publishes nothing, and prints a table of them. A step whose
/// tool is missing is skipped.
pub(crate) fn rehearse() -> StepResult {
    let mut report = Report::default();
    report.run("release", "ready", || {
        let (version, problems) = readiness()?;
        if problems.is_empty() { Ok(version) } else { Err(Stop::ToDo(problems.join("; "))) }
    });
    report.run("crates", "packaged", || {
        package::check()?;
        Ok("without building them; 'cargo xtask package' builds each".into())
    });
    report.run("dependencies", "allowed", || {
        let mut command = installed("deny", DENY_HINT).map_err(Stop::Skipped)?;
        step("deny", command.arg("check"))?;
        Ok("licences, sources and advisories are as deny.toml says".into())
    });
    report.run("workflows", "linted", || {
        require("actionlint", "go install github.com/rhysd/actionlint/cmd/actionlint@latest")?;
        step("actionlint", Command::new("actionlint").current_dir(root()))?;
        Ok("actionlint finds nothing".into())
    });
    let host = host()?;
    for target in dist::TARGETS.into_iter().filter(|target| *target != host) {
        report.run(target, "checked", || platforms::check_command(target));
    }
    dist::add_all(&mut report)?;
    println!("{report}");
    report.result(false)
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

fn git<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root());
    command
}

/// Every workspace crate that another one depends on must be required with this version.
fn version_problems(manifest: &str, version: &str) -> Problems {
    let section = manifest.split_once("[workspace.dependencies]").map_or("", |(_, rest)| rest);
    let section = section.split_once("\n[").map_or(section, |(section, _)| section);
    let required = section.lines().filter_map(|line| {
        let (name, required) = line.split_once("version = \"")?;
        Some((name.split(' ').next()?, required.split('"').next()?))
    });
    required
        .filter(|(_, required)| *required != version)
        .map(|(name, required)| {
            format!("Cargo.toml requires {name} {required}, and the workspace is {version}")
        })
        .collect()
}

/// A file that repeats the version must have this line.
fn line_problem(path: &str, text: &str, line: &str) -> Option<String> {
    let has_line = text.lines().any(|each| each == line);
    (!has_line).then(|| format!("{path} has no line '{line}'"))
}

/// The newest section of the changelog must be for this version, with a date and contents.
fn changelog_problems(changelog: &str, version: &str) -> Problems {
    let Some((_, newest)) = changelog.split_once("\n## ") else {
        return vec!["CHANGELOG.md has no section".into()];
    };
    let (heading, rest) = newest.split_once('\n').unwrap_or((newest, ""));
    let contents = rest.split("\n## ").next().unwrap_or("");
    let mut problems = Problems::new();
    let date = heading.strip_prefix(version).and_then(|rest| rest.strip_prefix(", "));
    if !date.is_some_and(is_date) {
        problems.push(format!(
            "CHANGELOG.md begins with '{heading}'; write '{version}, ' and the date as 2026-01-31"
        ));
    }
    if !contents.contains("\n- ") {
        problems.push(format!("CHANGELOG.md lists no change for '{heading}'"));
    }
    problems
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([4, 2, 2])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn promise_problems(format: &str) -> Problems {
    let is_stated = format.contains(PROMISE);
    if is_stated { vec![] } else { vec![format!("docs/FORMAT.md does not say '{PROMISE}'")] }
}

/// The golden databases must be numbered without gaps, each with its contents.
fn golden_problems() -> Result<Problems, String> {
    let golden = root().join("crates/terrane-tests/tests/golden");
    let found = std::fs::read_dir(&golden).map_err(|error| error.to_string())?.count();
    let missing = (1..=found).filter(|number| {
        let database = golden.join(format!("v{number}"));
        !(database.join("db/CURRENT").is_file() && database.join("expected.txt").is_file())
    });
    Ok(missing.map(|number| format!("golden database v{number} is missing")).collect())
}

fn git_problems(version: &str) -> Result<Problems, String> {
    let ask = |mut command: Command| -> Result<String, String> {
        let output = command.output().map_err(|error| format!("git: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut problems = Problems::new();
    if !ask(git(["status", "--porcelain"]))?.is_empty() {
        problems.push("the working tree has changes that are not committed".into());
    }
    let tag = format!("v{version}");
    if !ask(git(["tag", "--list", &tag]))?.is_empty() {
        problems.push(format!("the tag {tag} exists; raise the version in Cargo.toml"));
    }
    Ok(problems)
}

/// Checks licences, sources and advisories of all dependencies by the rules in `deny.toml`. Needs
/// cargo-deny and the network.
pub(crate) fn deny() -> StepResult {
    step("deny", installed("deny", DENY_HINT)?.arg("check"))
}

/// Writes a bill of materials (CycloneDX, JSON) next to the manifest of each crate. Needs
/// cargo-cyclonedx.
pub(crate) fn sbom() -> StepResult {
    let hint = "cargo install cargo-cyclonedx --locked";
    let mut command = installed("cyclonedx", hint)?;
    step("sbom", command.args(["--format", "json", "--describe", "crate"]))
}

/// Returns the command of an installed cargo extension.
fn installed(name: &str, hint: &str) -> Result<Command, String> {
    let runs = cargo([name, "--version"]).output();
    if !runs.is_ok_and(|output| output.status.success()) {
        return Err(format!("cargo-{name} is not installed: {hint}"));
    }
    Ok(cargo([name]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_the_version_of_the_workspace() {
        let manifest = "[workspace.package]\nversion = \"0.2.0\"\n\n[workspace.dependencies]\n\
                        a = { path = \"a\", version = \"0.2.0\" }\n\
                        b = { path = \"b\", version = \"0.1.0\" }\nc = { path = \"c\" }\n\n[other]\n\
                        d = { version = \"0.0.1\" }\n";
        assert_eq!(version_of(manifest).unwrap(), "0.2.0");
        let problems = version_problems(manifest, "0.2.0");
        assert_eq!(problems, ["Cargo.toml requires b 0.1.0, and the workspace is 0.2.0"]);
    }

    #[test]
    fn files_outside_of_the_workspace_have_its_version() {
        let version = version_of(&read("Cargo.toml").unwrap()).unwrap();
        for (path, line) in VERSIONED {
            let text = read(path).unwrap();
            assert_eq!(line_problem(path, &text, &line.replace("VERSION", &version)), None);
            let newer = line.replace("VERSION", "99.0.0");
            assert!(line_problem(path, &text, &newer).is_some_and(|text| text.contains("99.0.0")));
        }
    }

    #[test]
    fn the_changelog_begins_with_the_version_and_a_date() {
        let log = |heading: &str| {
            format!("# Changelog\n\n## {heading}\n\n- A change.\n\n## 0.1.0, 2026-01-31\n")
        };
        assert_eq!(changelog_problems(&log("0.2.0, 2026-02-28"), "0.2.0"), Problems::new());
        for heading in ["0.2.0, unreleased", "0.1.0, 2026-01-31", "0.2.0", "0.2.0, 2026-2-28"] {
            assert_eq!(changelog_problems(&log(heading), "0.2.0").len(), 1, "{heading}");
        }
        let empty = "# Changelog\n\n## 0.2.0, 2026-02-28\n\n## 0.1.0, 2026-01-31\n\n- Old.\n";
        assert_eq!(changelog_problems(empty, "0.2.0").len(), 1);
    }

    #[test]
    fn the_formats_promise_and_the_golden_databases_are_there() {
        assert_eq!(promise_problems("A database opens in every later release."), Problems::new());
        assert_eq!(promise_problems("Formats may change.").len(), 1);
        assert_eq!(promise_problems(&read("docs/FORMAT.md").unwrap()), Problems::new());
        assert_eq!(golden_problems().unwrap(), Problems::new());
    }
}
