//! `CLIENT`: the connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::call::catalogue::{Family, NO_KEYS, command};
use crate::call::{Call, Outcome, SYNTAX, integer};
use crate::commands::dispatch::{unknown_subcommand, wrong_subcommand_arity};
use crate::state::clients::Client;
use crate::state::session::ReplyMode;

pub(super) const FAMILY: Family = Family {
    group: "connection",
    commands: &[command("client", -2, 0, NO_KEYS, "Describes and ends connections.", client)],
};

fn client(call: &mut Call<'_, '_>) -> Outcome {
    call.session.show_command();
    let name = call.argument(1).to_ascii_lowercase();
    let len = call.arguments.len();
    match (name.as_slice(), len) {
        (b"id", 2) => call.reply.integer(i64::try_from(call.session.client.id).unwrap_or(i64::MAX)),
        (b"info", 2) => {
            let line = call.session.client.line() + "\n";
            call.reply.verbatim(&line);
        }
        (b"list", _) => list(call)?,
        (b"getname", 2) => {
            let name = call.session.client.texts().name.clone();
            let name = Some(name.as_bytes()).filter(|name| !name.is_empty());
            call.reply.bulk_or_null(name);
        }
        (b"setname", 3) => {
            call.session.client.texts().name = checked_name(call.argument(2))?;
            call.reply.ok();
        }
        (b"setinfo", 4) => set_info(call)?,
        (b"kill", 3..) => kill(call)?,
        (b"no-evict" | b"no-touch", 3) if call.is(2, "on") || call.is(2, "off") => call.reply.ok(),
        (b"reply", 3) => reply_mode(call)?,
        (b"help", 2) => call.reply.texts(&[
            "CLIENT ID | INFO | LIST | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text |",
            "KILL address | KILL ID id ADDR address SKIPME yes|no | NO-EVICT on|off | NO-TOUCH on|off |",
            "REPLY on|off|skip",
        ]),
        (b"no-evict" | b"no-touch", 3) => return Err(SYNTAX.into()),
        (
            b"id" | b"info" | b"getname" | b"setname" | b"setinfo" | b"kill" | b"no-evict" | b"no-touch"
            | b"reply",
            _,
        ) => return Err(wrong_subcommand_arity(call)),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}

/// Checks the name of a client, which must be a single word so that `CLIENT LIST` can be parsed.
pub(super) fn checked_name(name: &[u8]) -> Outcome<Box<str>> {
    let is_printable = name.iter().all(|byte| (b'!'..=b'~').contains(byte));
    if !is_printable || name.len() > 256 {
        return Err(
            "ERR Client names cannot contain spaces, newlines or special characters, and have at \
                    most 256 bytes."
                .into(),
        );
    }
    Ok(String::from_utf8_lossy(name).into())
}

fn set_info(call: &mut Call<'_, '_>) -> Outcome {
    let text = checked_name(call.argument(3)).map_err(|_| {
        "ERR a name or version of a library cannot contain spaces, newlines or special characters"
    })?;
    if call.is(2, "lib-name") {
        call.session.client.texts().library = text;
    } else if call.is(2, "lib-ver") {
        call.session.client.texts().library_version = text;
    } else {
        let option = String::from_utf8_lossy(call.argument(2)).into_owned();
        return Err(format!("ERR Unrecognized option '{option}'").into());
    }
    call.reply.ok();
    Ok(())
}

/// Refuses access to other clients' connections to users who may not administer the server.
fn check_admin(call: &Call<'_, '_>) -> Outcome {
    match &call.session.user {
        Some(user) if !user.may_administer() => {
            Err("NOPERM this user may not see or end other connections".into())
        }
        _ => Ok(()),
    }
}

fn list(call: &mut Call<'_, '_>) -> Outcome {
    check_admin(call)?;
    let all = call.shared.clients.all();
    let wanted: Vec<Arc<Client>> = match call.arguments.len() {
        2 => all,
        4 if call.is(2, "type") => match call.is(3, "normal") {
            true => all,
            false => Vec::new(),
        },
        4.. if call.is(2, "id") => {
            let ids: Option<Vec<i64>> = call.arguments.from(3).map(integer).collect();
            let ids = ids.ok_or("ERR Invalid client ID")?;
            let is_wanted = |client: &Arc<Client>| ids.iter().any(|id| *id == client.id as i64);
            all.into_iter().filter(is_wanted).collect()
        }
        _ => return Err(SYNTAX.into()),
    };
    let lines: String = wanted.iter().map(|client| client.line() + "\n").collect();
    call.reply.verbatim(&lines);
    Ok(())
}

/// Which connections `CLIENT KILL` ends.
#[derive(Default)]
struct KillFilter {
    id: Option<u64>,
    address: Option<String>,
    local_address: Option<String>,
    user: Option<String>,
    keeps_me: bool,
}

impl KillFilter {
    fn parse(call: &Call<'_, '_>) -> Outcome<Self> {
        let mut filter = Self { keeps_me: true, ..Self::default() };
        let mut index = 2;
        while index < call.arguments.len() {
            let value = call.arguments.get(index + 1).ok_or(SYNTAX)?;
            let text = String::from_utf8_lossy(value).into_owned();
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id = integer(value).and_then(|id| u64::try_from(id).ok());
                    filter.id = Some(
                        id.filter(|id| *id > 0).ok_or("ERR client-id should be greater than 0")?,
                    );
                }
                b"addr" => filter.address = Some(text),
                b"laddr" => filter.local_address = Some(text),
                b"user" => filter.user = Some(text),
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.keeps_me = true,
                b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.keeps_me = false,
                b"type" if value.eq_ignore_ascii_case(b"normal") => {}
                _ => return Err(SYNTAX.into()),
            }
            index += 2;
        }
        Ok(filter)
    }

    fn selects(&self, client: &Client, own_id: u64) -> bool {
        self.id.is_none_or(|id| id == client.id)
            && self.address.as_ref().is_none_or(|address| **address == *client.address)
            && self.local_address.as_ref().is_none_or(|address| **address == *client.local_address)
            && self.user.as_ref().is_none_or(|user| **user == *client.texts().user)
            && !(self.keeps_me && client.id == own_id)
    }
}

fn kill(call: &mut Call<'_, '_>) -> Outcome {
    check_admin(call)?;
    let own_id = call.session.client.id;
    let is_old_form = call.arguments.len() == 3;
    let filter = if is_old_form {
        let address = String::from_utf8_lossy(call.argument(2)).into_owned();
        KillFilter { address: Some(address), ..KillFilter::default() }
    } else {
        KillFilter::parse(call)?
    };
    let mut killed = 0;
    for client in call.shared.clients.all() {
        if filter.selects(&client, own_id) {
            client.is_killed.store(true, Ordering::Relaxed);
            call.shared.wake(client.worker);
            killed += 1;
        }
    }
    match (is_old_form, killed) {
        (true, 0) => return Err("ERR No such client".into()),
        (true, _) => call.reply.ok(),
        (false, _) => call.reply.integer(killed),
    }
    Ok(())
}

fn reply_mode(call: &mut Call<'_, '_>) -> Outcome {
    if call.is(2, "on") {
        call.session.replies = ReplyMode::On;
        call.reply.ok();
    } else if call.is(2, "off") {
        call.session.replies = ReplyMode::Off;
    } else if call.is(2, "skip") {
        if call.session.replies == ReplyMode::On {
            call.session.replies = ReplyMode::SkipNext;
        }
    } else {
        return Err(SYNTAX.into());
    }
    Ok(())
}
