//! Random commands on strings and hashes against a model, with transactions, expiry and restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane::Options;
use terrane_server::Config;
use terrane_testkit::{Rng, seed_from_env};

use crate::support::TestServer;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NO_INTEGER: &str = "-ERR value is not an integer or out of range";

#[derive(Clone)]
enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
}

/// Databases with keys, and whether the values expire.
#[derive(Default)]
struct Model {
    databases: [BTreeMap<String, (Value, bool)>; 2],
    selected: usize,
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(" "))
}

fn nil(value: Option<String>) -> String {
    value.unwrap_or_else(|| "(nil)".to_owned())
}

impl Model {
    fn keys(&mut self) -> &mut BTreeMap<String, (Value, bool)> {
        &mut self.databases[self.selected]
    }

    /// Returns the hash of a key; an error if the key has a string.
    fn hash(&mut self, key: &str) -> Result<Option<&mut BTreeMap<String, String>>, String> {
        match self.keys().get_mut(key) {
            None => Ok(None),
            Some((Value::Hash(hash), _)) => Ok(Some(hash)),
            Some(_) => Err(WRONG_TYPE.to_owned()),
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.keys().get(key) {
            None => Ok(None),
            Some((Value::Text(text), _)) => Ok(Some(text.clone())),
            Some(_) => Err(WRONG_TYPE.to_owned()),
        }
    }

    /// Returns the reply to a command.
    fn run(&mut self, words: &[&str]) -> String {
        let outcome = match words[0].starts_with('h') {
            true => self.run_on_hash(words),
            false => self.run_on_key(words),
        };
        outcome.unwrap_or_else(|error| error)
    }

    fn run_on_hash(&mut self, words: &[&str]) -> Result<String, String> {
        let key = words[1];
        let found = self.hash(key)?;
        let hash = found.as_deref().cloned().unwrap_or_default();
        Ok(match words {
            ["hset", _, rest @ ..] => {
                let (hash, _) =
                    self.keys().entry(key.to_owned()).or_insert((Value::Hash(hash), false));
                let Value::Hash(hash) = hash else { unreachable!() };
                let new =
                    |pair: &&[&str]| hash.insert(pair[0].to_owned(), pair[1].to_owned()).is_none();
                rest.chunks(2).filter(new).count().to_string()
            }
            ["hdel", _, rest @ ..] => {
                let Some(hash) = found else { return Ok("0".to_owned()) };
                let removed = rest.iter().filter(|field| hash.remove(**field).is_some()).count();
                if hash.is_empty() {
                    self.keys().remove(key);
                }
                removed.to_string()
            }
            ["hincrby", _, field, by] => {
                let old: i64 = hash
                    .get(*field)
                    .map_or(Ok(0), |old| old.parse())
                    .map_err(|_| "-ERR hash value is not an integer".to_owned())?;
                let new = (old + by.parse::<i64>().unwrap()).to_string();
                self.run_on_hash(&["hset", key, field, &new])?;
                new
            }
            ["hget", _, field] => nil(hash.get(*field).cloned()),
            ["hmget", _, rest @ ..] => {
                list(rest.iter().map(|field| nil(hash.get(*field).cloned())))
            }
            ["hlen", _] => hash.len().to_string(),
            ["hgetall", _] => list(hash.iter().map(|(field, value)| format!("{field} {value}"))),
            ["hscan", _, "0"] => {
                format!(
                    "[0 {}]",
                    list(hash.iter().map(|(field, value)| format!("{field} {value}")))
                )
            }
            ["hkeys", _] => list(hash.into_keys()),
            _ => unreachable!("{words:?}"),
        })
    }

    fn run_on_key(&mut self, words: &[&str]) -> Result<String, String> {
        Ok(match words {
            ["set", key, value] => {
                self.keys().insert((*key).to_owned(), (Value::Text((*value).to_owned()), false));
                "OK".to_owned()
            }
            ["mset", pairs @ ..] => {
                for pair in pairs.chunks(2) {
                    self.run_on_key(&["set", pair[0], pair[1]])?;
                }
                "OK".to_owned()
            }
            ["get", key] => nil(self.text(key)?),
            ["mget", keys @ ..] => list(keys.iter().map(|key| nil(self.text(key).ok().flatten()))),
            ["incr", key] => {
                let old = self.text(key)?.unwrap_or_else(|| "0".to_owned());
                let new = (old.parse::<i64>().map_err(|_| NO_INTEGER)? + 1).to_string();
                let expires = self.keys().get(*key).is_some_and(|(_, expires)| *expires);
                self.keys().insert((*key).to_owned(), (Value::Text(new.clone()), expires));
                new
            }
            ["del", keys @ ..] => {
                keys.iter().filter(|key| self.keys().remove(**key).is_some()).count().to_string()
            }
            ["exists", key] => u8::from(self.keys().contains_key(*key)).to_string(),
            ["type", key] => match self.keys().get(*key) {
                None => "none",
                Some((Value::Text(_), _)) => "string",
                Some((Value::Hash(_), _)) => "hash",
            }
            .to_owned(),
            ["expire", key, "100"] => {
                u8::from(self.keys().get_mut(*key).map(|(_, expires)| *expires = true).is_some())
                    .to_string()
            }
            ["expire", key, "-1"] | ["pexpire", key, "1"] => {
                u8::from(self.keys().remove(*key).is_some()).to_string()
            }
            ["persist", key] => {
                let old = self.keys().get_mut(*key).map(|(_, expires)| std::mem::take(expires));
                u8::from(old == Some(true)).to_string()
            }
            ["ttl", key] => match self.keys().get(*key) {
                None => "-2",
                Some((_, false)) => "-1",
                Some((_, true)) => "100",
            }
            .to_owned(),
            _ => self.run_on_databases(words)?,
        })
    }

    /// Returns the reply to a command on two keys, or on a whole database.
    fn run_on_databases(&mut self, words: &[&str]) -> Result<String, String> {
        let selected = self.selected;
        Ok(match words {
            ["rename", from, to] => {
                let value = self.keys().remove(*from).ok_or("-ERR no such key")?;
                self.keys().insert((*to).to_owned(), value);
                "OK".to_owned()
            }
            ["copy", from, to, "db", db, "replace"] => {
                let target: usize = db.parse().unwrap();
                if target == selected && from == to {
                    return Ok("-ERR source and destination objects are the same".to_owned());
                }
                let value = self.keys().get(*from).cloned();
                let is_copied = value.is_some();
                value.map(|value| self.databases[target].insert((*to).to_owned(), value));
                u8::from(is_copied).to_string()
            }
            ["move", key, _] => {
                let target = 1 - selected;
                if self.databases[target].contains_key(*key) {
                    return Ok("0".to_owned());
                }
                let value = self.keys().remove(*key);
                let is_moved = value.is_some();
                value.map(|value| self.databases[target].insert((*key).to_owned(), value));
                u8::from(is_moved).to_string()
            }
            ["keys", "*"] => list(self.keys().keys().cloned()),
            ["dbsize"] => self.keys().len().to_string(),
            ["flushdb"] => {
                self.keys().clear();
                "OK".to_owned()
            }
            ["select", db] => {
                self.selected = db.parse().unwrap();
                "OK".to_owned()
            }
            _ => unreachable!("{words:?}"),
        })
    }
}

/// Returns a random command for a client that has selected this database.
fn command(rng: &mut Rng, selected: usize) -> String {
    let keys = ["a", "b", "bb", "c", "d"];
    let fields = ["f", "g", "gg", "h", "i"];
    let (key, other) = (*rng.pick(&keys), *rng.pick(&keys));
    let (field, more) = (*rng.pick(&fields), *rng.pick(&fields));
    let value = match rng.percent(50) {
        true => rng.below(100).to_string(),
        false => "v".repeat(1 + rng.index(60)),
    };
    match rng.below(40) {
        0..=5 => format!("hset {key} {field} {value}"),
        6 | 7 => format!("hset {key} {field} {value} {more} {value}x"),
        8 | 9 => format!("hdel {key} {field} {more}"),
        10 => format!("hincrby {key} {field} 3"),
        11 => format!("hget {key} {field}"),
        12 => format!("hmget {key} {field} {more} none"),
        13 => format!("hlen {key}"),
        14 | 15 => format!("hgetall {key}"),
        16 => format!("hscan {key} 0"),
        17 => format!("hkeys {key}"),
        18 => format!("set {key} {value}"),
        19 => format!("mset {key} {value} {other} x"),
        20 => format!("get {key}"),
        21 => format!("mget {key} {other}"),
        22 => format!("incr {key}"),
        23 | 24 => format!("del {key} {other}"),
        25 => format!("exists {key}"),
        26 => format!("type {key}"),
        27 | 28 => format!("expire {key} 100"),
        29 => format!("expire {key} -1"),
        30 => format!("pexpire {key} 1"),
        31 => format!("persist {key}"),
        32 => format!("ttl {key}"),
        33 | 34 => format!("rename {key} {other}"),
        35 => format!("copy {key} {other} db {} replace", rng.below(2)),
        36 => format!("move {key} {}", 1 - selected),
        37 => "keys *".to_owned(),
        38 => "dbsize".to_owned(),
        _ if rng.percent(10) => "flushdb".to_owned(),
        _ => format!("select {}", rng.below(2)),
    }
}

/// Compares replies; remaining times shrink while the test runs.
fn check(command: &str, found: &str, expected: &str) {
    let is_ttl = command.starts_with("ttl") && expected == "100";
    let is_near = is_ttl && found.parse::<u32>().is_ok_and(|seconds| seconds <= 100);
    assert!(found == expected || is_near, "{command}: {found} instead of {expected}");
}

#[test]
fn random_commands_agree_with_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let seed = seed_from_env(7);
    let mut rng = Rng::new(seed);
    let mut model = Model::default();
    for round in 0..4 {
        let db = Options::new().open(dir.path()).unwrap();
        let mut server = TestServer::of(db, Config::default());
        let mut client = server.client();
        model.selected = 0;
        for step in 0..1500 {
            let place = format!("seed {seed}, round {round}, step {step}");
            if rng.percent(10) {
                transaction(&mut rng, &mut model, &mut client);
                continue;
            }
            let command = command(&mut rng, model.selected);
            let words: Vec<&str> = command.split(' ').collect();
            let expected = model.run(&words);
            check(&format!("{place}: {command}"), &client.run(&command), &expected);
            if words[0] == "pexpire" {
                std::thread::sleep(Duration::from_millis(3));
            }
            if step % 400 == 399 {
                server.db.flush().unwrap();
            }
        }
        server.end();
        server.db.clone().close().unwrap();
    }
}

/// Runs several commands in a transaction.
fn transaction(rng: &mut Rng, model: &mut Model, client: &mut crate::support::Client) {
    assert_eq!(client.run("multi"), "OK");
    let (mut replies, mut has_ttl) = (Vec::new(), false);
    for _ in 0..1 + rng.below(6) {
        let command = command(rng, model.selected);
        // The value would expire while the transaction runs, or after it.
        if command.starts_with("pexpire") {
            continue;
        }
        has_ttl |= command.starts_with("ttl");
        assert_eq!(client.run(&command), "QUEUED");
        replies.push(model.run(&command.split(' ').collect::<Vec<_>>()));
    }
    let found = client.run("exec");
    assert!(found == list(replies.clone()) || has_ttl, "{found} instead of {replies:?}");
}
