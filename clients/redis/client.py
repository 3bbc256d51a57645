"""Uses the server as a program with redis-py does."""

import sys
import threading
import time

import redis

port = int(sys.argv[1])
for protocol in (2, 3):
    client = redis.Redis(port=port, db=1, protocol=protocol, decode_responses=True)
    client.flushdb()
    assert client.set("a", "1", ex=100) and client.ttl("a") == 100
    assert client.incr("a") == 2 and client.ttl("a") == 100
    assert client.mget("a", "b") == ["2", None]
    assert client.set("a", "x", nx=True) is None
    assert client.getex("a", persist=True) == "2" and client.ttl("a") == -1
    assert client.dbsize() == 1 and client.type("a") == "string"
    assert client.info()["redis_version"] == "7.2.0" and "db0_design" in client.info("terrane")
    assert client.config_get("save") == {"save": ""}
    assert client.client_info()["db"] == 1 and client.client_id() > 0
    with client.pipeline(transaction=True) as pipe:
        pipe.set("b", 1).incr("b").get("b")
        assert pipe.execute() == [True, 2, "2"]
    with client.pipeline(transaction=False) as pipe:
        for number in range(3000):
            pipe.set(f"key:{number}", number)
        assert all(pipe.execute())
    assert len(set(client.scan_iter(match="key:*", count=100))) == 3000

    def add(pipe):
        value = int(pipe.get("counter") or 0)
        pipe.multi()
        pipe.set("counter", value + 1)

    def work():
        own = redis.Redis(port=port, db=1, protocol=protocol)
        for _ in range(50):
            own.transaction(add, "counter")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("counter") == "200"
    subscriber = client.pubsub(ignore_subscribe_messages=True)
    subscriber.subscribe("channel")
    subscriber.psubscribe("chan*")
    while client.pubsub_numsub("channel")[0][1] == 0 or client.pubsub_numpat() == 0:
        subscriber.get_message(timeout=0.1)
    assert client.publish("channel", "text") == 2
    received = []
    while len(received) < 2:
        message = subscriber.get_message(timeout=10)
        received += [message] if message else []
    assert {message["type"] for message in received} == {"message", "pmessage"}
    assert all(message["data"] == "text" for message in received)
    subscriber.close()
    client.set("soon", 1, px=20)
    time.sleep(0.05)
    assert client.get("soon") is None
    client.flushdb()
