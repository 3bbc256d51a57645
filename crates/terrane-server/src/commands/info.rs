//! `INFO`: the state of the server and of the database, in the sections of Redis and `# Terrane`.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use terrane::FailureCause;
use terrane::policy::Admission;

use super::connection::REDIS_VERSION;
use crate::call::catalogue::{Family, NO_KEYS, READ, STATE, command};
use crate::call::shared::Shared;
use crate::call::{Call, Outcome};
use crate::state::users::User;

pub(super) const FAMILY: Family = Family {
    group: "server",
    commands: &[command(
        "info",
        -1,
        STATE | READ,
        NO_KEYS,
        "Returns the state of the server.",
        info,
    )],
};

/// Writes a section, limited to the keyspaces of the given user.
type Section = fn(&Shared, Option<&User>, &mut String) -> std::fmt::Result;

const SECTIONS: [(&str, Section); 10] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Cluster", cluster),
    ("Terrane", terrane),
    ("Keyspace", keyspace),
];

fn info(call: &mut Call<'_, '_>) -> Outcome {
    let wanted: Vec<Vec<u8>> = call.arguments.from(1).map(<[u8]>::to_ascii_lowercase).collect();
    let is_all = wanted.iter().any(|name| matches!(&name[..], b"all" | b"default" | b"everything"));
    let mut text = String::new();
    for (name, section) in SECTIONS {
        let is_wanted = wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name.as_bytes()));
        if wanted.is_empty() || is_all || is_wanted {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}# {name}\r\n");
            let _ = section(call.shared, call.session.user.as_deref(), &mut text);
        }
    }
    call.reply.verbatim(&text);
    Ok(())
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) -> std::fmt::Result {
    write!(out, "{name}:{value}\r\n")
}

fn server(shared: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    let uptime = shared.started.elapsed().as_secs();
    line(out, "redis_version", REDIS_VERSION)?;
    line(out, "terrane_version", env!("CARGO_PKG_VERSION"))?;
    line(out, "redis_mode", "standalone")?;
    line(out, "os", format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH))?;
    line(out, "arch_bits", usize::BITS)?;
    line(out, "process_id", std::process::id())?;
    line(out, "run_id", &shared.run_id)?;
    line(out, "tcp_port", shared.port)?;
    line(out, "uptime_in_seconds", uptime)?;
    line(out, "uptime_in_days", uptime / 86_400)?;
    line(out, "io_threads_active", shared.config.worker_count())?;
    line(out, "directory", shared.databases.db().path().display())
}

fn clients(shared: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    line(out, "connected_clients", shared.clients.len())?;
    line(out, "maxclients", shared.settings.connections.load(Ordering::Relaxed))?;
    line(out, "blocked_clients", 0)
}

fn memory(shared: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    let stats = shared.databases.db().stats();
    line(out, "used_memory", stats.memory.total_bytes())?;
    line(out, "client_buffers", shared.buffered.load(Ordering::Relaxed))?;
    line(out, "maxmemory", 0)?;
    line(out, "maxmemory_policy", "noeviction")
}

fn persistence(shared: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    line(out, "loading", 0)?;
    line(out, "rdb_last_save_time", shared.counts.last_save_seconds.load(Ordering::Relaxed))?;
    line(out, "aof_enabled", u8::from(shared.durability != terrane::Durability::None))?;
    let stats = shared.databases.db().stats();
    // Damage is met by reads and jobs, and does not refuse writes.
    let refusals = stats.failures.iter().filter(|failure| failure.cause != FailureCause::Damage);
    let status = if refusals.count() == 0 { "ok" } else { "err" };
    // The names that dashboards of Redis watch.
    line(out, "aof_last_write_status", status)?;
    line(out, "rdb_last_bgsave_status", status)?;
    line(out, "durability", shared.durability)?;
    let causes: Vec<&str> = stats.failures.iter().map(|failure| failure.cause.name()).collect();
    line(out, "terrane_failed", if causes.is_empty() { "no".into() } else { causes.join(",") })?;
    line(out, "terrane_damaged_reads", stats.damaged_reads)?;
    // An error has no line breaks, which would end the field.
    let error =
        stats.failures.first().map(|failure| failure.error.to_string().replace(['\r', '\n'], " "));
    line(out, "terrane_error", error.unwrap_or_default())
}

fn stats(shared: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    let counts = &shared.counts;
    for (name, count) in [
        ("total_connections_received", &counts.connections),
        ("total_commands_processed", &counts.commands),
        ("total_net_input_bytes", &counts.bytes_in),
        ("total_net_output_bytes", &counts.bytes_out),
        ("rejected_connections", &counts.rejected),
        ("total_error_replies", &counts.errors),
        ("keyspace_hits", &counts.hits),
        ("keyspace_misses", &counts.misses),
        ("client_output_buffer_limit_disconnections", &counts.slow_clients),
        ("failed_tls_handshakes", &counts.failed_handshakes),
    ] {
        line(out, name, count.load(Ordering::Relaxed))?;
    }
    let (channels, patterns) = shared.channels.counts();
    line(out, "pubsub_channels", channels)?;
    line(out, "pubsub_patterns", patterns)?;
    line(out, "slowlog_len", shared.slow_log.len())
}

fn replication(_: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    line(out, "role", "master")?;
    line(out, "connected_slaves", 0)
}

fn cluster(_: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    line(out, "cluster_enabled", 0)
}

#[cfg(unix)]
fn cpu(_: &Shared, _: Option<&User>, out: &mut String) -> std::fmt::Result {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    line(out, "used_cpu", format_args!("{}.{:06}", used.tv_sec, used.tv_nsec / 1000))
}

#[cfg(not(unix))]
fn cpu(_: &Shared, _: Option<&User>, _: &mut String) -> std::fmt::Result {
    Ok(())
}

/// Returns whether a user may see the keyspace of a slot.
fn is_visible(shared: &Shared, user: Option<&User>, slot: usize) -> bool {
    user.is_none_or(|user| user.may_use(shared.databases.name(slot)))
}

/// The tree of each database, stalls and amplification.
fn terrane(shared: &Shared, user: Option<&User>, out: &mut String) -> std::fmt::Result {
    let stats = shared.databases.db().stats();
    // Neither exists before the first write and the first lookup.
    for (name, ratio) in [
        ("write_amplification", stats.write_amplification()),
        ("read_amplification", stats.read_amplification()),
    ] {
        if let Some(ratio) = ratio {
            line(out, name, format_args!("{ratio:.2}"))?;
        }
    }
    line(out, "stall_micros", stats.stalls.total_micros())?;
    line(out, "failed", u8::from(stats.error.is_some()))?;
    if let Some(error) = &stats.error {
        line(out, "error", error.to_string().replace(['\r', '\n'], " "))?;
    }
    let all = shared.databases.all();
    for (slot, keyspace) in all.filter(|(slot, _)| is_visible(shared, user, *slot)) {
        let Some(index) = shared.databases.number(slot) else { continue };
        let tree = keyspace.tree();
        let admission = match &tree.admission {
            Admission::Proceed => "proceed".to_owned(),
            Admission::Delay(pressure) => format!("delayed by {pressure}"),
            Admission::Stop(pressure) => format!("stopped by {pressure}"),
        };
        line(out, &format!("db{index}_design"), &tree.design)?;
        line(out, &format!("db{index}_writers"), admission)?;
        line(out, &format!("db{index}_memtable_bytes"), tree.memtable_bytes)?;
        line(out, &format!("db{index}_immutable_memtables"), tree.immutable_memtables)?;
        line(out, &format!("db{index}_running_compactions"), tree.compactions.len())?;
        for (level, contents) in tree.shape.levels.iter().enumerate() {
            let tables = contents.runs.iter().map(|run| run.tables.len()).sum::<usize>();
            let runs = contents.runs.len();
            line(
                out,
                &format!("db{index}_level{level}"),
                format_args!("runs={runs},tables={tables}"),
            )?;
        }
    }
    Ok(())
}

/// The databases that have keys. The counts are estimates.
fn keyspace(shared: &Shared, user: Option<&User>, out: &mut String) -> std::fmt::Result {
    let databases = &shared.databases;
    let all = (0..databases.len()).map(|index| (index, databases.slot(index)));
    for (index, slot) in all.filter(|(_, slot)| is_visible(shared, user, *slot)) {
        let keys = databases.approximate_len(slot).unwrap_or(0);
        if keys > 0 {
            line(out, &format!("db{index}"), format_args!("keys={keys},expires=0,avg_ttl=0"))?;
        }
    }
    Ok(())
}
