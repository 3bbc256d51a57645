//! Changes the design of a tree while it is in use: `cargo run -p terrane --example live_design`.
//!
//! The data arrives under tiering, which writes little, and is then read under leveling, which keeps
//! few sorted runs.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;

use terrane::{Design, Event, Options};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn run(dir: &Path) -> Result<()> {
    // Small sizes, so that this example has a tree of several levels.
    let sizes = "T=4; buffer=64KiB; table=64KiB";
    let [tiering, leveling] = ["tiering", "leveling"]
        .map(|name| format!("{name} {sizes}").parse::<Design>())
        .map(std::result::Result::unwrap);
    let db = Options::new().design_if_new(tiering.clone()).open(dir.join("db"))?;
    for number in 0..40_000u32 {
        db.put((number.wrapping_mul(2_654_435_761)).to_be_bytes(), "a value of some length")?;
    }
    db.flush()?;
    db.wait_for_compactions()?;

    // The cost of the change is known before it is made.
    let forecast = db.forecast(&leveling)?;
    println!(
        "{} compactions will rewrite up to {} bytes; {} sorted runs become {}",
        forecast.jobs, forecast.bytes_rewritten, forecast.before.runs, forecast.after.runs
    );

    // Reads and writes continue while compactions reshape the tree.
    db.set_design(leveling.clone())?;
    db.put("written", "during the change")?;
    db.wait_for_compactions()?;
    println!("{}", db.tree());
    assert!(db.tree().shape.run_count() as u64 <= forecast.after.runs + 1);
    assert_eq!(db.default_keyspace().design_before(), Some(tiering.clone()));
    db.close()?;

    // A program that is started with another design changes it when it opens the database.
    let db = Options::new().design_or_change(tiering.clone()).open(dir.join("db"))?;
    let events = db.events();
    let changed = events.iter().find(|event| matches!(event.event, Event::DesignChanged { .. }));
    println!("{}", changed.ok_or("the change is an event")?.event);
    assert_eq!((db.design(), db.iter()?.count()), (tiering, 40_001));
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
