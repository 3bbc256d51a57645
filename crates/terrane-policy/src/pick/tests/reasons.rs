//! The reasons that each design of the catalogue gives for its compactions.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::simulate::TestTree;
use crate::catalogue;
use crate::design::Design;
use crate::key_range::KeyRange;
use crate::shape::{ShapeEdit, TreeShape};

const FLUSHES: u64 = 240;
const MICROS_PER_FLUSH: u64 = 6 * 3_600_000_000;

/// Plays flushes six hours apart, and returns the first reason of each kind with its number of
/// compactions.
fn reasons(design: Design, persistence: Option<u64>) -> Vec<(String, u64)> {
    let mut tree = TestTree::new(TreeShape::default(), design);
    tree.design.table_bytes = tree.design.table_bytes.max(tree.design.buffer_bytes);
    tree.delete_persistence_micros = persistence;
    let mut found: BTreeMap<String, (usize, String, u64)> = BTreeMap::new();
    for flush in 0..FLUSHES {
        tree.now_micros += MICROS_PER_FLUSH;
        tree.flush(KeyRange::new(b"a", Some(b"z")), tree.design.buffer_bytes);
        if flush % 8 == 0 {
            add_tombstones(&mut tree);
        }
        while let Some(job) = tree.pick(&[]) {
            let reason = job.reason.to_string();
            let kind: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
            let position = found.len();
            found.entry(kind).or_insert((position, reason, 0)).2 += 1;
            tree.cursors.advance(&job);
            tree.carry_out(&job);
        }
    }
    let mut found: Vec<(usize, String, u64)> = found.into_values().collect();
    found.sort();
    found.into_iter().map(|(_, reason, count)| (reason, count)).collect()
}

/// Turns a tenth of the newest table's entries into tombstones.
fn add_tombstones(tree: &mut TestTree) {
    let newest = tree.shape.level(0).runs[0].clone();
    let mut added = newest.tables[0].as_ref().clone();
    (added.entries, added.tombstones) = (1000, 100);
    added.oldest_tombstone_micros = Some(tree.now_micros);
    let removed = vec![added.id];
    tree.shape = tree.shape.apply(&ShapeEdit { removed, ..ShapeEdit::default() }).unwrap();
    tree.flush_table(added);
}

/// Review the text when it changes: each reason must name what made the tree act.
pub(super) fn of_catalogue() -> String {
    let mut text = String::new();
    let mut play = |name: &str, design: Design, persistence| {
        writeln!(text, "{name}").unwrap();
        for (reason, count) in reasons(design, persistence) {
            writeln!(text, "  {count} x {reason}").unwrap();
        }
    };
    for entry in catalogue::ALL {
        play(entry.name, (entry.design)(), None);
    }
    let day = Some(86_400_000_000);
    for name in ["balanced", "tier", "full"] {
        play(&format!("{name}, delete persistence of a day"), name.parse().unwrap(), day);
    }
    for text in [
        "leveling; trigger=level-saturation; delay=4; stop=6; L0=1; limit=level0",
        "tiering T=4 L0=4; trigger=file-staleness(30d); delay=12; stop=16",
        "tiering T=4 L0=4; granularity=run; trigger=prefix(1GiB,9,0.1); delay=6; stop=8",
    ] {
        play(text, text.parse().unwrap(), None);
    }
    text
}
