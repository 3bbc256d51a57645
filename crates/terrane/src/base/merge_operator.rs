//! Merge operators: change the value of a key by an operand, without reading the value first.

mod chain;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::codec::{Reader, put_slice};
use crate::base::error::{Error, Result};
use crate::base::types::MAX_VALUE_LEN;

pub(crate) use chain::{OperandChain, Part};

/// Combines the value of a key with an operand, or two operands.
///
/// [`Keyspace::merge`](crate::Keyspace::merge) stores an operand. Reads combine it with older versions,
/// and so do flushes and compactions, which therefore may combine operands before they meet a value: the
/// operator must be associative, so that `(a b) c` and `a (b c)` are the same. It must also be a pure
/// function, and the same in every program that opens the database. If a key has no value, its first
/// operand becomes the value.
pub trait MergeOperator: Send + Sync + fmt::Debug + 'static {
    /// The name, which the database stores with each keyspace that uses the operator. A different name
    /// means that the operator combines differently.
    fn name(&self) -> &str;

    /// Combines an older value or operand with a newer operand; `None` if they cannot be combined. Then
    /// both are kept, and reads of the key fail. A panic counts as `None`.
    fn combine(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>>;
}

/// The operators that every database knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuiltIn {
    CounterAdd,
    Append,
    Max,
    Min,
    SetUnion,
}

/// A list of operators by name.
#[derive(Debug, Clone)]
pub(crate) struct MergeOperators {
    all: Vec<Arc<dyn MergeOperator>>,
    unknown: UnknownNames,
}

/// How the names of operators that are not registered may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownNames {
    Refused,
    /// Keyspaces that have such an operator can be opened.
    Opened,
    /// Such an operator can also be set on keyspaces.
    Set,
}

/// An operator of which only the name is known, so it combines nothing.
#[derive(Debug)]
struct Unknown(String);

impl MergeOperator for Unknown {
    fn name(&self) -> &str {
        &self.0
    }

    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl Default for MergeOperators {
    /// Returns the built-in operators.
    fn default() -> Self {
        use BuiltIn::{Append, CounterAdd, Max, Min, SetUnion};
        let all = [CounterAdd, Append, Max, Min, SetUnion];
        let all = all.into_iter().map(|one| Arc::new(one) as _).collect();
        Self { all, unknown: UnknownNames::Refused }
    }
}

impl MergeOperators {
    /// Adds an operator, in place of one with the same name.
    pub(crate) fn add(&mut self, operator: Arc<dyn MergeOperator>) {
        self.all.retain(|other| other.name() != operator.name());
        self.all.push(operator);
    }

    /// Sets how unknown names may be used; each stands for an operator that combines nothing.
    pub(crate) fn accept_unknown(&mut self, unknown: UnknownNames) {
        self.unknown = unknown;
    }

    /// Returns the operator of a keyspace that is being opened.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(&self, name: &str, keyspace: &str) -> Result<Arc<dyn MergeOperator>> {
        self.find_or(name, keyspace, self.unknown != UnknownNames::Refused)
    }

    /// Returns the operator to set on a keyspace.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find_to_set(&self, name: &str, keyspace: &str) -> Result<Arc<dyn MergeOperator>> {
        self.find_or(name, keyspace, self.unknown == UnknownNames::Set)
    }

    fn find_or(
        &self,
        name: &str,
        keyspace: &str,
        accepts_unknown: bool,
    ) -> Result<Arc<dyn MergeOperator>> {
        let found = self.all.iter().find(|operator| operator.name() == name).map(Arc::clone);
        let unknown = || accepts_unknown.then(|| Arc::new(Unknown(name.to_owned())) as _);
        found.or_else(unknown).ok_or_else(|| {
            let names: Vec<_> = self.all.iter().map(|operator| operator.name()).collect();
            let expected = format!(
                "one of {}, or one that Options::merge_operator registers (Options::unknown_functions \
                 opens the keyspace without it)",
                names.join(", ")
            );
            let what = "merge operator";
            Error::invalid(what, format!("'{name}' for keyspace '{keyspace}'"), expected)
        })
    }
}

impl MergeOperator for BuiltIn {
    fn name(&self) -> &str {
        match self {
            Self::CounterAdd => "counter_add",
            Self::Append => "append",
            Self::Max => "max",
            Self::Min => "min",
            Self::SetUnion => "set_union",
        }
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::CounterAdd => {
                let number = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_le_bytes);
                let sum = number(older)?.wrapping_add(number(newer)?);
                Some(sum.to_le_bytes().to_vec())
            }
            Self::Append => Some([older, newer].concat()),
            Self::Max => Some(older.max(newer).to_vec()),
            Self::Min => Some(older.min(newer).to_vec()),
            Self::SetUnion => set_union(older, newer),
        }
    }
}

/// Combines two sets, each a list of members with their lengths as varints.
fn set_union(older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
    let mut members = BTreeSet::new();
    for set in [older, newer] {
        let mut reader = Reader::new(set);
        while !reader.is_empty() {
            members.insert(reader.slice("member of a set").ok()?);
        }
    }
    let mut union = Vec::new();
    members.into_iter().for_each(|member| put_slice(&mut union, member));
    Some(union)
}

/// Returns the error of a merge into a keyspace without an operator.
pub(crate) fn no_merge_operator(keyspace: &str) -> Error {
    let found = format!("into keyspace '{keyspace}', which has no merge operator");
    Error::invalid("merge", found, "into one with an operator; see Keyspace::set_merge_operator")
}

/// Combines two parts of a value, unless the result would be too long.
fn combine(
    operator: &dyn MergeOperator,
    key: &[u8],
    older: &[u8],
    newer: &[u8],
) -> Option<Vec<u8>> {
    // A panic in application code must not end a job or a reader. The operator is a pure function, so
    // none of its state matters afterwards.
    let called = AssertUnwindSafe(|| operator.combine(key, older, newer));
    let combined = catch_unwind(called).ok().flatten()?;
    (combined.len() <= MAX_VALUE_LEN).then_some(combined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in(name: &str) -> Arc<dyn MergeOperator> {
        MergeOperators::default().find(name, "default").unwrap()
    }

    fn set(members: &[&str]) -> Vec<u8> {
        let mut set = Vec::new();
        members.iter().for_each(|member| put_slice(&mut set, member.as_bytes()));
        set
    }

    #[test]
    fn built_in_operators_combine_and_are_associative() {
        let number = |number: i64| number.to_le_bytes().to_vec();
        let cases = [
            ("counter_add", [number(5), number(-7), number(i64::MAX)]),
            ("append", [b"a".to_vec(), vec![], b"bc".to_vec()]),
            ("max", [b"b".to_vec(), b"".to_vec(), b"ba".to_vec()]),
            ("min", [b"b".to_vec(), b"c".to_vec(), b"ba".to_vec()]),
            ("set_union", [set(&["x", "a"]), set(&[]), set(&["b", "a"])]),
        ];
        for (name, [a, b, c]) in cases {
            let operator = built_in(name);
            let both = |a: &[u8], b: &[u8]| operator.combine(b"k", a, b).unwrap();
            assert_eq!(both(&both(&a, &b), &c), both(&a, &both(&b, &c)), "{name}");
        }
        let sum = built_in("counter_add").combine(b"k", &number(5), &number(-7));
        assert_eq!(sum.unwrap(), number(-2));
        let union = built_in("set_union").combine(b"k", &set(&["x", "a"]), &set(&["b", "a"]));
        assert_eq!(union.unwrap(), set(&["a", "b", "x"]));
    }

    #[test]
    fn what_has_no_sense_is_not_combined() {
        let counter = built_in("counter_add");
        assert_eq!(counter.combine(b"k", b"5", &[0; 8]), None);
        assert_eq!(built_in("set_union").combine(b"k", b"\x09", b""), None);
        let error = MergeOperators::default().find("mine", "k").unwrap_err().to_string();
        assert!(error.contains("'mine' for keyspace 'k'") && error.contains("max"), "{error}");
    }
}
