//! The commands that read a range.

use std::time::Instant;

use anyhow::{Result, anyhow};
use terrane_lab::host::interrupt;
use terrane_lab::input::kv_literal::KeyBounds;
use terrane_lab::output::human;

use super::command::Order;
use super::session::Session;

impl Session {
    pub(super) fn scan(&mut self, range: KeyBounds, limit: u64, order: Order) -> Result<()> {
        let cancellable = self.cancellable();
        let begun = Instant::now();
        let mut entries = self.keyspace().range(range)?;
        let mut count = 0;
        while count < limit {
            match order {
                Order::Ascending => {
                    if !entries.advance()? {
                        break;
                    }
                    self.answers().entry(entries.key(), entries.value())?;
                }
                Order::Descending => {
                    let Some(entry) = entries.next_back() else { break };
                    let (key, value) = entry?;
                    self.answers().entry(&key, &value)?;
                }
            }
            count += 1;
            if cancellable.is_some() && interrupt::is_cancelled() {
                return Err(anyhow!("cancelled after {}", human::counted(count, "entry")));
            }
        }
        Ok(self.answers().entries(count, begun)?)
    }

    pub(super) fn count(&mut self, range: KeyBounds) -> Result<()> {
        let cancellable = self.cancellable();
        let mut entries = self.keyspace().range(range)?.keys_only();
        let mut count = 0;
        while entries.advance()? {
            count += 1;
            if cancellable.is_some() && interrupt::is_cancelled() {
                return Err(anyhow!("cancelled after {}", human::counted(count, "key")));
            }
        }
        Ok(self.answers().count(count)?)
    }

    pub(super) fn keys(&mut self, range: KeyBounds, limit: u64) -> Result<()> {
        let cancellable = self.cancellable();
        let begun = Instant::now();
        let mut entries = self.keyspace().range(range)?.keys_only();
        let mut count = 0;
        while count < limit && entries.advance()? {
            self.answers().key(entries.key())?;
            count += 1;
            if cancellable.is_some() && interrupt::is_cancelled() {
                return Err(anyhow!("cancelled after {}", human::counted(count, "key")));
            }
        }
        Ok(self.answers().entries(count, begun)?)
    }
}
