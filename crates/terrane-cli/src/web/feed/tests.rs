use serde_json::json;

use super::*;

const NOW: Duration = Duration::ZERO;

fn table(id: u64, level: u64) -> PlacedTable {
    let text = format!(
        r#"{{"table":{id},"run":1,"level":{level},"start":"a","end":null,"bytes":1,"entries":1,"tombstones":0}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn changes(at_micros: u64, is_whole: bool, removed: &[u64], added: &[(u64, u64)]) -> Item {
    let added = added.iter().map(|(id, level)| table(*id, *level)).collect();
    let mut tree = TreeChanges::whole("default".to_owned(), added);
    tree.removed = removed.to_vec();
    let mut changes = TableChanges::whole(at_micros, vec![tree]);
    changes.is_whole = is_whole;
    Item::Tables(Box::new(changes))
}

#[test]
fn readers_receive_each_line_once_and_wait_for_the_next() {
    let feed = Feed::default();
    feed.push(&"one");
    let first = feed.lines(None, NOW).unwrap();
    assert!(first.is_reset && first.texts.len() == 1 && first.next == 1);
    let none = Lines { is_reset: false, texts: Vec::new(), next: 1 };
    assert_eq!(feed.lines(Some(1), NOW).unwrap(), none);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| feed.lines(Some(1), Duration::from_secs(60)).unwrap());
        feed.push(&"two");
        let two = waits.join().unwrap();
        assert_eq!((two.is_reset, &*two.texts[0], two.next), (false, "\"two\"", 2));
    });
    // A number of another feed, whose lines this one does not have.
    assert!(feed.lines(Some(7), NOW).unwrap().is_reset);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| feed.lines(Some(2), Duration::from_secs(60)));
        feed.end();
        assert_eq!(waits.join().unwrap(), None);
    });
}

#[test]
fn a_long_feed_comes_in_parts() {
    let feed = Feed::default();
    (0..300).for_each(|number| feed.push(&number));
    let first = feed.lines(None, NOW).unwrap();
    assert_eq!((first.texts.len(), first.next), (LINES_MAX, 256));
    let second = feed.lines(Some(first.next), NOW).unwrap();
    assert_eq!((second.is_reset, &*second.texts[0], second.next), (false, "256", 300));
}

#[test]
fn dropped_lines_leave_their_tables_behind() {
    let (feed, begun) = (Feed::default(), Instant::now());
    feed.push_at(begun, &Note::connected("db", None, None));
    feed.push_at(begun, &changes(5, true, &[], &[(1, 0), (2, 0)]));
    feed.push_at(begun, &changes(6, false, &[1, 2], &[(2, 1), (3, 1)]));
    let later = begun + KEPT_FOR + Duration::from_secs(1);
    feed.push_at(later, &changes(7, false, &[3], &[]));
    let lines = feed.lines(None, NOW).unwrap();
    assert_eq!((lines.is_reset, lines.texts.len(), lines.next), (true, 3, 4));
    assert!(lines.texts[0].starts_with(r#"{"item":"connected""#), "{lines:?}");
    let base: Item = serde_json::from_str(&lines.texts[1]).unwrap();
    assert_eq!(base, changes(6, true, &[], &[(2, 1), (3, 1)]));
    // Another process: what was known before does not count.
    feed.push_at(later + KEPT_FOR * 2, &changes(8, true, &[], &[(9, 0)]));
    feed.push_at(later + KEPT_FOR * 4, &"last");
    let lines = feed.lines(None, NOW).unwrap();
    let base: Item = serde_json::from_str(&lines.texts[1]).unwrap();
    assert_eq!(base, changes(8, true, &[], &[(9, 0)]));
}

#[test]
fn dropped_lines_leave_the_inputs_of_their_jobs_behind() {
    let (feed, begun) = (Feed::default(), Instant::now());
    let job = |id: u64| json!({"id": id, "inputs": [id], "output_level": 1});
    let jobs = |ids: std::ops::Range<u64>, is_whole: bool| {
        let jobs: Vec<_> = ids.map(job).collect();
        let item = json!({"item": "tables", "at_micros": 5, "is_whole": is_whole, "trees": [], "jobs": jobs});
        serde_json::from_value::<Item>(item).unwrap()
    };
    feed.push_at(begun, &jobs(0..3, true));
    feed.push_at(begun, &jobs(3..300, false));
    feed.push_at(begun + KEPT_FOR * 2, &"last");
    let known = |feed: &Feed| -> Vec<serde_json::Value> {
        let base = serde_json::from_str(&feed.lines(None, NOW).unwrap().texts[0]).unwrap();
        let serde_json::Value::Object(mut base) = base else { panic!("{base}") };
        serde_json::from_value(base.remove("jobs").unwrap()).unwrap()
    };
    // The newest ones.
    assert_eq!(known(&feed), (300 - JOBS_MAX as u64..300).map(job).collect::<Vec<_>>());
    // Another process has other jobs.
    feed.push_at(begun + KEPT_FOR * 4, &jobs(7..8, true));
    feed.push_at(begun + KEPT_FOR * 6, &"last");
    assert_eq!(known(&feed), [job(7)]);
}

#[test]
fn the_bytes_of_a_feed_are_bounded() {
    let feed = Feed::default();
    let long = "x".repeat(BYTES_MAX / 4);
    (0..9).for_each(|_| feed.push(&long));
    let state = feed.lock();
    assert!(state.bytes <= BYTES_MAX && state.lines.len() == 3, "{}", state.bytes);
    assert_eq!(state.bytes, state.lines.iter().map(|line| line.text.len()).sum::<usize>());
}

#[test]
fn a_recording_has_all_lines_and_replaces_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("incident.jsonl");
    let feed = Feed::default();
    feed.record_to(&path, true).unwrap();
    feed.push(&Note::connected("db", None, None));
    feed.push(&Note::Disconnected { at_micros: 1, text: "it has ended" });
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(
        text.ends_with("{\"item\":\"disconnected\",\"at_micros\":1,\"text\":\"it has ended\"}\n"),
        "{text}"
    );
    assert_eq!(feed.record_to(&path, true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}

/// Every write to this device fails.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_a_feed_that_is_for_a_recording_alone() {
    for is_for_record in [true, false] {
        let feed = Feed::default();
        feed.lock().record = Some(File::options().write(true).open("/dev/full").unwrap());
        feed.lock().is_for_record = is_for_record;
        feed.push(&1);
        assert_eq!(feed.has_ended(), is_for_record);
        let error = feed.take_record_error().map(|error| error.kind());
        assert_eq!(error, is_for_record.then_some(io::ErrorKind::StorageFull));
        // A page goes on without its recording.
        feed.push(&2);
        assert_eq!(feed.lock().lines.len(), 2);
    }
}
