"""A process with little memory reads more data than it may allocate, with default options."""

import subprocess
import sys

import pytest

PROGRAM = """
import random, resource, sys
import terrane

resource.setrlimit(resource.RLIMIT_DATA, (192 << 20, 192 << 20))
numbers = range(220_000)
value = random.Random(1).randbytes(1000)
with terrane.open(sys.argv[1]) as db:
    assert 0 < db.stats().memory_budget_bytes < 128 << 20
    for number in numbers:
        db[b"%08d" % number] = value
    assert sum(len(found) for found in db.values()) == 1000 * len(numbers)
    assert all(db[b"%08d" % number] == value for number in numbers[::11])
    assert db.get_many([b"%08d" % number for number in numbers[::99]]) == [value] * len(numbers[::99])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count all allocations")
def test_data_above_the_memory_limit_of_the_process(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
