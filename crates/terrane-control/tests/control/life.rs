//! The processes that serve, and their remains.

use std::thread;
use std::time::Duration;

use terrane::{Db, ErrorKind, Options};
use terrane_control::{Client, ControlSocket, Request};

use crate::support::{Process, Raw, served};

#[test]
fn a_socket_is_removed_when_it_is_dropped() {
    let mut served = served();
    let path = served.dir.path().join("control.sock");
    assert!(path.exists());
    drop(served.control.take());
    assert!(!path.exists());
    assert!(Client::connect(served.dir.path()).unwrap().is_none());
    // The socket's handle is gone, too, so the database can be opened again.
    served.db = Db::open(tempfile::tempdir().unwrap().path()).unwrap();
    drop(Db::open(served.dir.path()).unwrap());
}

#[test]
fn a_database_that_is_closed_tells_its_clients() {
    let served = served();
    let mut idle = Raw::connect(served.dir.path());
    let mut top = Raw::connect(served.dir.path());
    top.send(r#"{"protocol":1,"request":"top","interval_millis":100}"#);
    assert!(top.line().contains(r#""item":"sample""#));
    served.db.clone().close().unwrap();
    for raw in [&mut idle, &mut top] {
        let mut line = raw.line();
        while line.contains(r#""message":"item""#) {
            line = raw.line();
        }
        assert!(line.contains(r#""kind":"closed""#) && line.contains("has closed it"), "{line}");
        assert_eq!(raw.line(), "");
    }
}

#[test]
fn dropping_the_socket_ends_running_requests() {
    let mut served = served();
    served.make_slow();
    let mut raw = Raw::connect(served.dir.path());
    raw.send(r#"{"protocol":1,"request":"compact"}"#);
    served.wait_for_jobs(1);
    drop(served.control.take());
    let mut line = raw.line();
    while line.contains(r#""message":"progress""#) {
        line = raw.line();
    }
    assert!(line.contains(r#""kind":"closed""#), "{line}");
    served.wait_for_jobs(0);
}

#[test]
fn only_a_process_that_may_write_serves_and_only_once() {
    let served = served();
    let read_only = Db::open_read_only(served.dir.path()).unwrap();
    let error = ControlSocket::serve(&read_only).unwrap_err().to_string();
    assert!(error.contains("read-only"), "{error}");
    let error = ControlSocket::serve(&served.db).unwrap_err().to_string();
    assert!(error.contains("already"), "{error}");
    // The socket is still the first one.
    assert!(served.ask(&Request::Keyspaces).is_ok());
    served.db.clone().close().unwrap();
    let other = Options::new().open(tempfile::tempdir().unwrap().path()).unwrap();
    other.clone().close().unwrap();
    assert!(ControlSocket::serve(&other).unwrap_err().to_string().contains("closed"));
}

#[test]
fn a_process_that_is_killed_leaves_a_socket_that_the_next_one_replaces() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let process = Process::hold(&dir);
    let mut client = Client::connect(&dir).unwrap().unwrap();
    let pid = process.child.id();
    assert_eq!(client.info().pid, pid);
    let asking = thread::spawn(move || {
        client.ask(
            &Request::Top { interval_millis: 100, count: None, details: false },
            &mut Vec::new(),
        )
    });
    thread::sleep(Duration::from_millis(300));
    process.kill();
    let failure = asking.join().unwrap().unwrap_err();
    assert_eq!(failure.kind(), Some(ErrorKind::Closed), "{failure}");
    assert!(failure.text.contains(&format!("lost process {pid}")), "{failure}");
    assert!(dir.join("control.sock").exists());
    assert!(Client::connect(&dir).unwrap().is_none());
    let db = Db::open(&dir).unwrap();
    assert!(db.iter().unwrap().count() > 0);
    let _control = ControlSocket::serve(&db).unwrap();
    let client = Client::connect(&dir).unwrap().unwrap();
    assert_eq!(client.info().pid, std::process::id());
}

#[test]
fn a_path_that_is_too_long_for_an_address_works_on_linux() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("a".repeat(100)).join("b".repeat(100));
    let db = Db::open(&dir).unwrap();
    let served = ControlSocket::serve(&db);
    if cfg!(target_os = "linux") {
        let control = served.unwrap();
        let mut client = Client::connect(&dir).unwrap().unwrap();
        client.ask(&Request::Keyspaces, &mut Vec::new()).unwrap();
        drop(control);
        assert!(!dir.join("control.sock").exists());
    } else {
        assert!(served.unwrap_err().to_string().contains("shorter path"));
    }
}

/// The directory of an open database was renamed, and the socket was created in the directory that had
/// its former name.
#[cfg(target_os = "linux")]
#[test]
fn a_socket_is_in_the_directory_in_which_the_database_was_opened() {
    let home = tempfile::tempdir().unwrap();
    let (old, new) = (home.path().join("db"), home.path().join("moved"));
    let db = Db::open(&old).unwrap();
    std::fs::rename(&old, &new).unwrap();
    let other = Db::open(&old).unwrap();
    let control = ControlSocket::serve(&db).unwrap();
    assert!(!old.join("control.sock").exists());
    let other_control = ControlSocket::serve(&other).unwrap();
    db.keyspace("moved", terrane::KeyspaceOptions::new()).unwrap();
    for (dir, keyspaces) in [(&new, 2), (&old, 1)] {
        let mut client = Client::connect(dir).unwrap().unwrap();
        let reply = client.ask(&Request::Keyspaces, &mut Vec::new()).unwrap();
        let terrane_control::Reply::Keyspaces { keyspaces: found } = reply else { panic!() };
        assert_eq!(found.len(), keyspaces);
    }
    drop(control);
    assert!(!new.join("control.sock").exists() && old.join("control.sock").exists());
    drop(other_control);
}

#[test]
fn a_directory_without_a_database_has_no_server() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Client::connect(dir.path()).unwrap().is_none());
    assert!(Client::connect(dir.path().join("none")).unwrap().is_none());
    std::fs::write(dir.path().join("control.sock"), "not a socket").unwrap();
    assert!(Client::connect(dir.path()).unwrap().is_none());
    // A file of this name does not prevent serving.
    let db = Db::open(dir.path()).unwrap();
    let _control = ControlSocket::serve(&db).unwrap();
    assert!(Client::connect(dir.path()).unwrap().is_some());
}
