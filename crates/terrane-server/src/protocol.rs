//! RESP2 and RESP3: requests are parsed, replies written.
//!
//! | module | one line |
//! |---|---|
//! | `arguments` | the arguments of a request |
//! | `request` | parses requests in place |
//! | `reply` | writes replies of either version |

mod arguments;
mod reply;
mod request;

pub(crate) use arguments::{Arguments, OwnedArguments, Span};
pub(crate) use reply::{Protocol, Reply};
pub(crate) use request::{Parsed, ProtocolError, RequestLimits, RequestParser};
