"""Types a line at the serial console of a machine and prints the answer: python3 console.py MACHINE LINE [GROUP]

GROUP is kubevirt.io, whose definition declares the console, or subresources.kubevirt.io, which an APIService leads to. A WebSocket client with nothing but the standard library, for where virtctl is not installed. It uses the kubeconfig of kubectl.
"""

import base64
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
from urllib.parse import urlparse

PATH = "/apis/%s/v1/namespaces/default/virtualmachineinstances/%s/console"


def connect():
    """Returns a TLS connection to the server, with the client certificate of the kubeconfig."""
    view = ["kubectl", "config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
    config = json.loads(subprocess.check_output(view))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    pem = lambda text: base64.b64decode(text).decode()
    context = ssl.create_default_context(cadata=pem(cluster["certificate-authority-data"]))
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(pem(user["client-certificate-data"]) + pem(user["client-key-data"]))
        file.flush()
        context.load_cert_chain(file.name)
    server = urlparse(cluster["server"])
    connection = socket.create_connection((server.hostname, server.port), timeout=30)
    return context.wrap_socket(connection, server_hostname=server.hostname), server.netloc


def main(machine, line, group="kubevirt.io"):
    connection, host = connect()
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET {PATH % (group, machine)} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: plain.kubevirt.io\r\n\r\n"
    )
    connection.sendall(head.encode())
    stream = connection.makefile("rb")
    status = stream.readline().decode()
    if " 101 " not in status:
        sys.exit(f"the console was refused: {status}")
    while stream.readline().strip():
        pass
    # One binary frame; those of clients are masked.
    payload, mask = (line + "\r").encode(), os.urandom(4)
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    connection.sendall(struct.pack("!BB", 0x82, 0x80 | len(payload)) + mask + masked)
    _, length = struct.unpack("!BB", stream.read(2))
    print(stream.read(length).decode(), end="")
    connection.sendall(struct.pack("!BB", 0x88, 0x80) + mask)


if __name__ == "__main__":
    main(*sys.argv[1:])
