//! Finds numbers that stand for missing ones in exported JSON.
//!
//! A sentinel is read as a measurement: a mean over `u64::MAX` or over bytes divided by "at least 1" is
//! garbage, and so is a percentile of 0 of operations that never ran. An unknown number is `null`.

use serde_json::{Map, Value};

/// No real number of an export is this large: bytes, micros and counts stay far below.
const LARGEST: f64 = 1e17;

/// Counts whose object has no latencies if they are 0.
const COUNTS: [&str; 4] = ["operations", "completed", "count", "writes"];

/// Returns the paths of all numbers of a value that stand for missing ones:
///
/// 1. a number beyond all real ones, such as `u64::MAX`;
/// 2. a write amplification without user bytes, or one that is not the quotient of the bytes beside it;
/// 3. a latency beside a count of 0.
pub fn sentinels(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    add(value, "", &mut found);
    found
}

fn add(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() >= LARGEST) => {
            found.push(format!("{path} is {number}"));
        }
        Value::String(text) if matches!(text.as_str(), "NaN" | "inf" | "-inf") => {
            found.push(format!("{path} is '{text}'"));
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                add(value, &format!("{path}[{at}]"), found);
            }
        }
        Value::Object(fields) => {
            add_of_object(fields, path, found);
            for (name, value) in fields {
                add(value, &format!("{path}.{name}"), found);
            }
        }
        _ => {}
    }
}

fn add_of_object(fields: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let number = |name: &str| fields.get(name).and_then(Value::as_f64);
    if let (Some(written), Some(user)) = (number("write_amplification"), number("user_bytes")) {
        let all = number("written_bytes");
        let is_quotient = all.is_none_or(|all| (written * user - all).abs() <= 1e-6 * all.abs());
        if user == 0.0 || !is_quotient {
            found.push(format!("{path}.write_amplification is {written} for {user} user bytes"));
        }
    }
    if COUNTS.iter().any(|count| number(count) == Some(0.0)) {
        let latencies = fields.iter().filter(|(name, _)| name.ends_with("latency_micros"));
        for (name, latency) in latencies {
            if has_number(latency) {
                found.push(format!("{path}.{name} has numbers, but nothing was timed"));
            }
        }
    }
}

fn has_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Array(values) => values.iter().any(has_number),
        Value::Object(fields) => fields.values().any(has_number),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_stand_for_missing_ones_are_found() {
        for (value, count) in [
            (json!({"a": [1, 2.5, null], "user_bytes": 4, "write_amplification": 3.0}), 0),
            (json!({"levels": [{"bytes": u64::MAX}]}), 1),
            (json!({"age": usize::MAX, "time": -1e300, "ratio": "NaN"}), 3),
            (json!({"write_amplification": 7.5e8, "user_bytes": 0.0}), 1),
            (json!({"write_amplification": null, "user_bytes": 0.0, "written_bytes": 7.5e8}), 0),
            (json!({"write_amplification": 7.5e8, "user_bytes": 0.5, "written_bytes": 7.5e8}), 1),
            (json!({"operations": 0, "latency_micros": {"p50": 0.0}}), 1),
            (json!({"operations": 0, "latency_micros": {"p50": null}}), 0),
            (json!({"writes": 0.0, "latency_micros": [["p50", 0.0]]}), 1),
        ] {
            assert_eq!(sentinels(&value).len(), count, "{value}: {:?}", sentinels(&value));
        }
    }
}
