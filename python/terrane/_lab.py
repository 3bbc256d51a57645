"""Simulations and advice."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field
from typing import Any

from . import _pictures, _terrane
from ._terrane import Design

_numpy: Any
try:
    import numpy  # type: ignore[import-not-found, unused-ignore]

    _numpy = numpy
except ImportError:
    _numpy = None


def _array(numbers: list[float]) -> Any:
    """Returns a numpy array if numpy is installed, else an `array.array` of doubles."""
    if _numpy is not None:
        return _numpy.asarray(numbers, dtype="float64")
    return array("d", numbers)


@dataclass(frozen=True)
class Simulation:
    """A design in virtual time. Arrays have an entry for each interval; `time` is its end in seconds."""

    design: Design
    time: Any = field(repr=False)
    writes_per_second: Any = field(repr=False)
    write_amplification: Any = field(repr=False)
    """Bytes written to tables in an interval per byte that the user wrote in it; NaN if no write was completed. For a
    mean over intervals, divide the sums of `written_bytes` and `user_bytes`."""
    user_bytes: Any = field(repr=False)
    written_bytes: Any = field(repr=False)
    runs: Any = field(repr=False)
    stalled_seconds: Any = field(repr=False)
    level_bytes: list[Any] = field(repr=False)
    """An array for each level."""
    summary: dict[str, Any]
    """Totals over the whole time, with the field names of `terrane simulate --json`; `write_amplification` is None if
    no write was completed."""
    latency_micros: dict[str, float]
    """Empty if no write was completed."""
    not_simulated: list[str]
    """The parts of the design and the workload that the simulation leaves out."""

    def columns(self) -> dict[str, Any]:
        """Returns the arrays by name, for example for `pandas.DataFrame(simulation.columns())`."""
        columns = {
            "time": self.time,
            "writes_per_second": self.writes_per_second,
            "write_amplification": self.write_amplification,
            "user_bytes": self.user_bytes,
            "written_bytes": self.written_bytes,
            "runs": self.runs,
            "stalled_seconds": self.stalled_seconds,
        }
        columns.update({f"level{number}_bytes": one for number, one in enumerate(self.level_bytes)})
        return columns

    def _repr_svg_(self) -> str:
        title = f"{self.design}: writes per second"
        return _pictures.lines(title, self.time, {"writes per second": self.writes_per_second}, "s")


def simulate(
    design: Design | str,
    workload: str | None = None,
    *,
    records: int = 100_000_000,
    record_size: int = 1024,
    key_size: int = 16,
    keys: str = "uniform",
    arrival: str = "closed",
    writers: int = 1,
    budget: float | None = None,
    hours: float = 2.0,
    windows: int = 240,
    start: str = "auto",
    cold: float = 1.0,
    threads: int = 2,
    seed: int = 1,
) -> Simulation:
    """Runs a design in virtual time, at any size, with the policy of the engine.

    `workload` is a mix of operations such as `update=40,insert=10,get=50`; without one, all are updates.
    `keys` is `uniform` or `zipf(0.99)`, `arrival` is `closed`, `constant(WRITES)` per second or
    `burst(WRITES,SECONDS,WRITES,SECONDS)`, `budget` the bytes per second of background work, and `start` one of
    `empty`, `loaded`, `settled` and `auto`. The arguments are those of the command `terrane simulate`.

    >>> leveling = simulate("leveling", records=1_000_000, hours=0.5)
    >>> tiering = simulate("tiering", records=1_000_000, hours=0.5)
    >>> tiering.summary["write_amplification"] < leveling.summary["write_amplification"]
    True
    """
    load = {
        "records": records,
        "record_size": record_size,
        "key_size": key_size,
        "keys": keys,
        "arrival": arrival,
        "writers": writers,
        "mix": workload,
        "cold": cold,
        "budget": budget,
        "hours": hours,
        "windows": windows,
        "start": start,
        "threads": threads,
        "seed": seed,
    }
    text, columns = _terrane.simulate(design, load)
    report = json.loads(text)
    phase = report["phases"][0]
    summary = {name: value for name, value in phase.items() if isinstance(value, (int, float))}
    summary["write_amplification"] = phase["write_amplification"]
    return Simulation(
        design=design if isinstance(design, Design) else Design(design),
        time=_array(columns["time"]),
        writes_per_second=_array(columns["writes_per_second"]),
        write_amplification=_array(columns["write_amplification"]),
        user_bytes=_array(columns["user_bytes"]),
        written_bytes=_array(columns["written_bytes"]),
        runs=_array(columns["runs"]),
        stalled_seconds=_array(columns["stalled_seconds"]),
        level_bytes=[_array(level) for level in columns["level_bytes"]],
        summary=summary,
        latency_micros={name: micros for name, micros in phase["latency_micros"] if micros is not None},
        not_simulated=list(report["not_simulated"]),
    )


@dataclass(frozen=True)
class RankedDesign:
    """A design with its predicted costs for a workload."""

    name: str
    design: Design
    score_micros: float
    """The predicted time of an operation, with the weights of the objective."""
    written: float
    """Bytes written to tables per byte that the user writes."""
    found_blocks: float
    missing_blocks: float
    runs: float
    space: float
    beside_now: str
    """The costs relative to those of the present design."""


@dataclass(frozen=True)
class Advice:
    """Designs ranked for a workload, best first."""

    now: RankedDesign
    best: list[RankedDesign]
    avoid: list[RankedDesign]
    tried: int
    report: dict[str, Any] = field(repr=False)
    """The advice, with the field names of `terrane advise --json`."""

    def __str__(self) -> str:
        lines = [f"{'design':40} {'µs/op':>8} {'written':>8} {'space':>6}"]
        for title, ranked in (("now", [self.now]), ("best", self.best), ("avoid", self.avoid)):
            lines.append(f"{title}:")
            for one in ranked:
                name = str(one.design)
                name = name if len(name) <= 38 else name[:37] + "…"
                lines.append(f"  {name:38} {one.score_micros:8.2f} {one.written:8.2f} {one.space:6.2f}")
        return "\n".join(lines)


def _ranked(row: dict[str, Any]) -> RankedDesign:
    names = ("name", "score_micros", "written", "found_blocks", "missing_blocks", "runs", "space", "beside_now")
    return RankedDesign(design=Design(row["design"]), **{name: row[name] for name in names})


def advise(
    workload: str,
    *,
    design: Design | str = "balanced",
    records: int = 10_000_000,
    record_size: int = 128,
    memory: int = 512 << 20,
    rate: float | None = None,
    objective: str | None = None,
    effort: int = 120,
    top: int = 5,
    writers: int = 1,
    seed: int = 1,
) -> Advice:
    """Ranks designs for a workload such as `update=80,get=20`, compared with the present `design`.

    The simulator tries `effort` designs. `rate` is the number of operations per second, `objective` the weights of
    the costs, such as `write=2`. The arguments are those of the command `terrane advise`.

    >>> advice = advise("update=95,get=5", records=1_000_000)
    >>> advice.best[0].score_micros <= advice.now.score_micros
    True
    """
    question = {
        "mix": workload,
        "records": float(records),
        "record_size": float(record_size),
        "memory": memory,
        "rate": rate,
        "objective": objective,
        "effort": effort,
        "top": top,
        "writers": writers,
        "seed": seed,
    }
    report = json.loads(_terrane.advise(design, question))
    return Advice(
        now=_ranked(report["now"]),
        best=[_ranked(row) for row in report["best"]],
        avoid=[_ranked(row) for row in report["avoid"]],
        tried=report["tried"],
        report=report,
    )
