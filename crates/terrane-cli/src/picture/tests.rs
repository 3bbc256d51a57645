use terrane::{Design, TreeView};
use terrane_policy::TreeShape;

use super::*;
use crate::terminal::Paint;

fn view(shape: &str) -> TreeView {
    let design: Design = "balanced buffer=1MiB base=4MiB".parse().unwrap();
    let shape: TreeShape = shape.parse().unwrap();
    let mut view = TreeView::new("default", design, shape);
    (view.memtable_bytes, view.memtable_entries) = (1 << 19, 10);
    view
}

const TREE: &str = "\
L0 r9: 9=a..=z:1048576
L0 r8: 8=a..=z:1048576
L1 r7: 1=a..=f:1048576 2=g..=m:1048576
";

#[test]
fn the_work_is_next_to_what_did_it() {
    let text = by_size(&view(TREE), Some(Work::of(&terrane::Stats::default())), 80, Paint::off());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("memtable ▕████    ▏"), "{text}");
    assert_eq!(lines[2], "         ↓ 0 flushes wrote 0 B", "{text}");
    assert!(lines[3].starts_with("level 0") && lines[4].starts_with("level 1"), "{text}");
    assert!(lines[5].starts_with("         ↓ 0 compactions read"), "{text}");
    assert_eq!(lines[6], "4.00 MiB in 4 tables and 3 sorted runs");
    assert_eq!(lines.len(), 7, "{text}");
}

#[test]
fn an_empty_tree_can_be_drawn() {
    assert!(by_size(&view(""), None, 80, Paint::off()).contains("0 B in 0 tables"));
    assert_eq!(by_key(&view(""), 80, Paint::off()), "no tables\n");
}

#[test]
fn tables_lie_where_their_keys_are() {
    let text = by_key(&view(TREE), 83, Paint::off());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0].matches('█').count(), 72, "{text}");
    let (first, second) = (lines[2].matches('█').count(), lines[2].matches('▓').count());
    assert!((14..=36).contains(&first) && (14..=36).contains(&second), "{text}");
    assert!(lines[3].trim().starts_with('a') && lines[3].ends_with('z'), "{text}");
    for columns in [40, 80, 120] {
        let text = by_key(&view(TREE), columns, Paint::off());
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
}

#[test]
fn json_has_every_table() {
    let view = view(TREE);
    let json = serde_json::to_value(JsonTree::of(&view)).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["levels"][1]["runs"][0]["tables"][1]["start"], "g");
    assert_eq!(json["tables"], 4);
    assert_eq!(json["pressure"], serde_json::Value::Null);
}

#[test]
fn the_line_of_expiry_tells_tables_that_have_expired() {
    let tree = "\
L1 r7: 1=a..=f:1048576,entries=10,expiring=10@1000000-5000000 \
2=g..=m:1048576,entries=30,expiring=3@2000000-9000000
";
    let text = expiry(&view(tree), 4_999_999).unwrap();
    let expected = "values that expire: 13 of 40 entries, in 2 tables\n  \
        from 1970-01-01T00:00:01Z until 1970-01-01T00:00:09Z";
    assert_eq!(text, expected);
    let later = expiry(&view(tree), 5_000_000).unwrap();
    assert_eq!(later, format!("{expected}\n  expired as a whole: 1 table, 1.00 MiB"));
    assert_eq!(expiry(&view(TREE), u64::MAX), None);
}

const SEPARATED: &str = "\
L1 r7: 1=a..=f:1048576,values=3:3MiB/30+4:1MiB/10
V 3: 4MiB,values=40
V 4: 1MiB,values=10,state=unflushed
";

#[test]
fn json_has_every_value_file() {
    let json = serde_json::to_value(JsonTree::of(&view(SEPARATED))).unwrap();
    assert_eq!(json["value_files"][0]["live_bytes"], 3 << 20);
    assert_eq!(json["value_files"][1]["state"], "unflushed");
    assert_eq!(json["levels"][1]["runs"][0]["tables"][0]["value_bytes"], 4 << 20);
}
