//! The shell on a terminal: line editing, history and completion.
//!
//! Tab completes commands, names of keyspaces, and keys of the database. The history is a
//! file per user, readable only by them; `TERRANE_HISTORY` names another file, or none if it is
//! empty.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use terrane::{Db, Keyspace};

use super::command;
use super::session::{Next, Session};
use crate::terminal::Paint;
use terrane_lab::input::kv_literal;

/// The maximum number of keys that a completion offers.
const KEYS_OFFERED_MAX: usize = 20;

/// Runs typed commands until the user leaves.
pub(super) fn run(session: &mut Session) -> Result<()> {
    let mut editor: Editor<Completion, FileHistory> = Editor::new()?;
    let (db, keyspace) = (session.db().clone(), session.keyspace().clone());
    greet(&db)?;
    editor.set_helper(Some(Completion { db, keyspace }));
    let history = history_file();
    if let Some(path) = &history {
        // If the history cannot be read, start a new history.
        let _ = editor.load_history(path);
    }
    let mut number = 0;
    loop {
        let name = session.keyspace().name();
        let prompt = match (session.is_in_batch(), name) {
            (true, _) => "batch> ".to_owned(),
            (false, "default") => "terrane> ".to_owned(),
            (false, name) => format!("{name}> "),
        };
        match editor.readline(&prompt) {
            Ok(line) => {
                number += 1;
                if !line.trim().is_empty() {
                    editor.add_history_entry(&line)?;
                }
                let next = session.line(line.as_bytes(), number)?;
                session.answers().flush()?;
                if let Some(helper) = editor.helper_mut() {
                    // The first write may have created the database.
                    helper.db = session.db().clone();
                    helper.keyspace = session.keyspace().clone();
                }
                if next == Next::End {
                    break;
                }
            }
            // Ctrl-C discards the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(path) = &history {
        save(&mut editor, path);
    }
    session.finish()
}

fn greet(db: &Db) -> io::Result<()> {
    let paint = Paint::stderr();
    let version = paint.bold(concat!("terrane ", env!("CARGO_PKG_VERSION")));
    let (path, durability) = (db.path().display(), db.durability());
    let mut err = io::stderr();
    writeln!(err, "{version} · {path} · durability {durability}")?;
    writeln!(err, "{}", paint.dim("'help' lists the commands, Tab completes, Ctrl-D leaves"))
}

fn history_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("TERRANE_HISTORY") {
        return (!path.is_empty()).then(|| path.into());
    }
    let state = std::env::var_os("XDG_STATE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| Some(std::env::home_dir()?.join(".local/state")))?;
    Some(state.join("terrane").join("history"))
}

/// Saves the history; failures are ignored.
fn save(editor: &mut Editor<Completion, FileHistory>, path: &std::path::Path) {
    if let Some(dir) = path.parent() {
        let _ = std::fs::create_dir_all(dir);
    }
    // The editor creates the file readable only by its owner.
    let _ = editor.save_history(path);
}

/// Completion.
struct Completion {
    db: Db,
    keyspace: Keyspace,
}

impl Completion {
    /// Returns keys that start with the typed prefix.
    fn keys(&self, typed: &str) -> Vec<String> {
        let Ok(entries) = self.keyspace.prefix(typed) else { return Vec::new() };
        let keys = entries.map_while(Result::ok).take(KEYS_OFFERED_MAX);
        // A completion can only append to the typed text.
        keys.map(|(key, _)| kv_literal::print(&key)).filter(|key| key.starts_with(typed)).collect()
    }

    fn offers(&self, before: &str, typed: &str) -> Vec<String> {
        let words: Vec<&str> = before.split_whitespace().collect();
        match words.as_slice() {
            [] => command::ALL
                .iter()
                .filter(|about| about.name.starts_with(typed))
                .map(|about| format!("{} ", about.name))
                .collect(),
            ["use" | "rename" | "drop"] => {
                let names = self.db.keyspaces().into_iter();
                names.filter(|name| name.starts_with(typed)).collect()
            }
            ["help"] => {
                let names = command::ALL.iter().map(|about| about.name.to_owned());
                names.filter(|name| name.starts_with(typed)).collect()
            }
            ["put" | "get" | "del" | "exists" | "keys" | "scan" | "prefix"]
            | ["count", "prefix"] => self.keys(typed),
            _ => Vec::new(),
        }
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        Ok((start, self.offers(&before[..start], &before[start..])))
    }
}

impl Highlighter for Completion {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        Cow::Owned(Paint::stdout().bold(prompt))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Validator for Completion {}

impl Helper for Completion {}
