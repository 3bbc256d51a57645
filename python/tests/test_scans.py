"""Ranges, prefixes, iterators both ways."""

from __future__ import annotations

import gc

import pytest

import terrane


def fill(db: terrane.Database, count: int = 3000) -> list[tuple[bytes, bytes]]:
    pairs = [(b"%06d" % number, b"v%d" % number) for number in range(count)]
    db.put_many(pairs)
    return pairs


def test_ranges_in_both_directions_and_limits(db: terrane.Database) -> None:
    pairs = fill(db)
    for transaction in (db, db.snapshot(), db.transaction()):
        assert list(transaction.items()) == pairs
        assert list(transaction.items(reverse=True)) == pairs[::-1]
        assert list(transaction.keys(b"000010", b"000013")) == [b"000010", b"000011", b"000012"]
        assert list(transaction.values(start=b"002998")) == [b"v2998", b"v2999"]
        assert list(transaction.keys(prefix=b"00012")) == [b"%06d" % number for number in range(120, 130)]
        assert list(transaction.keys(prefix=b"0001", stop=b"000101", reverse=True)) == [b"000100"]
        assert list(transaction.keys(limit=2, reverse=True)) == [b"002999", b"002998"]
        assert list(transaction.keys(limit=0)) == [] and list(transaction.keys(b"5", b"4")) == []
        assert len(list(transaction.items(limit=1500))) == 1500
        assert list(transaction) == [key for key, _ in pairs]
        assert list(reversed(transaction)) == [key for key, _ in pairs[::-1]]
        assert transaction.first() == pairs[0] and transaction.last() == pairs[-1]
    assert db.count() == 3000 and db.count(prefix=b"0029") == 100 and db.snapshot().count(b"002000") == 1000


def test_a_prefix_of_0xff_has_no_end(db: terrane.Database) -> None:
    db.update({b"\xfe": b"", b"\xff": b"", b"\xff\xff\x01": b""})
    assert list(db.keys(prefix=b"\xff\xff")) == [b"\xff\xff\x01"]
    assert list(db.keys(prefix=b"")) == [b"\xfe", b"\xff", b"\xff\xff\x01"]


def test_an_iterator_reads_from_a_snapshot(db: terrane.Database) -> None:
    pairs = fill(db)
    entries = db.items()
    assert next(entries) == pairs[0]
    db.clear()
    assert list(entries) == pairs[1:] and list(db) == []


def test_iterators_close_and_seek(db: terrane.Database) -> None:
    fill(db)
    with db.keys() as keys:
        assert next(keys) == b"000000"
        keys.seek(b"002000")
        assert next(keys) == b"002000"
        keys.seek(b"9")
        assert next(keys, None) is None
        keys.seek(b"000001")
        assert next(keys) == b"000001"
    keys.close()
    assert db.stats().snapshots == 0
    with pytest.raises(terrane.ClosedError):
        keys.seek(b"")
    assert list(keys) == []
    with pytest.raises(terrane.InvalidError, match="cannot seek"):
        db.keys(reverse=True).seek(b"")


def test_large_values_bound_a_chunk(db: terrane.Database) -> None:
    values = [bytes([number]) * 300_000 for number in range(20)]
    db.put_many((b"%02d" % number, value) for number, value in enumerate(values))
    assert list(db.values()) == values and list(db.values(reverse=True)) == values[::-1]


def test_cursors_move_both_ways(db: terrane.Database) -> None:
    db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    cursor = db.iterator()
    assert next(cursor) == (b"a", b"1") and next(cursor) == (b"b", b"2")
    assert cursor.prev() == (b"b", b"2") and cursor.prev() == (b"a", b"1")
    with pytest.raises(StopIteration):
        cursor.prev()
    assert next(cursor) == (b"a", b"1")
    cursor.seek_to_stop()
    assert cursor.prev() == (b"c", b"3")
    assert list(db.iterator(reverse=True, include_key=False)) == [b"3", b"2", b"1"]
    assert list(db.iterator(start=b"a", include_start=False, stop=b"c", include_stop=True)) == [
        (b"b", b"2"),
        (b"c", b"3"),
    ]
    with pytest.raises(TypeError, match="prefix"):
        db.iterator(prefix=b"a", start=b"b")


def test_prefixed_databases(db: terrane.Database) -> None:
    users = db.prefixed_db(b"user:")
    users[b"1"] = b"Ada"
    db[b"zone"] = b"x"
    with users.write_batch() as batch:
        batch.put(b"2", b"Bob")
        batch.delete(b"1")
    assert list(users.items()) == [(b"2", b"Bob")] and b"user:2" in db and b"2" in users
    deeper = users.prefixed_db(b"x")
    deeper.update({b"y": b"z"})
    assert list(users.keys(reverse=True)) == [b"xy", b"2"] and users.count() == 2
    assert list(users.snapshot().values(prefix=b"x")) == [b"z"]
    assert users.pop(b"2") == b"Bob" and users.setdefault(b"2", b"C") == b"C"
    del users[b"2"]
    with pytest.raises(KeyError):
        users[b"2"]
    users.clear()
    assert list(db) == [b"zone"]


def test_an_abandoned_iterator_releases_its_snapshot(db: terrane.Database) -> None:
    fill(db, 10_000)
    entries = db.items()
    next(entries)
    del entries
    gc.collect()
    assert db.stats().snapshots == 0
