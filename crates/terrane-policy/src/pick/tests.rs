//! Picks as text, and properties on random trees.

mod flushes;
mod properties;
mod random;
mod simulate;
mod values;

use std::fmt::Write;

use terrane_testkit::datadriven::{self, Case};

use super::*;
use crate::access::{TableAccess, TableAccesses};
use crate::catalogue;
use crate::design::Design;
use crate::shape::{TableId, TableInfo, TreeShape};
use crate::units::parse_micros;
use simulate::TestTree;

#[test]
fn picks_match_testdata() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pick.txt");
    datadriven::run(path, answer);
}

#[test]
fn collections_match_testdata() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/collect.txt");
    datadriven::run(path, answer);
}

fn answer(case: &Case) -> String {
    let design: Design = case.argument("design").unwrap_or(catalogue::DEFAULT).parse().unwrap();
    let mut tree = TestTree::new(case.input.parse().unwrap(), design);
    let time = |name| case.argument(name).map(|text| parse_micros(text).unwrap());
    tree.now_micros = time("now").unwrap_or(0);
    tree.delete_persistence_micros = time("persistence");
    tree.oldest_snapshot = case.argument("snapshot").map(|seq| seq.parse().unwrap());
    tree.accesses = case.argument("reads").map(accesses).unwrap_or_default();
    let mut text = String::new();
    match case.directive.as_str() {
        "pick" => return tree.pick(&[]).map_or("nothing".into(), |job| job.to_string()),
        "due" => {
            let due = next_due_micros(&tree.input(&[]));
            return due.map_or("never".into(), |due| {
                format!("in {}", crate::units::format_micros(due - tree.now_micros))
            });
        }
        "manual" => {
            let range = case.argument("range").unwrap();
            let range: TableInfo = format!("1={range}:1").parse().unwrap();
            for level in 0.. {
                if level > tree.shape.last_level() {
                    break;
                }
                let Some(job) = manual(&tree.input(&[]), level, &range.range) else { continue };
                writeln!(text, "{job}").unwrap();
                tree.carry_out(&job);
            }
        }
        "settle" => {
            while let Some(job) = tree.pick(&[]) {
                writeln!(text, "{job}").unwrap();
                tree.cursors.advance(&job);
                tree.carry_out(&job);
            }
        }
        "parallel" => {
            let mut in_progress = Vec::new();
            while let Some(job) = tree.pick(&in_progress) {
                writeln!(text, "{job}").unwrap();
                in_progress.push(job);
            }
        }
        other => panic!("line {}: unknown directive {other}", case.line),
    }
    text + &tree.shape.to_string()
}

/// Parses read counts: `7=300@20s` means 300 reads of table 7, the last one at 20 s.
fn accesses(text: &str) -> TableAccesses {
    let one = |word: &str| {
        let (table, rest) = word.split_once('=').unwrap();
        let (reads, last) = rest.split_once('@').unwrap_or((rest, "0s"));
        let access =
            TableAccess { reads: reads.parse().unwrap(), last_micros: parse_micros(last).unwrap() };
        (TableId(table.parse().unwrap()), access)
    };
    text.split(',').map(one).collect()
}

#[test]
fn dents_figure_1_needs_two_merges() {
    let design: Design = "dent T=2 L0=2; buffer=1KiB".parse().unwrap();
    let shape: TreeShape = "L0 r3: 3=a..=f:1KiB\nL0 r2: 2=a..=f:1KiB".parse().unwrap();
    let mut tree = TestTree::new(shape, design);
    let job = tree.pick(&[]).unwrap();
    tree.carry_out(&job);
    assert_eq!(job.tables().map(|table| table.id).collect::<Vec<_>>(), [TableId(3), TableId(2)]);
    assert_eq!((tree.shape.level(0).runs.len(), tree.shape.level(1).runs.len()), (0, 1));
}
