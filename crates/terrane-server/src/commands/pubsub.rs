//! Publish and subscribe.

use crate::call::catalogue::{FAST, Family, NO_KEYS, NO_MULTI, SUBSCRIBES, command};
use crate::call::shared::Shared;
use crate::call::{Call, Outcome};
use crate::commands::dispatch::{unknown_subcommand, wrong_subcommand_arity};
use crate::state::channels::{MailLimits, Subscriptions, Topic};

const SUBSCRIBE: u16 = NO_MULTI | SUBSCRIBES;

pub(super) const FAMILY: Family = Family {
    group: "pubsub",
    commands: &[
        command("subscribe", -2, SUBSCRIBE, NO_KEYS, "Subscribes to channels.", subscribe),
        command("psubscribe", -2, SUBSCRIBE, NO_KEYS, "Subscribes to patterns.", psubscribe),
        command("unsubscribe", -1, SUBSCRIBE, NO_KEYS, "Ends subscriptions.", unsubscribe),
        command(
            "punsubscribe",
            -1,
            SUBSCRIBE,
            NO_KEYS,
            "Ends subscriptions to patterns.",
            punsubscribe,
        ),
        command("publish", 3, FAST, NO_KEYS, "Sends a message to a channel.", publish),
        command("pubsub", -2, 0, NO_KEYS, "Describes channels.", pubsub),
    ],
};

/// The most bytes that the names of a client's subscriptions may have.
const MAX_BYTES: usize = 1 << 20;

/// Refuses channels, which belong to no keyspace, to users who may use some keyspaces only.
fn check_user(call: &Call<'_, '_>, publishes: bool) -> Outcome {
    match &call.session.user {
        Some(user) if !user.may_use_all() || (publishes && !user.may_write()) => {
            Err("NOPERM this user may not use channels".into())
        }
        _ => Ok(()),
    }
}

fn subscribe(call: &mut Call<'_, '_>) -> Outcome {
    begin(call, Topic::Channel, "subscribe")
}

fn psubscribe(call: &mut Call<'_, '_>) -> Outcome {
    begin(call, Topic::Pattern, "psubscribe")
}

fn begin(call: &mut Call<'_, '_>, topic: Topic, word: &'static str) -> Outcome {
    check_user(call, false)?;
    let client = &call.session.client;
    let own = call.session.subscriptions.get_or_insert_with(|| Subscriptions::new(client).into());
    for name in call.arguments.from(1) {
        if own.memory() + name.len() > MAX_BYTES {
            call.reply.error("ERR the subscriptions of this connection take more than 1 MiB");
            break;
        }
        call.shared.channels.subscribe(own, topic, name);
        call.reply.push(3);
        call.reply.bulk(word.as_bytes());
        call.reply.bulk(name);
        call.reply.count(own.len());
    }
    if own.len() == 0 {
        call.session.subscriptions = None;
    }
    Ok(())
}

fn unsubscribe(call: &mut Call<'_, '_>) -> Outcome {
    end(call, Topic::Channel, "unsubscribe")
}

fn punsubscribe(call: &mut Call<'_, '_>) -> Outcome {
    end(call, Topic::Pattern, "punsubscribe")
}

fn end(call: &mut Call<'_, '_>, topic: Topic, word: &'static str) -> Outcome {
    let mut own = call.session.subscriptions.take();
    let mut names: Vec<Box<[u8]>> = call.arguments.from(1).map(Box::from).collect();
    if let (Some(own), true) = (&mut own, names.is_empty()) {
        names = own.names(topic);
    }
    for name in &names {
        if let Some(own) = &mut own {
            call.shared.channels.unsubscribe(own, topic, name);
            // Earlier messages precede the confirmation.
            call.reply.raw(&own.mailbox.take(&call.shared.buffered));
        }
        call.reply.push(3);
        call.reply.bulk(word.as_bytes());
        call.reply.bulk(name);
        call.reply.count(own.as_ref().map_or(0, |own| own.len()));
    }
    if names.is_empty() {
        call.reply.push(3);
        call.reply.bulk(word.as_bytes());
        call.reply.null();
        call.reply.count(own.as_ref().map_or(0, |own| own.len()));
    }
    call.session.subscriptions = own.filter(|own| own.len() > 0);
    Ok(())
}

fn publish(call: &mut Call<'_, '_>) -> Outcome {
    check_user(call, true)?;
    let (channel, message) = (call.argument(1), call.argument(2));
    if call.store.is_transaction() {
        // The commit sends it.
        call.session.published.push((channel.into(), message.into()));
        let count = call.shared.channels.subscribers(channel);
        call.reply.count(count);
        return Ok(());
    }
    let count = send(call.shared, channel, message);
    call.reply.count(count);
    Ok(())
}

/// Sends a message to the subscribers of a channel; returns how many there are.
pub(super) fn send(shared: &Shared, channel: &[u8], message: &[u8]) -> usize {
    let limits = &shared.config.limits;
    let limits = MailLimits {
        buffered: &shared.buffered,
        buffer_bytes: limits.buffer_bytes,
        output_bytes: limits.output_bytes,
    };
    let (count, workers) = shared.channels.publish(channel, message, &limits);
    workers.into_iter().for_each(|worker| shared.wake(worker));
    count
}

fn pubsub(call: &mut Call<'_, '_>) -> Outcome {
    check_user(call, false)?;
    let channels = &call.shared.channels;
    match (call.argument(1).to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"channels", 2 | 3) => {
            let names = channels.names(call.arguments.get(2));
            call.reply.array(names.len());
            names.iter().for_each(|name| call.reply.bulk(name));
        }
        (b"numsub", _) => {
            // As in Redis, a map in neither protocol.
            call.reply.array((call.arguments.len() - 2) * 2);
            for name in call.arguments.from(2) {
                call.reply.bulk(name);
                call.reply.count(channels.subscribers(name));
            }
        }
        (b"numpat", 2) => call.reply.count(channels.counts().1),
        (b"help", 2) => call
            .reply
            .texts(&["PUBSUB CHANNELS [pattern] | PUBSUB NUMSUB [channel ...] | PUBSUB NUMPAT"]),
        (b"channels" | b"numpat", _) => return Err(wrong_subcommand_arity(call)),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}
