"""Opening and closing, options, and errors by kind."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import terrane


def test_modes_say_what_may_exist(path: pathlib.Path) -> None:
    for mode in ("r", "w"):
        with pytest.raises(terrane.NotFoundError, match="no database in"):
            terrane.open(path, mode)
    terrane.open(path, "x").close()
    with pytest.raises(terrane.InvalidError, match="already contains a database"):
        terrane.open(path, "x")
    with terrane.open(path, "c") as db:
        db[b"a"] = b"1"
        db.keyspace("other")[b"b"] = b"2"
    with terrane.open(path, "r") as db:
        assert db[b"a"] == b"1"
        with pytest.raises(terrane.ReadOnlyError):
            db[b"a"] = b"2"
    with terrane.open(path, "n", design="tiering") as db:
        assert list(db) == [] and db.keyspaces() == ["default"] and db.design == terrane.Design("tiering")
        with pytest.raises(terrane.LockedError):
            terrane.destroy(path)
    terrane.destroy(path)
    assert not path.exists()
    terrane.open(path, "n").close()
    with pytest.raises(ValueError, match="mode must be one of"):
        terrane.open(path, "a")


def test_options_are_those_of_the_engine(path: pathlib.Path) -> None:
    with terrane.open(path, memory_budget=64 << 20, durability="sync", flush_threads=1) as db:
        assert db.durability == "sync"
    with terrane.open(path) as db:
        assert db.durability == "sync"
    with pytest.raises(terrane.InvalidError, match="memory_budget"):
        terrane.open(path, memory_bugdet="1GiB")
    misspelt: list[tuple[dict[str, Any], str]] = [
        ({"memory_bugdet": "1GiB"}, "memory_budget"),
        ({"durabilty": "sync"}, "durability"),
        ({"change_desing": True}, "change_design"),
        ({"if_nwe": {}}, "if_new"),
        ({"among_other_file": True}, "among_other_files"),
        ({"if_new": {"durabilty": "sync"}}, "durability"),
    ]
    for given, meant in misspelt:
        with pytest.raises(terrane.InvalidError, match=f"did you mean '{meant}'"):
            terrane.open(path, "n", **given)
    with pytest.raises(terrane.InvalidError, match="no option 'xyz'; terrane.options"):
        terrane.open(path, "n", xyz=1)
    for value in ({"durability": "maybe"}, {"memory_budget": "-1"}, {"if_new": {"read_mode": "?"}}, {"design": "x"}):
        with pytest.raises(terrane.InvalidError):
            terrane.open(path, "n", **value)
    # Options that are not valid replace no database.
    with terrane.open(path) as db:
        assert db.durability == "sync"
    with pytest.raises(ValueError, match="durability"):
        terrane.open(path, durability="maybe")
    # The package is built without a C compiler.
    with pytest.raises(terrane.InvalidError, match="feature `zstd`"):
        terrane.open(path.with_name("zstd"), design="leveling; compression=zstd")
    assert {"design", "durability", "memory_budget"} <= {option.name for option in terrane.options()}


def test_a_design_is_kept_unless_a_change_is_asked_for(path: pathlib.Path) -> None:
    terrane.open(path, design="tiering T=4").close()
    with terrane.open(path) as db:
        assert db.design == terrane.Design("tiering T=4")
    with pytest.raises(terrane.InvalidError, match="T"):
        terrane.open(path, design="tiering T=5")
    with terrane.open(path, design="tiering T=5", change_design=True) as db:
        assert db.design == terrane.Design("tiering T=5")
    with terrane.open(path, if_new={"design": "leveling", "durability": "none"}) as db:
        assert db.design == terrane.Design("tiering T=5") and db.durability == "process"


def test_close_twice_and_use_after_close(db: terrane.Database) -> None:
    db[b"a"] = b"1"
    other = db.keyspace("other")
    entries, snapshot, transaction = db.items(), db.snapshot(), db.transaction()
    db.close()
    db.close()
    assert db.closed and repr(db) == "<terrane.Database closed>"
    calls = [
        lambda: db[b"a"],
        lambda: db.get(b"a"),
        lambda: b"a" in db,
        lambda: db.put(b"a", b"2"),
        lambda: db.delete(b"a"),
        lambda: db.update({b"a": b"2"}),
        lambda: list(db),
        lambda: db.count(),
        lambda: db.stats(),
        lambda: db.tree(),
        lambda: db.design,
        lambda: db.flush(),
        lambda: db.snapshot(),
        lambda: db.batch(),
        lambda: db.transaction(),
        lambda: db.keyspace("x"),
        lambda: other.get(b"a"),
        lambda: snapshot.get(b"a"),
        lambda: transaction.get(b"a"),
    ]
    for call in calls:
        with pytest.raises(terrane.ClosedError, match="closed"):
            call()
    # What an iterator has pinned stays readable, or it says that the database is closed.
    try:
        assert list(entries) in ([(b"a", b"1")],)
    except terrane.ClosedError:
        pass


def test_the_lock_is_released_by_close_and_names_its_holder(path: pathlib.Path) -> None:
    first = terrane.open(path)
    with pytest.raises(terrane.LockedError, match="in use by"):
        terrane.open(path)
    first.close()
    terrane.open(path).close()


def test_corruption_is_an_error_of_its_own(path: pathlib.Path) -> None:
    with terrane.open(path) as db:
        db.update({b"%06d" % number: bytes(100) for number in range(2000)})
        db.flush()
    table = next(path.glob("*.sst"))
    data = bytearray(table.read_bytes())
    data[-1] ^= 0xFF
    table.write_bytes(data)
    with pytest.raises(terrane.CorruptionError, match="table"), terrane.open(path) as db:
        list(db)


def test_errors_have_the_bases_that_programs_catch(path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        terrane.open(path, "r")
    with pytest.raises(ValueError, match="no design|unknown design"):
        terrane.Design("levelling")
    file = path.parent / "file"
    file.write_text("x")
    with pytest.raises(terrane.Error):
        terrane.open(file)
    for name in terrane.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(terrane, name), terrane.Error)


def test_paths_may_be_text_or_path_like(path: pathlib.Path) -> None:
    terrane.open(str(path)).close()
    with terrane.open(os.fspath(path)) as db:
        assert db.path == str(path)


def test_a_killed_process_keeps_what_it_wrote(path: pathlib.Path) -> None:
    code = (
        "import os, sys, terrane\n"
        "db = terrane.open(sys.argv[1])\n"
        "for number in range(1000): db[b'%04d' % number] = b'x' * 100\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert ended.returncode != 0
    with terrane.open(path) as db:
        assert db.count() == 1000
