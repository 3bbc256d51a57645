"""Threads and forks."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import terrane


def test_threads_use_one_database(db: terrane.Database) -> None:
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(500):
                key = b"%d-%04d" % (thread, number)
                db[key] = key
                assert db[key] == key
            assert list(db.keys(prefix=b"%d-" % thread)) == [b"%d-%04d" % (thread, n) for n in range(500)]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and db.count() == 3000


def test_threads_share_an_iterator_without_losing_entries(db: terrane.Database) -> None:
    db.put_many((b"%06d" % number, b"") for number in range(20_000))
    keys = db.keys()
    found: list[list[bytes]] = [[] for _ in range(4)]

    def work(number: int) -> None:
        found[number].extend(keys)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sum(found, [])) == list(db.keys())


def test_other_threads_run_while_the_database_works(db: terrane.Database) -> None:
    db.put_many((b"%07d" % number, bytes(50)) for number in range(200_000))
    done = threading.Event()
    ticks = 0

    def compact() -> None:
        db.compact()
        done.set()

    thread = threading.Thread(target=compact)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 3


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process on Windows")
def test_control_c_ends_a_compaction_that_would_last_long(db: terrane.Database) -> None:
    for _ in range(2):
        db.put_many((b"%07d" % number, os.urandom(100)) for number in range(60_000))
        db.flush()
    # Half a minute for the compaction.
    db.io_budget = "400KB/s"
    for call in (db.compact, db.wait_for_compactions):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        if call == db.wait_for_compactions:
            # A compaction that the wait has to wait for.
            db.design = "leveling T=2"
        with pytest.raises(KeyboardInterrupt):
            call()
        timer.join()
        assert time.monotonic() - begun < 10
    db.io_budget = "none"
    db.compact()
    assert db.tree().runs == 1 and db.count() == 60_000


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process on Windows")
def test_control_c_ends_a_flush_and_a_checkpoint_that_leaves_no_files(
    db: terrane.Database, tmp_path: pathlib.Path
) -> None:
    # Ten seconds for the flush, with which a checkpoint begins, too; it goes on in the background.
    db.io_budget = "400KB/s"
    db.put_many((b"%07d" % number, os.urandom(100)) for number in range(35_000))
    copy = tmp_path / "copy"
    for call in (db.flush, lambda: db.checkpoint(copy)):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            call()
        timer.join()
        assert time.monotonic() - begun < 5
    assert not copy.exists() or not any(copy.iterdir())
    db.io_budget = "none"
    db.checkpoint(copy)
    with terrane.open(copy, "r") as whole:
        assert whole.count() == 35_000


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process on Windows")
def test_control_c_ends_an_ingest_that_adds_nothing(db: terrane.Database, path: pathlib.Path) -> None:
    db.put(b"before", b"")
    db.flush()
    files = {file.name for file in path.rglob("*.sst")}
    # An iterator without an end that runs no Python code, which would look for signals itself.
    pairs = zip(map(b"%020d".__mod__, itertools.count()), itertools.repeat(os.urandom(100)), strict=False)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        db.ingest(pairs)
    timer.join()
    assert list(db.keys()) == [b"before"]
    assert files and {file.name for file in path.rglob("*.sst")} == files


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process on Windows")
def test_a_handler_of_signals_runs_during_a_compaction_without_ending_it(db: terrane.Database) -> None:
    handled: list[float] = []
    previous = signal.signal(signal.SIGINT, lambda *_: handled.append(time.monotonic()))
    try:
        for _ in range(2):
            db.put_many((b"%05d" % number, os.urandom(100)) for number in range(10_000))
            db.flush()
        db.io_budget = "1MB/s"
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        db.compact()
        ended = time.monotonic()
        timer.join()
        assert db.tree().runs == 1 and handled and handled[0] < ended
    finally:
        signal.signal(signal.SIGINT, previous)


def test_closing_while_threads_read_raises_in_them(db: terrane.Database) -> None:
    db.put_many((b"%05d" % number, b"x") for number in range(1000))
    outcomes: list[str] = []

    def read() -> None:
        try:
            while True:
                db.get(b"00001")
                list(db.keys(limit=100))
        except terrane.ClosedError:
            outcomes.append("closed")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    db.close()
    for thread in threads:
        thread.join(10)
    assert outcomes == ["closed"] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_cannot_harm_the_database(db: terrane.Database, path: pathlib.Path) -> None:
    db[b"a"] = b"1"
    held = [db.items(), db.snapshot(), db.transaction(), db.batch(), db.view(b"a")]
    child = os.fork()
    if child == 0:
        failures = 0
        for call in (
            lambda: db[b"a"],
            lambda: db.put(b"a", b"2"),
            lambda: next(held[0]),
            lambda: held[1].get(b"a"),
            lambda: held[2].commit(),
            lambda: held[3].put(b"a", b"2"),
            lambda: bytes(held[4]),
            lambda: db.close(),
        ):
            try:
                call()
                failures += 1
            except terrane.ForkedError:
                pass
        try:
            terrane.open(path)
            failures += 1
        except terrane.LockedError:
            pass
        held.clear()
        # A database of its own works in the child.
        with terrane.open(path.parent / "child") as own:
            own[b"b"] = b"2"
        os._exit(failures)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    db[b"a"] = b"3"
    with pytest.raises(terrane.LockedError):
        terrane.open(path)
    db.close()
    with terrane.open(path) as again:
        assert again[b"a"] == b"3"


def _write(path: str) -> None:
    with terrane.open(path) as db:
        db[b"from the child"] = b"1"


@pytest.mark.parametrize("method", [one for one in ("fork", "spawn") if one in multiprocessing.get_all_start_methods()])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_opens_what_the_parent_has_closed(path: pathlib.Path, method: str) -> None:
    with terrane.open(path) as db:
        db[b"a"] = b"1"
    process = multiprocessing.get_context(method).Process(target=_write, args=(str(path),))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    with terrane.open(path) as db:
        assert b"from the child" in db


def test_a_count_can_be_interrupted(path: pathlib.Path) -> None:
    import signal
    import subprocess

    code = (
        "import signal, sys, terrane\n"
        # A shell starts processes in the background with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "db = terrane.open(sys.argv[1])\n"
        "db.ingest((b'%08d' % n, b'') for n in range(300_000))\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True: db.count()\n"
        "except KeyboardInterrupt:\n"
        "    db.close(); print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n" and process.returncode == 0


def test_a_wait_for_changes_can_be_interrupted(path: pathlib.Path) -> None:
    import signal
    import subprocess

    code = (
        "import sys, time, terrane\n"
        "db = terrane.open(sys.argv[1], keep_changes='1MiB')\n"
        "begin = db.snapshot().sequence_number\n"
        "print('ready', flush=True)\n"
        "begun = time.monotonic()\n"
        "try:\n"
        "    list(db.changes(begin, timeout=20))\n"
        "except KeyboardInterrupt:\n"
        "    db.close(); print('interrupted' if time.monotonic() - begun < 10 else 'late')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n" and process.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_lock_ends_with_its_owner_although_a_worker_lives(path: pathlib.Path) -> None:
    program = f"""
import os, time, terrane
db = terrane.open({str(path)!r})
db[b"a"] = b"1"
worker = os.fork()
if worker:
    print(worker, flush=True)
time.sleep(600)
"""
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    worker = int(owner.stdout.readline())
    with pytest.raises(terrane.LockedError):
        terrane.open(path)
    owner.kill()
    owner.wait()
    try:
        with terrane.open(path) as db:
            assert db[b"a"] == b"1"
    finally:
        os.kill(worker, signal.SIGKILL)
        owner.stdout.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_daemon_opens_the_database_of_its_parent(path: pathlib.Path) -> None:
    program = f"""
import os, time, terrane
db = terrane.open({str(path)!r})
db[b"a"] = b"1"
if os.fork():
    os._exit(0)
try:
    db[b"a"]
    os._exit(1)
except terrane.ForkedError:
    pass
for _ in range(1000):
    try:
        db = terrane.open({str(path)!r})
        break
    except terrane.LockedError:
        time.sleep(0.01)
db[b"b"] = db[b"a"] + b"2"
db.close()
print("done", flush=True)
"""
    parent = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60)
    assert parent.stdout == b"done\n"
    with terrane.open(path) as db:
        assert db[b"b"] == b"12"
