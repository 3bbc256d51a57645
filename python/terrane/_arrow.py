"""Arrow tables and Parquet files, through pyarrow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from typing_extensions import Buffer

_EXPIRY = ("expires_at_micros", "ends_micros")

# The bounds of a batch that is read or written, in rows and in bytes of keys and values.
_BATCH_ROWS = 8192
_BATCH_BYTES = 4 << 20

Row = tuple[bytes, bytes, "int | None"]


def _pyarrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("Arrow and Parquet need pyarrow: pip install pyarrow") from error
    return pyarrow


@dataclass(frozen=True)
class Loaded:
    """What a load has written."""

    entries: int
    """The entries that were written."""
    nulls: int
    """The rows that were left out because their key or value is null."""


class _Layout:
    """The columns of a schema that hold the key, the value and the expiry time."""

    def __init__(
        self,
        names: list[str],
        key: str | None,
        value: str | Sequence[str] | None,
        expiry: str | None,
        keys_only: bool,
    ) -> None:
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"the column names {repeated} are not unique; rename them")
        if keys_only and value is not None:
            raise ValueError("keys_only leaves out the values, so that value has no effect; leave out one of the two")

        def known(name: str) -> str:
            if name not in names:
                raise ValueError(f"no column {name!r}; the columns are {names}")
            return name

        self.key = known(key if key is not None else "key" if "key" in names else names[0] if names else "key")
        found = next((name for name in _EXPIRY if name in names), None)
        self.expiry = known(expiry) if expiry is not None else found if found != self.key else None
        rest = [name for name in names if name not in (self.key, self.expiry)]
        self.value: str | list[str] | None
        if keys_only:
            self.value = None
        elif value == "*":
            self.value = names
        elif isinstance(value, str):
            self.value = known(value)
        elif value is not None:
            self.value = [known(name) for name in value]
        elif "value" in rest:
            self.value = "value"
        elif len(rest) == 1:
            self.value = rest[0]
        else:
            raise ValueError(
                f"the columns are {names}; name the one of the value, such as value={rest[0]!r}, several for a JSON "
                "object, or value='*'"
                if rest
                else f"the columns are {names}, and none is left for the value; keys_only=True loads keys"
            )
        left_out = set(rest) - {name for name in self.columns if name != self.key}
        if key is None and value is None and left_out:
            raise ValueError(
                f"the columns {sorted(left_out)} would be left out; name those to load, such as key={self.key!r}"
            )

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        value = [self.value] if isinstance(self.value, str) else self.value or []
        expiry = [] if self.expiry is None else [self.expiry]
        return list(dict.fromkeys([self.key, *value, *expiry]))

    def rows(self, batch: pa.RecordBatch) -> Iterator[tuple[bytes | None, bytes | None, int | None]]:
        """Yields the rows of a batch."""
        keys = _bytes(batch.column(self.key))
        values: Iterable[bytes | None]
        if self.value is None:
            values = [b""] * batch.num_rows
        elif isinstance(self.value, str):
            values = _bytes(batch.column(self.value))
        else:
            values = map(_json, batch.select(self.value).to_pylist())
        times: Iterable[int | None] = [None] * batch.num_rows
        if self.expiry is not None:
            times = _micros(batch.column(self.expiry))
        return zip(keys, values, times, strict=True)


def _json(value: Any) -> bytes:
    def other(value: Any) -> Any:
        if isinstance(value, bytes):
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"hex": value.hex()}
        return str(value)

    return json.dumps(value, default=other, ensure_ascii=False, separators=(",", ":")).encode()


def _bytes(column: pa.Array) -> list[bytes | None]:
    """Returns the bytes of binary data and text, the text of numbers and times, and the JSON text of the others."""
    pa = _pyarrow()
    kinds = pa.types
    kind = column.type
    if kinds.is_dictionary(kind):
        return _bytes(column.dictionary_decode())
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
        return column.to_pylist()  # type: ignore[no-any-return]
    if kinds.is_nested(kind):
        return [None if value is None else _json(value) for value in column.to_pylist()]
    if kinds.is_null(kind):
        return [None] * len(column)
    return [None if text is None else text.encode() for text in column.cast(pa.string()).to_pylist()]


def _micros(column: pa.Array) -> list[int | None]:
    pa = _pyarrow()
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    elif not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ValueError(f"an expiry time is a timestamp or an integer in microseconds since 1970, not {column.type}")
    times: list[int | None] = column.to_pylist()
    negative = next((time for time in times if time is not None and time < 0), None)
    if negative is not None:
        raise ValueError(f"the expiry time {negative} is before 1970")
    return times


def _batches(source: Any) -> tuple[Any, Iterable[Any]]:
    """Returns the schema of Arrow data, and its record batches."""
    pa = _pyarrow()
    if isinstance(source, pa.RecordBatch):
        return source.schema, [source]
    if isinstance(source, pa.Table):
        return source.schema, source.to_batches(max_chunksize=_BATCH_ROWS)
    if isinstance(source, pa.RecordBatchReader):
        return source.schema, source
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return reader.schema, reader
    raise TypeError(
        "expected a table, a record batch, a RecordBatchReader or another object with Arrow data, "
        f"not {type(source).__name__}"
    )


def _pieces(batches: Iterable[Any]) -> Iterator[Any]:
    """Splits batches so that no piece has more rows than a write."""
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


class _Rows:
    """The rows of Arrow data, with the rule for nulls; counts them."""

    def __init__(self, layout: _Layout, null: str) -> None:
        if null not in ("error", "empty", "skip"):
            raise ValueError(f"null must be 'error', 'empty' or 'skip', not {null!r}")
        self.layout = layout
        self.null = null
        self.number = 0
        self.nulls = 0

    def of(self, batch: Any) -> Iterator[Row]:
        for key, value, expires_at in self.layout.rows(batch):
            self.number += 1
            if key is not None and (value is not None or self.null == "empty"):
                yield key, b"" if value is None else value, expires_at
            elif self.null == "skip":
                self.nulls += 1
            else:
                part = "key" if key is None else "value"
                remedy = "null='skip' leaves out the row" + ("" if key is None else ", and null='empty' stores b''")
                raise ValueError(f"row {self.number}: the {part} is null; {remedy}")


class ArrowMethods:
    """Arrow and Parquet, for keyspaces."""

    __slots__ = ()

    def load_arrow(
        self: Any,
        source: Any,
        *,
        key: str | None = None,
        value: str | Sequence[str] | None = None,
        expiry: str | None = None,
        keys_only: bool = False,
        null: str = "error",
        sorted: bool = False,
        durability: str | None = None,
    ) -> Loaded:
        """Writes the rows of Arrow data: a table, a record batch or a stream, also of polars, DuckDB and others.

        `key` names the column of the keys, by default `key` or the first one; `value` that of the values, by default
        `value` or the only other one. Several names, or `*` for all, store a JSON object. `expiry` names a column of
        expiry times, by default `expires_at_micros`. Without `key` and `value`, no other column may exist.
        Text is stored as UTF-8, a number as its decimal text, a list or a struct as JSON.

        `null` says what to do with a null: `error`, `skip` the row, or store an `empty` value. The rows are written in
        batches; an exception says how many were. With `sorted`, they must ascend by key, are written as tables, and
        are all written or none.
        """
        schema, batches = _batches(source)
        layout = _Layout(schema.names, key, value, expiry, keys_only)
        return _load(self, layout, (batch.select(layout.columns) for batch in batches), null, sorted, durability)

    def load_parquet(
        self: Any,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        value: str | Sequence[str] | None = None,
        expiry: str | None = None,
        keys_only: bool = False,
        null: str = "error",
        sorted: bool = False,
        durability: str | None = None,
    ) -> Loaded:
        """Writes the rows of a Parquet file, of which it reads only the columns it needs; see `load_arrow`."""
        _pyarrow()
        import pyarrow.parquet as parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

        with parquet.ParquetFile(os.fspath(path)) as file:
            layout = _Layout(file.schema_arrow.names, key, value, expiry, keys_only)
            batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=layout.columns)
            return _load(self, layout, batches, null, sorted, durability)

    def to_arrow(
        self: Any,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        keys_only: bool = False,
        text: bool = False,
    ) -> pa.RecordBatchReader:
        """Returns the entries of a range as a stream of record batches, from a snapshot.

        The columns are `key` and `value`, as binary data or, with `text`, as text, which must be UTF-8. If values may
        expire, `expires_at_micros` has their expiry times in microseconds since 1970, or null. `read_all()` makes a
        table of the stream.
        """
        pa = _pyarrow()
        entries = self._scan("rows", start, stop, prefix, False, None)
        # After the snapshot: no later write can add an expiry time to it.
        may_expire = self._may_expire()
        kind = pa.string() if text else pa.binary()
        fields = [pa.field("key", kind, nullable=False)]
        if not keys_only:
            fields.append(pa.field("value", kind, nullable=False))
        if may_expire:
            fields.append(pa.field(_EXPIRY[0], pa.uint64()))
        schema = pa.schema(fields)

        def batch(rows: list[Row]) -> Any:
            keys, values, times = zip(*rows, strict=True)
            columns = [keys] + ([] if keys_only else [values]) + ([times] if may_expire else [])
            arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
            return pa.RecordBatch.from_arrays(arrays, schema=schema)

        def batches() -> Iterator[Any]:
            rows: list[Row] = []
            size = 0
            for row in entries:
                rows.append(row)
                size += len(row[0]) + len(row[1])
                if len(rows) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                    yield batch(rows)
                    rows, size = [], 0
            if rows:
                yield batch(rows)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def dump_parquet(
        self: Any,
        path: str | os.PathLike[str],
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        keys_only: bool = False,
        text: bool = False,
        overwrite: bool = False,
        compression: str = "zstd",
    ) -> int:
        """Writes the entries of a range to a Parquet file, and returns their number; see `to_arrow`.

        The file appears when it is complete. An existing one is replaced only with `overwrite`.
        """
        _pyarrow()
        import pyarrow.parquet as parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

        path = os.fspath(path)
        if not overwrite and os.path.exists(path):
            raise FileExistsError(f"{path!r} exists; overwrite=True replaces it")
        partial = f"{path}.partial"
        count = 0
        try:
            reader = self.to_arrow(start, stop, prefix=prefix, keys_only=keys_only, text=text)
            with parquet.ParquetWriter(partial, reader.schema, compression=compression) as writer:
                for batch in reader:
                    writer.write_batch(batch)
                    count += batch.num_rows
            os.replace(partial, path)
        except BaseException:
            if os.path.exists(partial):
                os.remove(partial)
            raise
        return count


def _load(
    keyspace: Any, layout: _Layout, batches: Iterable[Any], null: str, sorted: bool, durability: str | None
) -> Loaded:
    rows = _Rows(layout, null)
    if sorted:
        if durability is not None:
            raise ValueError("sorted rows are synced when they are complete; leave out durability")
        count = keyspace._ingest_rows(row for batch in _pieces(batches) for row in rows.of(batch))
        return Loaded(count, rows.nulls)
    written = 0
    try:
        for batch in _pieces(batches):
            for chunk in _chunks(rows.of(batch)):
                keyspace._put_rows(chunk, durability=durability)
                written += len(chunk)
    except Exception as error:
        error.add_note(f"{written} entries were written before the error")
        raise
    return Loaded(written, rows.nulls)


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Divides rows into atomic writes."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row[0]) + len(row[1])
        if len(chunk) >= 1024 or size >= 256 << 10:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
