"""An iterator that moves both ways, like plyvel's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._terrane import ClosedError, Entries

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

    from ._reads import Reads


class Cursor:
    """A position between two entries of a range, from a snapshot.

    `next` returns the entry after it and `prev` the one before it; a reverse cursor swaps the two.

    >>> import tempfile, terrane
    >>> with terrane.open(tempfile.mkdtemp() + "/db") as db:
    ...     db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    ...     with db.iterator(include_value=False) as cursor:
    ...         print(next(cursor), next(cursor), cursor.prev())
    ...         cursor.seek(b"c")
    ...         print(next(cursor))
    b'a' b'b' b'b'
    b'c'
    """

    __slots__ = ("_source", "_range", "_is_reverse", "_part", "_at", "_entries", "_is_forward", "_closed")

    def __init__(
        self,
        source: Reads,
        range: tuple[Buffer | None, Buffer | None, Buffer | None],
        is_reverse: bool,
        include_key: bool,
        include_value: bool,
    ) -> None:
        take = getattr(source, "snapshot", None)
        self._source: Any = source if take is None else take()
        self._range = range
        self._is_reverse = is_reverse
        self._part = (include_key, include_value)
        # The key right after the position; `None` at the beginning, and the empty tuple at the end.
        self._at: bytes | None | tuple[()] = () if is_reverse else None
        self._entries: Entries[tuple[bytes, bytes]] | None = None
        self._is_forward = True
        self._closed = False

    def _open(self, is_forward: bool) -> Entries[tuple[bytes, bytes]] | None:
        low, high, prefix = self._range
        at = self._at
        part = "items" if self._part[1] else "keys"
        if is_forward:
            if at == ():
                return None
            if isinstance(at, bytes) and (low is None or at > bytes(low)):
                low = at
        else:
            if at is None:
                return None
            if isinstance(at, bytes) and (high is None or at < bytes(high)):
                high = at
        entries: Any = self._source._scan(part, low, high, prefix, not is_forward, None)
        if part == "keys":
            return ((key, b"") for key in entries)  # type: ignore[return-value]
        return entries  # type: ignore[no-any-return]

    def _step(self, is_forward: bool) -> Any:
        if self._closed:
            raise ClosedError("the iterator is closed; make another one")
        if self._entries is None or self._is_forward != is_forward:
            self._entries = self._open(is_forward)
            self._is_forward = is_forward
        entry = next(self._entries, None) if self._entries is not None else None
        if entry is None:
            self._at = () if is_forward else None
            self._entries = None
            raise StopIteration
        key, value = entry
        self._at = key + b"\0" if is_forward else key
        if all(self._part):
            return key, value
        return key if self._part[0] else value if self._part[1] else None

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Any:
        return self._step(not self._is_reverse)

    def next(self) -> Any:
        """Returns the next entry."""
        return self.__next__()

    def prev(self) -> Any:
        """Returns the entry before the position, and moves before that entry."""
        return self._step(self._is_reverse)

    def _move(self, at: bytes | None | tuple[()]) -> None:
        if self._closed:
            raise ClosedError("the iterator is closed; make another one")
        self._at = at
        self._entries = None

    def seek(self, key: Buffer) -> None:
        """Moves before the first key at or after `key`."""
        self._move(bytes(key))

    def seek_to_start(self) -> None:
        """Moves before the first entry."""
        self._move(None)

    def seek_to_stop(self) -> None:
        """Moves after the last entry."""
        self._move(())

    def close(self) -> None:
        """Releases the snapshot; a second call does nothing."""
        self._closed = True
        self._entries = None
        self._source = None

    @property
    def closed(self) -> bool:
        """Whether the cursor was closed."""
        return self._closed

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
