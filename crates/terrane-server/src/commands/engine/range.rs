//! `TERRANE.RANGE`: strings in the order of their keys.

use std::ops::Bound;

use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::scan::MAX_COUNT;

/// Parses a bound in the syntax of `ZRANGEBYLEX`.
fn bound(text: &[u8]) -> Outcome<Bound<&[u8]>> {
    match text.split_first() {
        Some((b'[', key)) => Ok(Bound::Included(key)),
        Some((b'(', key)) => Ok(Bound::Excluded(key)),
        Some((b'-' | b'+', [])) => Ok(Bound::Unbounded),
        _ => Err("ERR a bound is [key, (key, - or +".into()),
    }
}

pub(super) fn range(call: &mut Call<'_, '_>) -> Outcome {
    let (start, stop) = (call.argument(1), call.argument(2));
    let (mut is_reversed, mut count, mut index) = (false, 1000, 3);
    while index < call.arguments.len() {
        if call.is(index, "rev") {
            is_reversed = true;
        } else if call.is(index, "limit") && index + 1 < call.arguments.len() {
            index += 1;
            let limit = usize::try_from(call.integer(index)?);
            count = limit.map_err(|_| "ERR LIMIT is negative")?.min(MAX_COUNT);
        } else {
            return Err(SYNTAX.into());
        }
        index += 1;
    }
    // No key can lie between these bounds.
    let is_empty = start == b"+" || stop == b"-";
    let (start, stop) = (bound(start)?, bound(stop)?);
    let mut entries = Vec::new();
    if !is_empty {
        let mut strings = call.store.strings(call.db(), (start, stop))?;
        let mut bytes = 0;
        while entries.len() < count && bytes <= call.shared.config.limits.output_bytes {
            let next = if is_reversed { strings.next_back() } else { strings.next() };
            let Some(entry) = next else { break };
            let (key, value) = entry?;
            bytes += key.len() + value.len() + 16;
            entries.push((key, value));
        }
    }
    call.reply.pairs(entries.len());
    for (key, value) in &entries {
        call.reply.pair();
        call.reply.bulk(key);
        call.reply.bulk(value);
    }
    call.check_reply_len()
}
