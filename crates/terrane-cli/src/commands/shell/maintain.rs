//! The commands that show and change the database as a whole.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde::Serialize;
use terrane::{Clock, SystemClock};
use terrane_lab::input::spec;
use terrane_lab::output::human;
use terrane_lab::output::json::SCHEMA;

use super::session::Session;

#[derive(Serialize)]
struct JsonDesign {
    schema: u32,
    design: String,
}

#[derive(Serialize)]
struct JsonOptions {
    schema: u32,
    durability: String,
    io_budget: String,
    memory_budget: u64,
}

#[derive(Serialize)]
struct JsonTtl {
    schema: u32,
    exists: bool,
    /// `None` if the value does not expire.
    seconds: Option<f64>,
}

impl Session {
    /// Shows the design of the keyspace, or changes it.
    pub(super) fn design(&mut self, text: Option<&str>) -> Result<()> {
        if let Some(text) = text {
            self.keyspace().set_design(spec::parse(text)?)?;
            return Ok(self.answers().ok()?);
        }
        let design = self.keyspace().design().to_string();
        if self.answers().is_json() {
            return Ok(self.answers().json(&JsonDesign { schema: SCHEMA, design })?);
        }
        Ok(self.answers().text(&(design + "\n"))?)
    }

    /// Shows the options in effect.
    pub(super) fn options(&mut self) -> Result<()> {
        let db = self.db();
        let (durability, io_budget) = (db.durability().to_string(), db.io_budget().to_string());
        let memory_budget = db.stats().memory.budget_bytes;
        if self.answers().is_json() {
            let json = JsonOptions { schema: SCHEMA, durability, io_budget, memory_budget };
            return Ok(self.answers().json(&json)?);
        }
        let memory = human::bytes(memory_budget);
        let text = format!(
            "durability     {durability}\nio_budget      {io_budget}\nmemory_budget  {memory}\n"
        );
        Ok(self.answers().text(&text)?)
    }

    /// Makes a copy of the database.
    pub(super) fn checkpoint(&mut self, dir: &str) -> Result<()> {
        self.db().checkpoint(Path::new(dir))?;
        Ok(self.answers().ok()?)
    }

    /// Shows the time until a value expires, or changes it.
    pub(super) fn ttl(&mut self, key: &[u8], ttl: Option<Duration>) -> Result<()> {
        if let Some(ttl) = ttl {
            let mut tx = self.db().begin();
            let value = tx.get_in(self.keyspace(), key)?;
            let value = value.ok_or_else(|| anyhow!("no value to expire"))?;
            tx.put_with_ttl_in(self.keyspace(), key, value, ttl)?;
            tx.commit()?;
            return Ok(self.answers().ok()?);
        }
        let found = self.keyspace().get_with_expiry(key)?;
        let exists = found.is_some();
        let left = found
            .and_then(|(_, expires_at)| expires_at)
            .map(|micros| Duration::from_micros(micros.saturating_sub(SystemClock.now_micros())));
        if self.answers().is_json() {
            let seconds = left.map(|left| left.as_secs_f64());
            return Ok(self.answers().json(&JsonTtl { schema: SCHEMA, exists, seconds })?);
        }
        let text = match (exists, left) {
            (false, _) => "(nil)".to_owned(),
            (true, None) => "(never)".to_owned(),
            (true, Some(left)) => human::duration(left),
        };
        Ok(self.answers().text(&(text + "\n"))?)
    }
}
