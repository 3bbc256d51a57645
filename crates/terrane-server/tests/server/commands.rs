//! Every command, as scripts of commands and their replies.

use std::time::{Duration, Instant};

use crate::support::{Client, TestServer};

/// Runs a script of lines `command => reply`; `*` is any reply.
pub(crate) fn script(client: &mut Client, text: &str) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (command, expected) = line.split_once(" => ").unwrap_or((line, "*"));
        let found = client.run(command);
        if expected != "*" {
            assert_eq!(found, expected, "{command}");
        }
    }
}

#[test]
fn strings() {
    let server = TestServer::start();
    script(
        &mut server.client(),
        "get a => (nil)
         set a 1 => OK
         get a => 1
         SET a 2 NX => (nil)
         set a 2 xx => OK
         set b 2 xx => (nil)
         set a 3 get => 2
         set a 4 nx get => 3
         get a => 3
         set n 1 nx get => (nil)
         set a 1 nx xx => -ERR syntax error
         set a 1 ex 0 => -ERR invalid expire time in 'set' command
         set a 1 ex x => -ERR value is not an integer or out of range
         set a 1 ex 10 px 10 => -ERR syntax error
         set a 1 foo => -ERR syntax error
         set a 1 pxat 1 => OK
         get a => (nil)
         setnx a 5 => 1
         setnx a 6 => 0
         getset a 7 => 5
         getdel a => 7
         getdel a => (nil)
         append a hello => 5
         append a !! => 7
         strlen a => 7
         strlen none => 0
         getrange a 1 -3 => ello
         substr a 0 0 => h
         setrange a 9 x => 10
         setrange none 5  => 0
         setrange a -1 x => -ERR offset is out of range
         mset x 1 y 2 x 3 => OK
         mset x 1 y => -ERR wrong number of arguments for 'mset' command
         mget x y z => [3 2 (nil)]
         msetnx y 1 z 1 => 0
         msetnx z 1 w 1 => 1
         get => -ERR wrong number of arguments for 'get' command",
    );
    let unknown = server.client().run("nonsense a b");
    assert_eq!(unknown, "-ERR unknown command 'nonsense', with args beginning with: 'a' 'b' ");
}

#[test]
fn numbers() {
    let server = TestServer::start();
    script(
        &mut server.client(),
        "incr n => 1
         incrby n 41 => 42
         decr n => 41
         decrby n 50 => -9
         get n => -9
         set n 9223372036854775807 => OK
         incr n => -ERR increment or decrement would overflow
         decrby n -9223372036854775808 => -ERR decrement would overflow
         set n abc => OK
         incr n => -ERR value is not an integer or out of range
         set n 10.50 => OK
         incrbyfloat n 0.1 => 10.6
         incrbyfloat n -5 => 5.6
         incrbyfloat n inf => -ERR value is not a valid float
         set m 5.0e3 => OK
         incrbyfloat m 200 => 5200",
    );
}

#[test]
fn expiry_of_values() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "set a 1 ex 100 => OK
         ttl a => 100
         set a 2 keepttl => OK
         ttl a => 100
         incr a => 3
         ttl a => 100
         append a 0 => 2
         ttl a => 100
         persist a => 1
         persist a => 0
         ttl a => -1
         ttl none => -2
         expire a 50 xx => 0
         expire a 50 nx => 1
         expire a 40 gt => 0
         expire a 60 gt => 1
         expire a 70 lt => 0
         expire a 50 lt => 1
         ttl a => 50
         expire a 5 nx xx => -ERR NX and XX, GT or LT options at the same time are not compatible
         pexpireat a 33177117420000 => 1
         pexpiretime a => 33177117420000
         expiretime a => 33177117420
         expireat a 33177117420 => 1
         expire none 10 => 0
         getex a ex 10 => 30
         ttl a => 10
         getex a persist => 30
         ttl a => -1
         expire a -1 => 1
         exists a => 0
         setex b 10 x => OK
         psetex b 15 x => OK
         set b y => OK
         ttl b => -1
         psetex c 15 x => OK",
    );
    let pttl: i64 = client.run("pttl c").parse().unwrap();
    assert!(pttl <= 15, "{pttl}");
    std::thread::sleep(Duration::from_millis(20));
    script(&mut client, "get c => (nil)\n exists c => 0\n pttl c => -2");
}

#[test]
fn keys_and_databases() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "mset a 1 b 2 c 3 => OK
         del a a none => 1
         unlink b => 1
         exists c c none => 2
         touch c none => 1
         type c => string
         type none => none
         rename none x => -ERR no such key
         set c 3 ex 100 => OK
         rename c d => OK
         ttl d => 100
         renamenx d d => 0
         set e 5 => OK
         renamenx e d => 0
         renamenx e f => 1
         copy d f => 0
         copy d f replace => 1
         ttl f => 100
         copy d d => -ERR source and destination objects are the same
         copy d g db 3 => 1
         dbsize => 2
         move f 3 => 1
         move f 3 => 0
         move d 99 => -ERR DB index is out of range
         select 3 => OK
         dbsize => 2
         keys * => [f g]
         randomkey => *
         flushdb => OK
         randomkey => (nil)
         select 0 => OK
         dbsize => 1
         select 16 => -ERR DB index is out of range
         select x => -ERR value is not an integer or out of range
         flushall async => OK
         dbsize => 0
         flushall now => -ERR syntax error
         object encoding none => (nil)
         set s text => OK
         object encoding s => embstr
         object refcount s => 1
         memory usage s => 21
         object foo => -ERR unknown subcommand 'foo'. Try OBJECT HELP.
         object encoding => -ERR wrong number of arguments for 'object|encoding' command",
    );
    // The program that has the database open sees the same keys.
    assert_eq!(server.db.get("s").unwrap().unwrap(), "text");
    client.run("select 5");
    assert!(!server.db.keyspaces().contains(&"db5".to_owned()), "nothing was written to it");
    client.run("set a 1");
    let keyspace = server.db.keyspace("db5", terrane::KeyspaceOptions::new()).unwrap();
    assert_eq!(keyspace.get("a").unwrap().unwrap(), "1");
}

#[test]
fn integers_in_bits() {
    let server = TestServer::start();
    let bad_type = "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
    let bad_offset = "-ERR bit offset is not an integer or out of range";
    script(
        &mut server.client(),
        &format!(
            "bitfield k get u8 0 => [0]
             exists k => 0
             bitfield k => []
             bitfield k set u8 0 255 get u4 4 get i4 4 set i8 #1 -128 get u8 #1 => [0 15 -1 0 128]
             strlen k => 2
             expire k 100 => 1
             bitfield k incrby u2 100 1 overflow sat incrby u2 102 1 => [1 1]
             bitfield k incrby u2 100 1 overflow sat incrby u2 102 1 => [2 2]
             bitfield k incrby u2 100 1 overflow sat incrby u2 102 1 => [3 3]
             bitfield k incrby u2 100 1 overflow sat incrby u2 102 1 => [0 3]
             bitfield k overflow fail incrby u2 102 1 get u2 102 => [(nil) 3]
             bitfield k overflow fail set u8 0 256 overflow sat set i8 0 1000 get i8 0 => [(nil) -1 127]
             bitfield k set u8 0 -1 get u8 0 => [127 255]
             bitfield k set i64 #0 -9223372036854775808 incrby i64 #0 -1 => *
             ttl k => 100
             bitfield_ro k get u8 0 get u63 1000000 => [127 0]
             bitfield_ro k set u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand
             bitfield k get u64 0 => {bad_type}
             bitfield k get i65 0 => {bad_type}
             bitfield k get u8 -1 => {bad_offset}
             bitfield k get u8 #4294967296 => {bad_offset}
             bitfield k get u8 => -ERR syntax error
             bitfield k mul u8 0 1 => -ERR syntax error
             bitfield k overflow never get u8 0 => -ERR Invalid OVERFLOW type specified
             bitfield k set u8 0 x => -ERR value is not an integer or out of range
             hset h a 1 => 1
             bitfield h get u8 0 => *"
        ),
    );
}

#[test]
fn bits() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "setbit b 7 1 => 0
         setbit b 7 1 => 1
         getbit b 7 => 1
         getbit b 100 => 0
         setbit b 8 1 => 0
         strlen b => 2
         bitcount b => 2
         bitcount b 1 -1 => 1
         bitcount b 7 8 bit => 2
         bitcount b 0 => -ERR syntax error
         bitpos b 1 => 7
         bitpos b 0 => 0
         bitpos b 1 1 => 8
         bitpos none 1 => -1
         bitpos none 0 => 0
         setbit b -1 1 => -ERR bit offset is not an integer or out of range
         setbit b 4294967296 1 => -ERR bit offset is not an integer or out of range
         setbit b 1 2 => -ERR bit is not an integer or out of range
         bitop and r b none => 2
         bitcount r => 0
         bitop or r b none => 2
         bitcount r => 2
         bitop xor r b b => 2
         bitop not r none => 0
         exists r => 0
         bitop not r b b => -ERR BITOP NOT must be called with a single source key.",
    );
    client.call(&[&b"set"[..], b"ones", b"\xff\xff"]);
    assert_eq!(client.run("bitpos ones 0"), "16");
    assert_eq!(client.run("bitpos ones 0 0 -1"), "-1");
}

#[test]
fn connections() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "ping => PONG
         ping hi => hi
         echo hi => hi
         hello 4 => -NOPROTO unsupported protocol version
         client setname me => OK
         client getname => me
         client setinfo lib-name test => OK
         client setinfo foo test => -ERR Unrecognized option 'foo'
         client foo => -ERR unknown subcommand 'foo'. Try CLIENT HELP.",
    );
    let own: u64 = client.run("client id").parse().unwrap();
    assert!(client.run("client list").contains(&format!("id={own} ")));
    assert!(client.run("client info").contains("name=me"));
    assert!(client.run("hello 3 setname you").starts_with("[server redis version 7.2.0 proto 3"));
    assert_eq!(client.run("get none"), "(nil)");
    assert!(client.run("client info").contains("name=you") && client.run("reset") == "RESET");
}

#[test]
fn replies_can_be_turned_off() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send_command(&["client", "reply", "skip"]);
    client.send_command(&["set", "a", "1"]);
    assert_eq!(client.run("get a"), "1");
    client.send_command(&["client", "reply", "off"]);
    client.send_command(&["set", "a", "2"]);
    client.send_command(&["get", "a"]);
    assert_eq!(client.run("client reply on"), "OK");
    assert_eq!(client.run("get a"), "2");
}

#[test]
fn clients_are_killed_by_number_and_address() {
    let server = TestServer::start();
    let (mut first, mut second) = (server.client(), server.client());
    let id = second.run("client id");
    assert_eq!(first.run("client kill id 99999"), "0");
    assert_eq!(first.run(&format!("client kill id {id}")), "1");
    assert!(second.is_closed());
    let mut third = server.client();
    assert_eq!(third.run("ping"), "PONG");
    let address = third.stream.get_ref().local_addr().unwrap();
    assert_eq!(first.run(&format!("client kill {address}")), "OK");
    assert!(third.is_closed());
    assert_eq!(first.run("client kill 1.2.3.4:5"), "-ERR No such client");
}

#[test]
fn the_catalogue_describes_every_command() {
    let server = TestServer::start();
    let mut client = server.client();
    let count: usize = client.run("command count").parse().unwrap();
    let list = client.run("command list");
    let names: Vec<&str> = list.trim_matches(['[', ']']).split(' ').collect();
    assert_eq!(names.len(), count);
    for name in names {
        let info = client.run(&format!("command info {name}"));
        assert!(info.starts_with(&format!("[[{name} ")), "{info}");
        let docs = client.run(&format!("command docs {name}"));
        assert!(docs.contains("summary") && docs.contains(". group"), "{docs}");
    }
    assert_eq!(client.run("command info none"), "[(nil)]");
    assert_eq!(client.run("command getkeys mset a 1 b 2"), "[a b]");
    assert_eq!(client.run("command getkeys bitop or d a b"), "[d a b]");
}

#[test]
fn settings_and_information() {
    let server = TestServer::start();
    let mut client = server.client();
    // Ratios have no line before there is a write or a lookup.
    let info = client.run("info");
    assert!(info.contains("stall_micros:0") && !info.contains("_amplification:"), "{info}");
    script(
        &mut client,
        "config get save => [save ]
         config get appendonly => [appendonly yes]
         config get none => []
         config set timeout 100 => OK
         config get timeout max* => *
         config get timeout => [timeout 100]
         config set port 1 => -ERR CONFIG SET failed (possibly related to argument 'port') - can't set \
         immutable config
         config resetstat => OK
         wait 0 0 => 0
         waitaof 1 0 0 => [1 0]
         save => OK
         slowlog reset => OK
         config set slowlog-log-slower-than 0 => OK
         set slow 1 => OK
         config set slowlog-log-slower-than -1 => OK",
    );
    assert!(client.run("slowlog get 2").contains("set slow 1"));
    script(
        &mut client,
        "latency latest => []
         config get latency-monitor-threshold => [latency-monitor-threshold 0]
         config set latency-monitor-threshold 1 => OK",
    );
    // No machine copies this much in less than a millisecond.
    client.run(&format!("set long {}", "x".repeat(16 << 20)));
    client.run("bitop not other long");
    assert!(client.run("latency latest").starts_with("[[command 1"));
    assert_ne!(client.run("latency history command"), "[]");
    script(
        &mut client,
        "config set latency-monitor-threshold 0 => OK
         latency history none => []
         latency reset none => 0
         latency reset command => 1
         latency latest => []
         latency graph command => -ERR unknown subcommand 'graph'. Try LATENCY HELP.",
    );
    client.run("set a 1");
    client.run("get a");
    let info = client.run("info");
    for part in [
        "redis_version:7.2.0",
        "# Terrane",
        "db0_design:",
        "db0:keys=",
        "connected_clients:1",
        "write_amplification:0.00",
        "read_amplification:0.00",
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
    assert!(client.run("info server").starts_with("# Server") && info.contains("# Keyspace"));
}

#[test]
fn scans_return_every_key_once() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..250 {
        client.run(&format!("set key:{number} {number}"));
        client.run(&format!("set other:{number} {number}"));
    }
    for (options, expected) in [
        ("", 500),
        (" match key:*", 250),
        (" match *:1?", 20),
        (" type string", 500),
        (" type list", 0),
    ] {
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        loop {
            let reply = client.run(&format!("scan {cursor} count 7{options}"));
            let (next, keys) = reply[1..reply.len() - 1].split_once(' ').unwrap();
            let keys = keys.trim_matches(['[', ']']);
            found.extend(keys.split(' ').filter(|key| !key.is_empty()).map(str::to_owned));
            cursor = next.to_owned();
            if cursor == "0" {
                break;
            }
            // Deleting the returned keys does not disturb the scan.
            client.run("set zzz 1");
            client.run("del zzz");
        }
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!((found.len(), count), (expected, expected), "{options}");
    }
    assert_eq!(
        client.run("scan 123456"),
        "-ERR cursor 123456 is unknown or too old; begin again with SCAN 0"
    );
    assert_eq!(client.run("scan x"), "-ERR invalid cursor");
    assert_eq!(client.run("scan 0 count 0"), "-ERR syntax error");
}

#[test]
fn a_pause_stops_one_connection_only() {
    let server = TestServer::with(
        &terrane::Options::new(),
        terrane_server::Config { workers: 1, ..Default::default() },
    );
    let (mut first, mut second) = (server.client(), server.client());
    let begun = Instant::now();
    first.send(b"debug sleep 0.3\r\nping\r\n");
    for _ in 0..10 {
        assert_eq!(second.run("ping"), "PONG");
    }
    assert!(begun.elapsed().as_millis() < 250);
    assert_eq!((first.reply(), first.reply()), ("OK".to_owned(), "PONG".to_owned()));
    assert!(begun.elapsed().as_millis() >= 300);
}

#[test]
fn the_list_of_clients_has_the_last_command_of_each() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.run("ping"), "PONG");
    let shown = |client: &mut Client, command: &str| {
        let list = client.run("client list");
        list.lines().filter(|line| line.contains(&format!(" cmd={command} "))).count()
    };
    let _silent = server.client();
    let begun = Instant::now();
    while shown(&mut client, "NULL") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    assert_eq!((shown(&mut client, "ping"), shown(&mut client, "client")), (1, 1));
    // The last command of a pipeline, even in a group, and a refused command.
    other.send(b"get a\r\nset a 1\r\n");
    assert_eq!((other.reply(), other.reply()), ("(nil)".into(), "OK".into()));
    assert_eq!((shown(&mut client, "set"), shown(&mut client, "ping")), (1, 0));
    other.run("nonsense");
    assert_eq!(shown(&mut client, "set"), 1);
    assert!(client.run("client info").contains(" cmd=client "));
}
