//! The checks that every change must pass, ordered so that cheap failures show first.

use std::time::Instant;

use crate::house::{self, Mode};
use crate::step::{StepResult, cargo, step};

/// Runs all steps, up to the first that fails.
pub(crate) fn run() -> StepResult {
    let start = Instant::now();
    step("format", &mut cargo(["fmt", "--all", "--check"]))?;
    println!("==> house: cargo xtask house");
    house::run(Mode::Check)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    step("clippy", &mut cargo(clippy))?;
    step("test", &mut cargo(["test", "--workspace"]))?;
    let doc = ["doc", "--workspace", "--no-deps"];
    step("doc", cargo(doc).env("RUSTDOCFLAGS", "--deny warnings"))?;
    crate::checkers::loom()?;
    println!("==> all of it: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
