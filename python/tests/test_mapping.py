"""A keyspace as a mapping of bytes."""

from __future__ import annotations

import array
import collections
import shelve

import pytest

import terrane
import terrane.dbm


def test_a_dictionary_of_bytes(db: terrane.Database) -> None:
    db[b"a"] = b"1"
    assert db[b"a"] == b"1" and b"a" in db and b"b" not in db
    with pytest.raises(KeyError) as missing:
        db[b"b"]
    assert missing.value.args == (b"b",)
    assert db.get(b"b") is None and db.get(b"b", 7) == 7
    del db[b"a"]
    with pytest.raises(KeyError):
        del db[b"a"]
    db.delete(b"a")
    assert db.setdefault(b"c", b"3") == b"3" and db.setdefault(b"c", b"4") == b"3"
    assert db.pop(b"c") == b"3" and db.pop(b"c", None) is None
    with pytest.raises(KeyError):
        db.pop(b"c")
    db.update({b"x": b"1", b"y": b"2"})
    db.update([(b"z", b"3")])
    assert list(db) == [b"x", b"y", b"z"] and dict(db.items()) == {b"x": b"1", b"y": b"2", b"z": b"3"}


def test_len_names_what_to_use_and_bool_is_cheap(db: terrane.Database) -> None:
    assert not db
    db[b"a"] = b""
    assert db and db.count() == 1 and db.approximate_len() >= 0
    with pytest.raises(TypeError, match=r"count\(\).*approximate_len\(\)"):
        len(db)


def test_text_is_refused_with_advice(db: terrane.Database) -> None:
    for call in (
        lambda: db.get("a"),  # type: ignore[call-overload]
        lambda: db.put("a", b""),  # type: ignore[arg-type]
        lambda: db.put(b"a", "b"),  # type: ignore[arg-type]
        lambda: db.get_many(["a"]),  # type: ignore[list-item]
        lambda: db.update({"a": b""}),  # type: ignore[dict-item]
        lambda: db.items(prefix="a"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="encode"):
            call()
    with pytest.raises(TypeError, match="buffer of bytes, not int"):
        db.put(1, b"")  # type: ignore[arg-type]


def test_any_buffer_of_bytes_is_taken(db: terrane.Database) -> None:
    db[bytearray(b"a")] = memoryview(b"xyz")[1:]
    assert db[memoryview(b"a")] == b"yz"
    db[b"b"] = array.array("B", [1, 2])
    assert db[b"b"] == b"\1\2"
    with pytest.raises(TypeError, match="buffer of bytes"):
        db[b"c"] = array.array("d", [1.0])


def test_values_are_lent_without_a_copy(db: terrane.Database) -> None:
    value = bytes(range(256)) * 100
    db[b"k"] = value
    for _ in range(2):
        lent = db.view(b"k")
        assert lent is not None
        view = memoryview(lent)
        assert view.readonly and view.nbytes == len(lent) == len(value)
        assert bytes(view) == bytes(lent) == value and lent == value
        buffer = db.get_buffer(b"k")
        db[b"k"] = b"other"
        del lent
        assert buffer is not None and bytes(buffer) == value and bytes(view) == value
        with pytest.raises(TypeError):
            view[0] = 1
        db[b"k"] = value
        db.flush()
    assert db.view(b"none") is None and db.get_buffer(b"none") is None
    db[b"short"] = b"abc"
    assert bytes(db.get_buffer(b"short") or b"") == b"abc"


def test_many_at_once(db: terrane.Database) -> None:
    pairs = {b"%05d" % number: b"%d" % number for number in range(5000)}
    db.put_many(pairs)
    assert db.get_many(pairs.keys()) == list(pairs.values())
    assert db.get_many([b"00001", b"x", b"00002"]) == [b"1", None, b"2"]
    assert db.get_many((key for key in [b"x"]), b"?") == [b"?"]
    assert db.get_many([]) == []
    with pytest.raises(TypeError):
        db.put_many([(b"q", b"1"), (b"r", "2")])  # type: ignore[list-item]
    assert b"q" not in db


def test_dbm_and_shelf(tmp_path: object) -> None:
    path = f"{tmp_path}/dbm"
    with pytest.raises(terrane.dbm.error):
        terrane.dbm.open(path, "r")
    with terrane.dbm.open(path, "c") as db:
        db["k"] = "v"
        assert db[b"k"] == b"v" and db.keys() == [b"k"] and len(db) == 1 and "k" in db
        assert db.firstkey() == b"k" and db.nextkey("k") is None
    assert terrane.dbm.whichdb(path) == "terrane.dbm"
    with pytest.raises(terrane.dbm.error, match="closed"):
        db["k"]
    with terrane.dbm.open(path, "r") as db, pytest.raises(terrane.dbm.error, match="reading only"):
        db["a"] = "b"
    with shelve.Shelf(terrane.dbm.open(path, "n")) as shelf:
        shelf["point"] = {"x": 1}
        shelf.update(other=[2])
        assert shelf["point"] == {"x": 1} and sorted(shelf) == ["other", "point"]
        shelf.clear()
        assert len(shelf) == 0


def test_agrees_with_a_dictionary(db: terrane.Database) -> None:
    import random

    generator = random.Random(7)
    model: dict[bytes, bytes] = {}
    counts: collections.Counter[str] = collections.Counter()
    for step in range(6000):
        key = b"%03d" % generator.randrange(400)
        what = generator.choice(["put", "put", "get", "del", "pop", "range", "flush"])
        counts[what] += 1
        if what == "put":
            model[key] = db[key] = generator.randbytes(generator.choice([0, 5, 200]))
        elif what == "get":
            assert db.get(key) == model.get(key)
        elif what == "del":
            db.delete(key)
            model.pop(key, None)
        elif what == "pop":
            assert db.pop(key, b"?") == model.pop(key, b"?")
        elif what == "range":
            stop = b"%03d" % generator.randrange(400)
            reverse = generator.random() < 0.5
            found = sorted((pair for pair in model.items() if key <= pair[0] < stop), reverse=reverse)
            assert list(db.items(key, stop, reverse=reverse)) == found
        elif step % 50 == 0:
            db.flush()
    assert dict(db.items()) == model and min(counts.values()) > 100
