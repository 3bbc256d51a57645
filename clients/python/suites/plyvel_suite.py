"""Lets the tests of plyvel import Terrane as `plyvel`: a pytest plugin.

The classes here rename arguments and change what iteration yields; everything else is the package's. `LEFT_OUT` are
the tests of features that Terrane does not have, with the reasons, which docs/python.md repeats.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import terrane

LEFT_OUT = {
    "test_version": "checks LevelDB's version",
    "test_open_read_only_dir": "needs a user without root's permissions",
    "test_write_batch_context_manager": "a batch whose block raises is discarded; plyvel writes it",
    "test_comparator": "keys are always in byte order",
    "test_raw_iterator": "no raw iterators; `iterator` and `Entries.seek` do their work",
    "test_raw_iterator_empty_db": "no raw iterators",
    "test_raw_iterator_snapshot": "no raw iterators",
    "test_raw_iterator_closing": "no raw iterators",
    "test_write_batch_append": "batches are not appended to each other",
    "test_write_batch_approximate_size": "the length of a batch is counted in operations, not in bytes",
    "test_approximate_sizes": "writes keys of 100 KB; keys have at most 64 KiB",
    "test_repair_db": "repair is the command `terrane repair`",
}


class _Pairs:
    """Iterates over pairs, as plyvel does, and takes options of reads that have no effect here."""

    def __iter__(self) -> Any:
        return self.items()

    def get(self, key: bytes, default: Any = None, *, verify_checksums: Any = None, fill_cache: Any = None) -> Any:
        return super().get(key, default)  # type: ignore[misc]

    def iterator(self, *, verify_checksums: Any = None, fill_cache: Any = None, **options: Any) -> Any:
        return super().iterator(**options)  # type: ignore[misc]


class Snapshot(_Pairs, terrane.Snapshot):
    pass


class Prefixed(_Pairs, terrane.PrefixedKeyspace):
    def put(self, key: bytes, value: bytes, *, sync: bool = False) -> None:
        super().put(key, value, sync=sync)

    def snapshot(self) -> Any:
        return Prefixed(super().snapshot().db, self.prefix)

    def prefixed_db(self, prefix: bytes) -> Any:
        return Prefixed(self.db, self.prefix + prefix)


class DB(_Pairs, terrane.Database):
    def __new__(
        cls,
        name: Any,
        *,
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: Any = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: Any = None,
        compression: str | None = "snappy",
        bloom_filter_bits: int = 0,
        comparator: Any = None,
        comparator_name: Any = None,
    ) -> Any:
        for number in (write_buffer_size, max_open_files, lru_cache_size, block_size):
            if number is not None and not isinstance(number, int):
                raise TypeError(f"expected a number, not {number!r}")
        if compression not in ("snappy", None):
            raise ValueError("compression must be 'snappy' or None")
        if (comparator is None) != (comparator_name is None):
            raise ValueError("give both comparator and comparator_name")
        if comparator is not None and not (callable(comparator) and isinstance(comparator_name, bytes)):
            raise TypeError("comparator must be callable, and its name bytes")
        mode = "x" if error_if_exists else "c" if create_if_missing else "w"
        settings: dict[str, object] = {"compression": "lz4" if compression else "none"}
        if write_buffer_size:
            settings["buffer"] = f"{write_buffer_size}B"
        if bloom_filter_bits:
            settings["filter"] = bloom_filter_bits
        if block_size:
            settings["block"] = f"{block_size}B"
        made = {"design": terrane.Design("balanced", **settings)}
        options = {"open_files": max_open_files, "cache_bytes": lru_cache_size}
        options["memory_budget"] = 2 * lru_cache_size if lru_cache_size and lru_cache_size > 2**28 else None
        opened = terrane.open(name, mode, if_new=made, **options)
        self = super().__new__(cls, opened._engine)
        self.__path = name
        return self

    def __init__(self, *_: Any, **options: Any) -> None:
        pass

    @property
    def name(self) -> Any:
        return self.__path

    def put(self, key: bytes, value: bytes, *, sync: bool = False) -> None:
        super().put(key, value, durability="sync" if sync else None)

    def delete(self, key: bytes, *, sync: bool = False) -> None:
        super().delete(key, durability="sync" if sync else None)

    def write_batch(self, *, transaction: bool = False, sync: bool = False) -> Any:
        return super().write_batch(sync=sync)

    def snapshot(self) -> Any:
        return Snapshot(super().snapshot())

    def prefixed_db(self, prefix: bytes) -> Any:
        return Prefixed(self, prefix)

    def compact_range(self, *, start: bytes | None = None, stop: bytes | None = None) -> None:
        self.compact(start, stop)

    def approximate_sizes(self, *ranges: Any) -> list[int]:
        return [self.approximate_size(*one) for one in ranges]

    def get_property(self, name: bytes) -> bytes | None:
        if not isinstance(name, bytes):
            raise TypeError("properties are bytes")
        return str(self.stats()).encode() if name.startswith(b"leveldb.") else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    module: Any = types.ModuleType("plyvel")
    module.DB = DB
    module.Error = terrane.Error
    module.IOError = terrane.StorageError
    module.CorruptionError = terrane.CorruptionError
    module.IteratorInvalidError = terrane.InvalidError
    module.destroy_db = terrane.destroy
    sys.modules["plyvel"] = module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = LEFT_OUT.get(item.name)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
