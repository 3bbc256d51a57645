//! Numbers in fields.

use crate::call::{Call, Outcome, integer};
use crate::commands::integers::{NOT_A_FLOAT, OVERFLOW, float, sum};

pub(super) fn hincrby(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, field) = (call.db(), call.key(), call.argument(2));
    let by = call.integer(3)?;
    let hash = call.store.hash(db, key)?;
    let old = match &hash {
        Some(header) => call.store.field(db, header, field)?,
        None => None,
    };
    let old = old.as_deref().map_or(Some(0), integer).ok_or("ERR hash value is not an integer")?;
    let new = old.checked_add(by).ok_or(OVERFLOW)?;
    call.store.set_fields(db, key, hash, &[(field, new.to_string().as_bytes())])?;
    call.reply.integer(new);
    Ok(())
}

pub(super) fn hincrbyfloat(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, field) = (call.db(), call.key(), call.argument(2));
    let by = float(call.argument(3)).ok_or(NOT_A_FLOAT)?;
    if !by.is_finite() {
        return Err("ERR value is NaN or Infinity".into());
    }
    let hash = call.store.hash(db, key)?;
    let old = match &hash {
        Some(header) => call.store.field(db, header, field)?,
        None => None,
    };
    let old = old.as_deref().unwrap_or(b"0");
    let new = float(old).ok_or("ERR hash value is not a float")? + by;
    if !new.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let text = sum(old, call.argument(3), new);
    call.store.set_fields(db, key, hash, &[(field, text.as_bytes())])?;
    call.reply.bulk(text.as_bytes());
    Ok(())
}
