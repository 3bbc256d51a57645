"""Asks a Prometheus for the state of all rules, and for every query of the dashboard."""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER, DASHBOARD = sys.argv[1:]
# Two scrapes are the least that a rate needs.
DEADLINE = time.monotonic() + 60
# What a fresh database has no sample of: nothing was stalled, and nothing was written.
QUIET = {"terrane_current_stall_seconds"}


def get(path: str) -> dict:
    with urllib.request.urlopen(SERVER + path, timeout=10) as answer:
        return json.load(answer)["data"]


def wait(what: str, is_done) -> None:
    while True:
        try:
            if is_done():
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        if time.monotonic() > DEADLINE:
            sys.exit(f"FAIL  {what}")
        time.sleep(0.5)


def answer(query: str) -> list:
    return get("/api/v1/query?" + urllib.parse.urlencode({"query": query}))["result"]


def rules() -> list:
    return [rule for group in get("/api/v1/rules")["groups"] for rule in group["rules"]]


wait("the server is scraped", lambda: len(answer("rate(terrane_writes_total[30s])")) > 0)
wait("all rules are evaluated", lambda: all(rule["health"] != "unknown" for rule in rules()))
failed = [f"{rule['name']}: {rule['lastError']}" for rule in rules() if rule["health"] != "ok"]
firing = [rule["name"] for rule in rules() if rule["state"] == "firing"]
queries = [
    target["expr"].replace("$instance", ".*")
    for panel in json.load(open(DASHBOARD))["panels"]
    for target in panel["targets"]
]
for query in queries:
    try:
        is_quiet = any(name in query for name in QUIET)
        if not answer(query) and not is_quiet:
            failed.append(f"no answer: {query}")
    except urllib.error.HTTPError as error:
        failed.append(f"{query}: {error.read().decode()}")
if firing:
    failed.append(f"firing in an idle database: {firing}")
passed = len(rules()) + len(queries) + 1 - len(failed)
for failure in failed:
    print(f"FAIL  {failure}")
print(f"{passed} passed, {len(failed)} failed")
sys.exit(1 if failed else 0)
