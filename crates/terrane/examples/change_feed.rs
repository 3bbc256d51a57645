//! A second database that follows the first: `cargo run -p terrane --example change_feed`.
//!
//! The follower stores its position in the same batch as the changes. So it applies each change exactly
//! once, no matter when it or the leader is killed and opened again.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]
#![allow(clippy::disallowed_methods, reason = "a program removes directories")]

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::path::Path;
use std::time::Duration;

use terrane::{
    Change, Changes, Db, Error, KeepChanges, KeyspaceOptions, Options, Result, WriteBatch,
    WriteOptions,
};

/// A keyspace of the follower for its position, which no keyspace of the leader is called.
const STATE: &str = "follower state";

/// Opens the leader, which keeps its last day of changes, in at most 1 GiB.
fn open_leader(dir: &Path) -> Result<Db> {
    let day = KeepChanges::time(Duration::from_secs(24 * 3600));
    Options::new().keep_changes(day.and_bytes(1 << 30)).open(dir.join("leader"))
}

/// Opens the follower, which keeps no changes itself.
fn open_follower(dir: &Path) -> Result<Db> {
    Options::new().keep_changes(KeepChanges::NONE).open(dir.join("follower"))
}

/// Returns the position up to which the follower has everything; `None` if it has to begin with a copy.
fn position(follower: &Db) -> Result<Option<u64>> {
    let state = follower.keyspace(STATE, KeyspaceOptions::new())?;
    let position = state.get("position")?;
    Ok(position.map(|bytes| u64::from_le_bytes((*bytes).try_into().unwrap())))
}

/// Drops and renames the keyspaces of the follower as the leader has dropped and renamed its own. Returns
/// their names by the number that they have in the leader.
fn keyspaces(changes: &Changes, follower: &Db) -> Result<BTreeMap<u32, String>> {
    let state = follower.keyspace(STATE, KeyspaceOptions::new())?;
    let names = changes.keyspaces().into_iter();
    let names: BTreeMap<u32, String> =
        names.filter_map(|one| Some((one.id(), one.name()?.to_owned()))).collect();
    let mut renamed = Vec::new();
    for entry in state.prefix("keyspace ")? {
        let (key, name) = entry?;
        let id = String::from_utf8_lossy(&key["keyspace ".len()..]).parse().unwrap();
        let name = String::from_utf8_lossy(&name).into_owned();
        match names.get(&id) {
            None => {
                follower.drop_keyspace(&name)?;
                state.delete(&key)?;
            }
            Some(now) if *now != name => {
                // Two keyspaces may have swapped their names.
                let between = format!("renamed {id}");
                follower.rename_keyspace(&name, &between)?;
                state.put(&key, &between)?;
                renamed.push((key, between, now));
            }
            Some(_) => {}
        }
    }
    for (key, between, now) in renamed {
        follower.rename_keyspace(&between, now)?;
        state.put(key, now)?;
    }
    for (id, name) in &names {
        follower.keyspace(name, KeyspaceOptions::new())?;
        if *id != 0 {
            state.put(format!("keyspace {id}"), name)?;
        }
    }
    Ok(names)
}

/// Applies all changes that the leader has now. Returns false if the follower has to begin with a copy.
fn follow(changes: &mut Changes, follower: &Db) -> Result<bool> {
    let state = follower.keyspace(STATE, KeyspaceOptions::new())?;
    let mut names = keyspaces(changes, follower)?;
    while let Some(batch) = changes.next() {
        let batch = match batch {
            Ok(batch) => batch,
            // The follower was away for longer than a day.
            Err(Error::ChangesGone(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut write = WriteBatch::new();
        for change in batch.iter() {
            // An ingest, for example, is not in the log.
            let Some(keyspace) = change.keyspace() else { return Ok(false) };
            // A keyspace without a name has since been dropped.
            let Some(name) = keyspace.name() else { continue };
            if names.get(&keyspace.id()).is_none_or(|known| known != name) {
                names = keyspaces(changes, follower)?;
            }
            let keyspace = follower.keyspace(name, KeyspaceOptions::new())?;
            if matches!(change, Change::Merge { .. }) {
                // The operator is part of the program, as the format of values is.
                keyspace.set_merge_operator("counter_add")?;
            }
            write.repeat_in(&keyspace, &change);
        }
        write.put_in(&state, "position", batch.position().to_le_bytes());
        follower.write(&write)?;
    }
    keyspaces(changes, follower)?;
    Ok(true)
}

/// Replaces the follower by a copy of the leader at one moment, from which it then continues. A
/// checkpoint also has expiry times, designs and merge operators.
fn copy(leader: &Db, dir: &Path) -> Result<Db> {
    let path = dir.join("follower");
    if path.exists() {
        std::fs::remove_dir_all(&path).unwrap();
    }
    leader.checkpoint(&path)?;
    // The copy must not have writes that the leader may lose.
    leader.sync()?;
    let follower = open_follower(dir)?;
    // The copy has the sequence numbers of the leader, until it is written to.
    let position = follower.snapshot().sequence_number();
    let state = follower.keyspace(STATE, KeyspaceOptions::new())?;
    keyspaces(&leader.changes(position)?, &follower)?;
    state.put("position", position.to_le_bytes())?;
    Ok(follower)
}

/// Brings the follower up to date, if necessary by replacing it.
fn catch_up(leader: &Db, follower: Db, dir: &Path) -> Result<Db> {
    if let Some(position) = position(&follower)?
        && follow(&mut leader.changes(position)?, &follower)?
    {
        return Ok(follower);
    }
    drop(follower);
    copy(leader, dir)
}

/// The name of a keyspace, a key and its value.
type Entry = (String, Vec<u8>, Vec<u8>);

/// Returns all entries but the position.
fn entries(db: &Db) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for name in db.keyspaces().into_iter().filter(|name| name != STATE) {
        for entry in db.keyspace(&name, KeyspaceOptions::new())?.iter()? {
            let (key, value) = entry?;
            all.push((name.clone(), key.to_vec(), value.to_vec()));
        }
    }
    Ok(all)
}

pub(crate) fn run(dir: &Path) -> std::result::Result<(), Box<dyn StdError>> {
    let leader = open_leader(dir)?;
    leader.put("before", "the copy")?;
    let follower = catch_up(&leader, open_follower(dir)?, dir)?;

    // Values, deletes, ranges, values that expire, and merges, some of them in one batch.
    let visits = leader.keyspace("visits", KeyspaceOptions::new())?;
    visits.set_merge_operator("counter_add")?;
    for number in 0..100 {
        let mut batch = WriteBatch::new();
        batch.put(format!("user {number:02}"), "Ada");
        batch.merge_in(&visits, "users", 1_i64.to_le_bytes());
        leader.write(&batch)?;
    }
    leader.delete("user 07")?;
    leader.delete_range("user 50".."user 60")?;
    leader.put_with("session", "Ada", WriteOptions::new().ttl(Duration::from_secs(3600)))?;
    let follower = catch_up(&leader, follower, dir)?;
    assert_eq!(entries(&leader)?, entries(&follower)?);

    // Both die without closing. The follower has not seen the last write.
    leader.put("user 07", "Grace")?;
    drop((leader, follower, visits));
    let leader = open_leader(dir)?;
    let follower = catch_up(&leader, open_follower(dir)?, dir)?;
    assert_eq!(follower.get("user 07")?.unwrap(), "Grace");

    // A thread follows while others write.
    let last = "the last write";
    std::thread::scope(|scope| {
        let following = scope.spawn(|| -> Result<()> {
            let mut changes = leader.changes(position(&follower)?.unwrap())?;
            while follower.get(last)?.is_none() {
                assert!(follow(&mut changes, &follower)?);
                changes.wait(Duration::from_secs(1))?;
            }
            Ok(())
        });
        for number in 0..200 {
            leader.put(format!("{number}"), "value")?;
        }
        leader.put(last, "")?;
        following.join().unwrap()
    })?;

    // An ingest is not in the log: the follower is replaced, and then continues.
    leader.ingest([("x", "1"), ("y", "2")])?;
    leader.put("z", "3")?;
    let follower = catch_up(&leader, follower, dir)?;
    // Keyspaces that are created, renamed and dropped.
    for name in ["one", "two"] {
        leader.keyspace(name, KeyspaceOptions::new())?.put("name", name)?;
    }
    let follower = catch_up(&leader, follower, dir)?;
    for (name, new_name) in [("one", "three"), ("two", "one"), ("three", "two")] {
        leader.rename_keyspace(name, new_name)?;
    }
    leader.drop_keyspace("visits")?;
    leader.keyspace("visits", KeyspaceOptions::new())?.put("home", "again")?;
    let follower = catch_up(&leader, follower, dir)?;
    assert_eq!(entries(&leader)?, entries(&follower)?);
    println!("both have {} entries", entries(&follower)?.len());
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> std::result::Result<(), Box<dyn StdError>> {
    run(tempfile::tempdir()?.path())
}
