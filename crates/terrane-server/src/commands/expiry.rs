//! The expiry of values.

use terrane::{Clock, SystemClock};

use crate::call::catalogue::{FAST, Family, ONE_KEY, READ, WRITE, command};
use crate::call::{Call, Outcome};

const SETS: u16 = WRITE | FAST;
const READS: u16 = READ | FAST;

pub(super) const FAMILY: Family = Family {
    group: "generic",
    commands: &[
        command("expire", -3, SETS, ONE_KEY, "Lets a value expire after seconds.", expire),
        command("pexpire", -3, SETS, ONE_KEY, "Lets a value expire after milliseconds.", pexpire),
        command(
            "expireat",
            -3,
            SETS,
            ONE_KEY,
            "Lets a value expire at a time in seconds.",
            expireat,
        ),
        command(
            "pexpireat",
            -3,
            SETS,
            ONE_KEY,
            "Lets a value expire at a time in milliseconds.",
            pexpireat,
        ),
        command("persist", 2, SETS, ONE_KEY, "Removes the expiry time of a value.", persist),
        command("ttl", 2, READS, ONE_KEY, "Returns the seconds until a value expires.", ttl),
        command("pttl", 2, READS, ONE_KEY, "Returns the milliseconds until a value expires.", pttl),
        command(
            "expiretime",
            2,
            READS,
            ONE_KEY,
            "Returns when a value expires, in seconds.",
            expiretime,
        ),
        command(
            "pexpiretime",
            2,
            READS,
            ONE_KEY,
            "Returns when a value expires, in milliseconds.",
            pexpiretime,
        ),
    ],
};

/// How a command states the expiry time of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    AtSeconds,
    AtMilliseconds,
}

impl Unit {
    pub(super) const ALL: [Self; 4] =
        [Self::Seconds, Self::Milliseconds, Self::AtSeconds, Self::AtMilliseconds];

    /// Returns the option of `SET` and `GETEX`.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Seconds => "ex",
            Self::Milliseconds => "px",
            Self::AtSeconds => "exat",
            Self::AtMilliseconds => "pxat",
        }
    }

    /// Returns the expiry time in microseconds since the Unix epoch; `None` if it is out of range.
    fn expires_at(self, value: i64, now_micros: u64) -> Option<i64> {
        let now = i64::try_from(now_micros).ok()?;
        match self {
            Self::Seconds => value.checked_mul(1_000_000)?.checked_add(now),
            Self::Milliseconds => value.checked_mul(1000)?.checked_add(now),
            Self::AtSeconds => value.checked_mul(1_000_000),
            Self::AtMilliseconds => value.checked_mul(1000),
        }
    }
}

/// Parses a positive time of `SET` and its variants.
pub(super) fn expiry_of(
    call: &Call<'_, '_>,
    index: usize,
    unit: Unit,
    command: &str,
) -> Outcome<u64> {
    let value = call.integer(index)?;
    let expires_at = unit
        .expires_at(value, SystemClock.now_micros())
        .and_then(|expires_at| u64::try_from(expires_at).ok());
    let expires_at = expires_at.filter(|_| value > 0);
    Ok(expires_at.ok_or_else(|| format!("ERR invalid expire time in '{command}' command"))?)
}

fn expire(call: &mut Call<'_, '_>) -> Outcome {
    set_expiry(call, Unit::Seconds, "expire")
}

fn pexpire(call: &mut Call<'_, '_>) -> Outcome {
    set_expiry(call, Unit::Milliseconds, "pexpire")
}

fn expireat(call: &mut Call<'_, '_>) -> Outcome {
    set_expiry(call, Unit::AtSeconds, "expireat")
}

fn pexpireat(call: &mut Call<'_, '_>) -> Outcome {
    set_expiry(call, Unit::AtMilliseconds, "pexpireat")
}

/// The condition of `EXPIRE`.
#[derive(Clone, Copy, Default)]
struct Condition {
    without_expiry: bool,
    with_expiry: bool,
    later: bool,
    earlier: bool,
}

impl Condition {
    fn of(call: &Call<'_, '_>) -> Outcome<Self> {
        let mut condition = Self::default();
        for index in 3..call.arguments.len() {
            let flag = match call.argument(index).to_ascii_lowercase().as_slice() {
                b"nx" => &mut condition.without_expiry,
                b"xx" => &mut condition.with_expiry,
                b"gt" => &mut condition.later,
                b"lt" => &mut condition.earlier,
                other => {
                    let other = String::from_utf8_lossy(other).into_owned();
                    return Err(format!("ERR Unsupported option {other}").into());
                }
            };
            *flag = true;
        }
        let Self { without_expiry, with_expiry, later, earlier } = condition;
        if without_expiry && (with_expiry || later || earlier) {
            return Err(
                "ERR NX and XX, GT or LT options at the same time are not compatible".into()
            );
        }
        if later && earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(condition)
    }

    fn holds(self, old: Option<u64>, new: i64) -> bool {
        // A value without an expiry time counts as expiring after any time.
        let old_micros = old.map_or(i64::MAX, |old| i64::try_from(old).unwrap_or(i64::MAX));
        (!self.without_expiry || old.is_none())
            && (!self.with_expiry || old.is_some())
            && (!self.later || (old.is_some() && new > old_micros))
            && (!self.earlier || new < old_micros)
    }
}

fn set_expiry(call: &mut Call<'_, '_>, unit: Unit, command: &str) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let value = call.integer(2)?;
    let condition = Condition::of(call)?;
    let now = SystemClock.now_micros();
    let expires_at = unit
        .expires_at(value, now)
        .ok_or_else(|| format!("ERR invalid expire time in '{command}' command"))?;
    let Some(found) = call.store.find(db, key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let is_changed = condition.holds(found.expires_at(), expires_at);
    match u64::try_from(expires_at) {
        _ if !is_changed => {}
        Ok(expires_at) if expires_at > now => {
            call.store.set_expiry(db, key, &found, Some(expires_at))?;
        }
        // A time that has passed, perhaps before the epoch.
        _ => drop(call.store.delete(db, key)?),
    }
    call.reply.integer(i64::from(is_changed));
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let found = call.store.find(db, key)?;
    let expiring = found.filter(|found| found.expires_at().is_some());
    if let Some(found) = &expiring {
        call.store.set_expiry(db, key, found, None)?;
    }
    call.reply.integer(i64::from(expiring.is_some()));
    Ok(())
}

fn ttl(call: &mut Call<'_, '_>) -> Outcome {
    report(call, |expires_at| {
        (expires_at.saturating_sub(SystemClock.now_micros()) / 1000 + 500) / 1000
    })
}

fn pttl(call: &mut Call<'_, '_>) -> Outcome {
    report(call, |expires_at| expires_at.saturating_sub(SystemClock.now_micros()).div_ceil(1000))
}

fn expiretime(call: &mut Call<'_, '_>) -> Outcome {
    report(call, |expires_at| (expires_at / 1000 + 500) / 1000)
}

fn pexpiretime(call: &mut Call<'_, '_>) -> Outcome {
    report(call, |expires_at| expires_at / 1000)
}

fn report(call: &mut Call<'_, '_>, number: impl Fn(u64) -> u64) -> Outcome {
    let found = call.store.find(call.db(), call.key())?;
    call.reply.integer(match found.map(|found| found.expires_at()) {
        None => -2,
        Some(None) => -1,
        Some(Some(expires_at)) => i64::try_from(number(expires_at)).unwrap_or(i64::MAX),
    });
    Ok(())
}
