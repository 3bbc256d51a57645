//! Builds the files that a crash leaves behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use terrane_policy::random::SplitMix64;

use super::names::{NameChange, Names};
use super::node::{FrozenNode, Node, NodeId, Pending};
use super::{MemoryStorage, State};

/// The size of a sector. A crash never splits a sector.
pub(super) const SECTOR_BYTES: usize = 512;

/// The kind of a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Crash {
    /// The process died; all its writes survive.
    Process,
    /// The machine lost power.
    Power(Survival),
    /// A snapshot of the volume was taken. It lacks unsynced data, as after a power failure, but
    /// the machine did not restart.
    Snapshot(Survival),
}

/// The probability with which each unsynced write and name survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survival {
    /// The probability, in percent, that a sector or a change of names survives.
    pub percent: u64,
    /// The seed that decides which ones survive.
    pub seed: u64,
}

/// The state of all files before one operation.
#[derive(Debug, Clone)]
pub struct CrashPoint {
    operation: String,
    mark: u64,
    nodes: BTreeMap<NodeId, FrozenNode>,
    names: Names,
    durable_names: Names,
    pending_names: Vec<NameChange>,
    boot: u128,
    entropy: u64,
}

impl State {
    pub(super) fn crash_point(&self, operation: &str) -> CrashPoint {
        CrashPoint {
            operation: operation.to_owned(),
            mark: self.mark,
            nodes: self.nodes.iter().map(|(id, node)| (*id, node.freeze())).collect(),
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            pending_names: self.pending_names.clone(),
            boot: self.boot,
            entropy: self.entropy,
        }
    }
}

impl CrashPoint {
    /// Returns a description of the operation that was about to run.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Returns the mark that [`MemoryStorage::mark`] set last.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Returns the files that a crash leaves behind. After a power failure all of them are durable;
    /// after the death of the process unsynced writes survive but remain unsynced.
    pub fn image(&self, crash: Crash) -> MemoryStorage {
        let next_node = self.nodes.keys().last().map_or(0, |id| id.0 + 1);
        let entropy = self.entropy.wrapping_add(1);
        let state = match crash {
            Crash::Process => State {
                nodes: self.nodes.iter().map(|(id, node)| (*id, node.as_it_was())).collect(),
                names: self.names.clone(),
                durable_names: self.durable_names.clone(),
                pending_names: self.pending_names.clone(),
                boot: self.boot,
                ..State::default()
            },
            Crash::Power(survival) | Crash::Snapshot(survival) => {
                let random = SplitMix64::new(survival.seed);
                let mut dice = Dice { percent: survival.percent, random };
                let mut names = self.durable_names.clone();
                for change in self.pending_names.iter().filter(|_| dice.survives()) {
                    names.apply(change);
                }
                names.drop_unreachable();
                let nodes = self.nodes.iter().map(|(id, node)| (*id, node.after(&mut dice)));
                State {
                    nodes: nodes.collect(),
                    durable_names: names.clone(),
                    names,
                    boot: self.boot + u128::from(matches!(crash, Crash::Power(_))),
                    ..State::default()
                }
            }
        };
        let state = State { next_node, entropy, ..state };
        MemoryStorage { state: Arc::new(Mutex::new(state)) }
    }
}

impl FrozenNode {
    fn as_it_was(&self) -> Node {
        let mut node = Node::durable(Arc::clone(&self.durable));
        for change in &self.pending {
            match change {
                Pending::Write(write) => node.write(write.offset, &write.bytes),
                Pending::Length(len) => node.set_len(*len),
            }
        }
        node
    }

    fn after(&self, dice: &mut Dice) -> Node {
        let mut data = (*self.durable).clone();
        for change in &self.pending {
            let write = match change {
                Pending::Write(write) => write,
                Pending::Length(len) => {
                    if dice.survives() {
                        data.resize(*len, 0);
                    }
                    continue;
                }
            };
            let mut at = 0;
            while at < write.bytes.len() {
                let sector_end = (write.offset + at + 1).next_multiple_of(SECTOR_BYTES);
                let end = (sector_end - write.offset).min(write.bytes.len());
                if dice.survives() {
                    write.apply(&mut data, at..end);
                }
                at = end;
            }
        }
        Node::durable(Arc::new(data))
    }
}

/// Decides for each sector or name whether it survives.
struct Dice {
    percent: u64,
    random: SplitMix64,
}

impl Dice {
    fn survives(&mut self) -> bool {
        self.random.bits() % 100 < self.percent
    }
}
