//! What the design explorer computes, as JSON: designs, simulations with their traces, and costs.
//!
//! The explorer is a page that runs in a browser. This crate is the boundary between the page and the
//! policy and simulator of the engine: [`answer`] takes a request as JSON and returns an answer as
//! JSON. It is pure, so that one request has the same answer, byte for byte, in the command and in the
//! page, for which `wasm` exports it to WebAssembly.
//!
//! | module | one line |
//! |---|---|
//! | `answer` | requests and answers |
//! | `catalogue` | named designs, and the choices of menus |
//! | `design` | settings of a design, and changes of one |
//! | `request` | the input of a simulation |
//! | `play` | a simulation, with its trace and its results |
//! | `events` | traces as JSON |
//! | `levels` | what lookups cost in a tree |
//! | `points` | costs of many designs |
//! | `wasm` | the functions of the WebAssembly module |
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

mod answer;
mod catalogue;
mod design;
mod events;
mod levels;
mod play;
mod points;
mod request;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use answer::answer;
