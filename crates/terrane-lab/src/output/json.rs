//! Conventions of all JSON output.
//!
//! A key or a value is a string if it is UTF-8, and `{"hex":"00ff"}` otherwise, so that any bytes
//! round-trip.

use std::io::{self, Write};

use serde::{Deserialize, Serialize, Serializer};
use terrane::Times;
use terrane_workload::{Latency, LatencyMicros};

/// The version of the schema of `--json`. A version may gain fields.
pub const SCHEMA: u32 = 1;

/// Bytes to serialise.
#[derive(Debug, Clone, Copy)]
pub struct JsonBytes<'a>(pub &'a [u8]);

impl Serialize for JsonBytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Hex { hex: hex(self.0) }.serialize(serializer),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Hex {
    hex: String,
}

/// Bytes parsed from JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "StringOrHex")]
pub struct ParsedBytes(pub Vec<u8>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or {\"hex\":\"...\"}")]
enum StringOrHex {
    Text(String),
    Bytes(Hex),
}

impl TryFrom<StringOrHex> for ParsedBytes {
    type Error = &'static str;

    fn try_from(parsed: StringOrHex) -> Result<Self, Self::Error> {
        match parsed {
            StringOrHex::Text(text) => Ok(Self(text.into())),
            StringOrHex::Bytes(Hex { hex }) => {
                unhex(&hex).map(Self).ok_or("the value of `hex` is not hexadecimal")
            }
        }
    }
}

/// Latencies of operations, in microseconds, rounded to three decimal places; all are `null` without
/// operations. The keys and their order are part of the schema.
#[derive(Debug)]
pub struct JsonLatency(Vec<(&'static str, Option<f64>)>);

impl JsonLatency {
    /// Returns the percentiles of a closed system; `None` for one without operations.
    pub fn of(latency: Option<&LatencyMicros>) -> Self {
        let of = |micros: fn(&LatencyMicros) -> f64| latency.map(micros);
        Self(vec![
            ("p50", of(|latency| latency.p50)),
            ("p90", of(|latency| latency.p90)),
            ("p99", of(|latency| latency.p99)),
            ("p999", of(|latency| latency.p99_9)),
            ("max", of(|latency| latency.max)),
            ("mean", of(|latency| latency.mean)),
        ])
    }

    /// Returns the percentiles of an open system, whose tail shows its stalls.
    pub fn with_tail(latency: &Latency) -> Self {
        let known = |micros: f64| (latency.samples() > 0).then_some(micros);
        let at = |percent| known(latency.percentile_micros(percent));
        Self(vec![
            ("mean", known(latency.mean_micros())),
            ("p50", at(50.0)),
            ("p90", at(90.0)),
            ("p95", at(95.0)),
            ("p99", at(99.0)),
            ("p999", at(99.9)),
            ("p9999", at(99.99)),
            ("max", known(latency.max_micros())),
        ])
    }
}

impl Serialize for JsonLatency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, micros)| (key, micros.map(rounded))))
    }
}

/// Rounds to three decimal places.
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Durations, in milliseconds; `null` if nothing was timed.
#[derive(Debug, Serialize)]
pub struct JsonTimes {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl JsonTimes {
    /// Rounds to whole microseconds.
    pub fn of(times: &Times) -> Self {
        let millis = |micros: Option<f64>| micros.map(|micros| micros.round() / 1e3);
        Self {
            mean: millis(times.mean_micros()),
            p50: millis(times.percentile_micros(50.0)),
            p90: millis(times.percentile_micros(90.0)),
            p99: millis(times.percentile_micros(99.0)),
            max: millis(times.max_micros()),
        }
    }
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Writes a value as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_round_trip() {
        for bytes in [&b""[..], b"text", "café\n\"".as_bytes(), b"\xff\x00\x80", b"\xc3"] {
            let text = serde_json::to_string(&JsonBytes(bytes)).unwrap();
            let read: ParsedBytes = serde_json::from_str(&text).unwrap();
            assert_eq!(read.0, bytes, "{text}");
        }
        assert_eq!(serde_json::to_string(&JsonBytes(b"\xff\x0a")).unwrap(), r#"{"hex":"ff0a"}"#);
        for bad in [r#"{"hex":"f"}"#, r#"{"hex":"zz"}"#, "7", "null", r#"{"hex":"é"}"#] {
            assert!(serde_json::from_str::<ParsedBytes>(bad).is_err(), "{bad}");
        }
    }
}
