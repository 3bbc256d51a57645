//! Sessions that expire, and a rate limit by minute: `cargo run -p terrane --example expiry`.
//!
//! A value with a time to live is invisible once the time is over. The application deletes nothing and
//! keeps no index of expiry times: compactions drop what has expired, and tables of expired values whole.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Clock, Keyspace, KeyspaceOptions, ManualClock, Options, WriteOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const HOUR: Duration = Duration::from_secs(3600);

/// Counts a request of a client, and returns whether the client has made at most `limit` in the present
/// minute. The values of the keyspace expire after a minute.
fn admit(requests: &Keyspace, client: &str, minute: u64, limit: u64) -> terrane::Result<bool> {
    let key = format!("{client}/{minute}");
    let count = requests.update(key, |old| {
        let old = old.and_then(|old| old.try_into().ok()).map_or(0, u64::from_be_bytes);
        Some((old + 1).to_be_bytes().to_vec())
    })?;
    Ok(count.is_some_and(|count| count[..] <= limit.to_be_bytes()[..]))
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    // A program uses the clock of the system, which is the default. This one does not want to wait.
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let options = Options::new().clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let db = options.open(dir.join("db"))?;

    // All sessions end after an hour, except those that say otherwise.
    let sessions = db.keyspace("sessions", KeyspaceOptions::new())?;
    sessions.set_ttl(Some(HOUR))?;
    sessions.put("token 1", "alice")?;
    sessions.put_with("token 2", "bob", WriteOptions::new().ttl(24 * HOUR))?;

    let requests = db.keyspace("requests", KeyspaceOptions::new())?;
    requests.set_ttl(Some(Duration::from_secs(60)))?;
    let minute = clock.now_micros() / 60_000_000;
    let admitted = (0..5).filter(|_| admit(&requests, "carol", minute, 3).unwrap()).count();
    println!("{admitted} of 5 requests were admitted");
    assert_eq!(admitted, 3);

    clock.advance(2 * HOUR);
    assert!(sessions.get("token 1")?.is_none());
    assert_eq!(sessions.get("token 2")?.unwrap(), "bob");
    assert!(requests.is_empty()?);
    println!("{} session is left", sessions.iter()?.count());
    db.close()?;
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
