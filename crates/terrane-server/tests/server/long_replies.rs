//! Commands whose replies or copies would take more memory than a client may use.

use terrane::Options;
use terrane_server::{Config, Limits};

use crate::support::TestServer;

#[test]
fn replies_and_copies_are_limited_before_they_are_made() {
    let limits = Limits { output_bytes: 1 << 20, request_bytes: 1 << 20, ..Limits::default() };
    let server = TestServer::with(&Options::new(), Config { limits, ..Config::default() });
    let mut client = server.client();
    let value = vec![b'x'; 500_000];
    assert_eq!(client.call(&[&b"set"[..], b"k", &value]), "OK");
    assert_eq!(client.run("copy k k db 1"), "1");
    for field in ["a", "b", "c"] {
        assert_eq!(client.call(&[&b"hset"[..], b"h", field.as_bytes(), &value]), "1");
    }
    let too_long = "-ERR the reply is longer than 1048576 bytes; ask for fewer keys";
    assert_eq!(client.call(&[&["mget"][..], &["k"; 200]].concat()), too_long);
    assert_eq!(client.call(&[&["hmget", "h"][..], &["a"; 200]].concat()), too_long);
    for count in ["3", "-5"] {
        let error = client.call(&["hrandfield", "h", count, "withvalues"]);
        assert!(error.starts_with("-ERR the reply is longer than 1048576 bytes"), "{error}");
    }
    assert_eq!(
        client.call(&["mget", "k", "none", "h"]).len(),
        value.len() + "[ (nil) (nil)]".len()
    );
    client.run("multi");
    client.run("select 1");
    client.run("set done 1");
    for _ in 0..100 {
        assert_eq!(client.run("get k"), "QUEUED");
    }
    assert_eq!(client.run("exec"), "-ERR the replies of the transaction are too long");
    assert!(client.run("client info").contains(" db=0 "), "nothing of it happened");
    assert_eq!(client.run("exists done"), "0");
    let too_large =
        "-ERR the hash is larger than a request may be; copy its fields in parts with HSCAN";
    assert_eq!(client.run("copy h i"), too_large);
    assert_eq!(client.run("move h 1"), too_large);
    assert_eq!(client.run("rename h i"), "OK", "its fields are not copied");
    assert_eq!(client.run("hlen i"), "3");
}
