"""Batches, snapshots, transactions, values that expire, merges."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import terrane


def test_a_batch_is_written_whole_or_not_at_all(db: terrane.Database) -> None:
    other = db.keyspace("other")
    db[b"old"] = b"x"
    with db.batch() as batch:
        batch.put(b"a", b"1")
        batch[b"b"] = b"2"
        batch.delete(b"old")
        batch.keyspace(other).put(b"c", b"3")
        assert len(batch) == 4 and batch and list(db) == [b"old"]
    assert dict(db.items()) == {b"a": b"1", b"b": b"2"} and other[b"c"] == b"3"
    with pytest.raises(RuntimeError), db.batch() as batch:
        batch.delete_range(prefix=b"")
        raise RuntimeError
    assert dict(db.items()) == {b"a": b"1", b"b": b"2"}
    batch = db.batch(durability="sync")
    batch.delete_range(b"a", b"b")
    batch.write()
    batch.write()
    assert list(db) == [b"b"]


def test_snapshots_are_consistent_over_keyspaces(db: terrane.Database) -> None:
    other = db.keyspace("other")
    db[b"a"] = other[b"a"] = b"before"
    with db.snapshot() as snapshot:
        db[b"a"] = other[b"a"] = b"after"
        assert snapshot[b"a"] == snapshot.keyspace(other)[b"a"] == b"before"
        assert snapshot.get_many([b"a", b"b"]) == [b"before", None] and b"a" in snapshot
    with pytest.raises(terrane.ClosedError):
        snapshot.get(b"a")
    assert db.stats().snapshots == 0


def test_transactions_commit_conflict_and_roll_back(db: terrane.Database) -> None:
    other = db.keyspace("other")
    with db.transaction() as tx:
        tx[b"a"] = b"1"
        tx.keyspace(other)[b"a"] = b"2"
        assert tx[b"a"] == b"1" and b"a" not in db
        assert list(tx.items()) == [(b"a", b"1")]
        tx.savepoint()
        tx.delete(b"a")
        assert tx.roll_back_to_savepoint() and not tx.roll_back_to_savepoint()
    assert db[b"a"] == b"1" and other[b"a"] == b"2" and tx.closed
    with pytest.raises(terrane.ClosedError):
        tx.get(b"a")
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        tx[b"a"] = b"9"
        _ = 1 / 0
    assert db[b"a"] == b"1"
    with pytest.raises(terrane.ConflictError, match="another write"), db.transaction() as tx:
        tx[b"b"] = tx[b"a"]
        db[b"a"] = b"5"
    assert b"b" not in db
    with db.transaction(isolation="snapshot") as tx:
        tx[b"b"] = tx[b"a"]
        db[b"a"] = b"6"
    assert db[b"b"] == b"5"
    with pytest.raises(ValueError, match="isolation"):
        db.transaction(isolation="dirty")
    with pytest.raises(terrane.ConflictError), db.transaction() as tx:
        # A scan depends on the range that it read, also in chunks.
        tx[b"n"] = b"%d" % len(list(tx.keys(prefix=b"")))
        db[b"phantom"] = b""


def test_threads_increment_without_losing_any(db: terrane.Database) -> None:
    def increment(tx: terrane.Transaction) -> None:
        tx[b"n"] = b"%d" % (int(tx.get(b"n", b"0")) + 1)

    def work() -> None:
        for _ in range(100):
            db.transact(increment, attempts=10_000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"n"] == b"400"


def test_compare_and_swap(db: terrane.Database) -> None:
    assert db.compare_and_swap(b"k", None, b"1") and not db.compare_and_swap(b"k", None, b"2")
    assert db.compare_and_swap(b"k", b"1", b"2") and db[b"k"] == b"2"
    assert db.compare_and_swap(b"k", b"2", None) and b"k" not in db
    assert db.put_if_absent(b"k", b"1") and not db.put_if_absent(b"k", b"2")


def test_values_expire(db: terrane.Database) -> None:
    db.put(b"short", b"x", ttl=0.05)
    db.put(b"long", b"x", ttl=3600)
    with db.batch() as batch:
        batch.put(b"batch", b"x", ttl=0.05)
    assert b"short" in db
    time.sleep(0.2)
    assert list(db) == [b"long"]
    sessions = db.keyspace("sessions")
    sessions.ttl = 0.05
    sessions[b"a"] = b"1"
    assert sessions.ttl == 0.05
    time.sleep(0.2)
    assert b"a" not in sessions
    sessions.ttl = None
    assert sessions.ttl is None
    with pytest.raises(ValueError, match="seconds"):
        db.put(b"a", b"", ttl=-1)


def test_merges_combine_by_name(db: terrane.Database) -> None:
    counts = db.keyspace("counts")
    assert counts.merge_operator is None
    with pytest.raises(terrane.InvalidError, match="merge operator"):
        counts.merge(b"a", b"1")
    with pytest.raises(terrane.InvalidError):
        counts.set_merge_operator("nonsense")
    counts.set_merge_operator("append")
    counts.merge(b"a", b"1")
    with counts.batch() as batch:
        batch.merge(b"a", b"2")
    with db.transaction() as tx:
        tx.keyspace(counts).merge(b"a", b"3")
    assert counts[b"a"] == b"123" and counts.merge_operator == "append"


def test_ranges_are_deleted(db: terrane.Database) -> None:
    db.update({b"%02d" % number: b"" for number in range(20)})
    db.delete_range(b"05", b"15")
    assert len(list(db)) == 10
    db.delete_range(prefix=b"0")
    assert list(db) == [b"15", b"16", b"17", b"18", b"19"]
    db.delete_range()
    assert not db


def test_sorted_data_is_ingested_at_once(db: terrane.Database) -> None:
    assert db.ingest((b"%06d" % number, b"x" * 50) for number in range(10_000)) == 10_000
    assert db.count() == 10_000 and db.stats().ingests == 1
    with pytest.raises(terrane.InvalidError, match="ascending"):
        db.ingest([(b"b", b""), (b"a", b"")])


def test_all_operators_of_the_documentation_exist(db: terrane.Database) -> None:
    for name in ("append", "counter_add", "max", "min", "set_union"):
        keyspace = db.keyspace(name)
        keyspace.set_merge_operator(name)
        assert keyspace.merge_operator == name
    numbers = db.keyspace("counter_add")
    for number in (1, 41):
        numbers.merge(b"n", number.to_bytes(8, "little", signed=True))
    assert int.from_bytes(numbers[b"n"], "little", signed=True) == 42


def test_pairs_are_any_iterables_of_two_objects(db: terrane.Database) -> None:
    pairs: list[Any] = [[b"a", b"1"], (b"b", b"2"), iter((b"c", b"3")), dict.fromkeys((b"d", b"4"))]
    db.put_many(pairs)
    db.update([[b"e", b"5"]])
    db.prefixed_db(b"f").update([[b"", b"6"]])
    with db.transaction() as tx:
        tx.update([[b"g", b"7"]])
    assert list(db.items()) == [(bytes([97 + number]), b"%d" % (number + 1)) for number in range(7)]
    db.clear()
    assert db.ingest([[b"a", b"1"], [b"b", b"2"]]) == 2
    wrong: list[tuple[Any, type[Exception], str]] = [
        (7, TypeError, "element 1 is not a pair of a key and a value, but int"),
        ([b"a"], ValueError, "element 1 .* less than two objects"),
        ((b"a", b"b", b"c"), ValueError, "element 1 .* more than two objects"),
        ("ab", TypeError, "not str"),
        (b"ab", TypeError, "not int"),
    ]
    for element, error, message in wrong:
        for write in (db.put_many, db.ingest):
            with pytest.raises(error, match=message):
                write([(b"c", b"3"), element])
    assert dict(db.items()) == {b"a": b"1", b"b": b"2"}
