//! Options are stored with the database.

use terrane::{Db, Design, Durability, ErrorKind, Options};

use crate::support::{DIR, in_memory, small_design};

#[test]
fn stored_options_hold_until_others_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let open = |options: Options| options.open(dir.path()).unwrap();
    assert_eq!(
        Options::table().iter().find(|info| info.name == "durability").unwrap().default,
        "process"
    );
    let db = open(Options::new().durability(Durability::Sync).memory_budget(8 << 20));
    assert_eq!(db.durability(), Durability::Sync);
    drop(db);
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.durability(), Durability::Sync);
    assert_eq!(db.stats().memory.budget_bytes, 8 << 20);
    drop(db);
    let db = open(Options::new().durability(Durability::Process));
    assert_eq!(db.durability(), Durability::Process);
    assert_eq!(db.stats().memory.budget_bytes, 8 << 20);
    drop(db);
    assert_eq!(Db::open_read_only(dir.path()).unwrap().durability(), Durability::Process);
}

#[test]
fn the_design_is_stored_and_another_one_is_refused_with_an_explanation() {
    let (options, _) = in_memory();
    let stored = small_design();
    drop(options.clone().design(stored.clone()).open(DIR).unwrap());
    // Opens the database without a design, and with the same design.
    assert_eq!(options.open(DIR).unwrap().design(), stored);
    assert_eq!(options.clone().design(stored.clone()).open(DIR).unwrap().design(), stored);
    let asked: Design = "tiering T=4".parse().unwrap();
    let error = options.clone().design(asked.clone()).open(DIR).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    for part in [asked.to_string(), stored.to_string(), "default".into(), "set_design".into()] {
        assert!(text.contains(&part), "{part} in: {text}");
    }
    // The opening that was refused changed nothing.
    assert_eq!(options.open(DIR).unwrap().design(), stored);
}

#[test]
fn options_are_set_from_text_and_bad_ones_say_what_is_accepted() {
    let mut options = in_memory().0;
    options.set("durability", "interval(50ms)").unwrap();
    options.set("design", "tiering T=3; buffer=1MiB").unwrap();
    let db = options.open(DIR).unwrap();
    assert_eq!(db.durability().to_string(), "interval(50ms)");
    assert_eq!(db.design().buffer_bytes, 1 << 20);
    for (name, value, hint) in [
        ("durability", "eventually", "sync"),
        ("read_mode", "slow", "`cached` or `direct`"),
        ("colour", "red", "memory_budget"),
        ("design", "balanced; T=1", "design"),
    ] {
        let error = Options::new().set(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn options_out_of_range_are_refused_before_any_file_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let error = Options::new().compaction_threads(0).open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("compaction_threads is 0"), "{error}");
    assert!(!path.exists());
}
