//! The files of `--out`: a self-contained HTML page, its plots as files, and the lines of `--json`.

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
use crate::output::plot::escaped;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.4em}h2{font-size:1.15em;margin-top:2.2em}
table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .9em;text-align:right;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}code{font-size:.9em}
.yes{color:#006b4a;font-weight:600}.no{color:#a63c00;font-weight:600}.unknown{color:#555;font-weight:600}svg{width:100%;height:auto}
small{color:#666}";

const DEFINITIONS: &str = "\
<h2>What the words mean</h2>
<p>In the <b>testing phase</b> clients write as fast as the engine lets them: a closed system, whose
rate is the maximum. In the <b>running phase</b> writes arrive by a schedule that does not wait for the
engine: an open system. <b>Write latency</b> is the time from the arrival of a write to its completion,
waiting included; <b>processing latency</b> is the time from the call of the engine to its return. A
<b>stall</b>, a band in the plots, is a tenth of a second or more in which writes waited and none completed.
The rows below a plot show the runs, the levels with runs, the running merges, and each cause for which
writers waited; a darker colour is a larger value. A <b>sorted run</b> is what the stability paper calls a disk component.
<b>mem</b> is a map in memory that went through the same phases on this machine: it shows the limits of the machine.</p>";

/// Creates the directory of a report before anything is measured.
pub fn prepare(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

/// Writes all files of the report; returns the path of the page.
pub fn write(
    dir: &Path,
    plan: &StabilityPlan,
    machine: &Machine,
    evaluations: &[DesignEvaluation],
    calibration: Option<&MapCalibration>,
) -> Result<std::path::PathBuf> {
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    let mut body = introduction(plan, machine, evaluations);
    let mut lines = Vec::new();
    if evaluations.len() > 1 {
        for (name, plot) in plots::overlaid(evaluations) {
            let svg = plot.svg();
            put(&format!("all-{name}.svg"), &svg)?;
            body.push_str(&svg);
        }
    }
    for evaluation in evaluations {
        json::write_line(&mut lines, &JsonEvaluation::of(evaluation, calibration, plan))?;
        body.push_str(&section(evaluation, calibration));
        for (name, plot) in plots::of(evaluation, calibration) {
            let svg = plot.svg();
            put(&format!("{}-{name}.svg", evaluation.slug), &svg)?;
            body.push_str(&svg);
        }
    }
    put("report.jsonl", &String::from_utf8_lossy(&lines))?;
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<title>Stability</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style>\n\
         {body}{DEFINITIONS}\n</html>\n"
    );
    put("report.html", &page)
}

fn introduction(
    plan: &StabilityPlan,
    machine: &Machine,
    evaluations: &[DesignEvaluation],
) -> String {
    let phases = &plan.phases;
    let run = &phases.run;
    let mut text = format!(
        "<h1>Sustainable writes per second</h1>\n<p>{}<br>{} records of {} + {} B, {} \
         updates, {}, {}<br>testing phase {}, of which {} warm-up; running phase {}, arrivals \
         {}<br><small>terrane {}, seed {}</small></p>\n",
        escaped(&machine.to_string()),
        human::count(run.num),
        run.key_size_bytes,
        run.value_size,
        run.distribution.map_or_else(String::new, |one| one.to_string()),
        human::counted(phases.writers.into(), "writer"),
        human::counted(phases.readers.into(), "reader"),
        human::duration(phases.testing),
        human::duration(phases.warm_up),
        human::duration(phases.running),
        escaped(&arrivals(phases)),
        env!("CARGO_PKG_VERSION"),
        run.seed
    );
    if evaluations.len() > 1 {
        text.push_str(&overview(evaluations));
    }
    text
}

fn row(tag: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
    format!("<tr>{cells}</tr>\n")
}

/// Writes a table of all designs.
fn overview(evaluations: &[DesignEvaluation]) -> String {
    let headers = ["design", "verdict", "arrived/s", "p50", "p99", "p99.9", "max"];
    let mut table = format!("<table>\n{}", row("th", &headers.map(str::to_owned)));
    for evaluation in evaluations {
        let write = &evaluation.report.running.write;
        let at = |percent| micros(write.percentile_micros(percent));
        let verdict = verdict_word(evaluation).to_owned();
        let rate = human::number(evaluation.report.running.offered_per_second());
        let name = escaped(&evaluation.name);
        let max = micros(write.max_micros());
        table.push_str(&row("td", &[name, verdict, rate, at(50.0), at(99.0), at(99.9), max]));
    }
    table + "</table>\n"
}

fn verdict_word(evaluation: &DesignEvaluation) -> &'static str {
    match evaluation.conclusion() {
        Conclusion::Sustainable => "<span class=\"yes\">sustainable</span>",
        Conclusion::Unsustainable => "<span class=\"no\">not sustainable</span>",
        Conclusion::Unknown => "<span class=\"unknown\">no verdict</span>",
    }
}

fn section(evaluation: &DesignEvaluation, calibration: Option<&MapCalibration>) -> String {
    let (testing, running) = (&evaluation.report.testing, &evaluation.report.running);
    let class = match evaluation.conclusion() {
        Conclusion::Sustainable => "yes",
        Conclusion::Unsustainable => "no",
        Conclusion::Unknown => "unknown",
    };
    let mut text = format!(
        "<h2>{}</h2>\n<p><code>{}</code></p>\n<p class=\"{class}\">{}</p>\n<ul>\n",
        escaped(&evaluation.name),
        escaped(&evaluation.design),
        escaped(&headline(evaluation))
    );
    for finding in &evaluation.verdict.findings {
        let mark = if finding.is_met() { "met" } else { "<b>not met</b>" };
        text += &format!("<li>{mark}: {}</li>\n", escaped(&finding.to_string()));
    }
    for advice in &evaluation.advice {
        let (reason, remedy) = (escaped(advice.reason), escaped(advice.remedy));
        text += &format!("<li>Cause: {reason}. Remedy: {remedy}.</li>\n");
    }
    for caution in &evaluation.cautions {
        text += &format!("<li>Note: {}.</li>\n", escaped(caution));
    }
    text += &format!(
        "</ul>\n<p>Maximum {} writes/s, measured with <code>{}</code>. Offered {} writes/s, completed \
         {}.</p>\n<ul>\n",
        human::number(testing.per_second()),
        escaped(&evaluation.testing_design),
        human::number(running.offered_per_second()),
        human::number(running.per_second()),
    );
    for (word, fact) in facts(evaluation, calibration).into_iter().chain(outlook(evaluation)) {
        text += &format!("<li>{word}: {}</li>\n", escaped(&fact));
    }
    text += "</ul>\n";
    text + &percentiles(evaluation, calibration)
}

fn percentiles(evaluation: &DesignEvaluation, calibration: Option<&MapCalibration>) -> String {
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
    let mut headers = vec!["percentile".to_owned()];
    headers.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    let mut table = format!("<table>\n{}", row("th", &headers));
    for (at, (name, _)) in all_micros(&running.write).iter().enumerate() {
        let mut cells = vec![name.clone()];
        cells.extend(columns.iter().filter_map(|(_, all)| all.get(at)).map(|(_, us)| micros(*us)));
        table.push_str(&row("td", &cells));
    }
    table + "</table>\n"
}
