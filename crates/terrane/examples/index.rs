//! A secondary index in a keyspace of its own: `cargo run -p terrane --example index`.
//!
//! Records are found by number and by city. The keys of the index are the city, a zero byte and the
//! number; its values are empty. A transaction changes record and index together, and removes the entry
//! of the old city.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;

use terrane::{Db, Keyspace, KeyspaceOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct People {
    db: Db,
    /// The city of each person, by number.
    records: Keyspace,
    by_city: Keyspace,
}

impl People {
    fn open(db: &Db) -> Result<Self> {
        let records = db.keyspace("people", KeyspaceOptions::new())?;
        // Entries of an index are small, so its tree has a design of its own.
        let design = "tiering T=4; buffer=16MiB; filter=5".parse()?;
        let by_city = db.keyspace("people by city", KeyspaceOptions::new().design(design))?;
        Ok(Self { db: db.clone(), records, by_city })
    }

    fn put(&self, number: u64, city: &str) -> terrane::Result<()> {
        self.db.transaction(|tx| {
            if let Some(old) = tx.get_in(&self.records, number.to_be_bytes())? {
                tx.delete_in(&self.by_city, index_key(&old, number))?;
            }
            tx.put_in(&self.records, number.to_be_bytes(), city)?;
            tx.put_in(&self.by_city, index_key(city.as_bytes(), number), "")
        })
    }

    /// Returns the numbers of all people in a city, in order.
    fn in_city(&self, city: &str) -> Result<Vec<u64>> {
        let prefix = [city.as_bytes(), b"\0"].concat();
        let mut numbers = Vec::new();
        for entry in self.by_city.prefix(&prefix)? {
            let (key, _) = entry?;
            numbers.push(u64::from_be_bytes(key[prefix.len()..].try_into()?));
        }
        Ok(numbers)
    }
}

fn index_key(city: &[u8], number: u64) -> Vec<u8> {
    [city, b"\0", &number.to_be_bytes()].concat()
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    let db = Db::open(dir.join("db"))?;
    let people = People::open(&db)?;
    for (number, city) in [(1, "Lisbon"), (2, "Oslo"), (3, "Lisbon"), (4, "Lis")] {
        people.put(number, city)?;
    }
    assert_eq!(people.in_city("Lisbon")?, [1, 3]);
    people.put(1, "Oslo")?;
    println!("in Oslo: {:?}", people.in_city("Oslo")?);
    assert_eq!(people.in_city("Lisbon")?, [3]);
    assert_eq!(people.in_city("Oslo")?, [1, 2]);
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
