"""Compares the package with plyvel (LevelDB) and lmdb: `python benchmarks/compare.py`.

All three store the same keys and values, in directories below TMPDIR, and none syncs. Rounds alternate between the
stores, and a figure is the median of the rounds. A store whose package is not installed is left out with a note.

    pip install plyvel lmdb
    python benchmarks/compare.py [--entries N] [--rounds N] [--value-size BYTES]
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

        self.db = plyvel.DB(path, create_if_missing=True, write_buffer_size=64 << 20, bloom_filter_bits=10)
        self.close = self.db.close

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
        assert db.get(reads) == len(reads)
        seconds["get"] = timed(lambda: db.get(reads)) / len(reads)
        assert db.many(reads) == len(reads)
        seconds["many"] = timed(lambda: db.many(reads)) / len(reads)
        assert db.scan() == len(pairs)
        seconds["scan"] = timed(db.scan) / len(pairs)
        seconds["scan_keys"] = timed(db.scan_keys) / len(pairs)
        return seconds
    finally:
        db.close()


def installed(store: Any) -> bool:
    if store is Terrane:
        return True
    try:
        __import__(store.name)
    except ImportError:
        print(f"{store.name} is not installed and left out; pip install {store.name}", file=sys.stderr)
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--value-size", type=int, default=100)
    parser.add_argument(
        "--cpu", action="store_true", help="processor time of the calling thread, for a machine that is busy"
    )
    options = parser.parse_args()
    global clock
    clock = time.thread_time if options.cpu else time.perf_counter
    generator = random.Random(1)
    keys = [b"%016d" % number for number in range(options.entries)]
    generator.shuffle(keys)
    value = generator.randbytes(options.value_size)
    pairs = [(key, value) for key in keys]
    reads = generator.choices(keys, k=options.entries // MANY * MANY)
    stores = [store for store in STORES if installed(store)]
    results: dict[str, list[dict[str, float]]] = {store.name: [] for store in stores}
    home = tempfile.mkdtemp(prefix="terrane-python-")
    try:
        for round in range(options.rounds):
            # Rounds alternate direction, so that a machine that slows down favours none.
            for store in stores if round % 2 == 0 else stores[::-1]:
                path = os.path.join(home, store.name)
                results[store.name].append(measure(store, path, pairs, reads))
                shutil.rmtree(path)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(
        f"{options.entries:,} entries of 16 + {options.value_size} bytes, median of {options.rounds} rounds, "
        f"Python {platform.python_version()}, {os.cpu_count()} processors"
    )
    unit = "microseconds of the thread" if options.cpu else "microseconds"
    print(f"| {unit} an entry |" + "".join(f" {store.name} |" for store in stores)
          + "".join(f" {store.name} / terrane |" for store in stores[1:]))
    print("|---|" + "---:|" * (2 * len(stores) - 1))
    for row, title in ROWS.items():
        medians = [1e6 * statistics.median(one[row] for one in results[store.name]) for store in stores]
        ratios = "".join(f" {median / medians[0]:.2f} |" for median in medians[1:])
        print(f"| {title} |" + "".join(f" {median:.2f} |" for median in medians) + ratios)


if __name__ == "__main__":
    main()
