//! What every change must pass, in the order in which failures are cheapest to find.

use std::time::Instant;

use crate::Outcome;
use crate::step::{cargo, step};

/// Runs all steps, up to the first that fails.
pub(crate) fn run() -> Outcome {
    let start = Instant::now();
    step("format", &mut cargo(["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    step("clippy", &mut cargo(clippy))?;
    step("test", &mut cargo(["test", "--workspace"]))?;
    let doc = ["doc", "--workspace", "--no-deps"];
    step("doc", cargo(doc).env("RUSTDOCFLAGS", "--deny warnings"))?;
    crate::checkers::loom()?;
    println!("==> all of it: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
