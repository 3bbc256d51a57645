//! Progress, cancelling, and clients that vanish.

use std::thread;
use std::time::Duration;

use terrane::{Db, ErrorKind, inspect};
use terrane_control::{Reply, Request};

use crate::support::{CancelAfter, Process, Raw, served, wait};

const COMPACT: Request = Request::Compact { keyspace: None, from: None, to: None };

#[test]
fn a_compaction_reports_progress_and_can_be_cancelled() {
    let served = served();
    served.make_slow();
    let mut watch = CancelAfter { reports: 3, ..CancelAfter::default() };
    let failure = served.client().ask(&COMPACT, &mut watch).unwrap_err();
    assert_eq!(failure.kind(), Some(ErrorKind::Cancelled), "{failure}");
    let last = watch.seen.last().unwrap();
    assert!(last.what == "compacting" && last.total_bytes > 1 << 20, "{last:?}");
    assert!(last.jobs[0].what.contains("L0"), "{last:?}");
    served.wait_for_jobs(0);
    assert_eq!(served.db.tree().shape.run_count(), 3);
}

#[test]
fn the_connection_serves_on_after_a_cancelled_request() {
    let served = served();
    served.make_slow();
    let mut client = served.client();
    let mut watch = CancelAfter { reports: 1, ..CancelAfter::default() };
    client.ask(&COMPACT, &mut watch).unwrap_err();
    assert!(matches!(
        client.ask(&Request::Keyspaces, &mut Vec::new()),
        Ok(Reply::Keyspaces { .. })
    ));
}

#[test]
fn a_client_that_disconnects_ends_its_compaction() {
    let served = served();
    served.make_slow();
    let mut raw = Raw::connect(served.dir.path());
    raw.send(r#"{"protocol":1,"request":"compact"}"#);
    served.wait_for_jobs(1);
    drop(raw);
    served.wait_for_jobs(0);
    assert_eq!(served.db.tree().shape.run_count(), 3);
}

#[test]
fn a_client_that_is_killed_ends_its_compaction() {
    let served = served();
    served.make_slow();
    let process = Process::begin("compact", served.dir.path());
    served.wait_for_jobs(1);
    process.kill();
    served.wait_for_jobs(0);
    assert_eq!(served.db.tree().shape.run_count(), 3);
}

#[test]
fn requests_that_come_meanwhile_wait_for_their_turn() {
    let served = served();
    served.make_slow();
    let mut raw = Raw::connect(served.dir.path());
    raw.send(r#"{"protocol":1,"request":"compact"}"#);
    served.wait_for_jobs(1);
    raw.send(r#"{"protocol":1,"request":"keyspaces"}"#);
    raw.send(r#"{"protocol":1,"request":"cancel"}"#);
    let mut line = raw.line();
    while line.contains(r#""message":"progress""#) {
        line = raw.line();
    }
    assert!(line.contains(r#""kind":"cancelled""#), "{line}");
    line = raw.line();
    assert!(line.contains(r#""reply":"keyspaces""#), "{line}");
}

#[test]
fn a_cancelled_change_of_design_restores_the_design_and_a_lost_one_keeps_it() {
    let served = served();
    served.make_slow();
    let before = served.db.design();
    let request = Request::SetDesign {
        keyspace: "default".into(),
        design: Some("leveling T=2 L0=2; buffer=1MiB".into()),
        converge: true,
    };
    let mut watch = CancelAfter { reports: 2, ..CancelAfter::default() };
    let reply = served.client().ask(&request, &mut watch).unwrap();
    assert!(matches!(reply, Reply::DesignSet { is_cancelled: true, .. }), "{reply:?}");
    assert_eq!(served.db.design(), before);
    assert!(watch.seen[0].total_bytes > 1 << 20, "{watch:?}");
    let mut raw = Raw::connect(served.dir.path());
    let text = serde_json::to_string(&request).unwrap();
    raw.send(&text.replacen('{', r#"{"protocol":1,"#, 1));
    wait(|| served.db.design() != before);
    drop(raw);
    thread::sleep(Duration::from_millis(300));
    assert_ne!(served.db.design(), before);
}

#[test]
fn a_checkpoint_under_load_opens_and_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let process = Process::hold(&dir);
    for number in 0..3 {
        thread::sleep(Duration::from_millis(100));
        let copy = home.path().join(format!("copy{number}"));
        let mut client = terrane_control::Client::connect(&dir).unwrap().unwrap();
        client.ask(&Request::Checkpoint { dir: copy.clone() }, &mut Vec::new()).unwrap();
        assert!(inspect::verify(&copy, &mut |_| {}).unwrap().problems.is_empty());
        assert!(Db::open(&copy).unwrap().iter().unwrap().count() > 0);
    }
    process.end();
}
