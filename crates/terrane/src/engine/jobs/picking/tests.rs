use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::files::storage::MemoryStorage;
use crate::{Background, Options};

/// If a snapshot that began after the trees were listed kept a compaction from being picked, its tree was removed
/// from the list, and nothing added it again when the snapshot ended.
#[test]
fn a_tree_is_looked_at_again_after_a_snapshot_that_the_pick_saw() {
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let db = options.open(Path::new("db")).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let engine = &db.default_keyspace().handle.engine;
    let picker = Picker::new(&engine.context, &engine.pipeline, &engine.catalog);
    let listed = || picker.trees_of(&engine.context.attention.compactions);
    let look = |trees: Vec<ListedTree>| {
        assert_eq!(trees.len(), 1);
        let jobs = trees[0].tree.jobs();
        assert!(picker.listed_compaction(&trees[0], &jobs).is_none());
    };
    let before = listed();
    let snapshot = db.snapshot();
    look(before);
    drop(snapshot);
    look(listed());
    assert!(listed().is_empty());
}
