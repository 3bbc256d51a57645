//! The fuzz target of the request parser. Fuzzers generate the bytes (`cargo xtask fuzz`); the tests here
//! replay `fuzz/corpus` and damage it at random.

use crate::protocol::{Parsed, RequestLimits, RequestParser};

const LIMITS: RequestLimits =
    RequestLimits { arguments: 1000, bulk_bytes: 1 << 16, request_bytes: 1 << 17 };

/// The requests parsed from the input, and whether they end with an error.
type Requests = (Vec<Vec<Vec<u8>>>, bool);

/// Parses requests that arrive in parts of `step` bytes.
fn requests(bytes: &[u8], step: usize) -> Requests {
    let (mut parser, mut found) = (RequestParser::new(), Vec::new());
    let (mut begin, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + step).min(bytes.len());
        loop {
            let held = bytes.get(begin..end).unwrap_or_default();
            match parser.parse(held, &LIMITS) {
                Ok(Parsed::Complete(len)) => {
                    assert!(len > 0 && len <= held.len(), "a request takes bytes that it has");
                    let arguments = parser.arguments(held);
                    found.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    parser.reset();
                    begin += len;
                }
                Ok(Parsed::Incomplete) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

/// Parses `bytes` as a whole and in parts, and compares the requests. The parser detects a line that is too
/// long or unterminated at different positions, so the errors are compared only for short inputs.
pub fn request(bytes: &[u8]) {
    let whole = requests(bytes, usize::MAX / 2);
    for step in [1, 2, 7] {
        let parts = requests(bytes, step);
        assert_eq!(parts.0, whole.0, "in parts of {step}");
        assert!(bytes.len() > 1024 || parts.1 == whole.1, "errors in parts of {step}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use terrane_testkit::Rng;

    use super::*;

    #[test]
    fn the_kept_corpus_and_damaged_requests_are_understood() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/resp_request");
        let files: Vec<_> = std::fs::read_dir(corpus).unwrap().collect();
        let seeds: Vec<Vec<u8>> =
            files.into_iter().map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        assert!(!seeds.is_empty());
        seeds.iter().for_each(|seed| request(seed));
        let mut rng = Rng::new(1);
        for _ in 0..3000 {
            let mut bytes = rng.pick(&seeds).clone();
            for _ in 0..rng.below(6) {
                let at = rng.index(bytes.len() + 1);
                match rng.below(4) {
                    0 if at < bytes.len() => bytes[at] = rng.bits() as u8,
                    1 => bytes.truncate(at),
                    2 => bytes.insert(at, *rng.pick(b"*$\r\n-019\"'\\ax")),
                    _ => drop(bytes.drain(at..(at + 3).min(bytes.len()))),
                }
            }
            request(&bytes);
        }
    }
}
