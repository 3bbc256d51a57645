//! Neither long commands nor waiting writers block an event loop's other connections.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::{Clock, Event, Options, SystemClock};
use terrane_server::Config;
use terrane_testkit::StopOnDrop;

use crate::commands::script;
use crate::support::{Client, TestServer, encoded};

fn one_worker() -> Config {
    Config { workers: 1, ..Config::default() }
}

/// A clock that stops the threads of long commands until its flag is set.
///
/// A test that closes it opens it in a guard: a server waits for these threads when it is dropped, so
/// that a failed assertion would otherwise hang instead of being reported.
#[derive(Debug)]
struct Gate(AtomicBool);

impl Gate {
    fn open() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }
}

impl Clock for Gate {
    fn now_micros(&self) -> u64 {
        let is_long = std::thread::current().name() == Some("terrane-serve-long");
        while is_long && !self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        SystemClock.now_micros()
    }
}

/// Options with a design whose memtables fill soon, and a flag that lets flushes continue.
fn with_blocked_flushes() -> (Options, Arc<AtomicBool>) {
    let may_flush = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&may_flush);
    let design = "tiering L0=4 T=4; buffers=2; buffer=64KiB; table=64KiB".parse().unwrap();
    let options = Options::new().design(design).on_event(move |event| {
        while matches!(event.event, Event::FlushBegun { .. }) && !flag.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (options, may_flush)
}

#[test]
fn long_reads_run_beside_other_connections() {
    let gate = Gate::open();
    let server = TestServer::with(&Options::new().clock(Arc::clone(&gate) as _), one_worker());
    let _opens = StopOnDrop(&gate.0);
    let mut other = server.client();
    let count = 12_000;
    let set = |number: usize| encoded(&["set", &format!("key:{number:05}"), "1", "ex", "1000"]);
    other.send(&(0..count).flat_map(set).collect::<Vec<u8>>());
    (0..count).for_each(|_| assert_eq!(other.reply(), "OK"));
    let mut hset = vec!["hset".to_owned(), "h".to_owned()];
    hset.extend((0..count).flat_map(|field| [format!("f{field:05}"), field.to_string()]));
    assert_eq!(other.call(&hset), count.to_string());
    other.run("expire h 1000");
    other.run("set bits x ex 1000");
    other.run("setbit bits 50000000 1");
    gate.0.store(false, Ordering::SeqCst);
    // More commands than threads: the others wait for their turn, and later requests for their replies.
    let commands = ["keys *", "dbsize", "hgetall h", "hkeys h", "hvals h", "hrandfield h 20000"];
    let commands = [&commands[..], &["bitcount bits", "bitpos bits 1 8"]].concat();
    let mut clients: Vec<_> = commands.iter().map(|_| server.client()).collect();
    for (client, command) in clients.iter_mut().zip(&commands) {
        client.send(format!("{command}\r\nget key:00001\r\n").as_bytes());
        assert_eq!(other.run("get key:00000"), "1", "while `{command}` runs");
    }
    for (client, command) in clients.iter_mut().zip(&commands) {
        assert_eq!(client.no_reply(), ErrorKind::WouldBlock, "`{command}` waits for the clock");
    }
    gate.0.store(true, Ordering::SeqCst);
    let replies: Vec<String> = clients.iter_mut().map(Client::reply).collect();
    let words: Vec<usize> = replies.iter().map(|reply| reply.split(' ').count()).collect();
    assert_eq!(words[..6], [count + 2, 1, 2 * count, count, count, count]);
    assert_eq!((&*replies[1], &*replies[6], &*replies[7]), ("12002", "5", "50000000"));
    clients.iter_mut().for_each(|client| assert_eq!(client.reply(), "1"));
    // In a transaction they run in the event loop.
    script(
        &mut other,
        "multi => OK
         bitcount bits => QUEUED
         dbsize => QUEUED
         exec => [5 12002]",
    );
    let info = other.run("info stats");
    assert!(info.contains("total_error_replies:0"), "{info}");
}

/// Sets values with an expiry time, so that every lookup asks the clock.
fn set_long_values(client: &mut Client) {
    for key in ["bits", "text", "old", "older", "moved"] {
        assert_eq!(client.call(&["set", key, &"x".repeat(5 << 20), "ex", "1000"]), "OK");
    }
    let mut hset = vec!["hset".to_owned(), "h".to_owned()];
    hset.extend((0..3000).flat_map(|field| [format!("f{field:05}"), field.to_string()]));
    assert_eq!(client.call(&hset), "3000");
    client.run("expire h 1000");
}

/// Opens a connection, and sends commands given as words separated by spaces.
fn send_pipeline<S: AsRef<str>>(server: &TestServer, commands: &[S]) -> Client {
    let mut client = server.client();
    let words = |command: &S| encoded(&command.as_ref().split(' ').collect::<Vec<_>>());
    client.send(&commands.iter().flat_map(words).collect::<Vec<u8>>());
    client
}

/// Commands that run in the threads of long commands, on the keys of [`set_long_values`].
const LONG_WRITES: [&str; 10] = [
    "bitop not target bits",
    "copy bits copied",
    "append text more",
    "rename old new",
    "setbit bits 7 1",
    "setrange text 0 more",
    "bitfield bits set u8 0 255",
    "move moved 1",
    "copy h copied:h",
    "renamenx older newer",
];

#[test]
fn long_writes_run_beside_other_connections() {
    let gate = Gate::open();
    let server = TestServer::with(&Options::new().clock(Arc::clone(&gate) as _), one_worker());
    let _opens = StopOnDrop(&gate.0);
    let mut other = server.client();
    set_long_values(&mut other);
    gate.0.store(false, Ordering::SeqCst);
    // More commands than threads. Later requests of a connection wait for its reply.
    let mut clients: Vec<_> = LONG_WRITES.iter().map(|_| server.client()).collect();
    for (client, command) in clients.iter_mut().zip(&LONG_WRITES) {
        client.send(format!("{command}\r\necho done\r\n").as_bytes());
        assert_eq!(other.run("get none"), "(nil)", "while `{command}` runs");
    }
    for (client, command) in clients.iter_mut().zip(&LONG_WRITES) {
        assert_eq!(client.no_reply(), ErrorKind::WouldBlock, "`{command}` waits for the clock");
    }
    // Writes to these keys wait, as do watches of them, and their event loop serves others. A key has the
    // same lock in all databases.
    let waiting =
        [("", "persist bits"), ("", "watch bits"), ("select 9", "flushdb"), ("multi", "exec")];
    let mut writers: Vec<_> = waiting.iter().map(|_| server.client()).collect();
    for (client, (first, command)) in writers.iter_mut().zip(&waiting) {
        if !first.is_empty() {
            assert_eq!(client.run(first), "OK");
        }
        if *command == "exec" {
            assert_eq!(client.run("persist bits"), "QUEUED");
        }
        client.send_command(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(client.no_reply(), ErrorKind::WouldBlock, "`{command}` waits for its keys");
        assert_eq!(other.run("ping"), "PONG");
    }
    let mut pipeline = send_pipeline(&server, &["incr bits", "set piped 1", "get piped"]);
    assert_eq!(pipeline.no_reply(), ErrorKind::WouldBlock);
    // Keys whose locks are free can be written; a few may share a lock with the keys above.
    let is_written = |number: usize| {
        send_pipeline(&server, &[format!("set free:{number} 1")]).no_reply() == ErrorKind::Other
    };
    assert!((0..5).any(is_written));
    gate.0.store(true, Ordering::SeqCst);
    for (client, command) in clients.iter_mut().zip(&LONG_WRITES) {
        let reply = client.reply();
        assert!(!reply.starts_with('-'), "{command}: {reply}");
        assert_eq!(client.reply(), "done");
    }
    assert!(pipeline.reply().starts_with("-ERR value is not an integer"));
    assert_eq!([pipeline.reply(), pipeline.reply()], ["OK", "1"]);
    let replies: Vec<String> = writers.iter_mut().map(Client::reply).collect();
    assert_eq!(replies[1..3], ["OK", "OK"]);
    assert!(replies[3].starts_with('['), "{replies:?}");
    // In a transaction they run in the event loop.
    script(
        &mut other,
        "strlen target => 5242880
         strlen copied => 5242880
         strlen text => 5242884
         exists old older moved => 0
         hlen copied:h => 3000
         select 1 => OK
         strlen moved => 5242880
         multi => OK
         copy moved again => QUEUED
         bitop not again moved => QUEUED
         exec => [1 5242880]",
    );
}

#[test]
fn the_end_answers_a_command_in_a_thread_of_its_own() {
    let gate = Gate::open();
    let mut server = TestServer::with(&Options::new().clock(Arc::clone(&gate) as _), one_worker());
    let _opens = StopOnDrop(&gate.0);
    let mut client = server.client();
    assert_eq!(client.call(&["set", "a", &"x".repeat(5 << 20), "ex", "1000"]), "OK");
    gate.0.store(false, Ordering::SeqCst);
    client.send(b"append a x\r\necho done\r\n");
    assert_eq!(client.no_reply(), ErrorKind::WouldBlock);
    let opener = Arc::clone(&gate);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        opener.0.store(true, Ordering::SeqCst);
    });
    server.end();
    opener.join().unwrap();
    assert_eq!((client.reply(), client.reply()), ("5242881".to_owned(), "done".to_owned()));
}

#[test]
fn a_client_that_leaves_cancels_its_maintenance() {
    let (options, may_flush) = with_blocked_flushes();
    let server = TestServer::with(&options, one_worker());
    let _unblocks = StopOnDrop(&may_flush);
    assert_eq!(server.client().run("set a 1"), "OK");
    let busy = "-ERR too many maintenance commands are running; try again when one has ended";
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send_command(&["terrane.compact"]);
        assert_eq!(client.no_reply(), ErrorKind::WouldBlock);
    }
    assert_eq!(server.client().run("save"), busy);
    drop(clients);
    let begun = Instant::now();
    loop {
        let mut client = server.client();
        client.send_command(&["save"]);
        if client.no_reply() == ErrorKind::WouldBlock {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing was cancelled");
    }
    may_flush.store(true, Ordering::SeqCst);
    assert_eq!(server.client().run("get a"), "1");
}

#[test]
fn writers_that_are_stalled_keep_nobody_from_reading() {
    let (options, may_flush) = with_blocked_flushes();
    let server = TestServer::with(&options, one_worker());
    let _unblocks = StopOnDrop(&may_flush);
    let (mut writer, mut other) = (server.client(), server.client());
    let value = "x".repeat(400);
    let set = |number: usize| encoded(&["set", &format!("key:{number}"), &value]);
    writer.send(&(0..2000).flat_map(set).collect::<Vec<u8>>());
    writer.send_command(&["get", "key:0"]);
    let stalled = Instant::now();
    while !server.db.default_keyspace().is_stalled() {
        assert!(stalled.elapsed() < Duration::from_secs(20), "{}", server.db.stats());
    }
    // Writes of several connections and parts of requests wait, in their order.
    let mut writers: Vec<_> = (0..3).map(|_| server.client()).collect();
    for (number, writer) in writers.iter_mut().enumerate() {
        let count = format!("incr count:{number}\r\n");
        writer.send(&encoded(&["incr", &format!("count:{number}")]).repeat(2));
        writer.send(format!("{count}*2\r\n$4\r\nin").as_bytes());
    }
    // One thread serves all of them.
    for _ in 0..50 {
        assert_eq!(other.run("get key:0"), value);
    }
    assert!(server.db.default_keyspace().is_stalled());
    // The writers do not wait in the engine, and yet it reports their stall and counts their time.
    let is_reported = |is_wanted: fn(&Event) -> bool| {
        server.db.events().iter().any(|logged| is_wanted(&logged.event))
    };
    assert!(is_reported(|event| matches!(event, Event::WritesStalled(_))));
    let (lost, most) = (server.db.stats().stalls.total_micros(), stalled.elapsed().as_micros());
    // Four clients, whatever the number of their commands.
    assert!(lost >= 5000 && u128::from(lost) <= 4 * (most + 5000), "{lost} of {most} us");
    other.send(b"multi\r\nset a 1\r\nget key:1\r\nexec\r\n");
    ["OK", "QUEUED", "QUEUED"].iter().for_each(|expected| assert_eq!(other.reply(), *expected));
    let mut third = server.client();
    assert_eq!(third.run("exists key:0 a"), "1");
    may_flush.store(true, Ordering::SeqCst);
    assert_eq!(other.reply(), format!("[OK {value}]"));
    (0..2000).for_each(|_| assert_eq!(writer.reply(), "OK"));
    assert_eq!(writer.reply(), value);
    for (number, writer) in writers.iter_mut().enumerate() {
        writer.send(format!("cr\r\n$7\r\ncount:{number}\r\n").as_bytes());
        (1..=4).for_each(|count| assert_eq!(writer.reply(), count.to_string()));
    }
    assert_eq!(server.db.iter().unwrap().count(), 2004);
    assert!(is_reported(|event| matches!(event, Event::WritesResumed { .. })));
}

#[test]
fn the_end_answers_writers_that_are_stalled() {
    let (options, may_flush) = with_blocked_flushes();
    let mut server = TestServer::with(&options, one_worker());
    let _unblocks = StopOnDrop(&may_flush);
    let mut number = 0;
    while !server.db.default_keyspace().is_stalled() {
        server.db.put(format!("key:{number}"), "x".repeat(400)).unwrap();
        number += 1;
    }
    let mut writer = server.client();
    writer.send(b"set a 1\r\nincr a\r\n");
    assert_eq!(writer.no_reply(), ErrorKind::WouldBlock);
    let flag = Arc::clone(&may_flush);
    let unblock = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        flag.store(true, Ordering::SeqCst);
    });
    server.end();
    unblock.join().unwrap();
    assert_eq!((writer.reply(), writer.reply()), ("OK".to_owned(), "2".to_owned()));
}

#[test]
fn writers_that_are_delayed_keep_nobody_from_reading() {
    let design = "leveling; max-rate=200".parse().unwrap();
    let server = TestServer::with(&Options::new().design(design), one_worker());
    let (mut writer, mut other) = (server.client(), server.client());
    let began = Instant::now();
    // Single writes, a group, and a transaction, in which each operation counts.
    writer.send(b"setex a 100 1\r\nappend a 2\r\nmulti\r\nset b 1\r\nset c 1\r\nexec\r\n");
    writer.send(&(0..200).flat_map(|_| encoded(&["incr", "n"])).collect::<Vec<u8>>());
    (0..20).for_each(|_| assert!(matches!(&*other.run("get none"), "(nil)")));
    // One thread serves both.
    let read = began.elapsed();
    (0..6).for_each(|_| assert!(!writer.reply().starts_with('-')));
    (1..=200).for_each(|number| assert_eq!(writer.reply(), number.to_string()));
    let written = began.elapsed();
    // The last group is not delayed, but later groups would be.
    assert!(written >= Duration::from_millis(500), "{written:?}");
    assert!(read < written / 2, "reads took {read:?} of {written:?}");
    assert!(server.db.stats().stalls.delay_micros > 500_000);
}
