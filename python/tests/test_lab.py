"""Simulations, advice, sweeps."""

from __future__ import annotations

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree
from typing import Any

import pytest

import terrane
from terrane import _sweep

PLAN: dict[str, Any] = {
    "design": ["leveling", "tiering"],
    "T": [4, 8],
    "num": 3000,
    "workload": "fillrandom,readrandom",
}


def test_simulations_return_columns() -> None:
    simulation = terrane.simulate("tiering T=4", "update=1", records=1_000_000, hours=0.2, windows=50)
    columns = simulation.columns()
    assert {len(column) for column in columns.values()} == {50} and len(simulation.level_bytes) > 1
    assert abs(simulation.time[-1] - 720) < 1 and simulation.summary["writes_per_second"] > 0
    assert simulation.latency_micros["p99"] >= simulation.latency_micros["p50"]
    xml.etree.ElementTree.fromstring(simulation._repr_svg_())
    again = terrane.simulate("tiering T=4", "update=1", records=1_000_000, hours=0.2, windows=50)
    assert again.summary == simulation.summary
    for arguments in ({"keys": "odd"}, {"arrival": "x"}, {"hours": -1}, {"windows": 0}, {"workload": "x=1"}):
        with pytest.raises(terrane.InvalidError):
            terrane.simulate("tiering", **arguments)  # type: ignore[arg-type]


def test_a_window_without_writes_has_no_write_amplification() -> None:
    # Writers stall most of the time, so most windows complete no write while merges run.
    simulation = terrane.simulate("leveling", records=1_000_000, hours=0.2, windows=200, budget=1e6)
    columns = simulation.columns()
    written = list(columns["write_amplification"])
    missing = [amplification for amplification in written if math.isnan(amplification)]
    assert 0 < len(missing) < len(written), (len(missing), len(written))
    for amplification, user, all in zip(written, columns["user_bytes"], columns["written_bytes"], strict=True):
        assert math.isnan(amplification) or amplification == pytest.approx(all / user)
        assert not math.isnan(amplification) or user < 1024
    total = sum(columns["written_bytes"]) / sum(columns["user_bytes"])
    assert simulation.summary["write_amplification"] == pytest.approx(total, rel=0.1)


def test_parameters_of_a_sweep_are_numbers(tmp_path: pathlib.Path) -> None:
    plan = {"design": "leveling", "T": [10, 2, 4], "buffer": "1MiB", "num": 100_000}
    rows = terrane.sweep(plan, tmp_path, simulate=True).rows()
    assert sorted(row["T"] for row in rows) == [2, 4, 10]
    assert {(row["buffer"], row["design"], row["num"]) for row in rows} == {("1MiB", "leveling", 100_000)}


def test_designs_of_a_sweep_differ_in_what_they_write(tmp_path: pathlib.Path) -> None:
    # Under load fewer and larger compactions shrink the difference, from 0.43 to 0.6 of what leveling writes.
    plan = {"design": ["leveling", "tiering"], "T": 8, "num": 60_000, "workload": "fillrandom"}
    written = {row["design"]: row["write_amplification"] for row in terrane.sweep(plan, tmp_path).rows()}
    assert written["tiering"] < 0.9 * written["leveling"], written


def test_arrays_do_not_need_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from terrane import _lab

    monkeypatch.setattr(_lab, "_numpy", None)
    simulation = terrane.simulate("tiering", records=100_000, hours=0.1, windows=10)
    assert list(simulation.time)[-1] == pytest.approx(360) and type(simulation.runs).__name__ == "array"


def test_advice_ranks_designs() -> None:
    advice = terrane.advise("update=90,get=10", effort=20, records=1_000_000)
    scores = [one.score_micros for one in advice.best]
    assert scores == sorted(scores) and advice.tried < 120 and advice.report["schema"] == 1
    assert isinstance(advice.best[0].design, terrane.Design) and "best:" in str(advice)


def test_a_sweep_resumes_and_gathers_its_lines(tmp_path: pathlib.Path) -> None:
    seen: list[tuple[int, int]] = []
    result = terrane.sweep(PLAN, tmp_path, progress=lambda done, all, line: seen.append((done, all)))
    assert result.ran == 4 and seen[-1] == (4, 4) and len(result) == 4
    rows = result.rows()
    assert len(rows) == 8 and {row["workload"] for row in rows} == {"fillrandom", "readrandom"}
    assert {(row["design"], row["T"]) for row in rows} == {(d, t) for d in ("leveling", "tiering") for t in (4, 8)}
    lines = [json.loads(line) for line in result.path.read_text().splitlines()]
    assert {line["key"] for line in lines} == {line["key"] for line in result.lines}
    assert not list((tmp_path / "databases").glob("terrane-sweep-*")), "databases are removed"
    again = terrane.sweep(PLAN, tmp_path)
    assert again.ran == 0 and again.rows() == rows
    # One lost result is measured again; the gathered lines alone are enough as well.
    (tmp_path / "trials" / f"{result.lines[0]['key']}.json").unlink()
    assert terrane.sweep(PLAN, tmp_path).ran == 0
    longer = terrane.sweep({**PLAN, "T": [4, 8, 16]}, tmp_path)
    assert longer.ran == 2 and len(longer) == 6


def test_bad_plans_are_refused_before_anything_runs(tmp_path: pathlib.Path) -> None:
    for plan in ({"speed": 1}, {"design": "levelling"}, {"design": []}):
        with pytest.raises(terrane.InvalidError):
            terrane.sweep(plan, tmp_path / "out")
    with pytest.raises(terrane.InvalidError, match="plan.toml"):
        terrane.sweep(tmp_path / "plan.toml", tmp_path / "out")


def test_plans_are_files_or_tables_of_experiments(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('num = 1000\n[[experiments]]\ndesign = "leveling"\n[[experiments]]\ndesign = "tiering"\n')
    from_file = terrane.sweep(file, tmp_path / "a", simulate=True)
    plan = {"num": 1000, "experiments": [{"design": "leveling"}, {"design": "tiering"}]}
    from_table = terrane.sweep(plan, tmp_path / "b", simulate=True, rounds=2)
    assert [line["key"] for line in from_file.lines] == [line["key"] for line in from_table.lines[:2]]
    assert [line["round"] for line in from_table.lines] == [1, 1, 2, 2]


def test_a_killed_sweep_loses_only_the_trial_that_ran(tmp_path: pathlib.Path) -> None:
    plan = {**PLAN, "num": 20_000}
    code = "import json, sys, terrane; terrane.sweep(json.loads(sys.argv[1]), sys.argv[2])"
    process = subprocess.Popen([sys.executable, "-c", code, json.dumps(plan), str(tmp_path)])
    trials = tmp_path / "trials"
    deadline = time.monotonic() + 60
    while len(list(trials.glob("*.json"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
    process.wait()
    done = list(trials.glob("*.json"))
    assert done and all(json.loads(path.read_text())["results"] for path in done)
    result = terrane.sweep(plan, tmp_path)
    assert result.ran == 4 - len(done) and len(result) == 4
    assert not list((tmp_path / "databases").glob("terrane-sweep-*"))


def test_results_are_written_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.json"
    _sweep._write(path, "{}")
    assert path.read_text() == "{}\n" and list(tmp_path.iterdir()) == [path]
