//! The state of a server and of its connections, apart from the data.
//!
//! | module | one line |
//! |---|---|
//! | `config` | settings |
//! | `users` | users and what they may do |
//! | `clients`, `session` | the connected clients, and the state of one connection |
//! | `channels` | publish and subscribe |
//! | `helpers` | threads for commands that take long |
//! | `slow_log`, `latency` | slow commands and pauses |

pub(crate) mod channels;
pub(crate) mod clients;
pub(crate) mod config;
pub(crate) mod helpers;
pub(crate) mod latency;
pub(crate) mod session;
pub(crate) mod slow_log;
pub(crate) mod users;
