"""A persistent, ordered key-value store on the log-structured merge tree.

>>> import tempfile, terrane
>>> directory = tempfile.mkdtemp()
>>> with terrane.open(directory + "/fruit") as db:
...     db[b"apple"] = b"red"
...     db[b"banana"] = b"yellow"
...     print(db[b"apple"], list(db))
b'red' [b'apple', b'banana']

Keys and values are bytes. `open` returns a `Database`, which is a mapping with ranges, atomic batches,
snapshots, transactions and keyspaces. `simulate`, `advise` and `sweep` compare designs of trees.
"""

from __future__ import annotations

import os as _os

from . import _terrane
from ._arrow import Loaded
from ._database import Database, destroy, open
from ._entries import Cursor
from ._keyspace import Keyspace, PrefixedKeyspace, Snapshot, Transaction
from ._lab import Advice, RankedDesign, Simulation, advise, simulate
from ._sweep import SweepResult, sweep
from ._terrane import (
    MAX_KEY_LEN,
    MAX_VALUE_LEN,
    Batch,
    BusyError,
    ChangesGoneError,
    ClosedError,
    ConflictError,
    CorruptionError,
    Design,
    DiskFullError,
    Entries,
    Error,
    ForkedError,
    InternalError,
    InvalidError,
    LockedError,
    NotFoundError,
    PoisonedError,
    ReadOnlyError,
    StorageError,
    UnsupportedError,
    Value,
    __version__,
)
from ._views import Change, ChangeBatch, Forecast, Latency, Level, Option, Run, Stats, Table, Tree

__all__ = [
    "Advice",
    "Batch",
    "BusyError",
    "Change",
    "ChangeBatch",
    "ChangesGoneError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Cursor",
    "Database",
    "Design",
    "DiskFullError",
    "Entries",
    "Error",
    "Forecast",
    "ForkedError",
    "InternalError",
    "InvalidError",
    "Keyspace",
    "Latency",
    "Level",
    "Loaded",
    "LockedError",
    "MAX_KEY_LEN",
    "MAX_VALUE_LEN",
    "NotFoundError",
    "Option",
    "PoisonedError",
    "PrefixedKeyspace",
    "RankedDesign",
    "ReadOnlyError",
    "Run",
    "Simulation",
    "Snapshot",
    "Stats",
    "StorageError",
    "SweepResult",
    "Table",
    "Transaction",
    "Tree",
    "UnsupportedError",
    "Value",
    "__version__",
    "advise",
    "designs",
    "destroy",
    "open",
    "options",
    "simulate",
    "sweep",
]

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_terrane.note_fork)

_terrane.set_program(_terrane.__file__)


def options() -> list[Option]:
    """Returns the options of `open` with their meanings, defaults and values.

    >>> next(option.default for option in options() if option.name == "durability")
    'process'
    """
    return [Option(**row) for row in _terrane.option_table()]


def designs() -> dict[str, str]:
    """Returns the designs that have a name, with their descriptions.

    >>> "tiering" in designs()
    True
    """
    return dict(_terrane.design_names())
