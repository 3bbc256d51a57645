//! The map as a page with heat maps, and every threshold as CSV.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::axes::{EAGERNESS, LEVELS, LIMITS, RATIOS, SCHEDULERS, hours, percent};
use super::cell::{CellRuns, MapCell, StabilityMap};
use super::markdown::{introduction, tally_words};
use super::summary::{REFERENCE, compared, limits, tally};
use crate::host::Environment;
use crate::output::plot::{HeatCell, HeatMap, escaped};
use crate::report::page::{STYLE, setting};

/// The colour scale, in shares of the maximum.
const SCALE: (f64, f64) = (0.6, 1.2);

/// Writes the page and the thresholds, and returns the path of the page.
pub(super) fn write(map: &StabilityMap, dir: &Path, environment: &Environment) -> Result<PathBuf> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    put("map.csv", &csv(map))?;
    put("report.html", &page(map, environment))
}

/// Returns the thresholds in long form; a share of 0 means that not even the lowest one holds.
fn csv(map: &StabilityMap) -> String {
    let mut text = "eagerness,T,levels,limit,scheduler,maximum_writes_per_second,phase_hours,tree,\
                    sustained_share\n"
        .to_owned();
    for (cell, runs) in &map.cells {
        let MapCell { eagerness, ratio, levels, scheduler, limit } = cell;
        for (phase, length) in map.options.hours.iter().enumerate() {
            for tree in 0..runs.thresholds.len() {
                let share = runs.share(tree, phase);
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "{eagerness},{ratio},{levels},{limit},{scheduler},{:.0},{length},{tree},{share}",
                    runs.maximum
                );
            }
        }
    }
    text
}

fn page(map: &StabilityMap, environment: &Environment) -> String {
    let introduction = introduction(map).replace("\n\n", "</p>\n<p>");
    let mut body = format!(
        "<h1>The map of stability</h1>\n{}<p>{}</p>\n",
        setting(environment),
        marked(&introduction)
    );
    for eagerness in EAGERNESS {
        for phase in (0..map.options.hours.len()).rev() {
            body.push_str(&heat(map, eagerness, phase).svg());
        }
    }
    let _ = write!(
        body,
        "<h2>Schedulers</h2>\n<p>Percent of trees that sustain less / more than with <code>{REFERENCE}\
         </code>; the others sustain the same.</p>\n<div class=\"tables\">\n{}</div>\n\
         <h2>Limits</h2>\n<p>The rate that each limit sustains, relative to the best of the three for \
         the same tree: the mean over trees, and in parentheses the percentage of trees in which no \
         limit sustains more.</p>\n<div class=\"tables\">\n{}</div>\n",
        scheduler_tables(map),
        limit_tables(map)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>The map of stability</title>\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <style>\n{STYLE}\n</style>\n{body}</html>\n"
    )
}

/// Turns pairs of backquotes into code.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(
            |(at, part)| if at % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() },
        )
        .collect()
}

/// Returns the heat map of a phase: limits × schedulers, each with levels × ratios.
fn heat(map: &StabilityMap, eagerness: &'static str, phase: usize) -> HeatMap {
    let panel = |limit: &'static str, scheduler: &'static str| {
        let row = |levels: usize| {
            let cell = |ratio: u32| {
                let cell = MapCell { eagerness, ratio, levels, scheduler, limit };
                map.find(cell).map_or_else(
                    || HeatCell { value: None, text: String::new(), hover: "not simulated".into() },
                    |runs| heat_cell(&cell, runs, phase),
                )
            };
            RATIOS.map(cell).to_vec()
        };
        LEVELS.map(row).to_vec()
    };
    let row = |limit| SCHEDULERS.map(|scheduler| panel(limit, scheduler)).to_vec();
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    HeatMap {
        title: format!(
            "{eagerness}, phases of {}: percent of the maximum that holds from every tree",
            hours(map.options.hours[phase])
        ),
        columns: names(&SCHEDULERS),
        rows: names(&LIMITS),
        x: ("T=".to_owned(), RATIOS.iter().map(u32::to_string).collect()),
        y: ("levels".to_owned(), LEVELS.iter().map(|levels| format!("L={levels}")).collect()),
        scale: SCALE,
        scale_labels: (format!("≤ {}", percent(SCALE.0)), percent(SCALE.1)),
        panels: LIMITS.map(row).to_vec(),
    }
}

fn heat_cell(cell: &MapCell, runs: &CellRuns, phase: usize) -> HeatCell {
    let (least, median) = (runs.least(phase), runs.median(phase));
    let number =
        |share: f64| if share > 0.0 { format!("{:.0}", share * 100.0) } else { "–".into() };
    let MapCell { ratio, levels, scheduler, limit, .. } = cell;
    HeatCell {
        value: (least > 0.0).then_some(least),
        text: number(least),
        hover: format!(
            "{scheduler}, {limit}, T={ratio}, {levels} levels: {} from every tree, {} from the median \
             one, of {:.0} writes/s",
            percent(least),
            percent(median),
            runs.maximum
        ),
    }
}

fn row(tag: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<{tag}>{}", escaped(cell))).collect();
    format!("<tr>{cells}\n")
}

fn scheduler_tables(map: &StabilityMap) -> String {
    let mut text = String::new();
    for eagerness in EAGERNESS {
        for (phase, length) in map.options.hours.iter().enumerate().rev() {
            let mut headers = vec!["limit".to_owned(), "T".to_owned()];
            headers.extend(compared().map(str::to_owned));
            let caption = format!("{eagerness}, phases of {}", hours(*length));
            let _ = write!(
                text,
                "<table class=\"data\"><caption>{}</caption>\n{}",
                escaped(&caption),
                row("th", &headers)
            );
            for limit in LIMITS {
                for ratio in RATIOS {
                    let mut cells = vec![limit.to_owned(), ratio.to_string()];
                    cells.extend(compared().map(|scheduler| {
                        tally_words(&tally(map, scheduler, phase, |cell| {
                            cell.eagerness == eagerness
                                && cell.limit == limit
                                && cell.ratio == ratio
                        }))
                    }));
                    text.push_str(&row("td", &cells));
                }
            }
            text.push_str("</table>\n");
        }
    }
    text
}

fn limit_tables(map: &StabilityMap) -> String {
    let mut text = String::new();
    for eagerness in EAGERNESS {
        for (phase, length) in map.options.hours.iter().enumerate().rev() {
            let mut headers = vec!["scheduler".to_owned()];
            headers.extend(LIMITS.map(str::to_owned));
            let caption = format!("{eagerness}, phases of {}", hours(*length));
            let _ = write!(
                text,
                "<table class=\"data\"><caption>{}</caption>\n{}",
                escaped(&caption),
                row("th", &headers)
            );
            for scheduler in SCHEDULERS {
                let mut cells = vec![scheduler.to_owned()];
                cells.extend(
                    limits(map, eagerness, scheduler, phase).map(|rank| {
                        format!("{:.0} % ({:.0})", rank.mean * 100.0, rank.best * 100.0)
                    }),
                );
                text.push_str(&row("td", &cells));
            }
            text.push_str("</table>\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::map::MapOptions;

    #[test]
    fn a_map_of_some_cells_is_a_complete_page() {
        // Every 60th cell has the scheduler `single`.
        let options =
            MapOptions { hours: vec![0.05, 0.1], trees: 2, complete: 1, step: 60, threads: 2 };
        let map = StabilityMap::simulate(&options, &|_, _| {}).unwrap();
        let again = StabilityMap::simulate(&MapOptions { threads: 1, ..options }, &|_, _| {});
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment {
            command: "terrane simulate map <x>".into(),
            ..Environment::of_run(dir.path(), 1)
        };
        let path = map.write(dir.path(), &environment).unwrap();
        let page = fs::read_to_string(&path).unwrap();
        assert_eq!(page, self::page(&again.unwrap(), &environment));
        assert!(page.contains("map &lt;x&gt;") && page.contains("<code>buffer=128MiB"));
        assert_eq!(page.matches("<svg ").count(), 4);
        // Two eagernesses, two phases, 12 panels of 18 cells.
        assert_eq!(page.matches("class=\"cell\"").count(), 4 * 12 * 18);
        assert_eq!(page.matches("not simulated").count(), 2 * (432 - 8));
        let csv = fs::read_to_string(dir.path().join("map.csv")).unwrap();
        assert_eq!(csv.lines().count(), 1 + 8 * 2 * 2);
        let columns = csv.lines().map(|line| line.split(',').count());
        assert!(columns.into_iter().all(|count| count == 9));
        let text = map.markdown(&environment);
        assert!(
            text.contains("8 cells × 2 trees × 15 shares") && text.contains("make 480 verdicts")
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 120 || line.starts_with('|')),
            "{text}"
        );
    }
}
