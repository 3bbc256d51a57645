//! The operation mixes of YCSB.
//!
//! A client numbers the records that it knows: first the loaded ones, then its own inserts. Clients
//! insert into disjoint stripes, so the records that a client chooses exist, and its choices do not
//! depend on scheduling. With one client this is YCSB's behaviour.

use super::client::Client;
use super::scans::scan_from_loaded;
use crate::error::StoreError;
use crate::random::below;
use crate::workload::{Shares, YcsbMix};

/// YCSB's `maxscanlength` in workload E; scans have a mean length of 50.5.
const SCAN_ENTRIES_MAX: u64 = 100;

/// Executes `count` operations of `mix`.
pub(super) fn run_mix(client: &mut Client<'_>, mix: YcsbMix, count: u64) -> Result<(), StoreError> {
    let Shares { read, update, insert, scan, .. } = mix.shares();
    let mut records = Records::of(client);
    let mut chooser = client.chooser();
    client.repeat(count, |client| {
        let dice = below(&mut client.rng, 100) as u32;
        if (read + update + scan..read + update + scan + insert).contains(&dice) {
            client.keys.write_key(records.insert(), &mut client.key);
            client.put()?;
            // Choose the record only once it exists.
            chooser.grow();
            return Ok(());
        }
        let index = records.index(chooser.choose(&mut client.rng));
        client.keys.write_key(index, &mut client.key);
        if dice < read {
            return client.get_loaded();
        }
        if dice < read + update {
            return client.put();
        }
        if dice < read + update + scan {
            let entries = 1 + below(&mut client.rng, SCAN_ENTRIES_MAX) as u32;
            return scan_from_loaded(client, entries);
        }
        client.get_loaded()?;
        client.put()
    })
}

/// The records that a client knows.
#[derive(Debug)]
struct Records {
    loaded: u64,
    inserted: u64,
    thread: u64,
    threads: u64,
}

impl Records {
    fn of(client: &Client<'_>) -> Self {
        Self {
            loaded: client.options.num,
            inserted: 0,
            thread: u64::from(client.thread),
            threads: u64::from(client.options.threads),
        }
    }

    /// Returns the index of the client's record with this `number`.
    #[inline]
    fn index(&self, number: u64) -> u64 {
        if number < self.loaded {
            return number;
        }
        self.loaded + (number - self.loaded) * self.threads + self.thread
    }

    /// Returns the index for a new record.
    #[inline]
    fn insert(&mut self) -> u64 {
        let index = self.index(self.loaded + self.inserted);
        self.inserted += 1;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_insert_into_stripes_and_know_their_own_records() {
        let mut first = Records { loaded: 10, inserted: 0, thread: 0, threads: 2 };
        let mut second = Records { loaded: 10, inserted: 0, thread: 1, threads: 2 };
        assert_eq!([first.insert(), first.insert(), first.insert()], [10, 12, 14]);
        assert_eq!([second.insert(), second.insert()], [11, 13]);
        assert_eq!([first.index(3), first.index(10), first.index(12)], [3, 10, 14]);
    }
}
