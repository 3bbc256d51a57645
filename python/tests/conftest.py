"""What the tests share."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

import terrane


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A path for a database."""
    return tmp_path / "db"


@pytest.fixture
def db(path: pathlib.Path) -> Iterator[terrane.Database]:
    """An open database that flushes early, so that tests read tables too."""
    with terrane.open(path, if_new={"memory_budget": "8MiB"}) as db:
        yield db
