//! The state of the engine.

use terrane::{Design, Keyspace};

use crate::call::{Call, Outcome, SYNTAX};

/// Returns the pictures of the trees of the selected database.
pub(super) fn tree(call: &mut Call<'_, '_>) -> Outcome {
    let picture = |keyspace: &Keyspace| {
        let tree = keyspace.tree();
        format!("{}\n{tree}", tree.keyspace)
    };
    let trees: Vec<String> = call.store.databases().keyspaces(call.db()).map(picture).collect();
    let text = match trees.is_empty() {
        true => "nothing was written to this database".to_owned(),
        false => trees.join("\n"),
    };
    call.reply.verbatim(&text);
    Ok(())
}

/// Refuses commands that show all keyspaces to users who may use only some of them.
fn check_all_keyspaces(call: &Call<'_, '_>) -> Outcome {
    match &call.session.user {
        Some(user) if !user.may_use_all() => {
            Err("NOPERM this command shows all keyspaces, and this user may not use all of them"
                .into())
        }
        _ => Ok(()),
    }
}

pub(super) fn stats(call: &mut Call<'_, '_>) -> Outcome {
    check_all_keyspaces(call)?;
    let stats = call.shared.databases.db().stats();
    let text = match call.arguments.len() {
        1 => stats.to_string(),
        2 if call.is(1, "openmetrics") => stats.open_metrics(),
        _ => return Err(SYNTAX.into()),
    };
    call.reply.verbatim(&text);
    Ok(())
}

pub(super) fn events(call: &mut Call<'_, '_>) -> Outcome {
    check_all_keyspaces(call)?;
    let count = match call.arguments.len() {
        1 => 10,
        2 => usize::try_from(call.integer(1)?).map_err(|_| "ERR count is negative")?,
        _ => return Err(SYNTAX.into()),
    };
    let events = call.shared.databases.db().events();
    let newest = events.get(events.len().saturating_sub(count)..).unwrap_or_default();
    call.reply.array(newest.len());
    for event in newest {
        call.reply.array(3);
        call.reply.unsigned(event.number);
        call.reply.unsigned(event.at_micros);
        call.reply.bulk(event.event.to_string().as_bytes());
    }
    Ok(())
}

pub(super) fn design(call: &mut Call<'_, '_>) -> Outcome {
    let db = call.db();
    if call.arguments.len() == 1 {
        let databases = call.store.databases();
        let keyspace = databases.existing(db).ok_or("ERR nothing was written to this database")?;
        let design = keyspace.design().to_string();
        call.reply.bulk(design.as_bytes());
        return Ok(());
    }
    if call.arguments.len() != 3 || !call.is(1, "set") {
        return Err(SYNTAX.into());
    }
    if call.session.user.as_ref().is_some_and(|user| !user.may_administer()) {
        return Err("NOPERM this user may not change designs".into());
    }
    let text = String::from_utf8_lossy(call.argument(2)).into_owned();
    let design: Design = text.parse().map_err(terrane::Error::from)?;
    call.store.databases().for_write(db)?.set_design(design)?;
    call.reply.ok();
    Ok(())
}

/// Explains the lookup of a key, and of a field if it is given.
pub(super) fn why(call: &mut Call<'_, '_>) -> Outcome {
    if call.arguments.len() > 3 {
        return Err(SYNTAX.into());
    }
    let paths = call.store.explain(call.db(), call.key(), call.arguments.get(2))?;
    let texts: Vec<String> =
        paths.iter().map(|path| format!("{}\n{path}", path.keyspace)).collect();
    call.reply.verbatim(&texts.join("\n\n"));
    Ok(())
}
