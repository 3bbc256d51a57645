//! `COMMAND`: describes the commands, from the catalogue.

use crate::base::glob::matches;
use crate::call::catalogue::{CommandInfo, Family, NO_KEYS, command};
use crate::call::{Call, Outcome};
use crate::commands::dispatch::unknown_subcommand;
use crate::protocol::Reply;

pub(super) const FAMILY: Family = Family {
    group: "server",
    commands: &[command("command", -1, 0, NO_KEYS, "Describes the commands.", describe)],
};

type Named = (&'static str, &'static CommandInfo);

fn describe(call: &mut Call<'_, '_>) -> Outcome {
    let all = call.shared.catalogue.all();
    let Some(name) = call.arguments.get(1) else {
        call.reply.array(all.len());
        all.iter().for_each(|(group, info)| entry(call.reply, group, info));
        return Ok(());
    };
    match (name.to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"count", 2) => call.reply.count(all.len()),
        (b"info", _) => {
            let names = named(call, &all);
            call.reply.array(names.len());
            for named in names {
                match named {
                    Some((group, info)) => entry(call.reply, group, info),
                    None => call.reply.null_array(),
                }
            }
        }
        (b"docs", _) => {
            let names: Vec<Named> = named(call, &all).into_iter().flatten().collect();
            call.reply.map(names.len());
            names.iter().for_each(|(group, info)| docs(call.reply, group, info));
        }
        (b"list", 2) => list(call, &all, |_| true),
        (b"list", 5) if call.is(2, "filterby") && call.is(3, "pattern") => {
            let pattern = call.argument(4).to_ascii_lowercase();
            list(call, &all, |info| matches(&pattern, info.name.as_bytes()));
        }
        (b"getkeys", 3..) => get_keys(call)?,
        (b"help", 2) => call.reply.texts(&[
            "COMMAND | COMMAND COUNT | COMMAND DOCS [name ...] | COMMAND INFO [name ...] |",
            "COMMAND LIST [FILTERBY PATTERN pattern] | COMMAND GETKEYS command argument ...",
        ]),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}

/// Returns the commands that the arguments name; all if there are none.
fn named(call: &Call<'_, '_>, all: &[Named]) -> Vec<Option<Named>> {
    if call.arguments.len() == 2 {
        return all.iter().copied().map(Some).collect();
    }
    call.arguments.from(2).map(|name| call.shared.catalogue.with_group(name)).collect()
}

fn entry(reply: &mut Reply, group: &str, info: &CommandInfo) {
    reply.array(10);
    reply.bulk(info.name.as_bytes());
    reply.integer(info.arity.into());
    let flags = info.flag_names();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    let keys = info.keys;
    for number in [keys.first, keys.last, keys.step] {
        reply.integer(number.into());
    }
    reply.set(1);
    reply.simple(&format!("@{group}"));
    reply.array(0);
    reply.array(0);
    reply.array(0);
}

fn docs(reply: &mut Reply, group: &str, info: &CommandInfo) {
    reply.bulk(info.name.as_bytes());
    reply.map(2);
    for (field, text) in [("summary", info.summary), ("group", group)] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
}

fn list(call: &mut Call<'_, '_>, all: &[Named], is_wanted: impl Fn(&CommandInfo) -> bool) {
    let wanted = all.iter().filter(|(_, info)| is_wanted(info));
    let names: Vec<&str> = wanted.map(|(_, info)| info.name).collect();
    call.reply.texts(&names);
}

fn get_keys(call: &mut Call<'_, '_>) -> Outcome {
    let mut asked = crate::protocol::OwnedArguments::default();
    call.arguments.from(2).for_each(|argument| asked.push(argument));
    let asked = asked.arguments();
    let info = call.shared.catalogue.find(asked.at(0)).ok_or("ERR Invalid command specified")?;
    if !info.accepts(asked.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    let keys: Vec<&[u8]> = info.keys.of(asked).collect();
    if keys.is_empty() {
        return Err("ERR The command has no key arguments".into());
    }
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}
