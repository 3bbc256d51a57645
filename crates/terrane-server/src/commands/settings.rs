//! `CONFIG`: settings under their Redis names.

use std::sync::atomic::{AtomicU64, Ordering};

use terrane::Durability;

use crate::base::file_limit::connections_max;
use crate::base::glob::matches;
use crate::base::keyspace_events::KeyspaceEvents;
use crate::call::catalogue::{ADMIN, Family, NO_KEYS, command};
use crate::call::shared::Shared;
use crate::call::{Call, Outcome, integer};
use crate::commands::dispatch::{unknown_subcommand, wrong_subcommand_arity};

pub(super) const FAMILY: Family = Family {
    group: "server",
    commands: &[command("config", -2, ADMIN, NO_KEYS, "Returns and changes settings.", config)],
};

fn config(call: &mut Call<'_, '_>) -> Outcome {
    match (call.argument(1).to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"get", 3..) => get(call),
        (b"set", 4..) if call.arguments.len().is_multiple_of(2) => set(call)?,
        (b"resetstat", 2) => {
            reset_counts(call.shared);
            call.reply.ok();
        }
        (b"rewrite", 2) => {
            return Err("ERR The server is running without a config file".into());
        }
        (b"help", 2) => call
            .reply
            .texts(&["CONFIG GET pattern ... | CONFIG SET parameter value ... | CONFIG RESETSTAT"]),
        (b"get" | b"set" | b"resetstat" | b"rewrite", _) => {
            return Err(wrong_subcommand_arity(call));
        }
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}

/// Returns every setting as text, by its name in Redis.
fn all(shared: &Shared) -> Vec<(&'static str, String)> {
    let (config, limits, settings) = (&shared.config, &shared.config.limits, &shared.settings);
    let fsync = match shared.durability {
        Durability::Sync => "always",
        Durability::Interval(_) => "everysec",
        _ => "no",
    };
    let bind: Vec<String> = config.listen.iter().map(|address| address.ip().to_string()).collect();
    let socket =
        config.unix_socket.as_ref().map_or(String::new(), |path| path.display().to_string());
    let is_logged = shared.durability != Durability::None;
    let output = limits.output_bytes;
    let yes_or_no = |is_on: bool| if is_on { "yes" } else { "no" }.to_owned();
    vec![
        ("appendfsync", fsync.to_owned()),
        ("appendonly", yes_or_no(is_logged)),
        ("bind", bind.join(" ")),
        ("client-output-buffer-limit", format!("normal {output} 0 0")),
        ("databases", shared.databases.len().to_string()),
        ("dir", shared.databases.db().path().display().to_string()),
        ("io-threads", config.worker_count().to_string()),
        ("latency-monitor-threshold", settings.latency_millis.load(Ordering::Relaxed).to_string()),
        ("maxclients", settings.connections.load(Ordering::Relaxed).to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("notify-keyspace-events", keyspace_events(shared).to_string()),
        ("port", shared.port.to_string()),
        ("proto-max-bulk-len", limits.bulk_bytes.to_string()),
        ("protected-mode", yes_or_no(!config.insecure)),
        ("save", String::new()),
        ("slowlog-log-slower-than", settings.slow_micros.load(Ordering::Relaxed).to_string()),
        ("slowlog-max-len", settings.slow_log_len.load(Ordering::Relaxed).to_string()),
        ("timeout", settings.idle_seconds.load(Ordering::Relaxed).to_string()),
        ("unixsocket", socket),
        ("unixsocketperm", format!("{:o}", config.unix_socket_mode)),
    ]
}

fn keyspace_events(shared: &Shared) -> KeyspaceEvents {
    KeyspaceEvents::of(shared.settings.keyspace_events.load(Ordering::Relaxed))
}

fn get(call: &mut Call<'_, '_>) {
    let patterns: Vec<Vec<u8>> = call.arguments.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let is_wanted = |name: &str| patterns.iter().any(|pattern| matches(pattern, name.as_bytes()));
    let found: Vec<_> = all(call.shared).into_iter().filter(|(name, _)| is_wanted(name)).collect();
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
}

fn set(call: &mut Call<'_, '_>) -> Outcome {
    // Checked first, so that a call changes all settings or none.
    let mut changes: Vec<(&[u8], i64)> = Vec::new();
    let mut index = 2;
    while index < call.arguments.len() {
        let (name, value) = (call.argument(index), call.argument(index + 1));
        changes.push((name, checked(call, name, value)?));
        index += 2;
    }
    let settings = &call.shared.settings;
    for (name, value) in changes {
        tracing::info!(
            target: "terrane_server",
            kind = "setting-changed",
            "a client set {} to {value}",
            name.escape_ascii()
        );
        let size = usize::try_from(value).unwrap_or(0);
        match name.to_ascii_lowercase().as_slice() {
            b"timeout" => settings.idle_seconds.store(value.unsigned_abs(), Ordering::Relaxed),
            b"maxclients" => settings.connections.store(size, Ordering::Relaxed),
            b"latency-monitor-threshold" => {
                settings.latency_millis.store(value.unsigned_abs(), Ordering::Relaxed);
            }
            b"notify-keyspace-events" => {
                let bits = u16::try_from(value).unwrap_or(0);
                settings.keyspace_events.store(bits, Ordering::Relaxed);
            }
            b"slowlog-log-slower-than" => settings.slow_micros.store(value, Ordering::Relaxed),
            _ => settings.slow_log_len.store(size, Ordering::Relaxed),
        }
    }
    call.reply.ok();
    Ok(())
}

/// Checks a new value of a setting.
fn checked(call: &Call<'_, '_>, name: &[u8], value: &[u8]) -> Outcome<i64> {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let is_minus_one_allowed = match name.as_str() {
        "timeout" | "latency-monitor-threshold" | "maxclients" | "slowlog-max-len" => false,
        "slowlog-log-slower-than" => true,
        "notify-keyspace-events" => {
            let events = String::from_utf8_lossy(value).parse::<KeyspaceEvents>();
            return Ok(events.map(|events| i64::from(events.bits())).map_err(|error| {
                format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {error}")
            })?);
        }
        _ if all(call.shared).iter().any(|(known, _)| *known == name) => {
            return Err(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable \
                 config"
            )
            .into());
        }
        _ => {
            return Err(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )
            .into());
        }
    };
    let least = if is_minus_one_allowed { -1 } else { i64::from(name == "maxclients") };
    let number = integer(value).filter(|number| *number >= least);
    let is_possible = |number: i64| usize::try_from(number).is_ok_and(|it| it <= connections_max());
    if let Some(number) = number.filter(|number| name == "maxclients" && !is_possible(*number)) {
        return Err(format!(
            "ERR CONFIG SET failed (possibly related to argument 'maxclients') - the process may not open \
             enough files for {number} connections; try {}",
            connections_max()
        )
        .into());
    }
    Ok(number.ok_or_else(|| {
        format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - argument must be an integer \
             of at least {least}"
        )
    })?)
}

fn reset_counts(shared: &Shared) {
    let counts = &shared.counts;
    let all: [&AtomicU64; 8] = [
        &counts.commands,
        &counts.connections,
        &counts.rejected,
        &counts.errors,
        &counts.hits,
        &counts.misses,
        &counts.bytes_in,
        &counts.bytes_out,
    ];
    all.iter().for_each(|count| count.store(0, Ordering::Relaxed));
}
