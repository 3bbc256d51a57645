//! Groups of writes.

use std::ops::Range;

use terrane::WriteBatch;

use super::{Change, Group, GroupKey};
use crate::call::shared::Shared;
use crate::call::{CommandError, LookupCounts};
use crate::commands::dispatch::Work;
use crate::commands::integers::{Decimal, add_to, sum_of};
use crate::protocol::Reply;
use crate::store::{Fault, Held, Put, Store};

/// The planned change of a key.
enum Planned {
    /// The value that its command sets.
    Given,
    /// A sum, and its expiry time.
    Sum(i64, Option<u64>),
    Failed(CommandError),
    /// Nothing yet, because a key of the connection may be locked for long.
    Waits,
}

impl Group {
    /// Runs the commands, except those of connections that wait for a key that may be locked for long.
    pub(super) fn write<'a>(
        &mut self,
        (shared, store): (&'a Shared, &mut Store<'a>),
        buffer: &[u8],
        out: &mut Vec<u8>,
        work: &mut Work,
    ) {
        let keys: Vec<&[u8]> = self.keys.iter().map(|key| key.key.of(buffer)).collect();
        let mut batch = std::mem::take(&mut self.batch);
        let outcomes = match (try_hold(shared, &keys), &*keys) {
            // No `SWAPDB` begins while a key is locked.
            (Some(_), _) if self.database.is_swapped(shared) => Vec::new(),
            // One command is cheaper alone.
            (Some(held), [_]) => {
                store.held = held;
                vec![self.write_alone(store, 0..1, buffer)]
            }
            (Some(held), keys) => {
                store.held = held;
                self.write_at_once(store, (keys, buffer), &mut batch).unwrap_or_else(|| {
                    let mut alone = |own| self.write_alone(store, own, buffer);
                    self.own_keys().map(|(_, own)| alone(own)).collect()
                })
            }
            (None, keys) => self.write_apart((shared, store), (keys, buffer)),
        };
        store.held = Held::default();
        self.batch = batch;
        let errors = self.reply(&outcomes, out);
        let count = outcomes.iter().filter(|outcome| !matches!(outcome, Planned::Waits)).count();
        work.add(count, errors, LookupCounts::default());
    }

    /// Returns the connections of the commands, and the positions of their keys.
    fn own_keys(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let ends = self.members.iter().map(|member| member.keys_end);
        let begins = std::iter::once(0).chain(ends.clone());
        let members = self.members.iter().map(|member| member.connection);
        members.zip(begins.zip(ends).map(|(begin, end)| begin..end))
    }

    /// Performs each command with its own locks, so that a key that is locked for long delays its connection only.
    #[cold]
    fn write_apart<'a>(
        &self,
        (shared, store): (&'a Shared, &mut Store<'a>),
        (keys, buffer): (&[&[u8]], &[u8]),
    ) -> Vec<Planned> {
        let mut waiting = None;
        let outcomes = self.own_keys().map(|(connection, own)| {
            if waiting == Some(connection) {
                return Planned::Waits;
            }
            store.held = Held::default();
            match try_hold(shared, keys.get(own.clone()).unwrap_or_default()) {
                Some(held) if !self.database.is_swapped(shared) => {
                    store.held = held;
                    self.write_alone(store, own, buffer)
                }
                _ => {
                    waiting = Some(connection);
                    Planned::Waits
                }
            }
        });
        outcomes.collect()
    }

    /// Makes the changes in one write, and returns the outcomes of the commands; `None` if the
    /// preceding lookups failed, so that nothing was done.
    fn write_at_once(
        &self,
        store: &mut Store<'_>,
        (keys, buffer): (&[&[u8]], &[u8]),
        batch: &mut WriteBatch,
    ) -> Option<Vec<Planned>> {
        let db = self.database.slot;
        let headers = store.headers(db, keys).ok()?;
        let mut planned =
            self.plan(store, (keys, buffer), |at| headers.get(at).is_some_and(Option::is_some))?;
        let mut texts = vec![Decimal::default(); planned.len()];
        let puts = self.keys.iter().zip(&planned).zip(&mut texts).enumerate();
        let puts = puts.filter_map(|(at, ((key, planned), text))| {
            let (value, expires_at) = match (planned, key.change) {
                (Planned::Given, Change::Set(value)) => (value.of(buffer), None),
                (Planned::Sum(sum, expires_at), _) => (text.of(*sum), *expires_at),
                _ => return None,
            };
            let hash = headers.get(at).copied().flatten();
            Some(Put { key: key.key.of(buffer), value, expires_at, hash })
        });
        if let Err(error) = store.put_each(db, batch, puts) {
            let error = CommandError::from(error);
            for planned in &mut planned {
                if !matches!(planned, Planned::Failed(_)) {
                    *planned = Planned::Failed(error.clone());
                }
            }
        }
        // The keys of one command have the same outcome.
        let mut ends = self.own_keys().map(|(_, own)| own.start).peekable();
        let planned = planned.into_iter().enumerate();
        Some(planned.filter(|(at, _)| ends.next_if_eq(at).is_some()).map(|(_, it)| it).collect())
    }

    /// Plans the change of each key; `None` if a lookup failed.
    fn plan(
        &self,
        store: &Store<'_>,
        (keys, buffer): (&[&[u8]], &[u8]),
        has_hash: impl Fn(usize) -> bool,
    ) -> Option<Vec<Planned>> {
        let is_added = |key: &GroupKey| matches!(key.change, Change::Add(_));
        let added = self.keys.iter().zip(keys).filter(|(key, _)| is_added(key));
        let added: Vec<&[u8]> = added.map(|(_, key)| *key).collect();
        let mut found = store.strings_with_expiry(self.database.slot, &added).ok()?.into_iter();
        let are_distinct = store.held.are_distinct(keys.len());
        let mut planned: Vec<Planned> = Vec::with_capacity(keys.len());
        for (at, GroupKey { change, .. }) in self.keys.iter().enumerate() {
            let Change::Add(by) = *change else {
                planned.push(Planned::Given);
                continue;
            };
            let found = found.next().flatten();
            let earlier = if are_distinct { None } else { self.earlier(keys, &planned, buffer) };
            let sum = match (&earlier, &found) {
                (Some((value, expires_at)), _) => {
                    sum_of(Some(value), by).map(|sum| (sum, *expires_at))
                }
                (None, Some((value, expires_at))) => {
                    sum_of(Some(value), by).map(|sum| (sum, *expires_at))
                }
                (None, None) if has_hash(at) => Err(Fault::WrongType.into()),
                (None, None) => sum_of(None, by).map(|sum| (sum, None)),
            };
            planned.push(match sum {
                Ok((sum, expires_at)) => Planned::Sum(sum, expires_at),
                Err(error) => Planned::Failed(error),
            });
        }
        Some(planned)
    }

    /// Returns the value and expiry time that the commands planned so far give the next key; `None` if they
    /// do not change it.
    fn earlier(
        &self,
        keys: &[&[u8]],
        planned: &[Planned],
        buffer: &[u8],
    ) -> Option<(Vec<u8>, Option<u64>)> {
        let key = keys.get(planned.len())?;
        let earlier = keys.iter().zip(&self.keys).zip(planned).rev();
        let mut same = earlier.filter(|((other, _), _)| *other == key);
        same.find_map(|((_, key), planned)| match (planned, key.change) {
            (Planned::Given, Change::Set(value)) => Some((value.of(buffer).to_vec(), None)),
            (Planned::Sum(sum, expires_at), _) => Some((sum.to_string().into_bytes(), *expires_at)),
            _ => None,
        })
    }

    /// Performs one command, whose keys are those at `own`, in a write of its own.
    fn write_alone(&self, store: &mut Store<'_>, own: Range<usize>, buffer: &[u8]) -> Planned {
        let db = self.database.slot;
        let parts = self.keys.get(own).unwrap_or_default();
        let put = match parts {
            [GroupKey { key, change: Change::Add(by) }] => {
                let sum = add_to(store, db, key.of(buffer), *by);
                return sum.map_or_else(Planned::Failed, |sum| Planned::Sum(sum, None));
            }
            [GroupKey { key, change: Change::Set(value) }] => {
                store.put(db, key.of(buffer), value.of(buffer), None)
            }
            _ => {
                let pairs = parts.iter().filter_map(|GroupKey { key, change }| match change {
                    Change::Set(value) => Some((key.of(buffer), value.of(buffer))),
                    _ => None,
                });
                store.put_all(db, pairs)
            }
        };
        put.map_or_else(|error| Planned::Failed(error.into()), |()| Planned::Given)
    }

    /// Writes the replies; returns how many are errors.
    fn reply(&mut self, outcomes: &[Planned], out: &mut Vec<u8>) -> u64 {
        let mut errors = 0;
        let mut all = std::mem::take(out);
        for (member, outcome) in self.members.iter_mut().zip(outcomes) {
            let mut reply = Reply::new(all, member.protocol);
            match outcome {
                Planned::Given => reply.ok(),
                Planned::Sum(sum, _) => reply.integer(*sum),
                Planned::Failed(CommandError(text)) => {
                    errors += 1;
                    reply.error(text);
                }
                Planned::Waits => {}
            }
            all = reply.into_buffer();
            if !matches!(outcome, Planned::Waits) {
                member.reply_end = Some(all.len());
            }
        }
        *out = all;
        errors
    }
}

/// Locks keys; fails if one of them may be locked for long. While the server ends, the event loop waits for
/// the locks instead.
fn try_hold<'a>(shared: &'a Shared, keys: &[&[u8]]) -> Option<Held<'a>> {
    let held = match keys {
        [key] => shared.locks.try_hold(key),
        keys => shared.locks.try_hold_all(keys.iter().copied()),
    };
    let all = || shared.locks.hold_all(keys.iter().copied());
    held.or_else(|| shared.is_ending().then(all))
}
