"""Serves S3 on a free port with moto, with an empty bucket, and prints the port."""

import logging
import threading

import boto3
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
boto3.client("s3", endpoint_url=f"http://{host}:{port}").create_bucket(Bucket="backups")
print(port, flush=True)
threading.Event().wait()
