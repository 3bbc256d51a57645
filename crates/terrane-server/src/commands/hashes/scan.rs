//! `HSCAN`.
//!
//! A scan visits the fields in their order and continues after the last one, as `SCAN` does for keys.

use crate::base::glob::matches;
use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::scan::{MAX_COUNT, cursor, position};
use crate::store::Scanned;

struct Options<'c> {
    pattern: Option<&'c [u8]>,
    count: usize,
    without_values: bool,
}

fn options<'c>(call: &Call<'c, '_>) -> Outcome<Options<'c>> {
    let mut options = Options { pattern: None, count: 10, without_values: false };
    let mut index = 3;
    while index < call.arguments.len() {
        if call.is(index, "novalues") {
            options.without_values = true;
            index += 1;
            continue;
        }
        let argument = call.arguments.get(index + 1).ok_or(SYNTAX)?;
        if call.is(index, "match") {
            options.pattern = Some(argument);
        } else if call.is(index, "count") {
            let count = usize::try_from(call.integer(index + 1)?).ok();
            options.count = count.filter(|count| *count > 0).ok_or(SYNTAX)?.min(MAX_COUNT);
        } else {
            return Err(SYNTAX.into());
        }
        index += 2;
    }
    Ok(options)
}

pub(super) fn hscan(call: &mut Call<'_, '_>) -> Outcome {
    let cursor = cursor(call, 2)?;
    let Options { pattern, count, without_values } = options(call)?;
    let (db, store) = (call.db(), &*call.store);
    let after = position(call, Scanned::Fields(db), cursor, "HSCAN key 0")?;
    let limit = call.shared.config.limits.output_bytes / 2;
    let page = store.read_hash(db, call.key(), |header| {
        let mut page = Page::default();
        let mut bytes = 0;
        for entry in store.fields(db, header, after.as_deref())? {
            let (field, value) = entry?;
            if page.visited == count || bytes > limit {
                page.is_more = true;
                break;
            }
            page.visited += 1;
            page.last = Some(field.clone());
            if pattern.is_none_or(|pattern| matches(pattern, &field)) {
                bytes += field.len() + value.len();
                page.entries.push((field, value));
            }
        }
        Ok(Some(page).filter(|page| page.visited > 0))
    })?;
    let Page { entries, last, is_more, .. } = page.unwrap_or_default();
    let next = match last.filter(|_| is_more) {
        Some(field) => call.shared.cursors.add(Scanned::Fields(db), &field),
        None => 0,
    };
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(if without_values { entries.len() } else { entries.len() * 2 });
    for (field, value) in &entries {
        call.reply.bulk(field);
        if !without_values {
            call.reply.bulk(value);
        }
    }
    Ok(())
}

/// The fields that a call has visited.
#[derive(Default)]
struct Page {
    entries: Vec<(terrane::Key, terrane::Value)>,
    visited: usize,
    last: Option<terrane::Key>,
    is_more: bool,
}
