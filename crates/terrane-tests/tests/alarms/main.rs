//! The alarms of docs/operations.md: each fires in its situation, and not before it.
//!
//! | module | one line |
//! |---|---|
//! | `dashboard` | the dashboard of the page, for Grafana |
//! | `promql` | evaluates the conditions of the page |
//! | `situations` | the situation in which each alarm fires |
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files and threads of their own")]

mod dashboard;
mod promql;
mod situations;

use std::collections::BTreeSet;
use std::path::Path;

use promql::{Window, samples};
use situations::{ALL, Situation};
use terrane::{Db, Stats};

/// A row of the table of alarms.
#[derive(Debug)]
struct Alarm {
    name: String,
    condition: String,
    /// How long the condition must hold, as in the page.
    lasts: String,
    remedy: String,
    event: Option<String>,
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the parts of `text` between back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn alarms() -> Vec<Alarm> {
    let page = page();
    let table = page.split("<!-- alarms -->").nth(1).unwrap();
    let rows = table.trim().lines().skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let first = |cell: &str| quoted(cell).next().map(str::to_owned);
        Alarm {
            name: first(cells[1]).unwrap(),
            condition: first(cells[2]).unwrap(),
            lasts: cells[3].trim().to_owned(),
            remedy: cells[5].trim().to_owned(),
            event: first(cells[4]),
        }
    })
    .collect()
}

#[test]
fn every_alarm_fires_in_its_situation_and_not_before() {
    let alarms = alarms();
    let names: Vec<&str> = alarms.iter().map(|alarm| &alarm.name[..]).collect();
    assert_eq!(names, ALL.map(|(name, _)| name));
    for (alarm, (name, situation)) in alarms.iter().zip(ALL) {
        let Situation { before, after, took, events } = situation();
        let quiet = Window::new(&Stats::default(), &before, took);
        assert!(!quiet.holds(&alarm.condition), "{name}: {before}");
        let window = Window::new(&before, &after, took);
        assert!(window.holds(&alarm.condition), "{name}: {after}\n{events:?}");
        // Three alarms with one condition told the operator nothing.
        if alarm.condition.starts_with("terrane_failed") {
            let failed =
                alarms.iter().filter(|other| other.condition.starts_with("terrane_failed"));
            let firing: Vec<&str> = failed
                .filter(|other| window.holds(&other.condition))
                .map(|other| &*other.name)
                .collect();
            assert_eq!(firing, [name]);
        }
        if let Some(wanted) = &alarm.event {
            let is_wanted = |text: &String| text.starts_with(&wanted[..]);
            let texts: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
            assert!(texts.iter().any(is_wanted), "{name}: {texts:?}");
        }
    }
}

/// Returns the table as rules for Prometheus.
fn rules() -> String {
    let mut rules = String::from(
        "# The alarms of docs/operations.md. Made by a test: TERRANE_REWRITE=1 cargo test -p terrane-tests\n\
         # --test alarms rewrites it.\n\
         groups:\n  - name: terrane\n    rules:\n",
    );
    for Alarm { name, condition, lasts, remedy, .. } in alarms() {
        let title: String =
            name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        // `[Title](#anchor)` is a section of the page; any other text is short enough for the rule.
        let link = remedy.strip_prefix('[').and_then(|rest| rest.split_once("](#"));
        let description = match link {
            Some((title, _)) => {
                format!("See 'Operations, {}' in the documentation.", title.to_lowercase())
            }
            None => remedy.replace('`', ""),
        };
        rules += &format!("      - alert: Terrane{title}\n        expr: '{condition}'\n");
        if lasts != "at once" {
            rules += &format!("        for: {}\n", lasts.replace(" min", "m").replace(" h", "h"));
        }
        let (plain, quoted) = (name.replace('-', " "), description.replace('\'', "''"));
        rules += "        labels:\n          severity: warning\n        annotations:\n";
        rules += &format!("          summary: 'Terrane: {plain} on {{{{ $labels.instance }}}}'\n");
        rules += &format!("          description: '{quoted}'\n");
    }
    rules
}

#[test]
fn the_rules_for_prometheus_are_those_of_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus-rules.yml");
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        std::fs::write(&path, rules()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == rules(), "{} is stale; TERRANE_REWRITE=1 rewrites it", path.display());
}

#[test]
fn every_metric_of_the_page_exists() {
    let text = Stats::default().open_metrics();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let mut known: BTreeSet<String> = families.map(str::to_owned).collect();
    known.extend(samples(&Stats::default()).into_keys());
    let page = page();
    let is_other = |byte: char| !byte.is_ascii_alphanumeric() && byte != '_';
    let words = page.match_indices("terrane_").filter_map(|(at, _)| {
        let (word, after) = page[at..].split_at(page[at..].find(is_other)?);
        // A crate name at the start of a path is not a metric.
        (!after.starts_with("::")).then_some(word)
    });
    let words: BTreeSet<&str> = words.collect();
    assert!(words.len() >= 15, "{words:?}");
    for word in words {
        assert!(known.contains(word), "{word}");
    }
}

/// Carries out the restore drill of the page.
#[test]
fn a_checkpoint_is_verified_opened_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    for number in 0..1_000u32 {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    let backup = dir.path().join("backup");
    db.checkpoint(&backup).unwrap();
    db.put("later", "than the backup").unwrap();
    db.close().unwrap();
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    let verified = terrane::inspect::verify(&backup, &mut |_| {}).unwrap();
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    std::fs::rename(&backup, dir.path().join("db")).unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 1_000);
}
