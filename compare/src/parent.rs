//! Carries out a comparison: it starts a child process for every measurement, and engines take
//! turns.
//!
//! Repetitions are the outer loop, rows the next, engines the inner one, and each repetition
//! starts with another engine, so that drift of the machine affects all of them.

mod ask;
mod interrupt;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::cli::Compare;
use crate::engines::{Engine, Storage};
use crate::job::{Job, Measurement};
use crate::machine::Machine;
use crate::memory_limit::MemoryGroup;
use crate::record::{Record, SCHEMA};
use crate::rows::{CacheState, Row};
use crate::table::{Comparison, markdown};
pub(crate) use ask::ask;
pub(crate) use interrupt::Interrupt;

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was measured, and every answer was right.
    Complete,
    /// A measurement failed, or an answer was wrong.
    WithFailures,
    /// The user interrupted the comparison; the measurements up to then were shown.
    Interrupted,
}

/// Runs the comparison that the command line requests.
pub(crate) fn compare(arguments: &Compare, interrupt: &Interrupt) -> Result<Ending> {
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&base).with_context(|| base.display().to_string())?;
    // Dropping it removes the directory on every exit path.
    let folder = tempfile::Builder::new().prefix("terrane-compare-").tempdir_in(&base)?;
    let machine = Machine::here(folder.path());
    let limit = groups_limit(arguments);
    let is_direct = arguments.direct || limit.is_none() && arguments.memory_limit().is_some();
    let engines = engines_of(arguments, is_direct)?;
    let rows = arguments.rows()?;
    let baseline = arguments.baseline(&engines)?;
    let plan = plan(&engines, &rows, arguments.repeat);
    let mut json = match &arguments.json {
        Some(path) => Some(std::fs::File::create(path).context(path.display().to_string())?),
        None => None,
    };
    let folder = folder.path();
    let mut session = Session { arguments, interrupt, folder, machine, limit, is_direct };
    let mut records = Vec::new();
    let mut ending = Ending::Complete;
    for (position, step) in plan.iter().enumerate() {
        if interrupt.is_set() {
            ending = Ending::Interrupted;
            break;
        }
        say(&format!("[{:>3}/{}] {} ", position + 1, plan.len(), step.title()));
        match session.measure(step, position) {
            Ok(record) => {
                say(&format!("{}\n", summary(&record.measurement)));
                if let Some(json) = &mut json {
                    writeln!(json, "{}", serde_json::to_string(&record)?)?;
                }
                if record.measurement.failures > 0 {
                    ending = Ending::WithFailures;
                }
                records.push(record);
            }
            Err(error) => {
                say(&format!("failed: {error:#}\n"));
                ending = Ending::WithFailures;
            }
        }
    }
    let comparison = Comparison {
        rows: rows.iter().map(|row| row.name).collect(),
        engines: engines.iter().map(|engine| engine.name).collect(),
        baseline,
    };
    let text = markdown(&comparison, &records);
    match &arguments.markdown {
        Some(path) => std::fs::write(path, text).context(path.display().to_string())?,
        None => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(if interrupt.is_set() { Ending::Interrupted } else { ending })
}

/// Returns the limit of control groups, if memory is to be limited and groups can be created.
fn groups_limit(arguments: &Compare) -> Option<u64> {
    let limit = arguments.memory_limit()?;
    match MemoryGroup::create(limit) {
        Ok(_) => Some(limit),
        Err(error) => {
            say(&format!(
                "{error:#}\nTables bypass the page cache instead, so that their data is not in memory \
                 outside of the engine's cache.\n"
            ));
            None
        }
    }
}

/// Returns the engines that take part. Engines that cannot bypass the page cache do not, if they have
/// to.
fn engines_of(arguments: &Compare, is_direct: bool) -> Result<Vec<&'static Engine>> {
    let (able, unable): (Vec<_>, Vec<_>) =
        arguments.engines()?.into_iter().partition(|engine| engine.can_bypass_cache || !is_direct);
    if let Some(first) = unable.first() {
        let names: Vec<_> = unable.iter().map(|engine| engine.name).collect();
        if able.is_empty() {
            bail!("{} cannot bypass the page cache", first.name);
        }
        say(&format!(
            "left out, because they cannot bypass the page cache: {}\n",
            names.join(", ")
        ));
    }
    Ok(able)
}

/// One measurement of a comparison.
struct Step {
    repetition: u32,
    row: &'static Row,
    engine: &'static Engine,
}

impl Step {
    fn title(&self) -> String {
        format!("{} {:<16} {:<8}", self.repetition, self.row.name, self.engine.name)
    }
}

/// Returns every measurement, in execution order.
fn plan(engines: &[&'static Engine], rows: &[&'static Row], repeat: u32) -> Vec<Step> {
    let mut plan = Vec::new();
    for repetition in 1..=repeat {
        for row in rows {
            let first = (repetition as usize - 1) % engines.len().max(1);
            let in_turn = engines[first..].iter().chain(&engines[..first]);
            for engine in in_turn {
                // An engine without files has no data after its caches are dropped.
                if row.cache == CacheState::Cold && engine.storage == Storage::Memory {
                    continue;
                }
                plan.push(Step { repetition, row, engine });
            }
        }
    }
    plan
}

/// The inputs shared by all measurements of a comparison.
struct Session<'a> {
    arguments: &'a Compare,
    interrupt: &'a Interrupt,
    folder: &'a Path,
    machine: Machine,
    /// The limit of the control groups; none if memory is not limited, or cannot be.
    limit: Option<u64>,
    /// Whether tables bypass the page cache.
    is_direct: bool,
}

impl Session<'_> {
    fn measure(&mut self, step: &Step, position: usize) -> Result<Record> {
        let Step { repetition, row, engine } = *step;
        let dir = self.folder.join(format!("{position}-{}-{}", row.name, engine.name));
        std::fs::create_dir(&dir)?;
        let mut settings = self.arguments.settings(engine, row);
        settings.is_direct = self.is_direct;
        settings.memory_limit_bytes = self.limit;
        // Removed after the child has ended and its files are gone.
        let group = self.limit.map(MemoryGroup::create).transpose()?;
        let job = Job {
            engine: engine.name.into(),
            row: row.name.into(),
            dir: dir.clone(),
            num: self.arguments.num(row),
            reads: self.arguments.reads,
            threads: self.arguments.threads,
            seed: self.arguments.seed,
            distribution: self.arguments.distribution.map(|chosen| chosen.to_string()),
            memory_group: group.as_ref().map(MemoryGroup::entrance),
            settings: settings.clone(),
        };
        let limit = Duration::from_secs(self.arguments.limit_seconds);
        let measured = ask("child", &job, limit, self.interrupt);
        let removed = std::fs::remove_dir_all(&dir);
        // Writeback of one engine's data must not slow the next engine.
        rustix::fs::sync();
        let measurement = measured?;
        removed?;
        Ok(Record {
            schema: SCHEMA,
            unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
            repetition,
            position,
            engine: engine.name.into(),
            engine_version: (engine.version)(),
            engine_promise: engine.promise.into(),
            row: row.name.into(),
            measurement,
            threads: self.arguments.threads,
            seed: self.arguments.seed,
            settings,
            machine: self.machine.clone(),
            command: std::env::args().collect(),
        })
    }
}

fn summary(measurement: &Measurement) -> String {
    let mut text = format!("{:>12.0} ops/s", measurement.operations_per_second);
    text += &format!("  p99 {:>8.2} us", measurement.p99_micros);
    if let Some(cpu) = measurement.cpu_micros_per_operation() {
        text += &format!("  cpu {cpu:>6.2} us/op");
    }
    if let Some(amplification) = measurement.write_amplification() {
        text += &format!("  wa {amplification:.2}");
    }
    if measurement.failures > 0 {
        text += &format!("  WRONG: {} answers", measurement.failures);
    }
    text
}

/// Shows the progress of the comparison.
pub(crate) fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // A closed standard error is not a failure.
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engines, rows};

    #[test]
    fn engines_take_turns_and_each_repetition_begins_with_another() {
        let engines: Vec<&Engine> = engines::ALL.iter().take(2).collect();
        if engines.len() < 2 {
            return;
        }
        let rows: Vec<&Row> = rows::ALL.iter().take(2).collect();
        let plan = plan(&engines, &rows, 2);
        let order: Vec<_> =
            plan.iter().map(|step| (step.repetition, step.row.name, step.engine.name)).collect();
        let (a, b) = (engines[0].name, engines[1].name);
        let (x, y) = (rows[0].name, rows[1].name);
        assert_eq!(
            order,
            [
                (1, x, a),
                (1, x, b),
                (1, y, a),
                (1, y, b),
                (2, x, b),
                (2, x, a),
                (2, y, b),
                (2, y, a),
            ]
        );
    }

    #[test]
    fn engines_without_files_are_not_measured_from_cold_caches() {
        let mem = engines::by_name("mem").unwrap();
        assert!(plan(&[mem], &[rows::by_name("readcold").unwrap()], 3).is_empty());
        assert_eq!(plan(&[mem], &[rows::by_name("readrandom").unwrap()], 3).len(), 3);
    }
}
