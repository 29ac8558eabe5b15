"""Measures examples/smallest and k8s.io/sample-apiserver in one run and prints a table, then a line with `* ` per row.

smallest.py FOLDER ROOT SAMPLE-APISERVER ITS-SOURCE ETCD     FOLDER has smallest-dist, smallest-small, tls.crt, tls.key, tokens and data of a Bareboat
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import time

WARM_UP, REQUESTS = 500, 5000
STARTS = 15


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def lines(folder, ends, generated):
    """Lines that are neither blank nor comment, without tests; with or without generated code."""
    count = 0
    for path in sorted(pathlib.Path(folder).rglob("*" + ends)):
        text = path.read_text()
        if "_test.go" in path.name or "hack" in path.parts or (not generated and "DO NOT EDIT" in text[:1000]):
            continue
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        count += sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))
    return count


class Running:
    """A server process, and how it is asked."""

    def __init__(self, command, port, collection, new, headers, client=None):
        self.port, self.collection, self.headers = port, collection, headers
        self.path = f"{collection}/{new['metadata']['name']}"
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        if client:
            self.tls.load_cert_chain(*client)
        log = open(folder / "server.log", "ab")
        begun, self.listening = time.perf_counter(), None
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        # Ready: it answers a request that needs a user with rights.
        while self.status() != 200:
            assert self.process.poll() is None, (folder / "server.log").read_text()[-3000:]
            assert time.perf_counter() - begun < 120, "it does not answer"
        self.ready = (time.perf_counter() - begun) * 1e3
        self.listening = (self.listening - begun) * 1e3
        self.new = json.dumps(new)

    def status(self):
        try:
            # A plain connection first: a refused one costs little.
            socket.create_connection(("127.0.0.1", self.port), timeout=30).close()
            self.listening = self.listening or time.perf_counter()
            return self.ask(self.connection(), "GET", self.collection)
        except OSError:
            time.sleep(0.0002)
            return None

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=30)

    def ask(self, link, method, path, body=None):
        headers = self.headers | ({"Content-Type": "application/json"} if body else {})
        link.request(method, path, body, headers)
        answer = link.getresponse()
        answer.read()
        return answer.status

    def cpu(self):
        """Nanoseconds of CPU time of all threads."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def measure(self):
        """Returns the idle memory in MiB, and microseconds of CPU per GET."""
        time.sleep(5)
        idle = self.memory()
        link = self.connection()
        assert self.ask(link, "POST", self.collection, self.new) in (200, 201, 409)
        for _ in range(WARM_UP):
            assert self.ask(link, "GET", self.path) == 200
        before = self.cpu()
        for _ in range(REQUESTS):
            self.ask(link, "GET", self.path)
        return idle, (self.cpu() - before) / REQUESTS / 1e3

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def ours(profile):
    port = free_port()
    command = [folder / f"smallest-{profile}", folder / "tls.crt", folder / "tls.key", folder / "tokens", f"127.0.0.1:{port}"]
    new = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "a"}, "spec": {"text": "ahoy"}}
    headers = {"Authorization": "Bearer secret"}
    return Running(command, port, "/apis/example.com/v1/namespaces/default/notes", new, headers)


def theirs():
    port = free_port()
    hub = folder / "data/admin.kubeconfig"
    command = [program, f"--secure-port={port}", f"--etcd-servers={etcd}", f"--kubeconfig={hub}", f"--tls-cert-file={folder}/tls.crt"]
    command += [f"--authentication-kubeconfig={hub}", f"--authorization-kubeconfig={hub}", f"--tls-private-key-file={folder}/tls.key"]
    new = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}, "spec": {}}
    proxy = [folder / "data/certificates/front-proxy-client.crt", folder / "data/certificates/front-proxy-client.key"]
    headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    return Running(command, port, "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders", new, headers, proxy)


def measured(make, starts):
    listening, ready = [], []
    for _ in range(starts):
        server = make()
        listening.append(server.listening)
        ready.append(server.ready)
        server.stop()
    server = make()
    idle, cpu = server.measure()
    server.stop()
    return statistics.median(listening), statistics.median(ready), idle, cpu


folder, root, program, sample = (pathlib.Path(word) for word in sys.argv[1:5])
etcd = sys.argv[5]
own = {profile: measured(lambda: ours(profile), STARTS) for profile in ("dist", "small")}
their_listening, their_ready, their_idle, their_cpu = measured(theirs, 3)
written = lines(root / "examples/smallest/src", ".rs", True)
sizes = {profile: (folder / f"smallest-{profile}").stat().st_size / 1e6 for profile in own}
# Name, unit, the other server, ours with the profiles dist and small.
rows = [
    ("lines by hand", "", lines(sample, ".go", False), written, written),
    ("lines with generated ones", "", lines(sample, ".go", True), written, written),
    ("binary, stripped", "MB", program.stat().st_size / 1e6, sizes["dist"], sizes["small"]),
    ("start to listening", "ms", their_listening, own["dist"][0], own["small"][0]),
    ("start to first answer, with a client's TLS handshake", "ms", their_ready, own["dist"][1], own["small"][1]),
    ("memory, idle", "MiB", their_idle, own["dist"][2], own["small"][2]),
    ("CPU of a GET", "µs", their_cpu, own["dist"][3], own["small"][3]),
]
number = lambda value: f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
print("| | sample-apiserver | smallest, `dist` | ratio | smallest, `small` | ratio |\n|---|---|---|---|---|---|")
for name, unit, other, *ours in rows:
    cells = [f"{number(value)} {unit} | {other / value:.0f}×" for value in ours]
    print(f"| {name} | {number(other)} {unit} | {' | '.join(cells)} |".replace("  ", " "))
for name, unit, other, dist, small in rows:
    print(f"* {name}: {number(dist)} and {number(small)} {unit} against {number(other)} {unit}".replace("  ", " ").rstrip())
