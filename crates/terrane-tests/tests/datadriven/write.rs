//! Lines of operations.

use terrane::{Error, Keyspace, WriteBatch, WriteOptions};
use terrane_testkit::datadriven::Case;

use crate::session::Session;

/// One operation of a line, or several for `fill`.
enum Operation {
    Put(Keyspace, String, String),
    Delete(Keyspace, String),
    DeleteRange(Keyspace, String, String),
}

/// The keyspace and the key of `other/k1` or `k1`.
pub(crate) fn place(session: &Session, word: &str) -> (Keyspace, String) {
    match word.split_once('/') {
        Some((keyspace, key)) => (session.keyspace(Some(keyspace)), key.to_owned()),
        None => (session.keyspace(None), word.to_owned()),
    }
}

/// The operations of all lines.
fn parse(session: &Session, input: &str) -> Vec<Operation> {
    let mut operations = Vec::new();
    for line in input.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["put", key, value] => {
                let (keyspace, key) = place(session, key);
                operations.push(Operation::Put(keyspace, key, value.into()));
            }
            ["delete", key] => {
                let (keyspace, key) = place(session, key);
                operations.push(Operation::Delete(keyspace, key));
            }
            ["delete-range", from, to] => {
                let (keyspace, from) = place(session, from);
                operations.push(Operation::DeleteRange(keyspace, from, to.into()));
            }
            // Values begin with the last word, so that a script sees which round wrote them.
            ["fill", range, size, value] => {
                let (keyspace, range) = place(session, range);
                let (from, to) = range.split_once("..").unwrap();
                let size: usize = size.parse().unwrap();
                for number in from.parse::<u32>().unwrap()..to.parse().unwrap() {
                    let value = format!("{value:x<size$}");
                    operations.push(Operation::Put(
                        keyspace.clone(),
                        format!("{number:04}"),
                        value,
                    ));
                }
            }
            _ => panic!("unknown operation '{line}'"),
        }
    }
    operations
}

fn add(batch: &mut WriteBatch, operation: &Operation) {
    match operation {
        Operation::Put(keyspace, key, value) => batch.put_in(keyspace, key, value),
        Operation::Delete(keyspace, key) => batch.delete_in(keyspace, key),
        Operation::DeleteRange(keyspace, from, to) => {
            batch.delete_range_in(keyspace, from.as_str()..to.as_str())
        }
    };
}

/// Carries out all lines, either in one batch or with a separate write for each operation.
pub(crate) fn write(session: &Session, case: &Case, is_batch: bool) -> Result<String, Error> {
    let mut options = WriteOptions::new();
    if let Some(durability) = case.argument("durability") {
        options = options.durability(durability.parse()?);
    }
    let operations = parse(session, &case.input);
    let mut batch = WriteBatch::new();
    for operation in &operations {
        add(&mut batch, operation);
        if !is_batch {
            session.db().write_with(&batch, options)?;
            batch.clear();
        }
    }
    if is_batch {
        session.db().write_with(&batch, options)?;
    }
    Ok(format!("seq {}", session.db().snapshot().sequence_number()))
}
