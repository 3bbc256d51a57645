//! The answer to `TERRANE.ADVISE`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use terrane::{Db, Keyspace};
use terrane_server::Advisor;

use crate::commands::advise::show;
use crate::terminal::Paint;
use terrane_lab::advice::decide::ChangeTerms;
use terrane_lab::advice::live::OperationWindow;

/// The gain that a change must have and the time in which it must pay for itself, as for `terrane advise`.
const TERMS: ChangeTerms = ChangeTerms { gain: 0.1, within: Duration::from_secs(3600) };

/// Returns an advisor for the operations since the start of the server, or since the last advice.
pub(super) fn advisor(db: &Db) -> Advisor {
    let (db, window) = (db.clone(), Mutex::new(OperationWindow::now(db)));
    Advisor::new(move |keyspace| {
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        advise(&mut window, &db, keyspace).map_err(|error| error.to_string())
    })
}

fn advise(window: &mut OperationWindow, db: &Db, keyspace: &Keyspace) -> Result<String> {
    let advice = window.advise(db, keyspace, TERMS)?;
    let mut text = Vec::new();
    show::advice(&mut text, &advice.report(false), Paint::off())?;
    Ok(String::from_utf8(text)?)
}
