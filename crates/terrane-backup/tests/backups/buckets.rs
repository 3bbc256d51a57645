//! Repositories in object stores.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use terrane_backup::{
    Bucket, PruneOptions, Repository, Retention, VerifyOptions, Which, list, prune, verify,
};

use crate::support::{back_up, contents, fill, object_bytes, open, restored};

#[test]
fn backups_in_object_stores_are_verified_pruned_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let files = dir.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let local: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(&files).unwrap());
    for (round, store) in (1..).zip([local, Arc::new(InMemory::new())]) {
        let bucket = Bucket::new(Arc::clone(&store), "a/prefix", "bucket").unwrap();
        fill(&db, 0..1000, round);
        db.flush().unwrap();
        back_up(&db, &bucket);
        fill(&db, 0..1000, 10 + round);
        let last = back_up(&db, &bucket).backup;
        let before = object_bytes(&bucket);
        // Another process sees the same objects.
        let bucket = Bucket::new(store, "a/prefix", "bucket").unwrap();
        assert!(verify(&bucket, &VerifyOptions::new()).unwrap().is_intact());
        let target = dir.path().join(format!("restored {round}"));
        assert_eq!(restored(&bucket, &Which::Latest, &target), contents(&db));
        let pruned = prune(&bucket, &PruneOptions::new(Retention::last(1))).unwrap();
        assert_eq!((pruned.removed.len(), pruned.kept.len()), (1, 1));
        assert_eq!(before - object_bytes(&bucket), pruned.bytes);
        assert_eq!(list(&bucket).unwrap().backups, std::slice::from_ref(&last));
        assert!(verify(&bucket, &VerifyOptions::new()).unwrap().is_intact());
        assert!(bucket.list("locks/").unwrap().is_empty());
        let target = dir.path().join(format!("restored {round} again"));
        assert_eq!(restored(&bucket, &Which::Named(last.name), &target), contents(&db));
    }
}
