//! Users: their passwords, and what they may do.
//!
//! A file of users has a line for each of them:
//!
//! ```text
//! # name  password  access
//! app     s3cret    write:*
//! report  pa55      read:default,db2
//! ```
//!
//! A user with `write:*` may also administer the server.

use std::fmt;
use std::str::FromStr;

use crate::base::error::ServerError;

/// The name of the user that `AUTH password` means.
pub(crate) const DEFAULT_USER: &str = "default";

/// The users of a server.
#[derive(Debug, Clone, Default)]
pub struct Users {
    users: Vec<User>,
}

/// A user.
#[derive(Clone)]
pub struct User {
    name: String,
    password: String,
    may_write: bool,
    /// The keyspaces that the user may use; `None` for all.
    keyspaces: Option<Vec<String>>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, may_write, keyspaces, .. } = self;
        let mut out = f.debug_struct("User");
        out.field("name", name).field("may_write", may_write).field("keyspaces", keyspaces);
        out.finish_non_exhaustive()
    }
}

impl User {
    /// Returns a user who may do everything.
    pub fn new(name: impl Into<String>, password: impl Into<String>) -> Self {
        Self { name: name.into(), password: password.into(), may_write: true, keyspaces: None }
    }

    /// Lets the user only read.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.may_write = false;
        self
    }

    /// Lets the user use only these keyspaces.
    #[must_use]
    pub fn keyspaces(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.keyspaces = Some(names.into_iter().collect());
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn may_write(&self) -> bool {
        self.may_write
    }

    pub(crate) fn may_administer(&self) -> bool {
        self.may_write && self.keyspaces.is_none()
    }

    pub(crate) fn may_use_all(&self) -> bool {
        self.keyspaces.is_none()
    }

    pub(crate) fn may_use(&self, keyspace: &str) -> bool {
        self.keyspaces.as_ref().is_none_or(|names| names.iter().any(|name| name == keyspace))
    }
}

impl Users {
    /// Returns the user called `default` with a password, for clients that send only a password.
    pub fn with_password(password: impl Into<String>) -> Self {
        Self { users: vec![User::new(DEFAULT_USER, password)] }
    }

    /// Adds a user, replacing one of the same name.
    pub fn add(&mut self, user: User) {
        self.users.retain(|other| other.name != user.name);
        self.users.push(user);
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns the user with a name and a password. The time does not depend on how much of the password is
    /// right.
    pub(crate) fn find(&self, name: &[u8], password: &[u8]) -> Option<&User> {
        let user = self.users.iter().find(|user| user.name.as_bytes() == name);
        // An unknown name takes as long as a known one.
        let expected = user.map_or("", |user| user.password.as_str());
        let is_equal = is_equal(expected.as_bytes(), password);
        user.filter(|user| is_equal && !user.password.is_empty())
    }
}

/// Compares every byte of `given`, even after a difference.
fn is_equal(expected: &[u8], given: &[u8]) -> bool {
    let mut difference = u8::from(expected.len() != given.len());
    for (index, byte) in given.iter().enumerate() {
        let other = expected.get(index).copied().unwrap_or(0);
        difference |= std::hint::black_box(byte ^ other);
    }
    std::hint::black_box(difference) == 0
}

impl FromStr for Users {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let mut users = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let user = parse_user(line);
                users.add(user.map_err(|what| ServerError::Users { line: index + 1, what })?);
            }
        }
        Ok(users)
    }
}

fn parse_user(line: &str) -> Result<User, &'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, password, access] = words[..] else {
        return Err("expected a name, a password and the access, such as `app s3cret write:*`");
    };
    let (right, keyspaces) =
        access.split_once(':').ok_or("expected the access as read:KEYSPACES or write:KEYSPACES")?;
    let user = User::new(name, password);
    let user = match right {
        "write" => user,
        "read" => user.read_only(),
        _ => return Err("expected the access as read:KEYSPACES or write:KEYSPACES"),
    };
    match keyspaces {
        "" => Err("expected keyspaces after the colon: names with commas between them, or *"),
        "*" => Ok(user),
        names => Ok(user.keyspaces(names.split(',').map(str::to_owned))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_passwords_and_rights() {
        let users: Users =
            "# people\n\napp s3cret write:*\nreport pa55 read:default,db2\n".parse().unwrap();
        let app = users.find(b"app", b"s3cret").unwrap();
        assert!(app.may_write() && app.may_administer() && app.may_use("anything"));
        let report = users.find(b"report", b"pa55").unwrap();
        assert!(!report.may_write() && !report.may_administer());
        assert!(report.may_use("db2") && !report.may_use("db1"));
        for (name, password) in
            [("app", "s3cre"), ("app", "s3cret2"), ("app", ""), ("report", "s3cret"), ("", "")]
        {
            assert!(users.find(name.as_bytes(), password.as_bytes()).is_none(), "{name}");
        }
        assert!(!format!("{users:?}").contains("s3cret"));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, expected) in [
            ("app s3cret", "line 1: expected a name"),
            ("\napp s3cret all:*", "line 2: expected the access"),
            ("app s3cret write:", "line 1: expected keyspaces"),
        ] {
            let error = text.parse::<Users>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
