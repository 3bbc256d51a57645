"""Statistics, trees and forecasts as values. Notebooks draw trees and statistics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from . import _pictures
from ._stats import Metrics
from ._terrane import Design


@dataclass(frozen=True)
class Latency:
    """The distribution of one kind of duration, in microseconds; all but the count are None without durations."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    max: float | None
    about: str = field(repr=False)


@dataclass(frozen=True)
class Stats(Metrics):
    """Counters since the database was opened, current sizes, and latencies.

    `print(stats)` is a page of text, `vars(stats)` a dictionary, and `open_metrics` the text that Prometheus reads.
    """

    write_amplification: float | None
    """Bytes written to tables per byte that the program wrote; None if it wrote none."""
    read_amplification: float | None
    """Blocks searched per lookup; None without lookups."""
    durability: str
    error: str | None
    latencies: dict[str, Latency] = field(repr=False)
    by_level: tuple[dict[str, int], ...] = field(repr=False)
    open_metrics: str = field(repr=False)
    text: str = field(repr=False)

    @classmethod
    def _of(cls, parts: dict[str, Any]) -> Stats:
        known = {one.name for one in fields(Metrics)}
        metrics = {name: value for name, (value, _) in parts["metrics"].items() if name in known}
        latencies = {
            name: Latency(count, mean, p50, p90, p99, p999, longest, about)
            for name, (count, mean, (p50, p90, p99, p999), longest, about) in parts["latencies"].items()
        }
        return cls(
            **metrics,
            write_amplification=parts["write_amplification"],
            read_amplification=parts["read_amplification"],
            durability=parts["durability"],
            error=parts["error"],
            latencies=latencies,
            by_level=tuple(parts["by_level"]),
            open_metrics=parts["open_metrics"],
            text=parts["text"],
        )

    def since(self, earlier: Stats) -> dict[str, int]:
        """Returns the metrics that changed since `earlier`, with their differences."""
        changed = {}
        for one in fields(Metrics):
            now, before = getattr(self, one.name), getattr(earlier, one.name)
            if isinstance(now, int) and isinstance(before, int) and now != before:
                changed[one.name] = now - before
        return changed

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _pictures.stats(self)


@dataclass(frozen=True)
class Table:
    """A sorted table file; its keys are from `start` up to but not including `stop`, or to the end."""

    id: int
    size_bytes: int
    entries: int
    tombstones: int
    start: bytes
    stop: bytes | None


@dataclass(frozen=True)
class Run:
    """A sorted run: tables with disjoint ranges of keys."""

    size_bytes: int
    tables: tuple[Table, ...] = field(repr=False)


@dataclass(frozen=True)
class Level:
    """A level of a tree, with its runs from the newest to the oldest."""

    level: int
    size_bytes: int
    capacity_bytes: int | None
    runs: tuple[Run, ...]

    @property
    def entries(self) -> int:
        """The entries of all tables, tombstones and old versions included."""
        return sum(table.entries for run in self.runs for table in run.tables)

    def _row(self) -> dict[str, Any]:
        tables = [table for run in self.runs for table in run.tables]
        return {
            "level": self.level,
            "size_bytes": self.size_bytes,
            "capacity_bytes": self.capacity_bytes,
            "runs": len(self.runs),
            "tables": len(tables),
            "entries": sum(table.entries for table in tables),
            "tombstones": sum(table.tombstones for table in tables),
        }


@dataclass(frozen=True)
class Tree:
    """The memtable, levels, runs and tables of a keyspace. A notebook shows it as a picture."""

    keyspace: str
    design: Design
    memtable_bytes: int
    memtable_entries: int
    immutable_memtables: int
    buffer_bytes: int
    compactions: tuple[str, ...]
    value_bytes: int
    live_value_bytes: int
    levels: tuple[Level, ...]
    text: str = field(repr=False)

    @classmethod
    def _of(cls, parts: dict[str, Any]) -> Tree:
        def run(row: dict[str, Any]) -> Run:
            return Run(row["size_bytes"], tuple(Table(**table) for table in row["tables"]))

        levels = tuple(
            Level(row["level"], row["size_bytes"], row["capacity_bytes"], tuple(map(run, row["runs"])))
            for row in parts["levels"]
        )
        rest = {name: value for name, value in parts.items() if name not in ("levels", "compactions")}
        return cls(levels=levels, compactions=tuple(parts["compactions"]), **rest)

    @property
    def size_bytes(self) -> int:
        """The bytes of all tables."""
        return sum(level.size_bytes for level in self.levels)

    @property
    def runs(self) -> int:
        """The number of sorted runs."""
        return sum(len(level.runs) for level in self.levels)

    def __str__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return _pictures.tree(self)


@dataclass(frozen=True)
class Amplification:
    """The cost of reads and space: sorted runs, blocks per lookup of a missing key, bytes per live byte."""

    runs: int
    blocks_per_missing_key: float
    space: float


@dataclass(frozen=True)
class Forecast:
    """The data that a change of design rewrites, and the tree before and after it."""

    jobs: int
    tables_rewritten: int
    tables_moved: int
    bytes_rewritten: int
    peak_extra_bytes: int
    is_complete: bool
    before: Amplification
    after: Amplification

    @classmethod
    def _of(cls, parts: dict[str, Any]) -> Forecast:
        parts = dict(parts, before=Amplification(**parts["before"]), after=Amplification(**parts["after"]))
        return cls(**parts)

    def as_dict(self) -> dict[str, Any]:
        """Returns the forecast as a dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class Change:
    """A write in the feed: `put`, `delete`, `delete_range` from `key` to `stop`, `merge`, or `not_logged`."""

    kind: str
    keyspace: str | None = None
    key: bytes | None = None
    value: bytes | None = None
    stop: bytes | None = None
    expires_at: float | None = None
    """When the value expires, in seconds since the epoch."""


@dataclass(frozen=True)
class ChangeBatch:
    """Changes that happened together; `position` continues the feed after them."""

    first: int
    position: int
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Option:
    """An option of `terrane.open`."""

    name: str
    about: str
    default: str
    accepted: str
    trade_off: str
    takes_effect: str
