"""Keyspaces, snapshots and transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from . import _terrane
from ._arrow import ArrowMethods
from ._reads import Reads
from ._terrane import ConflictError, Design
from ._views import Forecast, Tree

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

Result = TypeVar("Result")

_MISSING: Any = object()

if TYPE_CHECKING:
    Pairs = Mapping[bytes, Buffer] | Iterable[tuple[Buffer, Buffer]]


def _items(pairs: Pairs) -> Iterable[tuple[Buffer, Buffer]]:
    """Returns the pairs of a mapping or an iterable."""
    return pairs.items() if isinstance(pairs, Mapping) else pairs


class _Defaults(Reads):
    """`setdefault` and `pop` built from `get`, `put` and `delete`: atomic only in a transaction."""

    __slots__ = ()

    def setdefault(self: Any, key: Buffer, default: Buffer) -> bytes:
        """Returns the value of a key, after setting it to `default` if there is none."""
        value: bytes | None = self.get(key)
        if value is None:
            self.put(key, default)
            return bytes(default)
        return value

    def pop(self: Any, key: Buffer, default: Any = _MISSING) -> Any:
        """Removes a key and returns its value, or `default`; without it, a missing key is a `KeyError`."""
        value = self.get(key)
        if value is None:
            if default is _MISSING:
                raise KeyError(bytes(key))
            return default
        self.delete(key)
        return value


class Keyspace(Reads, ArrowMethods, _terrane.Keyspace):
    """An independent ordered mapping of bytes to bytes in a database.

    Methods may be called from any thread, and release the interpreter's lock while they work.
    """

    __slots__ = ()

    def setdefault(self, key: Buffer, default: Buffer) -> bytes:
        """Returns the value of a key, after setting it to `default` if there is none; atomic."""
        while True:
            value: bytes | None = self.get(key)
            if value is not None:
                return value
            if self.put_if_absent(key, default):
                return bytes(default)

    def pop(self, key: Buffer, default: Any = _MISSING) -> Any:
        """Removes a key and returns its value, or `default`; atomic."""
        while True:
            value = self.get(key)
            if value is None:
                if default is _MISSING:
                    raise KeyError(bytes(key))
                return default
            if self.compare_and_swap(key, value, None):
                return value

    def update(self, pairs: Pairs, *, durability: str | None = None) -> None:
        """Writes all pairs of a mapping or an iterable as one atomic batch."""
        self.put_many(pairs, durability=durability)

    def put_many(self, pairs: Pairs, *, durability: str | None = None) -> None:
        """Writes all pairs of a mapping or an iterable, such as tuples or lists of two, as one atomic batch."""
        self._put_pairs(_items(pairs), durability=durability)

    def ingest(self, pairs: Pairs) -> int:
        """Adds pairs in ascending order of their keys as tables, and returns their number.

        For large amounts this is much faster than writes. All pairs appear at once; after an exception, none.
        """
        return self._ingest(_items(pairs))

    def transact(
        self,
        function: Callable[[Transaction], Result],
        *,
        attempts: int = 100,
        isolation: str | None = None,
        durability: str | None = None,
    ) -> Result:
        """Runs a function with a transaction and commits it; after a conflict, tries again.

        The function may run several times, so it should change nothing but the transaction.

        >>> import tempfile, terrane
        >>> db = terrane.open(tempfile.mkdtemp() + "/db")
        >>> def increment(tx):
        ...     number = int(tx.get(b"count", b"0")) + 1
        ...     tx[b"count"] = b"%d" % number
        ...     return number
        >>> db.transact(increment), db.transact(increment)
        (1, 2)
        >>> db.close()
        """
        for attempt in range(attempts):
            transaction = self.transaction(isolation=isolation, durability=durability)
            try:
                result = function(transaction)
                transaction.commit()
                return result
            except ConflictError:
                if attempt + 1 == attempts:
                    raise
                # Wait longer after each conflict, so that one of two rivals gets through.
                time.sleep(min(1e-5 * 2**attempt, 5e-3))
            finally:
                transaction.roll_back()
        raise ValueError("attempts must be at least 1")

    def transaction(self, *, isolation: str | None = None, durability: str | None = None) -> Transaction:
        """Begins a transaction.

        `with db.transaction() as tx` commits it at the end of the block, which may raise a `ConflictError`,
        and rolls it back if the block raises an exception. `isolation` is `serializable` or `snapshot`.
        """
        return Transaction(self.begin(isolation=isolation, durability=durability))

    def snapshot(self) -> Snapshot:
        """Returns the present state of the database, for consistent reads."""
        return Snapshot(super().snapshot())

    def prefixed_db(self, prefix: Buffer) -> PrefixedKeyspace:
        """Returns the keys that begin with `prefix`, without it, as a mapping."""
        return PrefixedKeyspace(self, bytes(prefix))

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> _terrane.Batch:
        """Returns a batch, like plyvel's; `batch()` is the same.

        Unlike plyvel's default, a block that raises an exception writes nothing.
        """
        if not transaction:
            raise ValueError("a batch is always written whole or not at all; leave out transaction=False")
        return self.batch(durability="sync" if sync else None)

    def get_buffer(self, key: Buffer) -> memoryview | None:
        """Returns the value as a read-only view of the memory of the database, without a copy, or `None`."""
        value = self.view(key)
        return None if value is None else memoryview(value)

    def tree(self) -> Tree:
        """Returns the memtable, levels, runs and tables; a notebook draws them."""
        return Tree._of(self._tree())

    def levels(self) -> list[dict[str, Any]]:
        """Returns a row for each level, for example for `pandas.DataFrame(db.levels())`."""
        return [level._row() for level in self.tree().levels]

    def forecast(self, design: Design | str) -> Forecast:
        """Predicts what a change to another design rewrites, and what it changes."""
        return Forecast._of(self._forecast(design))

    def __repr__(self) -> str:
        return f"<terrane.{type(self).__name__} '{self.name}'>"


class Snapshot(Reads, _terrane.Snapshot):
    """The state of a database when the snapshot was taken."""

    __slots__ = ()

    def keyspace(self, keyspace: Keyspace) -> Snapshot:
        """Returns the same snapshot for another keyspace of the database."""
        return Snapshot(self._of_keyspace(keyspace))

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Transaction(_Defaults, _terrane.Transaction):
    """Reads and writes that take effect atomically, or not at all.

    A transaction takes no locks: it reads from a snapshot, and its commit raises a `ConflictError` if another
    write has changed data that it read.
    """

    __slots__ = ()

    def keyspace(self, keyspace: Keyspace) -> Transaction:
        """Returns the same transaction for another keyspace of the database."""
        return Transaction(self._of_keyspace(keyspace))

    def update(self, pairs: Pairs) -> None:
        """Writes all pairs of a mapping or an iterable."""
        for key, value in _items(pairs):
            self.put(key, value)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.roll_back()
        elif not self.closed:
            self.commit()


class PrefixedKeyspace(_Defaults):
    """The keys of a keyspace, snapshot or transaction that begin with a prefix, without the prefix.

    >>> import tempfile, terrane
    >>> with terrane.open(tempfile.mkdtemp() + "/db") as db:
    ...     users = db.prefixed_db(b"user:")
    ...     users[b"7"] = b"Ada"
    ...     print(list(users.items()), list(db))
    [(b'7', b'Ada')] [b'user:7']
    """

    __slots__ = ("db", "prefix")

    def __init__(self, db: Any, prefix: bytes) -> None:
        self.db = db
        self.prefix = prefix

    def _scan(
        self,
        part: str,
        start: Buffer | None,
        stop: Buffer | None,
        prefix: Buffer | None,
        reverse: bool,
        limit: int | None,
    ) -> Any:
        own = self.prefix
        low = None if start is None else own + bytes(start)
        high = None if stop is None else own + bytes(stop)
        begin = own if prefix is None else own + bytes(prefix)
        entries = self.db._scan(part, low, high, begin, reverse, limit)
        length = len(own)
        if part == "keys":
            return (key[length:] for key in entries)
        if part == "items":
            return ((key[length:], value) for key, value in entries)
        return entries

    def get(self, key: Buffer, default: Any = None) -> Any:
        """Returns the value of a key, or `default`."""
        return self.db.get(self.prefix + bytes(key), default)

    def put(self, key: Buffer, value: Buffer, **options: Any) -> None:
        """Sets the value of a key."""
        self.db.put(self.prefix + bytes(key), value, **options)

    def delete(self, key: Buffer, **options: Any) -> None:
        """Removes a key, whether it exists or not."""
        self.db.delete(self.prefix + bytes(key), **options)

    def __getitem__(self, key: Buffer) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(bytes(key))
        return value  # type: ignore[no-any-return]

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self.put(key, value)

    def __delitem__(self, key: Buffer) -> None:
        del self.db[self.prefix + bytes(key)]

    def __contains__(self, key: Buffer) -> bool:
        return self.prefix + bytes(key) in self.db

    def count(self) -> int:
        """Counts the keys by reading all of them."""
        return self.db.count(prefix=self.prefix)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Removes all keys with the prefix."""
        self.db.delete_range(prefix=self.prefix)

    def prefixed_db(self, prefix: Buffer) -> PrefixedKeyspace:
        """Returns the keys that begin with a longer prefix."""
        return PrefixedKeyspace(self.db, self.prefix + bytes(prefix))

    def snapshot(self) -> PrefixedKeyspace:
        """Returns the keys in a new snapshot, for reading; in a snapshot or a transaction, returns itself."""
        take = getattr(self.db, "snapshot", None)
        return self if take is None else PrefixedKeyspace(take(), self.prefix)

    def write_batch(self, **options: Any) -> PrefixedBatch:
        """Returns a batch whose keys get the prefix."""
        return PrefixedBatch(self.db.write_batch(**options), self.prefix)

    def update(self, pairs: Pairs) -> None:
        """Writes all pairs of a mapping or an iterable as one atomic batch."""
        prefix = self.prefix
        self.db.update((prefix + bytes(key), value) for key, value in _items(pairs))


class PrefixedBatch:
    """A batch whose keys get a prefix."""

    __slots__ = ("batch", "prefix")

    def __init__(self, batch: _terrane.Batch, prefix: bytes) -> None:
        self.batch = batch
        self.prefix = prefix

    def put(self, key: Buffer, value: Buffer, *, ttl: float | None = None) -> None:
        """Sets the value of a key."""
        self.batch.put(self.prefix + bytes(key), value, ttl=ttl)

    def delete(self, key: Buffer) -> None:
        """Removes a key."""
        self.batch.delete(self.prefix + bytes(key))

    def clear(self) -> None:
        """Discards the writes."""
        self.batch.clear()

    def write(self) -> None:
        """Performs the writes."""
        self.batch.write()

    def __enter__(self) -> PrefixedBatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.batch.__exit__(kind, value, traceback)
