"""Runs CPython's tests of `dbm` modules and of shelves on `terrane.dbm`.

`LEFT_OUT` are the tests of the file formats of other modules, with the reasons, which docs/python.md repeats.
"""

from __future__ import annotations

import dbm
import os
import pickle
import unittest
from typing import Any

from test import mapping_tests, test_dbm, test_dbm_dumb, test_shelve

import terrane.dbm

LEFT_OUT = {
    "test_anydbm_creation_n_file_exists_with_invalid_contents": "a database is a directory; a file is not removed",
    "test_dumbdbm_creation_mode": "the mode of files has no effect",
    "test_line_endings": "the format of dbm.dumb",
    "test_eval": "the format of dbm.dumb",
    "test_missing_data": "raises dbm.error, which is an OSError but no FileNotFoundError",
    "test_missing_index": "the format of dbm.dumb",
    "test_nonascii_filename": "looks for the files of dbm.dumb",
    "test_readonly_files": "changes the modes of the files of dbm.dumb",
    "test_check_closed": "calls iterkeys, which only dbm.dumb has",
}

_whichdb = dbm.whichdb


def whichdb(path: Any) -> Any:
    """Finds out the module that made a database, Terrane's included."""
    return terrane.dbm.whichdb(path) or _whichdb(path)


def setUpModule() -> None:
    dbm.whichdb = whichdb
    dbm._modules["terrane.dbm"] = terrane.dbm


def tearDownModule() -> None:
    dbm.whichdb = _whichdb


def without(case: type) -> type:
    """Skips the tests that are left out."""
    for name, reason in LEFT_OUT.items():
        if hasattr(case, name):
            setattr(case, name, unittest.skip(reason)(lambda self: None))
    return case


@without
class TestAnyDbm(test_dbm.AnyDBMTestCase, unittest.TestCase):
    module = terrane.dbm


@without
class TestLikeDumb(test_dbm_dumb.DumbDBMTestCase):
    def setUp(self) -> None:
        self.addCleanup(setattr, test_dbm_dumb, "dumbdbm", test_dbm_dumb.dumbdbm)
        # Opens for writing by default, as that module does.
        test_dbm_dumb.dumbdbm = _Writable
        self._dict = dict(self._dict)

    def tearDown(self) -> None:
        from test.support import os_helper

        os_helper.rmtree(test_dbm_dumb._fname) if os.path.exists(test_dbm_dumb._fname) else None


class _Writable:
    """`terrane.dbm` with the default flag of `dbm.dumb`."""

    error = terrane.dbm.error

    @staticmethod
    def open(path: Any, flag: Any = "c", mode: int = 0o666) -> Any:
        return terrane.dbm.open(path, flag, mode)


def _shelves() -> dict[str, type]:
    cases = {}
    for protocol in (0, pickle.HIGHEST_PROTOCOL):
        bases = (test_shelve.TestShelveFileBase, mapping_tests.BasicTestMappingProtocol)
        members = {"dbm_mod": terrane.dbm, "_args": {"protocol": protocol}, "__module__": __name__}
        cases[f"TestShelf{protocol}"] = type(f"TestShelf{protocol}", bases, members)
    return cases


globals().update(_shelves())
