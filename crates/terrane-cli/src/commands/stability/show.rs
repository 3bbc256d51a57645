//! Prints the report.

use std::io::{self, Write};

use terrane::IoBudget;
use terrane_workload::stability::{PhaseReport, TwoPhaseOptions, Window};

use crate::table::{Align, lines, table};
use crate::terminal::{Paint, picture_columns};
use terrane_lab::host::machine::Machine;
use terrane_lab::output::human;
use terrane_lab::output::sparkline::{sparkline, squeezed};
use terrane_lab::stability::words::{
    all_micros, arrivals, causes, facts, headline, micros, operations, outlook,
};
use terrane_lab::stability::{
    Conclusion, DesignEvaluation, MapCalibration, StabilityPlan, stalls_by_cause,
};

/// The columns that a line needs besides its curve.
const AROUND_CURVE: usize = 30;

/// The most columns of a curve.
const CURVE_MAX: usize = 100;

/// Returns the columns of a curve.
fn curve_columns() -> usize {
    picture_columns().saturating_sub(AROUND_CURVE).clamp(10, CURVE_MAX)
}

/// Prints the evaluation and the machine.
pub(super) fn header(
    out: &mut impl Write,
    plan: &StabilityPlan,
    machine: &Machine,
) -> io::Result<()> {
    let paint = Paint::stdout();
    let TwoPhaseOptions { run, testing, running, warm_up, .. } = &plan.phases;
    writeln!(out, "{} · {machine}", paint.bold(concat!("terrane ", env!("CARGO_PKG_VERSION"))))?;
    let distribution = run.distribution.map_or_else(String::new, |one| one.to_string());
    writeln!(
        out,
        "{} records of {} + {} B = {} · {distribution} {} · {}{}{} · seed {}",
        human::count(run.num),
        run.key_size_bytes,
        run.value_size,
        human::bytes(plan.data_bytes()),
        operations(&plan.phases),
        human::counted(plan.phases.writers.into(), "writer"),
        readers(&plan.phases),
        plan.indexes.map_or_else(String::new, |indexes| format!(" · indexes {indexes}")),
        run.seed
    )?;
    writeln!(
        out,
        "testing {}, of which {} warm-up · running {}, arrivals {}",
        human::duration(*testing),
        human::duration(*warm_up),
        human::duration(*running),
        arrivals(&plan.phases)
    )?;
    if let Some(budget) = plan.budget {
        writeln!(out, "flushes and merges together: {}", rate_of(budget))?;
    }
    out.flush()
}

fn rate_of(budget: IoBudget) -> String {
    match budget {
        IoBudget::Total(bytes) => format!("at most {}/s", human::bytes(bytes)),
        IoBudget::Leftover(bytes) => {
            format!("at most the rest of {}/s after reads and the log", human::bytes(bytes))
        }
        _ => "no limit".to_owned(),
    }
}

fn readers(phases: &TwoPhaseOptions) -> String {
    match phases.readers {
        0 => String::new(),
        count => format!(", {} ({})", human::counted(count.into(), "reader"), phases.query),
    }
}

/// Prints the results of a design.
pub(super) fn evaluation(
    out: &mut impl Write,
    plan: &StabilityPlan,
    evaluation: &DesignEvaluation,
    calibration: Option<&MapCalibration>,
) -> io::Result<()> {
    let paint = Paint::stdout();
    let (testing, running) = (&evaluation.report.testing, &evaluation.report.running);
    writeln!(
        out,
        "\n{}: {}",
        paint.bold(&format!("design {}", evaluation.name)),
        evaluation.design
    )?;
    writeln!(
        out,
        "testing    {} writes/s, {}/s of users' data, closed system",
        paint.bold(&human::number(testing.per_second())),
        human::bytes((testing.per_second() * plan.bytes_per_write()) as u64),
    )?;
    rate_curve(out, testing)?;
    writeln!(
        out,
        "{}",
        paint.dim("           with the fair scheduler and exact merges at level 0")
    )?;
    writeln!(out, "waited for {}", causes(&stalls_by_cause(testing)))?;
    writeln!(
        out,
        "running    {} writes/s arrived, {} completed, {} waiting at the end",
        human::number(running.offered_per_second()),
        human::number(running.per_second()),
        human::count(running.unfinished)
    )?;
    rate_curve(out, running)?;
    components_curve(out, running)?;
    writeln!(out)?;
    percentiles(out, running, calibration)?;
    for (word, text) in facts(evaluation, calibration).into_iter().chain(outlook(evaluation)) {
        writeln!(out, "{word:<10} {text}")?;
    }
    verdict(out, evaluation, calibration, paint)
}

fn phase_seconds(phase: &PhaseReport) -> f64 {
    (phase.seconds + phase.warm_up_seconds).max(1e-9)
}

fn rates(phase: &PhaseReport) -> Vec<f64> {
    let window = (phase_seconds(phase) / curve_columns() as f64).max(0.1);
    phase.timeline.windows(window).iter().map(Window::per_second).collect()
}

fn rate_curve(out: &mut impl Write, phase: &PhaseReport) -> io::Result<()> {
    let rates = rates(phase);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let curve = sparkline(&squeezed(&rates, curve_columns()), highest);
    writeln!(out, "  writes/s │{curve}│ 0 to {}", human::number(highest))
}

fn components_curve(out: &mut impl Write, phase: &PhaseReport) -> io::Result<()> {
    let counts: Vec<f64> = phase
        .samples
        .iter()
        .filter_map(|sample| sample.glance.components.map(|count| count as f64))
        .collect();
    if counts.is_empty() {
        return Ok(());
    }
    let highest = counts.iter().copied().fold(0.0, f64::max);
    let lowest = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let curve = sparkline(&squeezed(&counts, curve_columns()), highest);
    writeln!(out, "  runs     │{curve}│ {lowest} to {highest}")
}

fn percentiles(
    out: &mut impl Write,
    running: &PhaseReport,
    calibration: Option<&MapCalibration>,
) -> io::Result<()> {
    let mut headers = vec![("percentile", Align::Left)];
    for name in ["write latency", "processing"] {
        headers.push((name, Align::Right));
        if calibration.is_some() {
            headers.extend([("mem", Align::Right), ("ratio", Align::Right)]);
        }
    }
    let mut table = table(&headers);
    let (write, processing) = (all_micros(&running.write), all_micros(&running.processing));
    let mem = calibration.map(|one| &one.report.running);
    let mem = mem.map(|mem| (all_micros(&mem.write), all_micros(&mem.processing)));
    for (at, ((name, write), (_, processing))) in write.iter().zip(&processing).enumerate() {
        let mut cells = vec![name.clone(), micros(*write)];
        let compare = |of: &[(String, f64)], ours: f64, cells: &mut Vec<String>| {
            if let Some((_, theirs)) = of.get(at) {
                cells.extend([micros(*theirs), ratio(ours, *theirs)]);
            }
        };
        let (mem_write, mem_processing) = mem.clone().unwrap_or_default();
        compare(&mem_write, *write, &mut cells);
        cells.push(micros(*processing));
        compare(&mem_processing, *processing, &mut cells);
        table.add_row(cells);
    }
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn ratio(ours: f64, theirs: f64) -> String {
    match ours / theirs {
        ratio if !ratio.is_finite() => "-".to_owned(),
        ratio if ratio < 0.01 => "< 0.01 ×".to_owned(),
        ratio => format!("{} ×", human::number(ratio)),
    }
}

fn verdict(
    out: &mut impl Write,
    evaluation: &DesignEvaluation,
    calibration: Option<&MapCalibration>,
    paint: Paint,
) -> io::Result<()> {
    let headline = headline(evaluation);
    let painted = match evaluation.conclusion() {
        Conclusion::Unsustainable => paint.red(&headline),
        Conclusion::Sustainable | Conclusion::Unknown => paint.bold(&headline),
    };
    writeln!(out, "\n{painted}")?;
    for finding in &evaluation.verdict.findings {
        let mark = if finding.is_met() { "met " } else { "NOT " };
        let mem = calibration.and_then(|one| {
            one.verdict.findings.iter().find(|theirs| theirs.criterion == finding.criterion)
        });
        // If the map in memory fails too, the engine is not the cause.
        let machine = match mem {
            Some(mem) if !mem.is_met() && finding.is_met() => {
                "; the map in memory does not meet it"
            }
            Some(mem) if !mem.is_met() => "; nor does the map in memory meet it",
            _ => "",
        };
        writeln!(out, "  {mark} {finding}{machine}")?;
    }
    for advice in &evaluation.advice {
        writeln!(out, "  why  {}", advice.reason)?;
        writeln!(out, "  try  {}", advice.remedy)?;
    }
    for caution in &evaluation.cautions {
        writeln!(out, "  note {caution}")?;
    }
    out.flush()
}

/// Prints the designs side by side, if there are several.
pub(super) fn overview(out: &mut impl Write, evaluations: &[DesignEvaluation]) -> io::Result<()> {
    if evaluations.len() < 2 {
        return Ok(());
    }
    let mut headers = vec![("design", Align::Left), ("sustainable", Align::Left)];
    let names = ["maximum/s", "arrived/s", "p50", "p99", "p99.9", "max", "write amp", "runs"];
    headers.extend(names.map(|name| (name, Align::Right)));
    let mut table = table(&headers);
    for evaluation in evaluations {
        let (testing, running) = (&evaluation.report.testing, &evaluation.report.running);
        let at = |percent| micros(running.write.percentile_micros(percent));
        let or_dash = |value: Option<f64>| value.map_or("-".to_owned(), human::number);
        table.add_row([
            evaluation.name.clone(),
            match evaluation.conclusion() {
                Conclusion::Sustainable => "yes",
                Conclusion::Unsustainable => "NO",
                Conclusion::Unknown => "unknown",
            }
            .to_owned(),
            human::number(testing.per_second()),
            human::number(running.offered_per_second()),
            at(50.0),
            at(99.0),
            at(99.9),
            micros(running.write.max_micros()),
            or_dash(running.write_amplification()),
            or_dash(running.mean_components(0.0, 1.0)),
        ]);
    }
    writeln!(out)?;
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    let paint = Paint::stdout();
    let note = "write amp: the log included · runs: the mean of the running phase";
    writeln!(out, "{}", paint.dim(note))
}
