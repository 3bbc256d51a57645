//! An ordered map whose clones share their contents.
//!
//! States are immutable and replaced as a whole: the trees of a database, the tables of a version,
//! the state of the manifest. If each replacement copied its maps, then adding n entries one after
//! the other would take quadratic time. A change of this map copies only the nodes between the root
//! and the entry, and only if a clone uses them too.
//!
//! The map is a B+ tree. A removal merges a node with a neighbour if both fit into one node, and
//! otherwise leaves it as it is.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

/// The maximum number of entries or children of a node. A change copies one node per level, so a
/// larger node makes changes slower and lookups faster.
const NODE_MAX: usize = 32;

/// A node with fewer entries or children than this is merged with a neighbour, if they fit.
const NODE_MIN: usize = NODE_MAX / 4;

/// An ordered map. A clone costs one reference count.
#[derive(Clone)]
pub(crate) struct SharedMap<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    /// At least one child.
    Inner(Vec<Child<K, V>>),
}

#[derive(Clone)]
struct Child<K, V> {
    /// At most the smallest key of the child, and larger than all keys of the child before.
    first: K,
    node: Arc<Node<K, V>>,
}

impl<K, V> SharedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the entries in the order of their keys.
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        let (entries, children) = match &*self.root {
            Node::Leaf(entries) => (&entries[..], None),
            Node::Inner(children) => (&[][..], Some(children.iter())),
        };
        Iter { entries: entries.iter(), above: children.into_iter().collect() }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the entry with the smallest key.
    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Returns the entry with the largest key.
    pub(crate) fn last(&self) -> Option<(&K, &V)> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => return entries.last().map(|(key, value)| (key, value)),
                Node::Inner(children) => node = &*children.last()?.node,
            }
        }
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(other, _)| other.borrow().cmp(key)).ok()?;
                    return entries.get(at).map(|(_, value)| value);
                }
                Node::Inner(children) => node = &*children.get(child_for(children, key))?.node,
            }
        }
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Returns the value of a key, which the caller may change.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // Otherwise a lookup of a missing key would copy nodes.
        if !self.contains_key(key) {
            return None;
        }
        let mut node = Arc::make_mut(&mut self.root);
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
                    return entries.get_mut(at).map(|(_, value)| value);
                }
                Node::Inner(children) => {
                    let at = child_for(children, key);
                    node = Arc::make_mut(&mut children.get_mut(at)?.node);
                }
            }
        }
    }

    /// Sets the value of a key. Returns the value that it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, split) = insert(&mut self.root, key, value);
        if let Some(right) = split {
            let left = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            let first = right.first.clone();
            let children =
                vec![Child { first: left.first_key().unwrap_or(first), node: left }, right];
            self.root = Arc::new(Node::Inner(children));
        }
        self.len += usize::from(before.is_none());
        before
    }

    /// Removes a key. Returns its value.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        let removed = remove(&mut self.root, key);
        self.len -= usize::from(removed.is_some());
        while let Node::Inner(children) = &*self.root {
            self.root = match &children[..] {
                [] => Arc::new(Node::Leaf(Vec::new())),
                [only] => Arc::clone(&only.node),
                _ => break,
            };
        }
        removed
    }
}

/// Returns the index of the child that may contain `key`.
fn child_for<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[Child<K, V>], key: &Q) -> usize {
    children.partition_point(|child| child.first.borrow() <= key).saturating_sub(1)
}

/// Inserts into a node. Returns the replaced value, and the right half of the node if it was split.
fn insert<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Option<Child<K, V>>) {
    let node = Arc::make_mut(node);
    match node {
        Node::Leaf(entries) => match entries.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => {
                let before =
                    entries.get_mut(at).map(|entry| std::mem::replace(&mut entry.1, value));
                return (before, None);
            }
            Err(at) => entries.insert(at, (key, value)),
        },
        Node::Inner(children) => {
            let at = child_for(children, &key);
            let Some(child) = children.get_mut(at) else { return (None, None) };
            let (before, split) = insert(&mut child.node, key.clone(), value);
            if key < child.first {
                child.first = key;
            }
            children.splice(at + 1..at + 1, split);
            if before.is_some() {
                return (before, None);
            }
        }
    }
    (None, node.split())
}

/// Removes a key that exists. Returns its value.
fn remove<K, V: Clone, Q: Ord + ?Sized>(node: &mut Arc<Node<K, V>>, key: &Q) -> Option<V>
where
    K: Ord + Clone + Borrow<Q>,
{
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|(other, _)| other.borrow().cmp(key)).ok()?;
            Some(entries.remove(at).1)
        }
        Node::Inner(children) => {
            let at = child_for(children, key);
            let child = children.get_mut(at)?;
            let removed = remove(&mut child.node, key);
            if child.node.len() == 0 {
                children.remove(at);
            } else if child.node.len() < NODE_MIN {
                let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
                merge_with_next(children, left);
            }
            removed
        }
    }
}

/// Merges a child with the next one if both fit into one node.
fn merge_with_next<K: Clone, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) {
    let Some([left, right, ..]) = children.get_mut(at..) else { return };
    if left.node.len() + right.node.len() > NODE_MAX {
        return;
    }
    match (Arc::make_mut(&mut left.node), &*right.node) {
        (Node::Leaf(left), Node::Leaf(right)) => left.extend_from_slice(right),
        (Node::Inner(left), Node::Inner(right)) => left.extend_from_slice(right),
        // Neighbours have the same height.
        _ => return,
    }
    children.remove(at + 1);
}

impl<K: Clone, V> Node<K, V> {
    fn first_key(&self) -> Option<K> {
        match self {
            Self::Leaf(entries) => entries.first().map(|(key, _)| key.clone()),
            Self::Inner(children) => children.first().map(|child| child.first.clone()),
        }
    }

    /// Moves the right half of a node that is too large to a new node.
    fn split(&mut self) -> Option<Child<K, V>> {
        let len = self.len();
        if len <= NODE_MAX {
            return None;
        }
        let right = match self {
            Self::Leaf(entries) => Self::Leaf(entries.split_off(len / 2)),
            Self::Inner(children) => Self::Inner(children.split_off(len / 2)),
        };
        Some(Child { first: right.first_key()?, node: Arc::new(right) })
    }
}

impl<K, V> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }
}

/// The entries of a map, in the order of their keys.
pub(crate) struct Iter<'a, K, V> {
    entries: slice::Iter<'a, (K, V)>,
    /// The children still to visit, from the root down.
    above: Vec<slice::Iter<'a, Child<K, V>>>,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                return Some((key, value));
            }
            match self.above.last_mut()?.next() {
                None => drop(self.above.pop()),
                Some(child) => match &*child.node {
                    Node::Leaf(entries) => self.entries = entries.iter(),
                    Node::Inner(children) => self.above.push(children.iter()),
                },
            }
        }
    }
}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<K: Ord, V> Index<&K> for SharedMap<K, V> {
    type Output = V;

    /// # Panics
    /// If the map does not contain the key.
    #[allow(clippy::expect_used, reason = "documented, as for the maps of the standard library")]
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the map contains the key")
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
