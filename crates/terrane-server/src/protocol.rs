//! RESP2 and RESP3: requests are parsed, replies written.
//!
//! | module | one line |
//! |---|---|
//! | `request` | parses requests in place |
//! | `reply` | writes replies of either version |

mod reply;
mod request;

pub(crate) use reply::{Protocol, Reply};
pub(crate) use request::{
    Arguments, OwnedArguments, Parsed, ProtocolError, RequestLimits, RequestParser,
};
