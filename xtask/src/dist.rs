//! The files of a release for this machine: each is made, installed in a fresh environment, and used there.
//!
//! `.github/workflows/release.yml` runs `cargo xtask dist` on a machine of each platform, and
//! `cargo xtask release --dry-run` runs every part of it on one machine. A part whose tool is missing is
//! skipped; the table at the end says how to get the tool.
//!
//! The files are in `target/dist/files`. Two runs on one commit make equal archives because the compiler
//! writes no path of the machine, and packers sort their entries and take the time of the commit.
//!
//! | module | one line |
//! |---|---|
//! | `part` | the parts of a release |
//! | `image` | the container image, from the command's archive |
//! | `package` | the Debian package, from the command's archive |
//! | `wheel` | the source distribution and the wheel of the Python package |
//! | `library` | the archive of the C libraries |
//! | `command` | the archive of the command |
//! | `bill` | the bill of materials |
//! | `notices` | the licences of the crates in the command |
//! | `session` | writes, reads and serves a database with an installed command |
//! | `sums` | the checksums of all files |
//! | `glibc` | the version of the C library that a program needs |
//! | `compile` | optimised builds without paths of the machine |
//! | `archive` | reproducible archives |
//! | `place` | the version, the platform, and the directories |

mod archive;
mod bill;
mod command;
mod compile;
mod glibc;
mod image;
mod library;
mod notices;
mod package;
mod part;
mod place;
mod session;
mod sums;
mod wheel;

use crate::report::Report;
use crate::step::StepResult;
use part::Part;
use place::Place;
pub(crate) use place::{TARGETS, version_of};

/// The parts to make, and whether all of them must be made.
pub(crate) struct DistArguments {
    parts: Vec<Part>,
    is_strict: bool,
}

impl DistArguments {
    /// Parses `[PART...] [--strict]`; without a part, all parts are meant.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let is_strict = words.contains(&"--strict");
        let names = words.iter().filter(|word| **word != "--strict");
        let parts: Vec<Part> = names.map(|name| Part::parse(name)).collect::<Option<_>>()?;
        Some(Self { parts: if parts.is_empty() { Part::ALL.to_vec() } else { parts }, is_strict })
    }
}

/// Makes the chosen parts and prints the table. A failure does not keep the other parts from running.
/// If `is_strict`, a part that was skipped is a failure, and so is a command that needs a newer C library than
/// released ones may.
pub(crate) fn run(arguments: &DistArguments) -> StepResult {
    let mut report = Report::default();
    add(&mut report, &arguments.parts, arguments.is_strict)?;
    println!("{report}");
    report.result(arguments.is_strict)
}

/// Makes every part.
pub(crate) fn add_all(report: &mut Report) -> StepResult {
    add(report, &Part::ALL, false)
}

/// Makes each part, and then installs and uses it.
fn add(report: &mut Report, parts: &[Part], is_strict: bool) -> StepResult {
    let place = Place::of_this_machine(is_strict)?;
    if parts.len() == Part::ALL.len() {
        // Otherwise the checksums would cover files of earlier versions.
        place.clear_files()?;
    }
    println!("==> files for {} {} in {}", place.version, place.target, place.files().display());
    // In the order of `Part::ALL`, in which a part comes after those that it is made of.
    for part in Part::ALL.iter().filter(|part| parts.contains(part)) {
        if report.run(part.name(), "made", || part.make(&place)) {
            report.run(part.name(), "used", || part.try_out(&place));
        }
    }
    Ok(())
}
