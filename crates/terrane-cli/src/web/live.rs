//! The live picture of a database.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /live/stream?token=T&from=ID` | the feed, as server-sent events; after an event, or from its beginning |
//! | `GET /live/recording?token=T` | the last hour as a file |
//! | `POST /live/forecast`, `{"keyspace","design"}` | what a change of design would cost |
//! | `POST /live/design`, `{"keyspace","design"}` | the same, and the change; with `--allow-changes` |
//!
//! The address of the page contains a token, which all requests but the first need: the stream as a parameter,
//! since browsers send no headers for it, and changes in the header `X-Terrane-Token`, which no other site can
//! send without the consent of this one.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use terrane_control::Request as Question;

use super::feed::{Feed, Lines};
use super::request::Request;
use super::source::Source;
use super::token::Token;
use super::{Answer, JSON, OK, Site, WebServer};

/// The time after which a stream without news sends a comment, which fails if the client has gone.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Whether and where a command shows a live picture.
#[derive(Debug, Clone, Args)]
pub(crate) struct WebFlags {
    /// Show the database in a browser: its tree, jobs, charts and events, live
    #[arg(long)]
    pub(crate) web: bool,

    /// The port of the page, on this machine alone; 0 is any free one
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "web")]
    pub(crate) web_port: u16,

    /// Let the page change designs
    #[arg(long, requires = "web")]
    pub(crate) allow_changes: bool,
}

/// A live picture, ready to be served.
pub(crate) struct LiveServer {
    server: WebServer,
    site: Arc<Live>,
}

/// The site of a live picture.
struct Live {
    source: Arc<Source>,
    feed: Arc<Feed>,
    token: Token,
    allows_changes: bool,
}

impl WebFlags {
    /// Listens, without answering yet.
    pub(crate) fn listen(&self, source: &Arc<Source>, feed: &Arc<Feed>) -> Result<LiveServer> {
        let server = WebServer::listen(self.web_port)
            .with_context(|| format!("cannot listen on port {}", self.web_port))?;
        let site = Live {
            source: Arc::clone(source),
            feed: Arc::clone(feed),
            token: Token::new()?,
            allows_changes: self.allow_changes,
        };
        Ok(LiveServer { server, site: Arc::new(site) })
    }
}

impl LiveServer {
    /// Returns the address of the page, with its token.
    pub(crate) fn address(&self) -> String {
        format!("http://{}/#live&token={}", self.server.address(), self.site.token.text())
    }

    /// Serves the picture until the process ends.
    pub(crate) fn serve(&self) -> io::Result<()> {
        self.server.serve(&self.site)
    }
}

/// A change of design that a page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    keyspace: String,
    design: String,
}

impl Site for Live {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if request.is_for_page() {
            return if request.is_read() {
                Answer::page()
            } else {
                only("Only GET and HEAD are answered.\n")
            };
        }
        match request.path() {
            "/live/stream" | "/live/recording" if !request.is_read() => {
                only("Streams and recordings are read with GET.\n")
            }
            "/live/stream" => self.stream(request),
            "/live/recording" => self.recording(request),
            "/live/forecast" | "/live/design" if !request.is_post() => only("Changes need POST.\n"),
            "/live/forecast" => self.change(request, |Change { keyspace, design }| {
                Question::Forecast { keyspace, design: Some(design) }
            }),
            "/live/design" if !self.allows_changes => Answer::refused(
                "403 Forbidden",
                "The page may not change the database; start the command with --allow-changes.\n",
            ),
            "/live/design" => self.change(request, |Change { keyspace, design }| {
                Question::SetDesign { keyspace, design: Some(design), converge: false }
            }),
            _ => Answer::unknown(),
        }
    }
}

fn only(why: &'static str) -> Answer {
    Answer::refused("405 Method Not Allowed", why)
}

fn no_token() -> Answer {
    Answer::refused(
        "403 Forbidden",
        "The token is missing or wrong; use the address that the command printed.\n",
    )
}

impl Live {
    fn stream(&self, request: &Request<'_>) -> Answer {
        if !self.token.is(request.parameter("token")) {
            return no_token();
        }
        // A browser that reconnects names the last event it has received, as does a page that was hidden. Another
        // feed has another token.
        let from = request.header("last-event-id").or_else(|| request.parameter("from"));
        let from = from.and_then(|id| id.parse().ok());
        let (feed, allows_changes) = (Arc::clone(&self.feed), self.allows_changes);
        Answer::Stream(Box::new(move |stream| send(stream, &feed, from, allows_changes)))
    }

    fn recording(&self, request: &Request<'_>) -> Answer {
        if !self.token.is(request.parameter("token")) {
            return no_token();
        }
        let lines = self.feed.recording().into_bytes();
        Answer::Whole(OK, "application/jsonl", Cow::Owned(lines))
    }

    fn change(&self, request: &Request<'_>, question: impl FnOnce(Change) -> Question) -> Answer {
        if !self.token.is(request.header("x-terrane-token")) {
            return no_token();
        }
        if request.header("content-type") != Some(JSON) {
            return Answer::refused(
                "415 Unsupported Media Type",
                "The request must be application/json.\n",
            );
        }
        let asked = serde_json::from_slice(request.body()).map_err(|error| error.to_string());
        match asked.and_then(|change| self.source.ask(&question(change))) {
            Ok(reply) => json_answer(OK, &json!(reply)),
            Err(error) => json_answer("409 Conflict", &json!({ "error": error })),
        }
    }
}

fn json_answer(status: &'static str, value: &serde_json::Value) -> Answer {
    Answer::Whole(status, JSON, Cow::Owned(value.to_string().into_bytes()))
}

/// Sends a feed from a line on until the client has gone, or the feed ends.
fn send(
    stream: &mut TcpStream,
    feed: &Feed,
    from: Option<u64>,
    allows_changes: bool,
) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let hello = json!({ "allows_changes": allows_changes, "version": version });
    write!(stream, "retry: 1000\nevent: hello\ndata: {hello}\n\n")?;
    let mut next = from;
    while let Some(Lines { is_reset, texts, next: after }) = feed.lines(next, SILENCE_MAX) {
        let mut text = String::new();
        if is_reset {
            text.push_str("event: reset\ndata: {}\n\n");
        }
        if texts.is_empty() {
            text.push_str(": nothing new\n\n");
        } else {
            // One event for all lines, which contain no ends of lines themselves.
            text.push_str(&format!("id: {after}\n"));
            for line in &texts {
                text.push_str(&format!("data: {line}\n"));
            }
            text.push('\n');
        }
        stream.write_all(text.as_bytes())?;
        next = Some(after);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
