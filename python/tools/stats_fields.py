"""Writes `terrane/_stats.py`, the fields of the statistics, from the metrics of the engine.

`python tools/stats_fields.py` after a metric was added; a test fails until then.
"""

from __future__ import annotations

import pathlib
import tempfile
import textwrap
from typing import Any

import terrane

HEAD = '''"""The metrics of the engine as fields. Written by `tools/stats_fields.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metrics:
    """Counters since the database was opened, and current sizes."""

'''


def text(metrics: dict[str, tuple[Any, str]]) -> str:
    """Returns the contents of the file."""
    fields = []
    for name, (_, about) in metrics.items():
        kind = "int | None" if name == "oldest_tombstone_micros" else "int"
        about = about.replace("`Stats::", "`").replace("\\", "\\\\")
        lines = textwrap.wrap(f'"""{" ".join(about.split())}"""', 106)
        fields.append(f"    {name}: {kind}\n" + "".join(f"    {line}\n" for line in lines))
    return HEAD + "".join(fields)


def path() -> pathlib.Path:
    """Returns the path of the file."""
    return pathlib.Path(__file__).parent.parent / "terrane" / "_stats.py"


def metrics() -> dict[str, tuple[Any, str]]:
    """Returns the metrics of the engine."""
    with tempfile.TemporaryDirectory() as directory, terrane.open(directory + "/db") as db:
        return db._engine.stats()["metrics"]  # type: ignore[no-any-return]


if __name__ == "__main__":
    path().write_text(text(metrics()), encoding="utf-8")
