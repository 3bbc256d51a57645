"""The interface of the module `dbm`, on a Terrane database.

>>> import tempfile, shelve, terrane.dbm
>>> directory = tempfile.mkdtemp()
>>> with terrane.dbm.open(directory + "/db", "c") as db:
...     db["key"] = "value"
...     print(db["key"], db.keys())
b'value' [b'key']
>>> with shelve.Shelf(terrane.dbm.open(directory + "/shelf", "c")) as shelf:
...     shelf["numbers"] = [1, 2, 3]
...     print(shelf["numbers"], len(shelf))
[1, 2, 3] 1

As in `dbm`, text is encoded as UTF-8, and `keys` returns a list. `len` reads all keys.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from . import _database
from ._terrane import ClosedError, Error, ReadOnlyError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["error", "library", "open", "whichdb"]

library = "terrane"


class error(OSError):
    """An error of the database."""


def _bytes(one: str | bytes | bytearray) -> bytes:
    if isinstance(one, str):
        return one.encode("utf-8")
    if isinstance(one, (bytes, bytearray)):
        return bytes(one)
    raise TypeError(f"keys and values are bytes or str, not {type(one).__name__}")


class _Errors:
    """Turns exceptions of the engine into those of `dbm`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if isinstance(value, ClosedError):
            raise error("DBM object has already been closed") from None
        if isinstance(value, ReadOnlyError):
            raise error("The database is opened for reading only") from None
        if isinstance(value, Error):
            raise error(str(value)) from value


_errors = _Errors()


class _Dbm(MutableMapping[Any, bytes]):
    """An open database with the interface of `dbm`."""

    def __init__(self, db: _database.Database) -> None:
        self._db = db

    def __getitem__(self, key: str | bytes) -> bytes:
        with _errors:
            return self._db[_bytes(key)]

    def __setitem__(self, key: str | bytes, value: str | bytes) -> None:
        with _errors:
            self._db.put(_bytes(key), _bytes(value))

    def __delitem__(self, key: str | bytes) -> None:
        with _errors:
            del self._db[_bytes(key)]

    def __contains__(self, key: object) -> bool:
        with _errors:
            return isinstance(key, (str, bytes, bytearray)) and _bytes(key) in self._db

    def get(self, key: str | bytes, default: Any = None) -> Any:
        """Returns the value of a key, or `default`."""
        with _errors:
            return self._db.get(_bytes(key), default)

    def setdefault(self, key: str | bytes, default: str | bytes = b"") -> bytes:
        """Returns the value of a key, after setting it to `default` if there is none."""
        with _errors:
            return self._db.setdefault(_bytes(key), _bytes(default))

    def __iter__(self) -> Iterator[bytes]:
        with _errors:
            return iter(self._db)

    def keys(self) -> list[bytes]:  # type: ignore[override]
        """Returns the keys."""
        with _errors:
            return list(self._db.keys())

    def items(self) -> list[tuple[bytes, bytes]]:  # type: ignore[override]
        """Returns the keys with their values."""
        with _errors:
            return list(self._db.items())

    def values(self) -> list[bytes]:  # type: ignore[override]
        """Returns the values in the order of the keys."""
        with _errors:
            return list(self._db.values())

    def firstkey(self) -> bytes | None:
        """Returns the first key, or `None`."""
        with _errors:
            return next(self._db.keys(limit=1), None)

    def nextkey(self, key: str | bytes) -> bytes | None:
        """Returns the key after `key`, or `None`."""
        with _errors:
            return next(self._db.keys(start=_bytes(key) + b"\0", limit=1), None)

    def __len__(self) -> int:
        with _errors:
            return self._db.count()

    def __bool__(self) -> bool:
        with _errors:
            return bool(self._db)

    def clear(self) -> None:
        """Removes all keys."""
        with _errors:
            self._db.clear()

    def reorganize(self) -> None:
        """Compacts the database."""
        with _errors:
            self._db.compact()

    def sync(self) -> None:
        """Waits until all writes survive a loss of power."""
        with _errors:
            self._db.sync()

    def close(self) -> None:
        """Closes the database; a second call does nothing."""
        with _errors:
            self._db.close()

    def __enter__(self) -> _Dbm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open(file: str | bytes | os.PathLike[str] | os.PathLike[bytes], flag: str = "r", mode: int = 0o666) -> _Dbm:
    """Opens a database: `flag` is `r`, `w`, `c` or `n`. The file `mode` has no effect."""
    if flag not in ("r", "w", "c", "n"):
        raise ValueError("Flag must be one of 'r', 'w', 'c', or 'n'")
    try:
        return _Dbm(_database.open(file, flag))
    except Error as failure:
        raise error(str(failure)) from failure


def whichdb(file: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str | None:
    """Returns `terrane.dbm` for a database, `None` if there is nothing, and an empty string for anything else."""
    path = os.fsdecode(file)
    if not os.path.exists(path):
        return None
    return "terrane.dbm" if os.path.exists(os.path.join(path, "CURRENT")) else ""
