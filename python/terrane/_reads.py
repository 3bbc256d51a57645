"""Scans of everything that can be read: keyspaces, snapshots, transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ._entries import Cursor
from ._terrane import Entries

if TYPE_CHECKING:
    from typing_extensions import Buffer



class Reads:
    """Iteration over keys and values.

    A range holds the keys from `start` to before `stop` that begin with `prefix`, any of which may be left out.
    An iterator reads from a snapshot, in chunks, and may be closed early, for example by `with`.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def _scan(
            self,
            part: str,
            start: Buffer | None,
            stop: Buffer | None,
            prefix: Buffer | None,
            reverse: bool,
            limit: int | None,
        ) -> Entries[Any]: ...

    def items(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Entries[tuple[bytes, bytes]]:
        """Returns an iterator over the keys of a range with their values, in order."""
        return self._scan("items", start, stop, prefix, reverse, limit)

    def keys(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Entries[bytes]:
        """Returns an iterator over the keys of a range, in order."""
        return self._scan("keys", start, stop, prefix, reverse, limit)

    def values(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Entries[bytes]:
        """Returns an iterator over the values of a range, in the order of their keys."""
        return self._scan("values", start, stop, prefix, reverse, limit)

    def __iter__(self) -> Iterator[bytes]:
        return self._scan("keys", None, None, None, False, None)

    def __reversed__(self) -> Iterator[bytes]:
        return self._scan("keys", None, None, None, True, None)

    def __len__(self) -> NoReturn:
        raise TypeError(
            "the number of keys is not stored; use count(), which reads all keys, or approximate_len()"
        )

    def __bool__(self) -> bool:
        """Whether there is any key."""
        return next(iter(self), None) is not None

    def first(self) -> tuple[bytes, bytes] | None:
        """Returns the smallest key with its value, or `None`."""
        return next(self.items(limit=1), None)

    def last(self) -> tuple[bytes, bytes] | None:
        """Returns the largest key with its value, or `None`."""
        return next(self.items(reverse=True, limit=1), None)

    def iterator(
        self,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
    ) -> Cursor:
        """Returns an iterator with the arguments of plyvel's, which moves both ways and seeks.

        `items`, `keys` and `values` are faster.
        """
        if prefix is not None and (start is not None or stop is not None):
            raise TypeError("give either a prefix, or start and stop")
        low = bytes(start) if start is not None else None
        high = bytes(stop) if stop is not None else None
        # The successor of a key is that key followed by a zero byte.
        if low is not None and not include_start:
            low += b"\0"
        if high is not None and include_stop:
            high += b"\0"
        return Cursor(self, (low, high, prefix), reverse, include_key, include_value)
