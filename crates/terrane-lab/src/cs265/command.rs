//! The commands, read from lines.

/// The value that Dent's tree stores for deleted keys, which a put must not use.
pub(super) const TOMBSTONE: i32 = i32::MIN;

/// The error for a value out of range.
pub(super) const VALUE_RANGE: &str = "the value must be from -2147483647 to 2147483647";

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Put { key: i32, value: i32 },
    Get { key: i32 },
    Range { start: i32, end: i32 },
    Delete { key: i32 },
    Load { path: String },
    Statistics,
}

/// Parses a line; `None` if it is empty.
///
/// # Errors
///
/// A sentence, if the line is not a command.
pub(super) fn parse(line: &[u8]) -> Result<Option<Command>, String> {
    match plain(line) {
        Some(command) => Ok(Some(command)),
        None => any(line),
    }
}

/// Parses a put or a get with single blanks between words, as programs write them: the fast path of
/// workloads.
fn plain(line: &[u8]) -> Option<Command> {
    let (&[name, b' '], words) = line.split_first_chunk()? else { return None };
    let (key, rest) = digits(words)?;
    match (name, rest.split_first()) {
        (b'g', None) => Some(Command::Get { key }),
        (b'p', Some((b' ', rest))) => match digits(rest)? {
            (TOMBSTONE, _) => None,
            (value, []) => Some(Command::Put { key, value }),
            _ => None,
        },
        _ => None,
    }
}

/// Parses the number at the start of `text`, and returns it with the rest.
fn digits(text: &[u8]) -> Option<(i32, &[u8])> {
    let (is_negative, text) = match text {
        [b'-', text @ ..] => (true, text),
        text => (false, text),
    };
    let mut number = 0_i64;
    let mut count = 0;
    // Ten digits fit in an i64.
    while count < text.len().min(10) && text[count].is_ascii_digit() {
        number = number * 10 + i64::from(text[count] - b'0');
        count += 1;
    }
    let number = if is_negative { -number } else { number };
    let is_one = count > 0 && !text.get(count).is_some_and(u8::is_ascii_digit);
    is_one.then_some((i32::try_from(number).ok()?, &text[count..]))
}

fn any(line: &[u8]) -> Result<Option<Command>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8")?.trim_ascii();
    let (name, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
    let command = match name {
        "" => return Ok(None),
        "p" => {
            let [key, value] = numbers("p KEY VALUE", rest)?;
            if value == TOMBSTONE {
                return Err(VALUE_RANGE.into());
            }
            Command::Put { key, value }
        }
        "g" => {
            let [key] = numbers("g KEY", rest)?;
            Command::Get { key }
        }
        "r" => {
            let [start, end] = numbers("r KEY KEY", rest)?;
            Command::Range { start, end }
        }
        "d" => {
            let [key] = numbers("d KEY", rest)?;
            Command::Delete { key }
        }
        "l" => Command::Load { path: quoted(rest)?.to_owned() },
        "s" if rest.is_empty() => Command::Statistics,
        "s" => return Err("expected nothing after 's'".into()),
        other => {
            return Err(format!("unknown command '{other}'; known commands: p, g, r, d, l, s"));
        }
    };
    Ok(Some(command))
}

fn numbers<const N: usize>(usage: &str, text: &str) -> Result<[i32; N], String> {
    let mut words = text.split_ascii_whitespace();
    let mut numbers = [0; N];
    let expected = || format!("expected '{usage}'");
    for number in &mut numbers {
        let word = words.next().ok_or_else(expected)?;
        *number = word.parse().map_err(|_| {
            format!("'{word}' is not a whole number from -2147483648 to 2147483647")
        })?;
    }
    if words.next().is_some() { Err(expected()) } else { Ok(numbers) }
}

fn quoted(text: &str) -> Result<&str, String> {
    let path = text.trim_ascii().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    path.filter(|path| !path.is_empty()).ok_or_else(|| "expected 'l \"PATH\"'".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_read() {
        let read = |line: &str| parse(line.as_bytes()).unwrap();
        assert_eq!(read("p 10 -7"), Some(Command::Put { key: 10, value: -7 }));
        assert_eq!(read(" g\t-2147483648 \r"), Some(Command::Get { key: i32::MIN }));
        assert_eq!(read("r 5 5"), Some(Command::Range { start: 5, end: 5 }));
        assert_eq!(read("d +1"), Some(Command::Delete { key: 1 }));
        assert_eq!(read("l \"a b.dat\""), Some(Command::Load { path: "a b.dat".into() }));
        assert_eq!(read("s"), Some(Command::Statistics));
        assert_eq!(read("  "), None);
    }

    #[test]
    fn plain_lines_are_read_as_any_others() {
        for line in [
            "p 1 2",
            "p -2147483648 2147483647",
            "p 0 -2147483647",
            "p 007 00000000000008",
            "g 12",
            "g -0",
            "p 1  2",
            "p 1 2 ",
            "g 1\r",
            "p +1 2",
            "g",
            "p",
            "p ",
            "p 1",
            "p 1 ",
            "p 1 -",
            "p - 1",
            "p 1 2 3",
            "p 1 -2147483648",
            "p 2147483648 1",
            "g 99999999999",
            "g 1 2",
            "r 1 2",
            "d 1",
            "p1 2",
            "",
            "g 1.5",
            "p 12345678901 1",
            "p -12345678901 1",
        ] {
            assert_eq!(parse(line.as_bytes()), any(line.as_bytes()), "{line:?}");
        }
        assert!(plain(b"p 1 2").is_some() && plain(b"g -7").is_some() && plain(b"r 1 2").is_none());
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (line, part) in [
            (&b"p 1"[..], "expected 'p KEY VALUE'"),
            (b"p 1 2 3", "expected 'p KEY VALUE'"),
            (b"p 1 -2147483648", "from -2147483647"),
            (b"p 1 2147483648", "'2147483648' is not a whole number"),
            (b"p 1 2.5", "'2.5' is not a whole number"),
            (b"g", "expected 'g KEY'"),
            (b"x 1", "unknown command 'x'"),
            (b"get 1", "unknown command 'get'"),
            (b"l a.dat", "l \"PATH\""),
            (b"l \"\"", "l \"PATH\""),
            (b"l \"", "l \"PATH\""),
            (b"s 3", "expected nothing"),
            (b"p \xff 1", "UTF-8"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }
}
