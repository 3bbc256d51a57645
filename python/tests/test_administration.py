"""Designs, trees, statistics, keyspaces, checkpoints, changes."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import pickle
import sys
import xml.etree.ElementTree

import pytest

import terrane

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import stats_fields  # noqa: E402


def load(db: terrane.Keyspace) -> None:
    for part in range(4):
        db.put_many((b"%06d" % (number * 7 % 20_000), bytes(100)) for number in range(part * 5000, part * 5000 + 5000))
        db._flush()


def test_designs_are_values() -> None:
    design = terrane.Design("tiering T=4; filter=5")
    assert design == terrane.Design("tiering", T=4, filter=5) == terrane.Design("tiering filter=5; T=4")
    assert str(design) == "tiering T=4; filter=5"
    assert hash(design) == hash(terrane.Design(str(design))) and {design: 1}[design.replace()] == 1
    assert design.replace(T=8) != design and design != 3
    # Texts that differ describe the same design, so none of them may be equal to it.
    assert design != str(design) and str(design) not in {design}
    assert design.parameters["T"] == "4" and design.layout == "tiering"
    assert design.differences(design.replace(filter=6)) == [("filter", "5", "6")]
    assert repr(design) == "terrane.Design('tiering T=4; filter=5')"
    with pytest.raises(terrane.InvalidError, match="did you mean"):
        terrane.Design("levelling")
    for one in (design, terrane.Design("lazy-leveling T=3; values=separate(1000)")):
        assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    names = terrane.designs()
    assert len(names) > 20 and all(terrane.Design(name) for name in names)


def test_a_design_changes_while_the_database_is_in_use(db: terrane.Database) -> None:
    load(db)
    forecast = db.forecast("tiering T=4")
    assert forecast.after.runs >= 0 and forecast.as_dict()["jobs"] == forecast.jobs
    db.design = "tiering T=4"
    assert db.design == terrane.Design("tiering T=4") and db.count() == 20_000
    with pytest.raises(terrane.InvalidError):
        db.design = "tiering T=1"


def test_trees_are_data_and_pictures(db: terrane.Database) -> None:
    empty = db.tree()
    xml.etree.ElementTree.fromstring(empty._repr_svg_())
    load(db)
    db[b"in memory"] = b"x"
    tree = db.tree()
    assert tree.memtable_entries == 1 and tree.size_bytes > 100_000 and tree.runs >= 1
    assert sum(level.entries for level in tree.levels) == 20_000
    assert all(table.start < (table.stop or b"\xff") for level in tree.levels for run in level.runs for table in run.tables)
    rows = db.levels()
    assert sum(row["entries"] for row in rows) == 20_000 and rows[0]["level"] == 0
    svg = tree._repr_svg_()
    picture = xml.etree.ElementTree.fromstring(svg)
    segments = picture.findall(".//{http://www.w3.org/2000/svg}rect/{http://www.w3.org/2000/svg}title")
    assert len(segments) == tree.runs + 1 and "level 0" in svg
    assert "memtable" in str(tree)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.keyspace = "x"  # type: ignore[misc]


def test_statistics_have_a_field_for_every_metric(db: terrane.Database) -> None:
    assert stats_fields.path().read_text(encoding="utf-8") == stats_fields.text(stats_fields.metrics())
    before = db.stats()
    load(db)
    db.get(b"000001")
    stats = db.stats()
    assert stats.writes == 20_000 and stats.gets == 1 and stats.flushes >= 4
    assert before.write_amplification is None and before.read_amplification is None
    assert before.latencies["flush"].count == 0 and before.latencies["flush"].p99 is None
    assert "<td>write amplification</td><td>-</td>" in before._repr_html_()
    assert stats.write_amplification is not None and stats.write_amplification > 0
    flush = stats.latencies["flush"]
    assert flush.count == stats.flushes and flush.mean is not None and flush.mean > 0
    assert stats.since(before)["writes"] == 20_000
    assert "terrane_writes" in stats.open_metrics and "writes" in str(stats)
    html = stats._repr_html_()
    assert "write amplification" in html and html.count("<tr>") > 10
    assert any("flush" in event for event in db.events())


def test_keyspaces_are_separate(db: terrane.Database) -> None:
    orders = db.keyspace("orders", design="tiering")
    orders[b"1"] = b"a"
    assert orders.name == "orders" and orders.design.layout == "tiering" and b"1" not in db
    assert db.keyspaces() == ["default", "orders"]
    assert db.rename_keyspace("orders", "old") and not db.rename_keyspace("orders", "x")
    assert db.drop_keyspace("old") and not db.drop_keyspace("old")
    with pytest.raises(terrane.InvalidError):
        db.drop_keyspace("default")
    with pytest.raises(terrane.Error):
        orders[b"1"] = b"b"


def test_checkpoints_flushes_and_compactions(db: terrane.Database, tmp_path: pathlib.Path) -> None:
    load(db)
    db.compact()
    db.wait_for_compactions()
    assert db.tree().runs == 1
    db.checkpoint(tmp_path / "copy")
    db.clear()
    db.sync()
    with terrane.open(tmp_path / "copy", "w") as copy:
        assert copy.count() == 20_000 and copy.approximate_size() > 100_000
    with pytest.raises(terrane.InvalidError):
        db.checkpoint(tmp_path / "copy")
    db.io_budget = "50MB/s"
    assert "50" in db.io_budget


def test_changes_follow_the_writes(path: pathlib.Path) -> None:
    with terrane.open(path, keep_changes="16MiB", durability="sync") as db:
        # The feed begins with the opening that sets the option.
        begin = db.snapshot().sequence_number
        other = db.keyspace("other")
        with db.batch() as batch:
            batch.put(b"a", b"1")
            batch.keyspace(other).delete(b"b")
        db.delete_range(b"c", b"d")
        batches = list(db.changes(begin))
        kinds = [[(one.kind, one.keyspace, one.key) for one in batch.changes] for batch in batches]
        assert kinds == [
            [("put", "default", b"a"), ("delete", "other", b"b")],
            [("delete_range", "default", b"c")],
        ]
        last = batches[-1].position
        assert list(db.changes(last, timeout=0.01)) == []
        db[b"e"] = b"2"
        (batch,) = db.changes(last)
        assert batch.changes[0].value == b"2" and batch.position > last
    with terrane.open(path.parent / "none") as db, pytest.raises(terrane.Error):
        list(db.changes())
