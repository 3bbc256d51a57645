//! Requests and answers.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::request::SimulationRequest;
use crate::{catalogue, design, levels, play, points};

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// All named designs and the choices of every menu.
    Catalogue,
    /// The settings of a design.
    Design { text: String },
    /// A design with another value of a setting; `name` is the key of the eagerness.
    Change { text: String, key: String, value: String },
    /// A simulation.
    Simulate(Box<SimulationRequest>),
    /// The costs of many designs.
    Points { records: f64, record_bytes: f64, buffer: String, marked: Vec<String> },
    /// What lookups cost in a tree with these runs and bytes by level.
    Levels { text: String, levels: Vec<(f64, f64)> },
}

/// Answers a request. Both are JSON. The answer is an object with one field: `ok`, or `error`, a
/// sentence.
pub fn answer(request: &str) -> String {
    let answer = serde_json::from_str(request).map_err(|error| error.to_string()).and_then(compute);
    match answer {
        Ok(value) => json!({ "ok": value }).to_string(),
        Err(error) => json!({ "error": error }).to_string(),
    }
}

fn compute(request: Request) -> Result<Value, String> {
    match request {
        Request::Catalogue => as_json(&catalogue::catalogue()),
        Request::Design { text } => as_json(&design::describe(&design::parse(&text)?)),
        Request::Change { text, key, value } => {
            as_json(&design::describe(&design::changed(&text, &key, &value)?))
        }
        Request::Simulate(request) => as_json(&play::play(&request)?),
        Request::Points { records, record_bytes, buffer, marked } => {
            as_json(&points::points(records, record_bytes, &buffer, &marked)?)
        }
        Request::Levels { text, levels } => {
            as_json(&levels::lookups(&design::parse(&text)?, &levels))
        }
    }
}

fn as_json(value: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
