"""Prints numbered entries of 1.2 KB for `terrane load`: many at first, then a thousand a second or so, until a file
exists."""

import base64
import os
import sys
import time

stop = sys.argv[1]
number = 0
while not os.path.exists(stop):
    for _ in range(20 if number else 12_000):
        print(f"{number:08}\t{base64.b64encode(os.urandom(900)).decode()}")
        number += 1
    sys.stdout.flush()
    time.sleep(0.02)
