//! The answers to HTTP requests: metrics, and whether the database accepts writes.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::client::Request;
use crate::call::shared::Shared;
use crate::state::users::{User, Users};

/// Returns the response to a request; `None` for one that is not a GET. With `is_open`, everybody may see
/// everything.
pub(super) fn respond(request: Option<&Request>, shared: &Shared, is_open: bool) -> Vec<u8> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let users = &shared.config.users;
    let authorization = request.and_then(|request| request.authorization.as_deref());
    let (status, kind, body) = match request.map(|request| &*request.path) {
        Some("/metrics") if !is_open && !may_see_metrics(users, authorization) => {
            let status = "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"terrane\"";
            (status, TEXT, "a user who may use all keyspaces may see this\n".to_owned())
        }
        Some("/metrics") => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ("200 OK", kind, metrics(shared))
        }
        Some("/health") => match shared.databases.db().stats().error {
            None => ("200 OK", TEXT, "ok\n".to_owned()),
            Some(_) if !is_open => ("503 Service Unavailable", TEXT, "failed\n".to_owned()),
            Some(error) => ("503 Service Unavailable", TEXT, format!("{error}\n")),
        },
        Some(_) => ("404 Not Found", TEXT, "the paths are /metrics and /health\n".to_owned()),
        None => ("400 Bad Request", TEXT, "expected GET\n".to_owned()),
    };
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// Returns whether the value of an `Authorization` header identifies a user who may use all keyspaces.
fn may_see_metrics(users: &Users, authorization: Option<&[u8]>) -> bool {
    let credentials = authorization.and_then(|value| value.split_at_checked(6));
    let credentials = credentials.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"basic "));
    let decoded = credentials.and_then(|(_, text)| decode_base64(text));
    let Some(decoded) = decoded else { return false };
    let mut parts = decoded.splitn(2, |byte| *byte == b':');
    let (name, password) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    users.find(name, password).is_some_and(User::may_use_all)
}

/// Decodes base64, with or without padding.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.trim_ascii().iter().copied().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

/// Returns the metrics of the database and those of the server.
fn metrics(shared: &Shared) -> String {
    let mut text = shared.databases.db().stats().open_metrics();
    // Remove the end marker, which must follow the metrics of the server.
    text.truncate(text.trim_end().trim_end_matches("# EOF").len());
    let counts = &shared.counts;
    for (name, help, count) in [
        ("commands", "Commands that were run.", &counts.commands),
        ("connections", "Connections that were accepted.", &counts.connections),
        ("connections_rejected", "Connections over the limit.", &counts.rejected),
        ("errors", "Answers that are errors.", &counts.errors),
        ("slow_clients", "Clients that did not read their replies.", &counts.slow_clients),
        (
            "evicted_scrapers",
            "HTTP connections that were closed to make room for others.",
            &counts.evicted_scrapers,
        ),
        (
            "failed_handshakes",
            "Connections that ended in the TLS handshake.",
            &counts.failed_handshakes,
        ),
        ("received_bytes", "Bytes received from clients.", &counts.bytes_in),
        ("sent_bytes", "Bytes of replies.", &counts.bytes_out),
    ] {
        let (name, value) = (format!("terrane_server_{name}"), count.load(Ordering::Relaxed));
        // Writing to a string does not fail.
        let _ = write!(text, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}\n");
    }
    let (clients, buffers) = (shared.clients.len(), shared.buffered.load(Ordering::Relaxed));
    for (name, help, value) in [
        ("connected_clients", "Connections that are open.", clients),
        ("buffer_bytes", "Bytes in the buffers of all connections.", buffers),
    ] {
        let name = format!("terrane_server_{name}");
        let _ = write!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {value}\n");
    }
    text + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_users_of_all_keyspaces() {
        let users = "app s3cret:x write:*\nsome pw read:default\nall pw read:*";
        let users: Users = users.parse().unwrap();
        let may = |value: &str| may_see_metrics(&users, Some(value.as_bytes()));
        // app:s3cret:x, all:pw
        assert!(may("Basic YXBwOnMzY3JldDp4") && may("basic YWxsOnB3") && may("Basic YWxsOnB3=="));
        // some:pw, all:no, nobody:, and nonsense
        for value in [
            "Basic c29tZTpwdw==",
            "Basic YWxsOm5v",
            "Basic bm9ib2R5Og==",
            "Basic ?",
            "YWxsOnB3",
            "",
        ] {
            assert!(!may(value), "{value}");
        }
        assert!(!may_see_metrics(&users, None));
        assert_eq!(decode_base64(b"/+8=").unwrap(), [0xff, 0xef]);
    }
}
