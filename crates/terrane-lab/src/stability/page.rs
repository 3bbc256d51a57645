//! The files of `--out`: a page, its plots as files, and the lines of `--json`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::evaluation::{DesignEvaluation, MapCalibration};
use super::json::JsonEvaluation;
use super::outlook::Conclusion;
use super::plan::StabilityPlan;
use super::plots;
use super::words::{all_micros, arrivals, facts, headline, micros, outlook};
use crate::host::machine::Machine;
use crate::output::human;
use crate::output::json;
use crate::output::plot::Plot;
use crate::report::run_page::{Block, Figure, Mark, RunPage};

const DEFINITIONS: [&str; 4] = [
    "In the testing phase clients write as fast as the engine lets them: a closed system, whose rate is the maximum. In \
     the running phase writes arrive by a schedule that does not wait for the engine: an open system.",
    "Write latency is the time from the arrival of a write to its completion, waiting included; processing latency is \
     the time from the call of the engine to its return. A stall, a band in the plots, is a tenth of a second or more \
     in which writes waited and none completed.",
    "The rows below a plot show the runs, the levels with runs, the running merges, and each cause for which writers \
     waited; a darker colour is a larger value. A sorted run is what the stability paper calls a disk component.",
    "mem is a map in memory that went through the same phases on this machine: it shows the limits of the machine.",
];

/// Creates the directory of a report before anything is measured.
pub fn prepare(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

/// Writes all files of the report; returns the path of the page. `explorer` is the page of the explorer.
pub fn write(
    dir: &Path,
    plan: &StabilityPlan,
    machine: &Machine,
    evaluations: &[DesignEvaluation],
    calibration: Option<&MapCalibration>,
    explorer: &str,
) -> Result<std::path::PathBuf> {
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    let mut page = introduction(plan, machine);
    let mut lines = Vec::new();
    let add = |page: &mut RunPage, name: &str, plot: &Plot| {
        let figure = Figure::of_plot(name, plot);
        put(&format!("{name}.svg"), figure.svg())?;
        page.add(Block::Figure(Box::new(figure)));
        anyhow::Ok(())
    };
    if evaluations.len() > 1 {
        page.add(overview(evaluations));
        for (name, plot) in plots::overlaid(evaluations) {
            add(&mut page, &format!("all-{name}"), &plot)?;
        }
    }
    for evaluation in evaluations {
        json::write_line(&mut lines, &JsonEvaluation::of(evaluation, calibration, plan))?;
        section(&mut page, evaluation, calibration);
        for (name, plot) in plots::of(evaluation, calibration) {
            add(&mut page, &format!("{}-{name}", evaluation.slug), &plot)?;
        }
    }
    put("report.jsonl", &String::from_utf8_lossy(&lines))?;
    page.heading("What the words mean");
    DEFINITIONS.iter().for_each(|text| page.text(*text));
    put("report.html", &page.html(explorer)?)
}

fn introduction(plan: &StabilityPlan, machine: &Machine) -> RunPage {
    let phases = &plan.phases;
    let run = &phases.run;
    let version = env!("CARGO_PKG_VERSION");
    let setting = vec![
        ("machine".to_owned(), machine.to_string()),
        ("program".to_owned(), format!("terrane {version}, seed {}", run.seed)),
    ];
    let mut page = RunPage::new("Sustainable writes per second", setting);
    page.text(format!(
        "{} records of {} + {} B, {} updates, {}, {}; testing phase {}, of which {} warm-up; running phase {}, \
         arrivals {}",
        human::count(run.num),
        run.key_size_bytes,
        run.value_size,
        run.distribution.map_or_else(String::new, |one| one.to_string()),
        human::counted(phases.writers.into(), "writer"),
        human::counted(phases.readers.into(), "reader"),
        human::duration(phases.testing),
        human::duration(phases.warm_up),
        human::duration(phases.running),
        arrivals(phases),
    ));
    page
}

/// Returns a table of all designs.
fn overview(evaluations: &[DesignEvaluation]) -> Block {
    let row = |evaluation: &DesignEvaluation| {
        let write = &evaluation.report.running.write;
        let at = |percent| micros(write.percentile_micros(percent));
        let rate = human::number(evaluation.report.running.offered_per_second());
        let (word, _) = conclusion(evaluation);
        let max = micros(write.max_micros());
        vec![evaluation.name.clone(), word.to_owned(), rate, at(50.0), at(99.0), at(99.9), max]
    };
    Block::Table {
        columns: ["design", "verdict", "arrived/s", "p50", "p99", "p99.9", "max"]
            .map(str::to_owned)
            .into(),
        rows: evaluations.iter().map(row).collect(),
    }
}

fn conclusion(evaluation: &DesignEvaluation) -> (&'static str, Mark) {
    match evaluation.conclusion() {
        Conclusion::Sustainable => ("sustainable", Mark::Yes),
        Conclusion::Unsustainable => ("not sustainable", Mark::No),
        Conclusion::Unknown => ("no verdict", Mark::Unknown),
    }
}

fn section(
    page: &mut RunPage,
    evaluation: &DesignEvaluation,
    calibration: Option<&MapCalibration>,
) {
    let (testing, running) = (&evaluation.report.testing, &evaluation.report.running);
    page.heading(&*evaluation.name);
    page.text(&*evaluation.design);
    page.verdict(headline(evaluation), conclusion(evaluation).1);
    let findings = evaluation.verdict.findings.iter().map(|finding| {
        let mark = if finding.is_met() { "met" } else { "not met" };
        format!("{mark}: {finding}")
    });
    let advice = evaluation.advice.iter();
    let advice = advice.map(|one| format!("Cause: {}. Remedy: {}.", one.reason, one.remedy));
    let cautions = evaluation.cautions.iter().map(|caution| format!("Note: {caution}."));
    page.add(Block::List { items: findings.chain(advice).chain(cautions).collect() });
    page.text(format!(
        "Maximum {} writes/s, measured with {}. Offered {} writes/s, completed {}.",
        human::number(testing.per_second()),
        evaluation.testing_design,
        human::number(running.offered_per_second()),
        human::number(running.per_second()),
    ));
    let facts = facts(evaluation, calibration).into_iter().chain(outlook(evaluation));
    page.add(Block::List { items: facts.map(|(word, fact)| format!("{word}: {fact}")).collect() });
    page.add(percentiles(evaluation, calibration));
}

fn percentiles(evaluation: &DesignEvaluation, calibration: Option<&MapCalibration>) -> Block {
    let running = &evaluation.report.running;
    let mem = calibration.map(|one| &one.report.running);
    let mut columns = vec![
        ("write latency", all_micros(&running.write)),
        ("processing", all_micros(&running.processing)),
    ];
    if let Some(mem) = mem {
        columns.push(("write latency, mem", all_micros(&mem.write)));
        columns.push(("processing, mem", all_micros(&mem.processing)));
    }
    let heads = columns.iter().map(|(name, _)| (*name).to_owned());
    let rows = all_micros(&running.write).into_iter().enumerate().map(|(at, (name, _))| {
        let cells = columns.iter().filter_map(|(_, all)| all.get(at)).map(|(_, us)| micros(*us));
        std::iter::once(name).chain(cells).collect()
    });
    Block::Table {
        columns: std::iter::once("percentile".to_owned()).chain(heads).collect(),
        rows: rows.collect(),
    }
}
