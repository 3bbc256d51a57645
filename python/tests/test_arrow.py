"""Arrow tables and Parquet files."""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys

import pytest

import terrane

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LATER = 7_000_000_000_000_000


def table(**columns: object) -> object:
    return pa.table(columns)


def test_columns_are_named_and_none_is_left_out_in_silence(db: terrane.Database) -> None:
    cities = table(name=["Lisbon", "Porto"], country=["PT", "PT"], population=[517802, 231800])
    with pytest.raises(ValueError, match=r"name the one of the value, such as value='country'"):
        db.load_arrow(cities)
    with pytest.raises(ValueError, match="no column 'city'"):
        db.load_arrow(cities, key="city", value="country")
    assert db.count() == 0
    assert db.load_arrow(cities, key="name", value="population") == terrane.Loaded(2, 0)
    assert dict(db.items()) == {b"Lisbon": b"517802", b"Porto": b"231800"}
    db.load_arrow(cities, key="name", value=["population", "country"])
    assert db[b"Porto"] == b'{"population":231800,"country":"PT"}'
    db.load_arrow(cities, key="name", value="*")
    assert db[b"Porto"] == b'{"name":"Porto","country":"PT","population":231800}'
    with pytest.raises(ValueError, match=r"\['more'\] would be left out"):
        db.load_arrow(table(key=["a"], value=["1"], more=[1]))
    with pytest.raises(ValueError, match="not unique"):
        db.load_arrow(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["a", "a"]))
    db.clear()
    db.load_arrow(table(words=["pear", "apple"]), keys_only=True)
    assert list(db.items()) == [(b"apple", b""), (b"pear", b"")]


def test_values_of_every_type(db: terrane.Database) -> None:
    values = {
        b"binary": (pa.array([b"\xff\x00"]), b"\xff\x00"),
        b"number": (pa.array([1.5]), b"1.5"),
        b"flag": (pa.array([True]), b"true"),
        b"list": (pa.array([[1, None]]), b"[1,null]"),
        b"struct": (pa.array([{"a": "\u00e9", "b": b"\xff"}]), '{"a":"\u00e9","b":{"hex":"ff"}}'.encode()),
        b"large": (pa.array(["x"], pa.large_string()), b"x"),
        b"dictionary": (pa.array(["x"]).dictionary_encode(), b"x"),
    }
    for key, (array, _) in values.items():
        db.load_arrow(pa.Table.from_arrays([pa.array([key]), array], ["key", "value"]))
    assert dict(db.items()) == {key: expected for key, (_, expected) in values.items()}


def test_nulls_are_an_error_unless_the_caller_decides(db: terrane.Database) -> None:
    rows = table(key=["a", "b", None], value=["1", None, "3"])
    with pytest.raises(ValueError, match="row 2: the value is null; null='skip'") as raised:
        db.load_arrow(rows)
    assert raised.value.__notes__ == ["0 entries were written before the error"]
    assert db.load_arrow(rows, null="skip") == terrane.Loaded(1, 2)
    with pytest.raises(ValueError, match="row 3: the key is null"):
        db.load_arrow(rows, null="empty")
    with pytest.raises(ValueError, match="'error', 'empty' or 'skip'"):
        db.load_arrow(rows, null="ignore")


def test_an_error_keeps_the_batches_before_it(db: terrane.Database) -> None:
    count = 20_000
    keys = [b"%06d" % number for number in range(count)]
    rows = table(key=[*keys, None], value=[b"v"] * (count + 1))
    with pytest.raises(ValueError, match=f"row {count + 1}") as raised:
        db.load_arrow(rows)
    written = db.count()
    assert written >= count - 1024
    assert raised.value.__notes__ == [f"{written} entries were written before the error"]
    db.clear()
    with pytest.raises(ValueError, match=f"row {count + 1}"):
        db.load_arrow(rows, sorted=True)
    assert db.count() == 0
    assert db.load_arrow(rows.slice(0, count), sorted=True).entries == count == db.count()  # type: ignore[attr-defined]


def random_entries(rng: random.Random, expires: bool) -> dict[bytes, tuple[bytes, int | None]]:
    parts = [b"a", b"\0", b"\xff", b"\n", b"\xef\xbb\xbf", b"\\N", b"x" * 5000]

    def text() -> bytes:
        return b"".join(rng.choices(parts, k=rng.randrange(4)))

    return {text(): (text(), LATER + rng.randrange(9) if expires and rng.random() < 0.5 else None) for _ in range(300)}


@pytest.mark.parametrize("expires", [False, True])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_round_trips(tmp_path: pathlib.Path, expires: bool, is_sorted: bool) -> None:
    expected = random_entries(random.Random(33), expires)
    names = ["key", "value", "expires_at_micros"]
    columns = [list(expected), *zip(*expected.values(), strict=True)]
    source = pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, ["binary", "binary", "uint64"])], names)
    file = tmp_path / "all.parquet"
    with terrane.open(tmp_path / "a") as a, terrane.open(tmp_path / "b") as b, terrane.open(tmp_path / "c") as c:
        a.load_arrow(source.sort_by("key"), sorted=is_sorted)
        reader = a.to_arrow()
        assert reader.schema.names == names[: 3 if expires else 2]
        b.load_arrow(reader, sorted=is_sorted)
        assert b.dump_parquet(file) == len(expected)
        c.load_parquet(file, sorted=is_sorted)
        rows = c.to_arrow().read_all().to_pylist()
    assert {row["key"]: (row["value"], row.get("expires_at_micros")) for row in rows} == expected


def test_times_are_timestamps_or_microseconds(db: terrane.Database) -> None:
    seconds = pa.array([LATER // 10**6], pa.timestamp("s", "UTC"))
    db.load_arrow(pa.Table.from_arrays([pa.array(["a"]), pa.array(["1"]), seconds], ["key", "value", "until"]), expiry="until")
    assert db.to_arrow().read_all()["expires_at_micros"].to_pylist() == [LATER]
    with pytest.raises(ValueError, match="before 1970"):
        db.load_arrow(table(key=["b"], value=["1"], expires_at_micros=[-5]))
    with pytest.raises(ValueError, match="an expiry time is a timestamp"):
        db.load_arrow(table(key=["b"], value=["1"], expires_at_micros=["soon"]))


def test_ranges_text_and_files(db: terrane.Database, tmp_path: pathlib.Path) -> None:
    db.update({b"a1": b"x", b"a2": b"\xff", b"b": b"y"})
    assert db.to_arrow(prefix=b"a").read_all()["key"].to_pylist() == [b"a1", b"a2"]
    assert db.to_arrow(start=b"b", text=True).read_all().to_pylist() == [{"key": "b", "value": "y"}]
    assert db.to_arrow(keys_only=True).schema.names == ["key"]
    with pytest.raises(pa.ArrowInvalid, match="(?i)utf8"):
        db.to_arrow(text=True).read_all()
    file = tmp_path / "keys.parquet"
    with pytest.raises(pa.ArrowInvalid, match="(?i)utf8"):
        db.dump_parquet(file, text=True)
    assert list(tmp_path.glob("keys*")) == []
    assert db.dump_parquet(file, keys_only=True) == 3
    with pytest.raises(FileExistsError, match="overwrite=True"):
        db.dump_parquet(file)
    assert db.dump_parquet(file, stop=b"b", overwrite=True) == 2
    with terrane.open(tmp_path / "empty") as empty:
        assert empty.dump_parquet(tmp_path / "none.parquet") == 0
        assert empty.load_parquet(tmp_path / "none.parquet") == terrane.Loaded(0, 0)


def test_batches_are_bounded(db: terrane.Database) -> None:
    db.put_many((b"%06d" % number, b"v") for number in range(20_000))
    assert max(batch.num_rows for batch in db.to_arrow()) == 8192
    db.clear()
    db.put_many((b"%06d" % number, b"v" * 1_000_000) for number in range(12))
    assert [batch.num_rows for batch in db.to_arrow()] == [5, 5, 2]


def test_without_pyarrow_an_error_names_it(tmp_path: pathlib.Path) -> None:
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import terrane\n"
        f"with terrane.open({str(tmp_path / 'db')!r}) as db:\n"
        "    for call in (db.to_arrow, lambda: db.load_arrow(None), lambda: db.load_parquet('x')):\n"
        "        try: call()\n"
        "        except ImportError as error: assert 'pip install pyarrow' in str(error)\n"
        "        else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
