//! The anomalies of Hermitage (Kleppmann), each with the transactions that could show it.
//!
//! Keys 1 and 2 have the values 10 and 20 at first. The names are those of Adya's thesis.

use terrane::{Db, ErrorKind, Isolation, Transaction, TransactionOptions};

use super::open;

const BOTH: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

fn prepared() -> Db {
    let db = open("btree");
    db.put("1", "10").unwrap();
    db.put("2", "20").unwrap();
    db
}

fn begin(db: &Db, isolation: Isolation) -> Transaction {
    db.begin_with(TransactionOptions::new().isolation(isolation))
}

fn read(tx: &Transaction, key: &str) -> String {
    String::from_utf8(tx.get(key).unwrap().unwrap().to_vec()).unwrap()
}

fn state(db: &Db) -> Vec<String> {
    let value = |entry: terrane::Result<(_, terrane::Value)>| entry.unwrap().1.to_vec();
    db.iter().unwrap().map(|entry| String::from_utf8(value(entry)).unwrap()).collect()
}

fn assert_conflict(result: terrane::Result<()>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn g0_write_cycles_do_not_mix_writes() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, mut second) = (begin(&db, isolation), begin(&db, isolation));
        first.put("1", "11");
        second.put("1", "12");
        first.put("2", "21");
        first.commit().unwrap();
        assert_eq!(state(&db), ["11", "21"]);
        second.put("2", "22");
        match isolation {
            // Both only write, so they can be ordered one after the other.
            Isolation::Serializable => {
                second.commit().unwrap();
                assert_eq!(state(&db), ["12", "22"]);
            }
            _ => assert_conflict(second.commit()),
        }
    }
}

#[test]
fn g1a_rolled_back_writes_are_not_read() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, second) = (begin(&db, isolation), begin(&db, isolation));
        first.put("1", "101");
        assert_eq!(read(&second, "1"), "10");
        first.roll_back();
        assert_eq!(read(&second, "1"), "10");
        second.commit().unwrap();
    }
}

#[test]
fn g1b_intermediate_writes_are_not_read() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, second) = (begin(&db, isolation), begin(&db, isolation));
        first.put("1", "101");
        assert_eq!(read(&second, "1"), "10");
        first.put("1", "11");
        first.commit().unwrap();
        assert_eq!(read(&second, "1"), "10");
        second.commit().unwrap();
    }
}

#[test]
fn g1c_information_does_not_flow_in_circles() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, mut second) = (begin(&db, isolation), begin(&db, isolation));
        first.put("1", "11");
        second.put("2", "22");
        assert_eq!((read(&first, "2"), read(&second, "1")), ("20".into(), "10".into()));
        first.commit().unwrap();
        match isolation {
            Isolation::Serializable => assert_conflict(second.commit()),
            _ => second.commit().unwrap(),
        }
    }
}

#[test]
fn otv_observed_transactions_do_not_vanish() {
    for isolation in BOTH {
        let db = prepared();
        let mut first = begin(&db, isolation);
        first.put("1", "11");
        first.put("2", "19");
        let mut second = begin(&db, isolation);
        second.put("1", "12");
        first.commit().unwrap();
        let third = begin(&db, isolation);
        assert_eq!(read(&third, "1"), "11");
        second.put("2", "18");
        let committed = second.commit().is_ok();
        assert_eq!(committed, isolation == Isolation::Serializable);
        assert_eq!((read(&third, "2"), read(&third, "1")), ("19".into(), "11".into()));
    }
}

#[test]
fn pmp_predicates_find_the_same_keys_again() {
    for isolation in BOTH {
        let db = prepared();
        let mut first = begin(&db, isolation);
        let thirties = |tx: &Transaction| {
            let entries = tx.iter().unwrap().map(|entry| entry.unwrap().1);
            entries.filter(|value| value.starts_with(b"3")).count()
        };
        assert_eq!(thirties(&first), 0);
        db.put("3", "30").unwrap();
        assert_eq!(thirties(&first), 0);
        first.put("4", "none");
        match isolation {
            Isolation::Serializable => assert_conflict(first.commit()),
            _ => first.commit().unwrap(),
        }
    }
}

#[test]
fn p4_updates_are_not_lost() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, mut second) = (begin(&db, isolation), begin(&db, isolation));
        assert_eq!((read(&first, "1"), read(&second, "1")), ("10".into(), "10".into()));
        first.put("1", "11");
        second.put("1", "11");
        first.commit().unwrap();
        assert_conflict(second.commit());
    }
}

#[test]
fn g_single_reads_are_not_skewed() {
    for isolation in BOTH {
        let db = prepared();
        let first = begin(&db, isolation);
        assert_eq!(read(&first, "1"), "10");
        let mut second = begin(&db, isolation);
        second.put("1", "12");
        second.put("2", "18");
        second.commit().unwrap();
        assert_eq!(read(&first, "2"), "20");
        first.commit().unwrap();
    }
}

/// A transaction reads before another one writes, and then deletes by a predicate.
#[test]
fn g_single_predicates_are_not_skewed() {
    for isolation in BOTH {
        let db = prepared();
        let mut first = begin(&db, isolation);
        assert_eq!(read(&first, "1"), "10");
        let mut second = begin(&db, isolation);
        second.put("1", "12");
        second.put("2", "18");
        second.commit().unwrap();
        first.delete_range("2"..);
        assert_conflict(first.commit());
        assert_eq!(state(&db), ["12", "18"]);
    }
}

#[test]
fn g2_item_writes_are_not_skewed() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, mut second) = (begin(&db, isolation), begin(&db, isolation));
        for tx in [&first, &second] {
            assert_eq!((read(tx, "1"), read(tx, "2")), ("10".into(), "20".into()));
        }
        first.put("1", "11");
        second.put("2", "21");
        first.commit().unwrap();
        match isolation {
            Isolation::Serializable => assert_conflict(second.commit()),
            // Write skew, which snapshot isolation allows.
            _ => second.commit().unwrap(),
        }
    }
}

#[test]
fn g2_predicates_find_no_phantoms() {
    for isolation in BOTH {
        let db = prepared();
        let (mut first, mut second) = (begin(&db, isolation), begin(&db, isolation));
        for tx in [&first, &second] {
            assert_eq!(tx.prefix("3").unwrap().count(), 0);
        }
        first.put("31", "30");
        second.put("32", "42");
        first.commit().unwrap();
        match isolation {
            Isolation::Serializable => assert_conflict(second.commit()),
            _ => second.commit().unwrap(),
        }
    }
}

/// Fekete's read-only anomaly: the history is serialisable without the transaction that only reads.
#[test]
fn g2_two_edges_through_a_reader_are_no_cycle() {
    let db = prepared();
    let mut first = begin(&db, Isolation::Serializable);
    assert_eq!(first.iter().unwrap().count(), 2);
    db.put("2", "25").unwrap();
    let third = begin(&db, Isolation::Serializable);
    assert_eq!((read(&third, "1"), read(&third, "2")), ("10".into(), "25".into()));
    third.commit().unwrap();
    first.put("1", "0");
    assert_conflict(first.commit());
}

/// An iterator that stops early depends only on the keys up to where it stopped.
#[test]
fn only_the_part_of_a_range_that_was_read_conflicts() {
    let db = open("btree");
    for key in ["a", "c", "e", "g"] {
        db.put(key, "").unwrap();
    }
    for (forward, backward, written, is_conflict) in [
        (1, 0, "b", false),
        (1, 0, "a", true),
        (1, 0, "Z", true),
        (2, 0, "b", true),
        (2, 0, "d", false),
        (0, 1, "g", true),
        (0, 1, "f", false),
        (0, 1, "h", true),
        (1, 1, "d", false),
        (0, 2, "f", true),
        (5, 0, "z", true),
        (0, 0, "a", false),
    ] {
        let mut tx = db.begin();
        {
            let mut all = tx.iter().unwrap();
            (0..forward).for_each(|_| drop(all.next()));
            (0..backward).for_each(|_| drop(all.next_back()));
        }
        tx.put("own", "");
        let before = db.get(written).unwrap();
        db.put(written, "new").unwrap();
        let case = (forward, backward, written);
        assert_eq!(tx.commit().is_err(), is_conflict, "{case:?}");
        if before.is_none() {
            db.delete(written).unwrap();
        }
        db.delete("own").unwrap();
    }
}

/// A key that is put and deleted again is as absent as before.
#[test]
fn what_ends_as_it_began_is_no_conflict() {
    let db = prepared();
    let mut tx = db.begin();
    assert!(tx.get("3").unwrap().is_none());
    db.put("3", "30").unwrap();
    db.delete("3").unwrap();
    tx.put("4", "40");
    tx.commit().unwrap();
}
