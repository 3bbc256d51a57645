"""What the tests share."""

from __future__ import annotations

import pathlib
import signal
from collections.abc import Iterator

import pytest

import terrane


# A shell starts background commands with SIGINT ignored, and Python then raises no KeyboardInterrupt. The tests that
# interrupt endless calls would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A path for a database."""
    return tmp_path / "db"


@pytest.fixture
def db(path: pathlib.Path) -> Iterator[terrane.Database]:
    """An open database that flushes early, so that tests read tables too."""
    with terrane.open(path, if_new={"memory_budget": "8MiB"}) as db:
        yield db
