//! Setting values: `SET` and its variants, and `GETEX`.

use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::expiry::{Unit, expiry_of};
use crate::store::{Fault, Found};

/// What `SET` and `GETEX` do about the expiry of the value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpiryChange {
    /// `SET` removes it, `GETEX` keeps it.
    Default,
    Keep,
    Remove,
    At(u64),
}

/// The options of `SET`.
struct SetOptions {
    if_absent: bool,
    if_present: bool,
    returns_old: bool,
    expiry: ExpiryChange,
}

/// Parses an option that sets an expiry time, with its argument at `index + 1`; `None` for another option.
fn expiry_option(call: &Call<'_, '_>, index: usize, command: &str) -> Outcome<Option<u64>> {
    let unit = Unit::ALL.into_iter().find(|unit| call.is(index, unit.option()));
    let Some(unit) = unit else { return Ok(None) };
    if call.arguments.get(index + 1).is_none() {
        return Err(SYNTAX.into());
    }
    expiry_of(call, index + 1, unit, command).map(Some)
}

fn set_options(call: &Call<'_, '_>) -> Outcome<SetOptions> {
    let mut options = SetOptions {
        if_absent: false,
        if_present: false,
        returns_old: false,
        expiry: ExpiryChange::Default,
    };
    let mut index = 3;
    while index < call.arguments.len() {
        if call.is(index, "nx") {
            options.if_absent = true;
        } else if call.is(index, "xx") {
            options.if_present = true;
        } else if call.is(index, "get") {
            options.returns_old = true;
        } else if options.expiry != ExpiryChange::Default {
            return Err(SYNTAX.into());
        } else if call.is(index, "keepttl") {
            options.expiry = ExpiryChange::Keep;
        } else {
            let expires_at = expiry_option(call, index, "set")?.ok_or(SYNTAX)?;
            options.expiry = ExpiryChange::At(expires_at);
            index += 1;
        }
        index += 1;
    }
    if options.if_absent && options.if_present { Err(SYNTAX.into()) } else { Ok(options) }
}

pub(super) fn set(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, value) = (call.db(), call.key(), call.argument(2));
    if call.arguments.len() == 3 {
        call.store.put(db, key, value, None)?;
        call.reply.ok();
        return Ok(());
    }
    let options = set_options(call)?;
    let needs_old = options.returns_old || options.expiry == ExpiryChange::Keep;
    let old = if needs_old { call.store.find(db, key)? } else { None };
    if options.returns_old && matches!(old, Some(Found::Hash(_))) {
        return Err(Fault::WrongType.into());
    }
    let is_set = match (options.if_absent, options.if_present) {
        (false, false) => true,
        (if_absent, _) => {
            let exists = if needs_old { old.is_some() } else { call.store.contains(db, key)? };
            exists != if_absent
        }
    };
    if is_set {
        let expires_at = match options.expiry {
            ExpiryChange::Keep => old.as_ref().and_then(Found::expires_at),
            ExpiryChange::At(expires_at) => Some(expires_at),
            ExpiryChange::Default | ExpiryChange::Remove => None,
        };
        call.put_until(key, value, expires_at)?;
    }
    match (options.returns_old, is_set) {
        (true, _) => match &old {
            Some(Found::String((value, _))) => call.reply.bulk(value),
            _ => call.reply.null(),
        },
        (false, true) => call.reply.ok(),
        (false, false) => call.reply.null(),
    }
    Ok(())
}

pub(super) fn setex(call: &mut Call<'_, '_>) -> Outcome {
    set_for(call, Unit::Seconds, "setex")
}

pub(super) fn psetex(call: &mut Call<'_, '_>) -> Outcome {
    set_for(call, Unit::Milliseconds, "psetex")
}

fn set_for(call: &mut Call<'_, '_>, unit: Unit, command: &str) -> Outcome {
    let expires_at = expiry_of(call, 2, unit, command)?;
    let (key, value) = (call.key(), call.argument(3));
    call.put_until(key, value, Some(expires_at))?;
    call.reply.ok();
    Ok(())
}

pub(super) fn setnx(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, value) = (call.db(), call.key(), call.argument(2));
    let is_absent = !call.store.contains(db, key)?;
    if is_absent {
        call.store.put(db, key, value, None)?;
    }
    call.reply.integer(i64::from(is_absent));
    Ok(())
}

pub(super) fn getset(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, value) = (call.db(), call.key(), call.argument(2));
    let old = call.store.get(db, key)?;
    call.store.put(db, key, value, None)?;
    call.reply.bulk_or_null(old.as_deref());
    Ok(())
}

pub(super) fn getex(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let change = match call.arguments.len() {
        2 => ExpiryChange::Default,
        3 if call.is(2, "persist") => ExpiryChange::Remove,
        4 => ExpiryChange::At(expiry_option(call, 2, "getex")?.ok_or(SYNTAX)?),
        _ => return Err(SYNTAX.into()),
    };
    let Some((value, expires_at)) = call.store.get_with_expiry(db, key)? else {
        call.reply.null();
        return Ok(());
    };
    match change {
        ExpiryChange::At(at) => call.put_until(key, &value, Some(at))?,
        ExpiryChange::Remove if expires_at.is_some() => call.put_until(key, &value, None)?,
        _ => {}
    }
    call.reply.bulk(&value);
    Ok(())
}
