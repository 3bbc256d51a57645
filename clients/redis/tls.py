"""Uses the server over TLS as a program with redis-py does, with the certificates of the server's tests."""

import sys

import redis

port, files = int(sys.argv[1]), sys.argv[2]


def connect(authority="authority", certificate="client", **settings):
    own = {"ssl_certfile": f"{files}/{certificate}.pem", "ssl_keyfile": f"{files}/{certificate}.key"}
    return redis.Redis(
        host="localhost", port=port, ssl=True, ssl_ca_certs=f"{files}/{authority}.pem", **settings,
        **(own if certificate else {}),
    )


for protocol in (2, 3):
    client = connect(protocol=protocol)
    values = {f"tls:{number}": bytes([number]) * (number * 100_000) for number in range(50)}
    with client.pipeline(transaction=False) as pipe:
        for key, value in values.items():
            pipe.set(key, value)
        assert all(pipe.execute())
    with client.pipeline(transaction=False) as pipe:
        for key in values:
            pipe.get(key)
        assert pipe.execute() == list(values.values())
    assert client.delete(*values) == 50
    channel = client.pubsub()
    channel.subscribe("news")
    assert channel.get_message(timeout=5)["type"] == "subscribe"
    assert client.publish("news", "hello") == 1
    assert channel.get_message(timeout=5)["data"] == b"hello"

for wrong in ({"authority": "stranger"}, {"certificate": None}, {"certificate": "strange-client"}):
    try:
        connect(**wrong).ping()
    except redis.exceptions.ConnectionError:
        continue
    raise AssertionError(f"{wrong} is accepted")
