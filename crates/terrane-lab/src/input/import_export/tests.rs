//! Texts that are read, and round trips of every pair of formats.

use std::path::Path;

use terrane_testkit::Rng;

use super::*;

/// Reads a text, and returns its entries or the first error, and the skipped rows.
fn read(
    bytes: &[u8],
    format: EntryFormat,
    options: &ReadOptions,
) -> (Result<Vec<Entry>, String>, Skipped) {
    let Ok(mut reader) = EntryReader::new(bytes, format, options) else {
        let pairs = pairs::PairReader::new(bytes).read().unwrap();
        return (Ok(pairs.into_iter().map(pairs::entry).collect()), Skipped::default());
    };
    let mut entries = Vec::new();
    let error = loop {
        match reader.take() {
            Ok(Some((_, Entry { key, value, expires_at_micros }))) => {
                let (key, value) = (key.to_vec(), value.to_vec());
                entries.push(Entry { key, value, expires_at_micros });
                continue;
            }
            Ok(None) => {}
            Err(error) => break Some(error.to_string()),
        }
        match reader.wait() {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    (error.map_or(Ok(entries), Err), reader.skipped())
}

fn entries_of(text: &str, format: EntryFormat, options: &ReadOptions) -> String {
    match read(text.as_bytes(), format, options).0 {
        Err(error) => error,
        Ok(entries) => entries.iter().map(shown).collect::<Vec<_>>().join(" "),
    }
}

fn shown(entry: &Entry) -> String {
    let expiry = entry.expires_at_micros.map_or(String::new(), |micros| format!("@{micros}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}={}{expiry}", text(&entry.key), text(&entry.value))
}

fn with(key: &str, value: &str, expiry: &str) -> ReadOptions {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let value = match value {
        "" => ValueColumns::Unspecified,
        "-" => ValueColumns::Nothing,
        text => ValueColumns::parse(text),
    };
    let columns = Columns { key: given(key), value, expiry: given(expiry) };
    ReadOptions { columns, ..ReadOptions::default() }
}

#[test]
fn file_extensions_imply_formats() {
    let of = |name: &str| EntryFormat::of_path(Path::new(name));
    assert_eq!(of("a/b.TSV"), Some(EntryFormat::Tsv));
    assert_eq!(of("b.jsonl"), Some(EntryFormat::Jsonl));
    assert_eq!(of("b.csv.zst"), Some(EntryFormat::Csv));
    assert_eq!(of("0.dat"), Some(EntryFormat::Pairs));
    assert_eq!(of("b.gz"), None);
    assert_eq!(of("tsv"), None);
}

/// Populations of cities were read as times in 1970, so that no city was visible.
#[test]
fn a_third_column_is_an_expiry_time_only_if_a_header_or_an_option_says_so() {
    let plain = ReadOptions::default();
    let cities = "Lisbon,PT,517802\nPorto,PT,231800\n";
    let error = entries_of(cities, EntryFormat::Csv, &plain);
    assert!(
        error.starts_with("line 1: found 3 columns") && error.contains("--expiry 3"),
        "{error}"
    );
    let csv = |text: &str, options: &ReadOptions| entries_of(text, EntryFormat::Csv, options);
    assert_eq!(csv(cities, &with("1", "3", "")), "Lisbon=517802 Porto=231800");
    assert_eq!(csv(cities, &with("", "", "3")), "Lisbon=PT@517802 Porto=PT@231800");
    assert_eq!(
        csv(cities, &with("1", "2,3", "")).split(' ').next(),
        Some("Lisbon=[\"PT\",\"517802\"]")
    );
    let headed = format!("city,country,population\n{cities}");
    assert_eq!(csv(&headed, &with("city", "population", "")), "Lisbon=517802 Porto=231800");
    assert!(
        csv(&headed, &with("city", "*", ""))
            .starts_with(r#"Lisbon={"city":"Lisbon","country":"PT","population":"517802"}"#)
    );
    for name in ["expires_at_micros", "ends_micros"] {
        assert_eq!(csv(&format!("key,value,{name}\na,1,7\nb,2,\n"), &plain), "a=1@7 b=2");
        let text = format!("key\tvalue\t{name}\na\t1\t7\nb\t2\t\n");
        assert_eq!(entries_of(&text, EntryFormat::Tsv, &plain), "a=1@7 b=2");
    }
    let error = csv("key,value,count\na,1,7\n", &plain);
    assert!(error.starts_with("line 1: found 3 columns"), "{error}");
    assert_eq!(csv("a,1\nb,2,3\n", &plain), "line 2: found 3 columns, but line 1 has 2");
    assert_eq!(csv("a,1\nb\n", &plain), "line 2: found 1 column, but line 1 has 2");
    let error = csv("key,value,ends_micros\nb,2,soon\n", &plain);
    assert!(error.starts_with("line 2: invalid expiry time 'soon'"), "{error}");
    // In TSV, only the first tab separates, and `\e` is no expiry time.
    assert_eq!(entries_of("a\tb\t5\n", EntryFormat::Tsv, &plain), "a=b\t5");
    let error = entries_of("a\t1\\e5\n", EntryFormat::Tsv, &plain);
    assert!(error.starts_with("line 1: invalid escape '\\e'"), "{error}");
}

#[test]
fn files_of_other_programs_are_read() {
    let (csv, tsv) = (EntryFormat::Csv, EntryFormat::Tsv);
    let plain = ReadOptions::default();
    for (text, format, options, expected) in [
        ("key,value\r\na,\"1\"\r\n", csv, plain.clone(), "a=1"),
        ("Key,Value\na,1\n", csv, plain.clone(), "a=1"),
        ("a,1\rb,2\r", csv, plain.clone(), "a=1 b=2"),
        ("a\t1\r\n\r\nb\t2\r\n", tsv, plain.clone(), "a=1 b=2"),
        ("a\t1\rb\t2", tsv, plain.clone(), "a=1 b=2"),
        ("apple\npear\n\n", tsv, with("", "-", ""), "apple= pear="),
        (
            "id;n\n7;\"x;y\"\n",
            csv,
            ReadOptions { delimiter: Some(b';'), ..with("id", "n", "") },
            "7=x;y",
        ),
        ("C:\\new\t\\N\n", tsv, ReadOptions { is_raw: true, ..plain.clone() }, "C:\\new=\\N"),
        ("a\t\\N\n", tsv, ReadOptions { null: NullRule::Empty, ..plain.clone() }, "a="),
        ("a\t\\N\nb\t2\n", tsv, ReadOptions { null: NullRule::Skip, ..plain.clone() }, "b=2"),
        (
            "junk\nname,n\na,1\n",
            csv,
            ReadOptions { skip_lines: 1, header: Header::Present, ..plain.clone() },
            "a=1",
        ),
        ("n,key\na,1\nb,2\n", csv, ReadOptions { from_line: 3, ..with("key", "n", "") }, "2=b"),
        (
            "key,value\na,1\n",
            csv,
            ReadOptions { header: Header::Absent, ..plain.clone() },
            "key=value a=1",
        ),
    ] {
        assert_eq!(entries_of(text, format, &options), expected, "{text}");
    }
    // A word list may contain the word `key`.
    assert_eq!(entries_of("key\nlock\n", tsv, &with("", "-", "")), "key= lock=");
    for (text, format, what) in [
        ("a;1\n", csv, "--delimiter ';'"),
        ("a\t1\n", csv, "--delimiter tab"),
        ("a,1\n", tsv, "--format csv"),
        ("word\n", tsv, "--keys-only"),
        ("a\t\\N\n", tsv, "--null skip"),
    ] {
        let error = entries_of(text, format, &plain);
        assert!(error.starts_with("line 1: ") && error.contains(what), "{text}: {error}");
    }
}

#[test]
fn every_row_is_returned_or_counted() {
    let text = "key,value\na,1\n\n\nb,2\n";
    let (entries, skipped) = read(text.as_bytes(), EntryFormat::Csv, &ReadOptions::default());
    assert_eq!(entries.unwrap().len(), 2);
    assert_eq!(skipped, Skipped { header_line: Some(1), blank_lines: 2, ..Skipped::default() });
    let options = ReadOptions { null: NullRule::Skip, from_line: 2, ..ReadOptions::default() };
    let text = b"a\t1\nb\t\\N\nc\t\\t\n";
    let (entries, skipped) = read(text, EntryFormat::Tsv, &options);
    assert_eq!(entries.unwrap().len(), 1);
    assert_eq!(skipped, Skipped { earlier: 1, nulls: 1, escaped: 1, ..Skipped::default() });
}

#[test]
fn an_open_quote_is_an_error_at_the_end() {
    let (entries, _) = read(b"a,1\nb,\"5 inch\nc,3\n", EntryFormat::Csv, &ReadOptions::default());
    let error = entries.unwrap_err();
    assert!(error.starts_with("line 2: the quote opened in line 2 is not closed"), "{error}");
}

/// A set of parts, format and escapes that can be written and read.
#[derive(Debug, Clone, Copy)]
struct Way {
    format: EntryFormat,
    is_raw: bool,
    parts: Parts,
}

impl Way {
    fn write(self, entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
        let has_expiry = entries.iter().any(|entry| entry.expires_at_micros.is_some());
        let Self { format, is_raw, parts } = self;
        let mut writer = EntryWriter::new(WriteOptions { format, parts, has_expiry, is_raw });
        let mut out = Vec::new();
        writer.begin(&mut out)?;
        for Entry { key, value, expires_at_micros } in entries {
            writer.write(&mut out, Entry { key, value, expires_at_micros: *expires_at_micros })?;
        }
        Ok(out)
    }

    fn read(self, bytes: &[u8]) -> Vec<Entry> {
        let mut options = ReadOptions { is_raw: self.is_raw, ..ReadOptions::default() };
        if self.parts == Parts::Keys {
            options.columns.value = ValueColumns::Nothing;
        }
        read(bytes, self.format, &options).0.unwrap()
    }
}

/// Random bytes that are likely to be special in some format.
fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    const PARTS: [&[u8]; 24] = [
        b"a",
        b"key",
        b"value",
        b"\"",
        b",",
        b"\t",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\\",
        b"\\N",
        b"\\e5",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xff",
        b"\xc3\xa9",
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
        b"{\"hex\":\"00\"}",
        b"null",
        b"7",
        b"expires_at_micros",
        b"\x7f",
    ];
    (0..rng.index(most)).flat_map(|_| rng.pick(&PARTS).to_vec()).collect()
}

fn random_entries(rng: &mut Rng, can_be_pairs: bool) -> Vec<Entry> {
    let expires = rng.index(3) == 0;
    (0..1 + rng.index(6))
        .map(|_| {
            if can_be_pairs {
                return pairs::entry((rng.bits() as i32, rng.bits() as i32));
            }
            let mut entry = Entry::new(bytes(rng, 4), bytes(rng, 4));
            if expires && rng.index(2) == 0 {
                entry.expires_at_micros = Some(rng.bits());
            }
            entry
        })
        .collect()
}

fn ways() -> Vec<Way> {
    use EntryFormat::{Csv, Jsonl, Pairs, Tsv};
    let mut ways = Vec::new();
    for parts in [Parts::Entries, Parts::Keys] {
        for (format, is_raw) in
            [(Tsv, false), (Tsv, true), (Csv, false), (Jsonl, false), (Pairs, false)]
        {
            ways.push(Way { format, is_raw, parts });
        }
    }
    ways.retain(|way| !(way.format == Pairs && way.parts == Parts::Keys));
    ways
}

/// Writes and reads entries in one format and then in another. A format may refuse entries, but not change them.
#[test]
fn every_pair_of_formats_round_trips() {
    let (mut rng, ways) = (Rng::new(33), ways());
    let mut refused = 0;
    for round in 0..3000 {
        let (first, second) = (*rng.pick(&ways), *rng.pick(&ways));
        let is_of_pairs = [first, second].iter().any(|way| way.format == EntryFormat::Pairs);
        let mut expected = random_entries(&mut rng, is_of_pairs);
        for way in [first, second] {
            let Ok(text) = way.write(&expected) else {
                refused += 1;
                let is_strict = way.is_raw || way.format == EntryFormat::Pairs;
                let is_blank =
                    way.parts == Parts::Keys && expected.iter().any(|entry| entry.key.is_empty());
                assert!(is_strict || is_blank, "{round}: {way:?} refuses {expected:?}");
                break;
            };
            if way.parts == Parts::Keys {
                expected.iter_mut().for_each(|entry| entry.value.clear());
            }
            assert_eq!(way.read(&text), expected, "{round}: {way:?}\n{}", text.escape_ascii());
        }
    }
    assert!((300..2000).contains(&refused), "{refused}");
}

#[test]
fn huge_fields_round_trip() {
    let mut rng = Rng::new(34);
    let huge: Vec<u8> = (0..300_000).flat_map(|_| bytes(&mut rng, 3)).collect();
    let entry =
        Entry { expires_at_micros: Some(u64::MAX), ..Entry::new(huge[..60_000].to_vec(), huge) };
    for way in ways() {
        if way.format == EntryFormat::Pairs || way.is_raw || way.parts == Parts::Keys {
            continue;
        }
        let entries = [entry.clone(), Entry::new(b"b".to_vec(), Vec::new())];
        assert!(way.read(&way.write(&entries).unwrap()) == entries, "{way:?}");
    }
}
