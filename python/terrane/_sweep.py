"""Sweeps: the experiments of a plan, here or on a Dask cluster.

Each trial has a result file of its own, which the process that ran it writes to a temporary name, syncs and renames.
So a killed worker loses only the trial that it was running, and the next sweep with the same directory runs the
trials that have no file. The lines are also gathered in `results.jsonl`, which `terrane sweep` reads and continues.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _terrane

_TRIALS = "trials"


def _number(text: str) -> int | float | str:
    """Returns a parameter as a number if it is written as one; `64KiB` and `leveling` remain text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return text


@dataclass(frozen=True)
class _Trial:
    """The data that a worker needs to run a trial."""

    parameters: dict[str, str]
    round: int
    key: str
    is_simulated: bool
    out: str
    dir: str


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep, including those of earlier ones in the same directory."""

    path: pathlib.Path
    lines: list[dict[str, Any]] = field(repr=False)
    """The lines of `results.jsonl` that belong to the plan, in its order."""
    ran: int
    """The number of trials that ran now; the others already had results."""

    def rows(self) -> list[dict[str, Any]]:
        """Returns a row for each workload of each trial, with the parameters, for `pandas.DataFrame`. A parameter
        that is a number is one, so that it sorts and plots as such; `lines` has the text."""
        rows = []
        for line in self.lines:
            for result in line["results"]:
                numbers = {name: value for name, value in result.items() if not isinstance(value, (dict, list))}
                parameters = {name: _number(text) for name, text in line["parameters"].items()}
                rows.append({**parameters, "round": line["round"], "seconds": line["seconds"], **numbers})
        return rows

    def __len__(self) -> int:
        return len(self.lines)


def _sync_directory(path: pathlib.Path) -> None:
    if os.name == "nt":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write(path: pathlib.Path, line: str) -> None:
    """Writes a result so that the file is complete or absent after a crash."""
    temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_directory(path.parent)


def _file(trial: _Trial) -> pathlib.Path:
    return pathlib.Path(trial.out) / _TRIALS / f"{trial.key}.json"


def _read(path: pathlib.Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def _run(trial: _Trial) -> str:
    """Runs a trial unless its result exists, and returns the line."""
    path = _file(trial)
    line = _read(path)
    if line is None:
        line = _terrane.sweep_run(trial.parameters, trial.round, trial.is_simulated, trial.dir)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, line)
    return line


def _run_here(trial: _Trial) -> str:
    """Runs a trial in a thread, so that Ctrl-C still works meanwhile."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append(_run(trial))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name="terrane-sweep", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return str(outcome[0])


def _toml(plan: Mapping[str, Any]) -> str:
    """Returns a plan as TOML; strings of TOML and JSON are written alike."""

    def value(one: Any) -> str:
        if isinstance(one, (list, tuple)):
            return "[" + ", ".join(map(value, one)) + "]"
        if isinstance(one, (bool, int, float, str)):
            return json.dumps(one)
        return json.dumps(str(one))

    def table(one: Mapping[str, Any]) -> str:
        return "".join(f"{json.dumps(name)} = {value(item)}\n" for name, item in one.items())

    common = {name: item for name, item in plan.items() if name != "experiments"}
    tables = "".join("[[experiments]]\n" + table(one) for one in plan.get("experiments", ()))
    return table(common) + tables


def sweep(
    plan: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    client: Any = None,
    *,
    dir: str | os.PathLike[str] | None = None,
    rounds: int = 1,
    simulate: bool = False,
    resources: Mapping[str, float] | None = None,
    retries: int = 3,
    progress: Callable[[int, int, dict[str, Any]], None] | None = None,
) -> SweepResult:
    """Runs the trials of a plan that have no result in `out` yet, and returns all results.

    `plan` is a file of `terrane sweep`, or a dictionary such as `{"design": ["leveling", "tiering"], "T": [4, 8],
    "num": 100_000}`, in which each list is an axis. With a `dask.distributed.Client`, its workers run the trials;
    they need `out` in a file system that they share. `dir` is the directory of the databases, on the disk to be
    measured, by default in `out`. A lock in it lets one trial run at a time, however many threads and workers use
    that disk. `resources` such as `{"disk": 1}` are passed on to Dask. `simulate` runs the simulator instead of
    the engine. `progress` is called with the numbers of done and of due trials, and the last line.

    >>> import tempfile
    >>> plan = {"design": ["leveling", "tiering"], "num": 1_000_000}
    >>> result = sweep(plan, tempfile.mkdtemp(), simulate=True)
    >>> [row["design"] for row in result.rows()]
    ['leveling', 'tiering']
    """
    if isinstance(plan, Mapping):
        experiments = _terrane.sweep_experiments(None, _toml(plan), rounds, simulate)
    else:
        experiments = _terrane.sweep_experiments(os.fspath(plan), None, rounds, simulate)
    home = pathlib.Path(out).absolute()
    (home / _TRIALS).mkdir(parents=True, exist_ok=True)
    place = str(home / "databases" if dir is None else pathlib.Path(dir).absolute())
    # Results that another machine wrote also count if they are in the gathered lines.
    for line in _terrane.sweep_collect(home, []):
        path = home / _TRIALS / f"{json.loads(line)['key']}.json"
        if not path.exists():
            _write(path, line)
    trials = [
        _Trial(dict(parameters), round, key, simulate, str(home), place)
        for parameters, round, key, _ in experiments
    ]
    due = [trial for trial in trials if not _file(trial).exists()]
    done: dict[str, str] = {}

    def note(trial: _Trial, line: str) -> None:
        done[trial.key] = line
        if not _file(trial).exists():
            _write(_file(trial), line)
        if progress is not None:
            progress(len(done), len(due), json.loads(line))

    try:
        if client is None:
            for trial in due:
                note(trial, _run_here(trial))
        else:
            _on_cluster(client, due, note, dict(resources or {}), retries)
    finally:
        lines = [line for line in (_read(_file(trial)) for trial in trials) if line is not None]
        _terrane.sweep_collect(home, lines)
    return SweepResult(home / "results.jsonl", [json.loads(line) for line in lines], len(done))


def _on_cluster(
    client: Any,
    due: Sequence[_Trial],
    note: Callable[[_Trial, str], None],
    resources: dict[str, float],
    retries: int,
) -> None:
    """Runs trials on the workers of a Dask cluster. If a worker is killed, its trial runs again on another one."""
    import distributed  # type: ignore[import-not-found, unused-ignore]

    as_completed: Any = distributed.as_completed

    by_future = {
        # The Dask key identifies the trial, so a concurrent sweep shares it.
        client.submit(
            _run, trial, key=f"terrane-{trial.key}", retries=retries, resources=resources or None, pure=False
        ): trial
        for trial in due
    }
    try:
        for future in as_completed(list(by_future)):
            note(by_future[future], future.result())
    except BaseException:
        client.cancel(list(by_future))
        raise
