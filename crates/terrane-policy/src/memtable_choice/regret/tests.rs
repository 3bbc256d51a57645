use super::*;

const CAPACITY: u64 = 400_000;
const BUFFER: u64 = 64 << 20;

fn use_of(kind: MemtableKind, entries: u64, operations: &MemtableOperations) -> RecentUse<'_> {
    RecentUse { kind, entries, capacity: CAPACITY, buffer_bytes: BUFFER, operations }
}

fn writes(writes: u64) -> MemtableOperations {
    let (ascending, written_bytes) = (writes / 2, writes * 116);
    MemtableOperations { writes, ascending, written_bytes, ..MemtableOperations::default() }
}

fn lookups(lookups: u64, found: u64) -> MemtableOperations {
    MemtableOperations { lookups, found, ..MemtableOperations::default() }
}

/// Fills three quarters of a memtable.
fn filled(kind: MemtableKind) -> (Regret, u64) {
    let mut regret = Regret::default();
    for part in 1..=75 {
        let entries = CAPACITY / 100 * part;
        let change = regret.note(&use_of(kind, entries, &writes(CAPACITY / 100)));
        assert_eq!(change, None, "writes alone change nothing");
    }
    (regret, CAPACITY / 100 * 75)
}

/// Notes lookups until a change is due. Returns the change and the number of lookups.
fn until_change(
    regret: &mut Regret,
    kind: MemtableKind,
    entries: u64,
    is_found: bool,
) -> Option<(Change, u64)> {
    let every = check_every(kind, CAPACITY);
    (1..1_000_000 / every).find_map(|round| {
        let mix = lookups(every, if is_found { every } else { 0 });
        regret.note(&use_of(kind, entries, &mix)).map(|change| (change, round * every))
    })
}

#[test]
fn a_vector_that_lookups_scan_is_sorted_once() {
    for is_found in [false, true] {
        let (mut regret, entries) = filled(SCANNED);
        let (change, lookups) = until_change(&mut regret, SCANNED, entries, is_found).unwrap();
        let Change::Sort(reason) = change else { panic!("{change:?}") };
        assert!(reason.contains("sorted once"), "{reason}");
        // Sorting takes 10 ms, a lookup 10 to 20 µs.
        assert!(lookups < 4000, "{lookups}");
        // The vector is then about as good as any kind, so no change is ever due again.
        assert_eq!(until_change(&mut regret, SCANNED, entries, true), None);
    }
}

#[test]
fn few_lookups_among_many_writes_change_nothing() {
    let mut regret = Regret::default();
    for part in 1..=100 {
        let mix = writes(CAPACITY / 100).and(&lookups(4, 2));
        let change = regret.note(&use_of(SCANNED, CAPACITY / 100 * part, &mix));
        assert_eq!(change, None, "{part}");
    }
}

/// Each lookup of a vector sorts the entries since the last lookup. Only a different kind avoids
/// that.
#[test]
fn a_kind_that_does_not_suit_is_left_once_that_pays() {
    let vector = MemtableKind::VECTOR;
    let (mut regret, entries) = filled(vector);
    // Eight threads wait for the lock of the vector at each write.
    let mix = MemtableOperations { threads: 8, ..writes(1000).and(&lookups(1000, 0)) };
    let change = (0..400).find_map(|_| regret.note(&use_of(vector, entries, &mix)));
    let Some(Change::Replace(selection)) = change else { panic!("{change:?}") };
    assert_ne!(selection.kind, vector);
    assert!(selection.reason.contains("left early"), "{}", selection.reason);
}

/// Operations that change each time make every kind wrong, but cause few early flushes.
#[test]
fn each_early_flush_needs_twice_the_regret() {
    let vector = MemtableKind::VECTOR;
    let mix = MemtableOperations { threads: 8, ..writes(1000).and(&lookups(1000, 0)) };
    let mut regret = Regret::default();
    let mut rounds = Vec::new();
    for _ in 0..4 {
        let found = (0..1_000_000).find(|_| {
            matches!(regret.note(&use_of(vector, CAPACITY / 2, &mix)), Some(Change::Replace(_)))
        });
        rounds.push(found.unwrap() + 1);
        regret.begin(true);
    }
    let doubles = rounds.windows(2).all(|pair| pair[1] + 2 >= 2 * pair[0]);
    assert!(doubles, "{rounds:?}");
    (0..15).for_each(|_| regret.begin(false));
    assert_ne!(regret, Regret::default());
    regret.begin(false);
    assert_eq!(regret, Regret::default(), "full memtables end the doubling");
}

#[test]
fn kinds_whose_lookups_may_cost_much_are_checked_often() {
    let every = |kind| check_every(kind, CAPACITY);
    assert!(every(SCANNED) <= 1024, "{}", every(SCANNED));
    assert!(every(MemtableKind::BTree) >= 8 * every(SCANNED));
    assert!([SCANNED, MemtableKind::BTree].iter().all(|kind| every(*kind).is_power_of_two()));
}
