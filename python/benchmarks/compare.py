"""Compares the package with plyvel (LevelDB) and lmdb: `python benchmarks/compare.py`.

All three store the same keys and values, in directories below TMPDIR, and none syncs. Rounds alternate between the
stores, and a figure is the median of the rounds. A store whose package is not installed is left out with a note.

    pip install plyvel lmdb
    python benchmarks/compare.py [--tables] [--entries N] [--rounds N] [--value-size BYTES] [--cpu]

With `--tables` it reads data that is several times as large as a memtable: each store is filled and compacted once,
and all rounds read.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import terrane

MANY = 1000


class Terrane:
    name = "terrane"

    def __init__(self, path: str) -> None:
        self.db = terrane.open(path)
        self.close = self.db.close

    def settle(self) -> None:
        self.db.flush()
        self.db.compact()

    def put(self, pairs: list[tuple[bytes, bytes]]) -> None:
        put = self.db.put
        for key, value in pairs:
            put(key, value)

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        for at in range(0, len(pairs), MANY):
            self.db.put_many(pairs[at : at + MANY])

    def get(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    def many(self, keys: list[bytes]) -> int:
        found = 0
        for at in range(0, len(keys), MANY):
            found += MANY - self.db.get_many(keys[at : at + MANY]).count(None)
        return found

    def scan(self) -> int:
        count = 0
        for _ in self.db.items():
            count += 1
        return count

    def scan_keys(self) -> int:
        return sum(1 for _ in self.db.keys())


class Plyvel:
    name = "plyvel"

    def __init__(self, path: str) -> None:
        import plyvel

        # Memtables and a cache as large as those of Terrane.
        self.db = plyvel.DB(
            path, create_if_missing=True, write_buffer_size=64 << 20, bloom_filter_bits=10, lru_cache_size=512 << 20
        )
        self.close = self.db.close

    def settle(self) -> None:
        self.db.compact_range()

    def put(self, pairs: list[tuple[bytes, bytes]]) -> None:
        put = self.db.put
        for key, value in pairs:
            put(key, value)

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        for at in range(0, len(pairs), MANY):
            with self.db.write_batch() as batch:
                put = batch.put
                for key, value in pairs[at : at + MANY]:
                    put(key, value)

    def get(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    def many(self, keys: list[bytes]) -> int:
        # It has no call for several keys.
        get = self.db.get
        found = 0
        for at in range(0, len(keys), MANY):
            found += MANY - [get(key) for key in keys[at : at + MANY]].count(None)
        return found

    def scan(self) -> int:
        count = 0
        for _ in self.db:
            count += 1
        return count

    def scan_keys(self) -> int:
        return sum(1 for _ in self.db.iterator(include_value=False))


class Lmdb:
    name = "lmdb"

    def __init__(self, path: str) -> None:
        import lmdb

        self.env = lmdb.open(path, map_size=4 << 30, sync=False, writemap=True)
        self.close = self.env.close

    def settle(self) -> None:
        # It has neither memtables nor compactions.
        pass

    def put(self, pairs: list[tuple[bytes, bytes]]) -> None:
        begin = self.env.begin
        for key, value in pairs:
            with begin(write=True) as transaction:
                transaction.put(key, value)

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        for at in range(0, len(pairs), MANY):
            with self.env.begin(write=True) as transaction:
                transaction.cursor().putmulti(pairs[at : at + MANY])

    def get(self, keys: list[bytes]) -> int:
        # One transaction for all reads, which is its best case.
        with self.env.begin() as transaction:
            get = transaction.get
            return sum(get(key) is not None for key in keys)

    def many(self, keys: list[bytes]) -> int:
        found = 0
        for at in range(0, len(keys), MANY):
            with self.env.begin() as transaction:
                found += len(transaction.cursor().getmulti(keys[at : at + MANY]))
        return found

    def scan(self) -> int:
        with self.env.begin() as transaction:
            count = 0
            for _ in transaction.cursor():
                count += 1
            return count

    def scan_keys(self) -> int:
        with self.env.begin() as transaction:
            return sum(1 for _ in transaction.cursor().iternext(values=False))


STORES: list[Any] = [Terrane, Plyvel, Lmdb]
ROWS = {
    "put": "put",
    "batch": f"batch of {MANY:,}",
    "get": "get",
    "many": f"get of {MANY:,} keys",
    "scan": "scan, items",
    "scan_keys": "scan, keys",
}


clock = time.perf_counter


def timed(call: Callable[[], Any]) -> float:
    begun = clock()
    call()
    return clock() - begun


def measure(store: Any, path: str, pairs: list[tuple[bytes, bytes]], reads: list[bytes]) -> dict[str, float]:
    """Returns the seconds of each row."""
    half = len(pairs) // 2
    db = store(path)
    try:
        seconds = {"put": timed(lambda: db.put(pairs[:half])) / half}
        seconds["batch"] = timed(lambda: db.batch(pairs[half:])) / (len(pairs) - half)
        seconds.update(measure_reads(db, len(pairs), reads))
        return seconds
    finally:
        db.close()


def measure_reads(db: Any, entries: int, reads: list[bytes]) -> dict[str, float]:
    """Returns the seconds of each row of reads, each after one that is not measured."""
    assert db.get(reads) == len(reads)
    seconds = {"get": timed(lambda: db.get(reads)) / len(reads)}
    assert db.many(reads) == len(reads)
    seconds["many"] = timed(lambda: db.many(reads)) / len(reads)
    assert db.scan() == entries
    seconds["scan"] = timed(db.scan) / entries
    seconds["scan_keys"] = timed(db.scan_keys) / entries
    return seconds


def installed(store: Any) -> bool:
    if store is Terrane:
        return True
    try:
        __import__(store.name)
    except ImportError:
        print(f"{store.name} is not installed and left out; pip install {store.name}", file=sys.stderr)
        return False
    return True


Results = dict[str, list[dict[str, float]]]


def in_turn(stores: list[Any], round: int) -> list[Any]:
    """Rounds alternate direction, so that a machine that slows down favours none."""
    return stores if round % 2 == 0 else stores[::-1]


def run_in_memtables(stores: list[Any], home: str, options: argparse.Namespace) -> Results:
    generator = random.Random(1)
    keys = [b"%016d" % number for number in range(options.entries)]
    generator.shuffle(keys)
    value = generator.randbytes(options.value_size)
    pairs = [(key, value) for key in keys]
    reads = generator.choices(keys, k=options.entries // MANY * MANY)
    results: Results = {store.name: [] for store in stores}
    for round in range(options.rounds):
        for store in in_turn(stores, round):
            path = os.path.join(home, store.name)
            results[store.name].append(measure(store, path, pairs, reads))
            shutil.rmtree(path)
    return results


def run_on_tables(stores: list[Any], home: str, options: argparse.Namespace) -> Results:
    generator = random.Random(1)
    keys = [b"%016d" % number for number in range(options.entries)]
    generator.shuffle(keys)
    opened = [store(os.path.join(home, store.name)) for store in stores]
    try:
        for at in range(0, len(keys), 100 * MANY):
            # Values that differ and cannot be compressed, so that all stores read as many bytes.
            pairs = [(key, generator.randbytes(options.value_size)) for key in keys[at : at + 100 * MANY]]
            for db in opened:
                db.batch(pairs)
        for db in opened:
            db.settle()
        results: Results = {store.name: [] for store in stores}
        for round in range(options.rounds):
            reads = generator.choices(keys, k=100 * MANY)
            for db in in_turn(opened, round):
                results[db.name].append(measure_reads(db, len(keys), reads))
        return results
    finally:
        for db in opened:
            db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", action="store_true", help="read data that is flushed and compacted")
    parser.add_argument("--entries", type=int, help="100,000, or 2,000,000 in tables")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument(
        "--cpu", action="store_true", help="processor time of the calling thread, for a machine that is busy"
    )
    options = parser.parse_args()
    if options.entries is None:
        options.entries = 2_000_000 if options.tables else 100_000
    global clock
    clock = time.thread_time if options.cpu else time.perf_counter
    stores = [store for store in STORES if installed(store)]
    home = tempfile.mkdtemp(prefix="terrane-python-")
    try:
        results = (run_on_tables if options.tables else run_in_memtables)(stores, home, options)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    where = ", compacted" if options.tables else ""
    print(
        f"{options.entries:,} entries of 16 + {options.value_size} bytes{where}, median of {options.rounds} rounds, "
        f"Python {platform.python_version()}, {os.cpu_count()} processors"
    )
    unit = "microseconds of the thread" if options.cpu else "microseconds"
    print(f"| {unit} an entry |" + "".join(f" {store.name} |" for store in stores)
          + "".join(f" {store.name} / terrane |" for store in stores[1:]))
    print("|---|" + "---:|" * (2 * len(stores) - 1))
    for row, title in ROWS.items():
        if row not in results[stores[0].name][0]:
            continue
        medians = [1e6 * statistics.median(one[row] for one in results[store.name]) for store in stores]
        ratios = "".join(f" {median / medians[0]:.2f} |" for median in medians[1:])
        print(f"| {title} |" + "".join(f" {median:.2f} |" for median in medians) + ratios)


if __name__ == "__main__":
    main()
