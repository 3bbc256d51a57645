//! Buffers of the authors' later program that Terrane does not have: plain, for one thread, and only
//! complete enough to measure their costs.

use std::hint::black_box;

/// The operations that are measured.
pub(super) trait PlainBuffer {
    /// Adds an entry.
    fn insert(&mut self, key: &[u8], value: &[u8]);
    /// Returns the value of a key.
    fn get(&self, key: &[u8]) -> Option<&[u8]>;
    /// Reads `count` entries, starting at a key.
    fn scan(&self, from: &[u8], count: usize);
}

type Bytes = Box<[u8]>;

/// V-Sorted: an array in the order of keys.
#[derive(Default)]
pub(super) struct SortedVector {
    entries: Vec<SortedEntry>,
}

/// The head of a key, then the key and the value.
struct SortedEntry(u64, Box<(Bytes, Bytes)>);

impl SortedEntry {
    fn order(&self) -> (u64, &[u8]) {
        (self.0, &self.1.0)
    }
}

/// Returns the first eight bytes of a key as a number, so that most comparisons follow no pointer.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(8);
    head[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(head)
}

impl SortedVector {
    fn position(&self, key: &[u8]) -> usize {
        let wanted = head(key);
        // A key above all other keys needs no search.
        if self.entries.last().is_some_and(|last| last.order() < (wanted, key)) {
            return self.entries.len();
        }
        self.entries.partition_point(|other| other.order() < (wanted, key))
    }
}

impl PlainBuffer for SortedVector {
    fn insert(&mut self, key: &[u8], value: &[u8]) {
        let position = self.position(key);
        let entry = Box::new((key.into(), value.into()));
        self.entries.insert(position, SortedEntry(head(key), entry));
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let SortedEntry(_, entry) = self.entries.get(self.position(key))?;
        (*entry.0 == *key).then_some(&entry.1)
    }

    fn scan(&self, from: &[u8], count: usize) {
        for entry in self.entries.iter().skip(self.position(from)).take(count) {
            black_box(&entry.1.1);
        }
    }
}

const HEIGHT: usize = 12;
const END: u32 = u32::MAX;

/// Skip-L: a skip-list whose nodes point to their keys and values.
pub(super) struct PlainSkipList {
    keys: Vec<Bytes>,
    values: Vec<Bytes>,
    /// The next node at each height; node 0 is the head.
    next: Vec<Box<[u32]>>,
}

impl Default for PlainSkipList {
    fn default() -> Self {
        let next = vec![vec![END; HEIGHT].into_boxed_slice()];
        Self { keys: vec![Bytes::default()], values: vec![Bytes::default()], next }
    }
}

impl PlainSkipList {
    /// Returns the last node before a key at each height.
    fn before(&self, key: &[u8]) -> [u32; HEIGHT] {
        let mut before = [0; HEIGHT];
        let mut node = 0;
        for level in (0..HEIGHT).rev() {
            loop {
                let next = self.next[node as usize][level];
                if next == END || *self.keys[next as usize] >= *key {
                    break;
                }
                node = next;
            }
            before[level] = node;
        }
        before
    }

    fn first_from(&self, key: &[u8]) -> u32 {
        self.next[self.before(key)[0] as usize][0]
    }
}

impl PlainBuffer for PlainSkipList {
    fn insert(&mut self, key: &[u8], value: &[u8]) {
        let before = self.before(key);
        let node = self.keys.len() as u32;
        // A quarter of the nodes at each height reach the next height.
        let mixed = u64::from(node).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let height = 1 + (mixed.trailing_zeros() as usize / 2).min(HEIGHT - 1);
        self.keys.push(key.into());
        self.values.push(value.into());
        self.next.push(vec![END; height].into_boxed_slice());
        for (level, previous) in before.iter().take(height).enumerate() {
            let previous = *previous as usize;
            let next = std::mem::replace(&mut self.next[previous][level], node);
            self.next[node as usize][level] = next;
        }
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let node = self.first_from(key);
        let found = self.keys.get(node as usize)?;
        (**found == *key).then(|| &*self.values[node as usize])
    }

    fn scan(&self, from: &[u8], count: usize) {
        let mut node = self.first_from(from);
        for _ in 0..count {
            let Some(value) = self.values.get(node as usize) else { break };
            black_box((&self.keys[node as usize], value));
            node = self.next[node as usize][0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut other: impl PlainBuffer) {
        let key = |number: u32| number.wrapping_mul(0x9e37_79b9).to_string().into_bytes();
        for number in 0..2000 {
            other.insert(&key(number), &number.to_be_bytes());
        }
        for number in 0..2000 {
            assert_eq!(other.get(&key(number)), Some(&number.to_be_bytes()[..]));
        }
        assert_eq!(other.get(b"none"), None);
        other.scan(b"1", 5000);
    }

    #[test]
    fn buffers_find_their_entries() {
        check(SortedVector::default());
        check(PlainSkipList::default());
    }
}
