"""A sweep on a Dask cluster of which a worker is killed."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import threading
import time
from typing import Any

import pytest

import terrane

distributed = pytest.importorskip("distributed")


def test_a_killed_worker_loses_only_the_trial_that_it_ran(tmp_path: pathlib.Path) -> None:
    plan = {"design": ["leveling", "tiering", "lazy-leveling"], "T": [4, 8], "num": 60_000, "workload": "fillrandom"}
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def workers() -> list[int]:
            """Returns the processes of the workers."""
            return list(client.run(os.getpid).values())

        def kill() -> None:
            # Half-way: when the second result has been written.
            deadline = time.monotonic() + 60
            while len(list((tmp_path / "trials").glob("*.json"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.005)
            pid = workers()[0]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

        killer = threading.Thread(target=kill)
        killer.start()
        lines: list[dict[str, Any]] = []
        result = terrane.sweep(plan, tmp_path, client, progress=lambda done, all, line: lines.append(line))
        killer.join()
    assert len(killed) == 1 and len(result) == 6 and len(lines) == 6
    files = list((tmp_path / "trials").glob("*.json"))
    assert {json.loads(path.read_text())["key"] for path in files} == {line["key"] for line in result.lines}
    assert len(result.path.read_text().splitlines()) == 6
    assert not list((tmp_path / "databases").glob("terrane-sweep-*"))
    # Nothing is left to run, with or without the cluster.
    assert terrane.sweep(plan, tmp_path).ran == 0
