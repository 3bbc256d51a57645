//! Parses lines into commands.

use std::ops::Bound::Included;
use std::time::Duration;

use super::command::{self, Advise, Command, Order};
use terrane_lab::input::kv_literal::{
    self, KeyBounds, LiteralError, all_keys, parse_range, prefix_bounds,
};

/// Parses a line; `None` if it is empty or a comment.
///
/// # Errors
///
/// The line is not a command; the error is a sentence that says why.
pub(super) fn parse(line: &[u8]) -> Result<Option<Command>, String> {
    let line = std::str::from_utf8(line).map_err(|error| {
        format!("byte {} is not UTF-8; write bytes as \"\\xff\" or 0xff", error.valid_up_to() + 1)
    })?;
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.to_ascii_lowercase();
    // Accept dot commands, which users of other tools type.
    let name = command::canonical(name.strip_prefix('.').unwrap_or(&name));
    let arguments = rest.trim_start();
    let mut words = Words { rest: arguments };
    let command = words.command(name)?;
    words.end(name, arguments)?;
    Ok(Some(command))
}

/// The arguments of a command.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn command(&mut self, name: &str) -> Result<Command, String> {
        Ok(match name {
            "put" => Command::Put { key: self.literal(name)?, value: self.literal(name)? },
            "get" => Command::Get { key: self.literal(name)? },
            "del" => self.delete()?,
            "exists" => {
                let key = self.literal(name)?;
                Command::Count { range: (Included(key.clone()), Included(key)) }
            }
            "keys" => {
                let range = self.range_unless(&["limit"])?;
                Command::Keys { range, limit: self.limit()?.unwrap_or(u64::MAX) }
            }
            "scan" => {
                let range = self.range_unless(&["limit", "reverse"])?;
                self.scan(range)?
            }
            "prefix" => {
                let range = prefix_bounds(&self.literal(name)?);
                self.scan(range)?
            }
            "count" => Command::Count { range: self.counted_range()? },
            "batch" => Command::Batch,
            "end" => Command::End,
            "abort" => Command::Abort,
            "stats" => Command::Stats { is_open_metrics: self.keyword("--openmetrics") },
            "tree" => Command::Tree,
            "events" => Command::Events { limit: self.number_or("events", usize::MAX)? },
            "advise" => Command::Advise(self.advise()?),
            "design" => Command::Design { spec: self.rest_of_line() },
            "options" => Command::Options,
            "ttl" => Command::Ttl { key: self.literal(name)?, ttl: self.time()? },
            "checkpoint" => Command::Checkpoint { dir: self.path(name)? },
            "flush" => Command::Flush,
            "compact" => Command::Compact(self.range_unless(&[])?),
            "keyspaces" => Command::Keyspaces,
            "use" => Command::Use { keyspace: self.keyspace(name)? },
            "rename" => {
                Command::Rename { keyspace: self.keyspace(name)?, new_name: self.keyspace(name)? }
            }
            "drop" => Command::Drop { keyspace: self.keyspace(name)? },
            "help" => Command::Help { about: self.word().map(str::to_ascii_lowercase) },
            "exit" => Command::Exit,
            other => return Err(unknown(other)),
        })
    }

    fn take(&mut self, taken: Result<(Vec<u8>, &'a str), LiteralError>) -> Result<Vec<u8>, String> {
        let (bytes, rest) = taken.map_err(|error| error.to_string())?;
        self.rest = rest.trim_start();
        Ok(bytes)
    }

    /// Parses the next key or value.
    fn literal(&mut self, command: &str) -> Result<Vec<u8>, String> {
        if self.rest.is_empty() {
            return Err(usage(command));
        }
        self.take(kv_literal::parse(self.rest))
    }

    /// Parses the name of a keyspace.
    fn keyspace(&mut self, command: &str) -> Result<String, String> {
        let name = String::from_utf8(self.literal(command)?);
        name.map_err(|_| "a keyspace name must be UTF-8".to_owned())
    }

    /// Takes the rest of the line, without quotes around all of it; `None` if it is empty.
    fn rest_of_line(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest).trim();
        let quoted = |quote| rest.strip_prefix(quote)?.strip_suffix(quote);
        let text = quoted('\'').or_else(|| quoted('"')).unwrap_or(rest);
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Parses the path of a directory.
    fn path(&mut self, command: &str) -> Result<String, String> {
        let path = String::from_utf8(self.literal(command)?);
        path.map_err(|_| "the path must be UTF-8".to_owned())
    }

    /// Parses a time, if there is one.
    fn time(&mut self) -> Result<Option<Duration>, String> {
        let Some(word) = self.word() else { return Ok(None) };
        let time = humantime::parse_duration(word);
        time.map(Some).map_err(|_| format!("invalid time '{word}': expected a time such as 10min"))
    }

    fn range(&mut self) -> Result<KeyBounds, String> {
        let (range, rest) = parse_range(self.rest).map_err(|error| error.to_string())?;
        self.rest = rest.trim_start();
        Ok(range)
    }

    /// Parses a range; returns all keys if one of these words or the end of the line is next.
    fn range_unless(&mut self, words: &[&str]) -> Result<KeyBounds, String> {
        let next = self.rest.split_whitespace().next();
        if next.is_none_or(|next| words.contains(&next)) { Ok(all_keys()) } else { self.range() }
    }

    /// Parses `prefix P`, a range, or nothing.
    fn counted_range(&mut self) -> Result<KeyBounds, String> {
        match self.keyword("prefix") {
            true => Ok(prefix_bounds(&self.literal("count")?)),
            false => self.range_unless(&[]),
        }
    }

    fn delete(&mut self) -> Result<Command, String> {
        if self.rest.starts_with("..") {
            return self.range().map(Command::DeleteRange);
        }
        let whole = self.rest;
        let key = self.literal("del")?;
        if self.rest.starts_with("..") {
            // `prefix` was the first key of a range.
            self.rest = whole;
            return self.range().map(Command::DeleteRange);
        }
        Ok(Command::Delete { key })
    }

    /// Parses `limit N` and `reverse`, in any order.
    fn scan(&mut self, range: KeyBounds) -> Result<Command, String> {
        let (mut limit, mut order) = (u64::MAX, Order::Ascending);
        loop {
            if self.keyword("reverse") {
                order = Order::Descending;
            } else if let Some(given) = self.limit()? {
                limit = given;
            } else {
                return Ok(Command::Scan { range, limit, order });
            }
        }
    }

    /// Parses `limit N`, if it comes next.
    fn limit(&mut self) -> Result<Option<u64>, String> {
        if !self.keyword("limit") {
            return Ok(None);
        }
        let word = self.word().unwrap_or_default();
        let limit = terrane_lab::input::quantity::count(word);
        limit.map(Some).map_err(|error| format!("invalid limit '{word}': {error}"))
    }

    /// Parses `apply`, `gain N` and `within TIME`, in any order.
    fn advise(&mut self) -> Result<Advise, String> {
        let mut advise = Advise { applies: false, gain: 10, within: Duration::from_secs(3600) };
        loop {
            if self.keyword("apply") {
                advise.applies = true;
            } else if self.keyword("gain") {
                let word = self.word().unwrap_or_default().trim_end_matches('%');
                advise.gain = word
                    .parse()
                    .map_err(|_| format!("invalid gain '{word}': expected a percentage"))?;
            } else if self.keyword("within") {
                let word = self.word().unwrap_or_default();
                advise.within = humantime::parse_duration(word)
                    .map_err(|_| format!("invalid time '{word}': expected a time such as 10min"))?;
            } else {
                return Ok(advise);
            }
        }
    }

    /// Takes the next word if it is `word`.
    fn keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.rest.split_whitespace().next() == Some(keyword);
        if is_next {
            self.rest = self.rest[keyword.len()..].trim_start();
        }
        is_next
    }

    /// Parses a whole number, or returns the default.
    fn number_or(&mut self, command: &str, otherwise: usize) -> Result<usize, String> {
        let Some(word) = self.word() else { return Ok(otherwise) };
        word.parse().map_err(|_| usage(command))
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = self.rest.split_whitespace().next()?;
        self.rest = self.rest[word.len()..].trim_start();
        Some(word)
    }

    /// Checks that all of `arguments` was parsed.
    fn end(&self, command: &str, arguments: &str) -> Result<(), String> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let rest = self.rest;
        let usage = usage(command);
        let quoted = match (command, arguments.split_once(char::is_whitespace)) {
            _ if arguments.contains('\'') => String::new(),
            ("get" | "del" | "exists", _) => format!(": {command} '{arguments}'"),
            ("put", Some((key, value))) => format!(": put {key} '{}'", value.trim()),
            _ => String::new(),
        };
        Err(format!("unexpected '{rest}'; {usage}; quote text that contains blanks{quoted}"))
    }
}

fn usage(name: &str) -> String {
    let arguments = command::find(name).map_or("", |about| about.arguments);
    format!("usage: '{}'", format!("{name} {arguments}").trim_end())
}

fn unknown(name: &str) -> String {
    match command::nearest(name) {
        Some(near) => format!("unknown command '{name}'; did you mean '{near}'?"),
        None => format!("unknown command '{name}'; 'help' lists all commands"),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::{Excluded, Unbounded};

    use super::*;

    fn read(line: &str) -> Command {
        parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}")).expect(line)
    }

    #[test]
    fn every_command_is_read() {
        assert_eq!(read("put a 'b c'"), Command::Put { key: b"a".into(), value: b"b c".into() });
        assert_eq!(read(" GET\t0xff "), Command::Get { key: vec![0xff] });
        assert_eq!(read("del a"), Command::Delete { key: b"a".into() });
        let range = (Included(b"a".to_vec()), Excluded(b"c".to_vec()));
        assert_eq!(read("del a..c"), Command::DeleteRange(range.clone()));
        assert_eq!(read("del .."), Command::DeleteRange(all_keys()));
        let scan = |range, limit, order| Command::Scan { range, limit, order };
        assert_eq!(read("scan"), scan(all_keys(), u64::MAX, Order::Ascending));
        assert_eq!(read("scan a..c limit 2"), scan(range.clone(), 2, Order::Ascending));
        assert_eq!(read("scan reverse limit 1K"), scan(all_keys(), 1000, Order::Descending));
        let users = (Included(b"u:".to_vec()), Excluded(b"u;".to_vec()));
        assert_eq!(read("prefix u: reverse"), scan(users.clone(), u64::MAX, Order::Descending));
        assert_eq!(read("count"), Command::Count { range: all_keys() });
        assert_eq!(read("count prefix u:"), Command::Count { range: users });
        assert_eq!(
            read("count 'a'..=b"),
            Command::Count { range: (Included(b"a".into()), Included(b"b".into())) }
        );
        assert_eq!(read("compact b.."), Command::Compact((Included(b"b".into()), Unbounded)));
        assert_eq!(read("use logs"), Command::Use { keyspace: "logs".into() });
        assert_eq!(read(".help Put"), Command::Help { about: Some("put".into()) });
        assert_eq!(read(".quit"), Command::Exit);
        assert_eq!(read("stats"), Command::Stats { is_open_metrics: false });
        assert_eq!(read("stats --openmetrics"), Command::Stats { is_open_metrics: true });
        assert_eq!(read("set a b"), read("put a b"));
        assert_eq!(read("INSERT a b"), read("put a b"));
        assert_eq!(read("remove a"), read("del a"));
        assert_eq!(read(".tables"), Command::Keyspaces);
        let a = (Included(b"a".to_vec()), Included(b"a".to_vec()));
        assert_eq!(read("exists a"), Command::Count { range: a });
        assert_eq!(read("keys"), Command::Keys { range: all_keys(), limit: u64::MAX });
        assert_eq!(read("keys a..c limit 2"), Command::Keys { range: range.clone(), limit: 2 });
        assert_eq!(read("design"), Command::Design { spec: None });
        let spec = |text: &str| Command::Design { spec: Some(text.into()) };
        assert_eq!(read("design tiering T=4; filter=5"), spec("tiering T=4; filter=5"));
        assert_eq!(read("design 'tiering T=4'"), spec("tiering T=4"));
        assert_eq!(read("ttl a"), Command::Ttl { key: b"a".into(), ttl: None });
        let ttl = Some(Duration::from_secs(90));
        assert_eq!(read("ttl a 90s"), Command::Ttl { key: b"a".into(), ttl });
        assert_eq!(read("checkpoint '/a b'"), Command::Checkpoint { dir: "/a b".into() });
        assert_eq!(parse(b" # a comment"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
    }

    #[test]
    fn every_command_of_the_help_is_read_and_so_is_its_example() {
        for about in command::ALL {
            assert!(parse(about.example.as_bytes()).is_ok_and(|read| read.is_some()), "{about:?}");
        }
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (line, part) in [
            (&b"put a"[..], "usage: 'put KEY VALUE'"),
            (b"put a b c", "unexpected 'c'; usage: 'put KEY VALUE'"),
            (b"put a b c", "quote text that contains blanks: put a 'b c'"),
            (b"get a b", "quote text that contains blanks: get 'a b'"),
            (b"get 'it's 1'", "a text that contains ' is quoted with \""),
            (b"keys reverse", "a range such as"),
            (b"get", "usage: 'get KEY'"),
            (b"gte a", "unknown command"),
            (b"gett a", "did you mean 'get'"),
            (b"scan a", "a range such as"),
            (b"scan limit x", "invalid limit 'x'"),
            (b"scan limit", "invalid limit ''"),
            (b"count prefix", "usage: 'count"),
            (b"put a 'b", "closing '"),
            (b"put \xff b", "byte 5 is not UTF-8"),
            (b"stats now", "unexpected 'now'; usage: 'stats [--openmetrics]'"),
            (b"ttl a soon", "expected a time such as 10min"),
            (b"checkpoint", "usage: 'checkpoint DIR'"),
            (b"events x", "usage: 'events [N]'"),
            (b"del", "usage: 'del KEY | RANGE'"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }
}
