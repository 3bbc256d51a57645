//! House rules that a program can check: sizes, import cycles, and the voice of the prose.
//!
//! Each measurement is compared with a limit. `xtask/house.toml` has the limits, and the current
//! exceptions with their values, which may fall but never rise. The phrases that count against the
//! voice are in `xtask/voice.txt`.

mod limits;
mod measurement;
mod paragraphs;
mod phrase;
mod sizes;
mod voice;
mod workspace;

use limits::{Limits, Verdict};
use workspace::Workspace;

use crate::step::{StepResult, root};

/// What to do with the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Fail if a value is over its limit.
    Check,
    /// Also print everything that is over the limit for new code.
    List,
    /// Write lower values into `house.toml` for the exceptions that have improved.
    Lower,
}

impl Mode {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        match words {
            [] => Some(Self::Check),
            ["--list"] => Some(Self::List),
            ["--lower"] => Some(Self::Lower),
            _ => None,
        }
    }
}

/// Measures the tree and compares it with the limits.
pub(crate) fn run(mode: Mode) -> StepResult {
    let path = root().join("xtask/house.toml");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut limits = Limits::parse(&text)?;
    let workspace = Workspace::read(&root())?;
    let mut measurements = sizes::measure(&workspace);
    measurements.extend(voice::measure(&workspace)?);
    let mut failures = 0;
    let mut fallen = 0;
    for measurement in &measurements {
        let verdict = limits.judge(measurement);
        if mode == Mode::List && measurement.value > limits.limit(measurement.rule) {
            println!("{measurement}, limit {}", limits.limit(measurement.rule));
            measurement.details.iter().for_each(|detail| println!("  {detail}"));
        }
        match verdict {
            Verdict::Within => {}
            Verdict::Fallen(from) => {
                fallen += 1;
                if mode != Mode::Lower {
                    println!("{measurement}, down from {from}");
                }
            }
            Verdict::Over(limit) => {
                failures += 1;
                println!("{measurement}, at most {limit} allowed");
            }
        }
    }
    for subject in limits.unused(&measurements) {
        fallen += 1;
        println!("{subject} is within the limit now");
    }
    if mode == Mode::Lower {
        limits.lower(&measurements);
        return std::fs::write(&path, limits.to_string())
            .map_err(|error| format!("{}: {error}", path.display()));
    }
    if fallen > 0 {
        println!("{fallen} exceptions fell; lower them: cargo xtask house --lower");
    }
    if failures > 0 {
        return Err(format!(
            "{failures} house rules broken; `cargo xtask house --list` has details"
        ));
    }
    Ok(())
}
