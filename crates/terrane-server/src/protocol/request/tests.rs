//! The parser against requests that arrive in parts, are broken, or exceed a limit.

use super::*;
use terrane_testkit::Rng;

const LIMITS: RequestLimits =
    RequestLimits { arguments: 64, bulk_bytes: 1 << 16, request_bytes: 1 << 17 };

/// Feeds `input` in parts that end at `cuts`; returns the requests, and the error if there was one.
fn feed(input: &[u8], cuts: &[usize]) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let (mut parser, mut requests) = (RequestParser::new(), Vec::new());
    let (mut held, mut from) = (Vec::new(), 0);
    for cut in cuts.iter().copied().chain([input.len()]) {
        held.extend_from_slice(&input[from..cut]);
        from = cut;
        loop {
            match parser.parse(&held, &LIMITS) {
                Ok(Parsed::Incomplete) => break,
                Ok(Parsed::Complete(len)) => {
                    assert!(len > 0 && len <= held.len());
                    let arguments = parser.arguments(&held);
                    if !arguments.is_empty() {
                        requests.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    }
                    parser.reset();
                    held.drain(..len);
                }
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

fn texts(requests: &[Vec<Vec<u8>>]) -> Vec<String> {
    let text = |request: &Vec<Vec<u8>>| {
        let words: Vec<_> = request.iter().map(|word| word.escape_ascii().to_string()).collect();
        words.join("|")
    };
    requests.iter().map(text).collect()
}

fn encoded(request: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", request.len()).into_bytes();
    for argument in request {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[test]
fn requests_are_the_same_wherever_they_are_split() {
    let input = b"*2\r\n$3\r\nGET\r\n$5\r\na\r\nb\n\r\nPING\r\n\r\n*0\r\n*-1\r\nset k \"a b\\x41\\n\" 'it\\'s'\n\
                  *3\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\n*\r\n";
    let expected =
        ["GET|a\\r\\nb\\n", "PING", "set|k|a bA\\n|it\\'s", "SET||*"].map(str::to_owned).to_vec();
    for first in 0..=input.len() {
        let (requests, error) = feed(input, &[first]);
        assert_eq!((texts(&requests), error), (expected.clone(), None), "split at {first}");
        for second in first..=input.len() {
            assert_eq!(texts(&feed(input, &[first, second]).0), expected, "{first}, {second}");
        }
    }
    let single: Vec<usize> = (0..input.len()).collect();
    assert_eq!(texts(&feed(input, &single).0), expected);
}

#[test]
fn random_requests_survive_random_splits() {
    let mut rng = Rng::new(7);
    for _ in 0..300 {
        let mut input = Vec::new();
        let mut requests = Vec::new();
        for _ in 0..rng.below(8) {
            let count = rng.below(6) + 1;
            let argument = |rng: &mut Rng| {
                let len = rng.below(40);
                (0..len).map(|_| rng.below(256) as u8).collect::<Vec<u8>>()
            };
            let request: Vec<Vec<u8>> = (0..count).map(|_| argument(&mut rng)).collect();
            input.extend(encoded(&request));
            requests.push(request);
        }
        let mut cuts: Vec<usize> =
            (0..rng.below(6)).map(|_| rng.below(input.len() as u64 + 1) as usize).collect();
        cuts.sort_unstable();
        assert_eq!(feed(&input, &cuts), (requests, None));
    }
}

#[test]
fn violations_of_the_protocol_are_named() {
    for (input, expected) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*65\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\nGET\r\n", "expected '$', got 'G'"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$65537\r\n", "invalid bulk length"),
        (b"*1\r\n$3\r\nGETxx", "expected CRLF after a bulk string"),
        (b"*3\r\n$65536\r\n", ""),
        (b"get \"a\r\n", "unbalanced quotes in request"),
        (b"get \"a\"b\r\n", "unbalanced quotes in request"),
    ] {
        let found = feed(input, &[]).1.map_or(String::new(), |ProtocolError(text)| text);
        assert_eq!(found, expected, "{}", input.escape_ascii());
    }
    let long = vec![b'x'; MAX_LINE + 2];
    assert_eq!(feed(&long, &[]).1.unwrap().0, "too big inline request");
    let mut many = b"*3\r\n".to_vec();
    for _ in 0..2 {
        many.extend_from_slice(b"$65000\r\n");
        many.extend_from_slice(&vec![b'x'; 65000]);
        many.extend_from_slice(b"\r\n");
    }
    many.extend_from_slice(b"$65000\r\n");
    assert_eq!(feed(&many, &[]).1.unwrap().0, "a request has at most 131072 bytes");
}

#[test]
fn an_announced_length_allocates_nothing() {
    let mut parser = RequestParser::new();
    let limits = RequestLimits { arguments: usize::MAX, bulk_bytes: 1 << 31, ..LIMITS };
    let limits = RequestLimits { request_bytes: usize::MAX, ..limits };
    assert_eq!(parser.parse(b"*1000000000\r\n$2000000000\r\nx", &limits), Ok(Parsed::Incomplete));
    assert!(parser.memory() < 100);
}

#[test]
fn random_bytes_never_panic_and_split_alike() {
    let mut rng = Rng::new(11);
    let pieces: [&[u8]; 12] = [
        b"*1\r\n", b"*2\r\n", b"$1\r\n", b"$3\r\n", b"\r\n", b"a", b"GET", b"\"", b"\\", b"'",
        b"*", b"\n",
    ];
    for _ in 0..3000 {
        let mut input = Vec::new();
        for _ in 0..rng.below(12) {
            match rng.below(8) {
                0 => input.push(rng.below(256) as u8),
                _ => input.extend_from_slice(pieces[rng.below(12) as usize]),
            }
        }
        let single: Vec<usize> = (0..input.len()).collect();
        assert_eq!(feed(&input, &[]).0, feed(&input, &single).0, "{}", input.escape_ascii());
    }
}
