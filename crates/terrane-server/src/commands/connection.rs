//! The connection: its protocol, its user and its database.

use std::sync::Arc;

use crate::call::catalogue::{
    FAST, Family, IMMEDIATE, NO_AUTH, NO_KEYS, NO_MULTI, SECRET, SUBSCRIBES, command,
};
use crate::call::{Call, Outcome, SYNTAX};
use crate::protocol::Protocol;
use crate::state::session::{Next, ReplyMode};
use crate::state::users::DEFAULT_USER;

/// The Redis version whose commands the server implements. Clients choose their commands by it.
pub(super) const REDIS_VERSION: &str = "7.2.0";

pub(super) const FAMILY: Family = Family {
    group: "connection",
    commands: &[
        command("ping", -1, FAST | SUBSCRIBES, NO_KEYS, "Returns PONG or a text.", ping),
        command("echo", 2, FAST, NO_KEYS, "Returns a text.", echo),
        command(
            "quit",
            -1,
            SUBSCRIBES | FAST | NO_AUTH | IMMEDIATE,
            NO_KEYS,
            "Closes the connection.",
            quit,
        ),
        command(
            "hello",
            -1,
            FAST | NO_AUTH | NO_MULTI | SECRET,
            NO_KEYS,
            "Chooses the version of the protocol.",
            hello,
        ),
        command(
            "auth",
            -2,
            FAST | NO_AUTH | NO_MULTI | SECRET,
            NO_KEYS,
            "Authenticates the connection.",
            auth,
        ),
        command("select", 2, FAST, NO_KEYS, "Chooses the database.", select),
        command(
            "reset",
            1,
            SUBSCRIBES | FAST | NO_AUTH | IMMEDIATE,
            NO_KEYS,
            "Restores the state of a new connection.",
            reset,
        ),
    ],
};

fn ping(call: &mut Call<'_, '_>) -> Outcome {
    // A RESP2 client with subscriptions expects only messages.
    let is_message =
        call.session.subscriptions.is_some() && call.session.protocol == Protocol::Resp2;
    match call.arguments.len() {
        1 | 2 if is_message => {
            call.reply.array(2);
            call.reply.bulk(b"pong");
            call.reply.bulk(call.argument(1));
        }
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.arguments.at(1)),
        _ => return Err("ERR wrong number of arguments for 'ping' command".into()),
    }
    Ok(())
}

fn echo(call: &mut Call<'_, '_>) -> Outcome {
    call.reply.bulk(call.arguments.at(1));
    Ok(())
}

fn quit(call: &mut Call<'_, '_>) -> Outcome {
    call.session.next = Next::Close;
    call.reply.ok();
    Ok(())
}

fn select(call: &mut Call<'_, '_>) -> Outcome {
    let database = call.database(1)?;
    call.session.select(database);
    call.reply.ok();
    Ok(())
}

/// Authenticates the connection as a user.
fn authenticate(call: &mut Call<'_, '_>, name: &[u8], password: &[u8]) -> Outcome {
    let users = &call.shared.config.users;
    if users.is_empty() && name == DEFAULT_USER.as_bytes() {
        return Ok(());
    }
    let user = users
        .find(name, password)
        .ok_or("WRONGPASS invalid username-password pair or user is disabled.")?;
    if call.session.subscriptions.is_some() && !user.may_use_all() {
        return Err("NOPERM this user may not use channels; end the subscriptions first".into());
    }
    call.session.client.texts().user = user.name().into();
    call.session.user = Some(Arc::new(user.clone()));
    call.session.is_authenticated = true;
    Ok(())
}

fn auth(call: &mut Call<'_, '_>) -> Outcome {
    match call.arguments.len() {
        2 if call.shared.config.users.is_empty() => {
            return Err(
                "ERR AUTH <password> called without any password configured for the default \
                        user. Are you sure your configuration is correct?"
                    .into(),
            );
        }
        2 => authenticate(call, DEFAULT_USER.as_bytes(), call.arguments.at(1))?,
        3 => authenticate(call, call.arguments.at(1), call.arguments.at(2))?,
        _ => return Err(SYNTAX.into()),
    }
    call.reply.ok();
    Ok(())
}

fn hello(call: &mut Call<'_, '_>) -> Outcome {
    let protocol = match call.arguments.get(1) {
        None => call.session.protocol,
        Some(b"2") => Protocol::Resp2,
        Some(b"3") => Protocol::Resp3,
        Some(other) if crate::call::integer(other).is_none() => {
            return Err("ERR Protocol version is not an integer or out of range".into());
        }
        Some(_) => return Err("NOPROTO unsupported protocol version".into()),
    };
    let mut index = 2;
    let mut name = None;
    while index < call.arguments.len() {
        if call.is(index, "auth") && index + 2 < call.arguments.len() {
            authenticate(call, call.arguments.at(index + 1), call.arguments.at(index + 2))?;
            index += 3;
        } else if call.is(index, "setname") && index + 1 < call.arguments.len() {
            name = Some(super::client::checked_name(call.arguments.at(index + 1))?);
            index += 2;
        } else {
            let option = String::from_utf8_lossy(call.arguments.at(index)).into_owned();
            return Err(format!("ERR Syntax error in HELLO option '{option}'").into());
        }
    }
    if !call.session.is_authenticated {
        return Err("NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                    HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                    select the RESP protocol version at the same time"
            .into());
    }
    if let Some(name) = name {
        call.session.client.texts().name = name;
    }
    call.session.set_protocol(protocol);
    call.reply.set_protocol(protocol);
    let reply = &mut *call.reply;
    reply.map(7);
    for (field, text) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(i64::try_from(call.session.client.id).unwrap_or(i64::MAX));
    for (field, text) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

fn reset(call: &mut Call<'_, '_>) -> Outcome {
    let (session, shared) = (&mut *call.session, call.shared);
    session.take_queue();
    session.unwatch(&shared.locks);
    session.unsubscribe(&shared.channels, &shared.buffered);
    session.select(0);
    session.set_protocol(Protocol::Resp2);
    session.replies = ReplyMode::On;
    session.user = None;
    session.is_authenticated = shared.config.users.is_empty();
    let mut texts = session.client.texts();
    texts.name = Box::default();
    texts.user = Box::default();
    drop(texts);
    call.reply.set_protocol(Protocol::Resp2);
    call.reply.simple("RESET");
    Ok(())
}
