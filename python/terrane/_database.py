"""Databases."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from . import _terrane
from ._keyspace import Keyspace
from ._terrane import Design, InvalidError
from ._views import Change, ChangeBatch, Stats

if TYPE_CHECKING:
    from types import TracebackType

_MODES = ("r", "w", "c", "n", "x")


def _texts(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns options as the strings that the engine parses."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, timedelta):
            return f"{value.total_seconds():g}s"
        if isinstance(value, os.PathLike):
            return os.fspath(value)  # type: ignore[no-any-return]
        return str(value)

    return [(name, text(value)) for name, value in options.items() if value is not None]


def _check_names(given: Mapping[str, Any], arguments: tuple[str, ...]) -> None:
    """Fails at a name that is neither an option nor one of `arguments`, and suggests the nearest of these."""
    options = [row["name"] for row in _terrane.option_table()]
    for name in given:
        if name.replace("-", "_") in options:
            continue
        near = difflib.get_close_matches(name, [*options, *arguments], 1)
        meant = f"did you mean {near[0]!r}?" if near else "terrane.options() lists all options"
        raise InvalidError(f"no option {name!r}; {meant}")


def open(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    mode: str = "c",
    *,
    design: Design | str | None = None,
    change_design: bool = False,
    if_new: Mapping[str, Any] | None = None,
    among_other_files: bool = False,
    **options: Any,
) -> Database:
    """Opens a database, which is a directory.

    `mode` is `r` to read only, `w` for an existing database, `c` to create a missing one, `n` to replace an
    existing one with an empty one, or `x` to create one that must not exist.

    `options` are those of `terrane.options()`, as strings or numbers, such as `memory_budget="256MiB"`. The
    database keeps them; those in `if_new` take effect only if this call creates the database. A `design`
    that differs from that of an existing database is an error, unless `change_design` is true.

    >>> import tempfile, terrane
    >>> with terrane.open(tempfile.mkdtemp() + "/db", design="tiering T=4", durability="sync") as db:
    ...     print(db.durability, db.design)
    sync tiering T=4
    """
    if mode not in _MODES:
        raise ValueError(f"mode must be one of 'r', 'w', 'c', 'n' and 'x', not {mode!r}")
    _check_names(options, ("mode", "design", "change_design", "if_new", "among_other_files"))
    _check_names(if_new or {}, ())
    path = os.fsdecode(path)
    engine = _terrane.Engine(
        path,
        mode,
        _texts(options),
        _texts(if_new or {}),
        design=design,
        change_design=change_design,
        among_other_files=among_other_files,
    )
    return Database(engine)


def destroy(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
    """Removes the files of a closed database, and its directory if nothing else is in it.

    >>> import os, tempfile, terrane
    >>> path = tempfile.mkdtemp() + "/db"
    >>> terrane.open(path).close()
    >>> terrane.destroy(path)
    >>> os.path.exists(path)
    False
    """
    path = os.fsdecode(path)
    _terrane.destroy(path)
    with contextlib.suppress(OSError):
        os.rmdir(path)


class Database(Keyspace):
    """An open database: its default keyspace, and operations on the whole database.

    `terrane.open` returns one. Close it with `close()` or `with`; other handles of it then raise
    `ClosedError`. A process that was forked has to open the database itself, after the parent has closed it.
    """

    __slots__ = ()

    def close(self) -> None:
        """Closes the database; a second call does nothing."""
        self._engine.close()

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""
        return self._engine.closed

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> str:
        """The directory."""
        return os.fspath(self._engine.path)

    @property
    def durability(self) -> str:
        """The failures that a write survives: `none`, `process`, `interval(TIME)` or `sync`."""
        return self._engine.durability

    @property
    def io_budget(self) -> str:
        """The bytes per second that background work may write."""
        return self._engine.io_budget

    @io_budget.setter
    def io_budget(self, budget: str) -> None:
        self._engine.set_io_budget(budget)

    def keyspace(
        self, name: str, *, design: Design | str | None = None, change_design: bool = False
    ) -> Keyspace:
        """Opens a keyspace, or creates it.

        >>> import tempfile, terrane
        >>> with terrane.open(tempfile.mkdtemp() + "/db") as db:
        ...     orders = db.keyspace("orders", design="tiering")
        ...     orders[b"1"] = b"a"
        ...     print(db.keyspaces(), list(orders), list(db))
        ['default', 'orders'] [b'1'] []
        """
        return Keyspace(self._engine, name, design, change_design)

    def keyspaces(self) -> list[str]:
        """Returns the names of all keyspaces."""
        return self._engine.keyspaces()

    def drop_keyspace(self, name: str) -> bool:
        """Removes a keyspace with its contents; returns false if there is none."""
        return self._engine.drop_keyspace(name)

    def rename_keyspace(self, name: str, new_name: str) -> bool:
        """Renames a keyspace; returns false if there is none."""
        return self._engine.rename_keyspace(name, new_name)

    def flush(self) -> None:
        """Writes all memtables to tables."""
        self._engine.flush()

    def sync(self) -> None:
        """Waits until all writes so far survive a loss of power."""
        self._engine.sync()

    def wait_for_compactions(self) -> None:
        """Waits until every tree conforms to its design."""
        self._engine.wait_for_compactions()

    def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Writes a consistent copy to a new directory, while the database is in use."""
        self._engine.checkpoint(path)

    def stats(self) -> Stats:
        """Returns counters since the database was opened, and current sizes."""
        return Stats._of(self._engine.stats())

    def events(self) -> list[str]:
        """Returns the last events of background work, oldest first, as sentences."""
        return [text for _, text in self._engine.events()]

    def changes(self, since: int = 0, *, timeout: float | None = None) -> Iterator[ChangeBatch]:
        """Yields the batches of writes after the number `since`, for a database opened with `keep_changes`.

        Ends at the last write, or `timeout` seconds after it.
        """
        feed = self._engine.changes(since)
        while True:
            for first, position, rows in feed:
                yield ChangeBatch(first, position, tuple(Change(**row) for row in rows))
            if timeout is None or not feed.wait(timeout):
                return

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"'{self.path}'"
        return f"<terrane.Database {state}>"
