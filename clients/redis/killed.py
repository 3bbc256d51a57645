"""Kills the server while clients write, and checks that every acknowledged write is in the database."""

import os
import signal
import subprocess
import sys
import threading
import time

import redis

port, server, terrane, db = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
acknowledged = [0] * 4


def work(number):
    client = redis.Redis(port=port)
    try:
        while True:
            with client.pipeline(transaction=number == 0) as pipe:
                first = acknowledged[number]
                for count in range(first + 1, first + 11):
                    pipe.set(f"{number}:{count}", count)
                pipe.execute()
            acknowledged[number] = first + 10
    except redis.exceptions.ConnectionError:
        pass


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
time.sleep(1.0)
os.kill(server, signal.SIGKILL)
for thread in threads:
    thread.join()
assert all(count > 0 for count in acknowledged), acknowledged
keys = subprocess.run([terrane, "shell", db, "-c", "keys .."], capture_output=True, check=True, text=True)
found = {line.strip().strip("'\"") for line in keys.stdout.splitlines()}
for number, count in enumerate(acknowledged):
    missing = [key for key in (f"{number}:{c}" for c in range(1, count + 1)) if key not in found]
    assert not missing, f"{len(missing)} of {count} acknowledged writes are missing: {missing[:5]}"
