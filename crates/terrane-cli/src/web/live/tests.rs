use super::*;

struct Case {
    live: Live,
    _dir: tempfile::TempDir,
    db: terrane::Db,
}

fn case(allows_changes: bool) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let db = terrane::Options::new().design("tiering".parse().unwrap()).open(dir.path()).unwrap();
    let live = Live {
        source: Arc::new(Source::Own(db.clone())),
        feed: Arc::new(Feed::default()),
        token: Token::new().unwrap(),
        allows_changes,
    };
    Case { live, _dir: dir, db }
}

impl Case {
    /// Returns the status and the body of an answer.
    fn answer(&self, line: &str, headers: &str, body: &str) -> (&'static str, String) {
        let message = format!("{line} HTTP/1.1\r\nHost: localhost:7\r\n{headers}\r\n{body}");
        match self.live.answer(&Request::parse(message.as_bytes(), 7).unwrap()) {
            Answer::Whole(status, _, body) => {
                (status, String::from_utf8(body.into_owned()).unwrap())
            }
            Answer::Stream(_) => ("stream", String::new()),
        }
    }

    fn post(&self, path: &str, body: &str) -> (&'static str, String) {
        let token = self.live.token.text();
        let headers = format!("X-Terrane-Token: {token}\r\nContent-Type: application/json\r\n");
        self.answer(&format!("POST {path}"), &headers, body)
    }
}

#[test]
fn the_stream_needs_the_token_and_the_page_does_not() {
    let case = case(false);
    assert_eq!(case.answer("GET /", "", "").0, OK);
    assert_eq!(case.answer("GET /live/stream", "", "").0, "403 Forbidden");
    assert_eq!(case.answer("GET /live/stream?token=0", "", "").0, "403 Forbidden");
    let address = format!("/live/stream?token={}", case.live.token.text());
    assert_eq!(case.answer(&format!("GET {address}"), "", "").0, "stream");
    assert_eq!(case.answer(&format!("POST {address}"), "", "").0, "405 Method Not Allowed");
    case.live.feed.push(&7);
    assert_eq!(case.answer("GET /live/recording", "", "").0, "403 Forbidden");
    let recording = format!("GET /live/recording?token={}", case.live.token.text());
    assert_eq!(case.answer(&recording, "", ""), (OK, "7\n".to_owned()));
    assert_eq!(case.answer("GET /live/other", "", "").0, "404 Not Found");
}

#[test]
fn a_design_changes_only_by_post_with_token_and_leave() {
    const LEVELING: &str = r#"{"keyspace":"default","design":"leveling"}"#;
    let (strict, free) = (case(false), case(true));
    assert_eq!(strict.post("/live/design", LEVELING).0, "403 Forbidden");
    assert!(strict.db.design().to_string().starts_with("tiering"));
    let (status, forecast) = strict.post("/live/forecast", LEVELING);
    assert_eq!(status, OK, "{forecast}");
    assert!(forecast.contains(r#""reply":"forecast""#), "{forecast}");

    let token = free.live.token.text();
    let query = format!("/live/design?token={token}");
    assert_eq!(free.answer(&format!("GET {query}"), "", "").0, "405 Method Not Allowed");
    let json = "Content-Type: application/json\r\n";
    assert_eq!(free.answer(&format!("POST {query}"), json, LEVELING).0, "403 Forbidden");
    let plain = format!("X-Terrane-Token: {token}\r\nContent-Type: text/plain\r\n");
    let (status, _) = free.answer("POST /live/design", &plain, LEVELING);
    assert_eq!(status, "415 Unsupported Media Type");
    assert!(free.db.design().to_string().starts_with("tiering"));
    assert_eq!(free.post("/live/design", LEVELING).0, OK);
    assert!(!free.db.design().to_string().starts_with("tiering"));

    for (body, part) in [
        (r#"{"keyspace":"default","design":"no-such"}"#, "no-such"),
        (r#"{"keyspace":"none","design":"leveling"}"#, "no keyspace 'none'"),
        (r#"{"keyspace":"default"}"#, "missing field `design`"),
        ("", "EOF"),
    ] {
        let (status, text) = free.post("/live/design", body);
        assert_eq!(status, "409 Conflict", "{text}");
        assert!(text.contains(part) && text.starts_with(r#"{"error":"#), "{text}");
    }
}

#[test]
fn the_stream_sends_lines_and_ends_with_the_feed() {
    let case = case(false);
    case.live.feed.push(&1);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let feed = Arc::clone(&case.live.feed);
    let sending = std::thread::spawn(move || send(&mut stream, &feed, None, true));
    case.live.feed.push(&2);
    std::thread::sleep(Duration::from_millis(50));
    case.live.feed.end();
    sending.join().unwrap().unwrap();
    let mut text = String::new();
    io::Read::read_to_string(&mut client, &mut text).unwrap();
    assert!(text.contains("event: hello\ndata: {\"allows_changes\":true"), "{text}");
    assert!(text.contains("event: reset\n"), "{text}");
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.get(2..), Some(&["1", "2"][..]), "{text}");
    assert!(text.contains("id: 2\n"), "{text}");
}
