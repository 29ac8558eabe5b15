#!/usr/bin/env bash
# The smallest server made with the library against k8s.io/sample-apiserver, in one run: lines, binary, start, memory, CPU of a GET.
#
#   scripts/systems/smallest.sh [--no-build]
#
# It needs the peers sample-apiserver and etcd (scripts/peers.sh kubernetes), openssl and Python 3, and builds examples/smallest with the
# profile dist, and bareboat with the profile dev: sample-apiserver needs a server to ask about users and rights. A quiet machine helps.
# Exit codes: 0 measured, 1 something failed.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
if [ "${1:-}" != --no-build ]; then
    cargo build --profile dist --package smallest
    cargo build --package bareboat-cli
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp target/dist/smallest "$work/smallest" && strip "$work/smallest"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=smallest \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/tls.key" -out "$work/tls.crt" 2>/dev/null
printf 'secret,admin,1,"system:masters"\n' >"$work/tokens"
export GOFLAGS="${GOFLAGS:-} -mod=mod"
sample=$(cd tests/peers/kubernetes && go list -m -f '{{.Dir}}' k8s.io/sample-apiserver 2>/dev/null || true)
python3 - "$work" "$root" "${BAREBOAT_PEERS:-$root/.cache/peers}" "$sample" <<'PYTHON'
import http.client, json, os, pathlib, re, socket, ssl, statistics, subprocess, sys, time

work, root, peers, sample = (pathlib.Path(word) for word in sys.argv[1:5])
TICK = os.sysconf("SC_CLK_TCK")
REQUESTS = 3000


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def lines(folder, ends):
    """Lines that are neither blank nor comment, without tests and generated code."""
    count = 0
    for path in sorted(pathlib.Path(folder).rglob("*" + ends)):
        if "_test.go" in path.name or "zz_generated" in path.name or "/generated/" in str(path):
            continue
        count += sum(1 for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("//"))
    return count


class Running:
    """A server process and how it is asked."""

    def __init__(self, command, port, path, headers, client=None):
        self.port, self.path, self.headers = port, path, headers
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        if client:
            self.tls.load_cert_chain(*client)
        started = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(work / "server.log", "a"))
        while True:
            try:
                if self.get() == 200:
                    break
            except OSError:
                pass
            assert self.process.poll() is None, (work / "server.log").read_text()[-3000:]
            assert time.perf_counter() - started < 120, "it does not answer"
            time.sleep(0.0005)
        self.ready = time.perf_counter() - started

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=30)

    def get(self, on=None):
        link = on or self.connection()
        link.request("GET", self.path, headers=self.headers)
        answer = link.getresponse()
        answer.read()
        if not on:
            link.close()
        return answer.status

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def measure(self):
        time.sleep(3)
        idle = self.memory()
        link = self.connection()
        for _ in range(200):
            self.get(link)
        before = self.cpu()
        for _ in range(REQUESTS):
            assert self.get(link) == 200
        return idle, (self.cpu() - before) / REQUESTS * 1e6

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ours():
    port = free_port()
    command = [work / "smallest", work / "tls.crt", work / "tls.key", work / "tokens", f"127.0.0.1:{port}"]
    return Running(command, port, "/apis/example.com/v1/namespaces/default/notes", {"Authorization": "Bearer secret"})


starts = []
for _ in range(7):
    server = ours()
    starts.append(server.ready)
    server.stop()
server = ours()
idle, cpu = server.measure()
server.stop()
rows = {"lines of code": [lines(root / "examples/smallest/src", ".rs")]}
rows["binary, MB"] = [(work / "smallest").stat().st_size / 1e6]
rows["start to first answer, ms"] = [statistics.median(starts) * 1e3]
rows["memory when idle, MiB"] = [idle]
rows["CPU of a GET, µs"] = [cpu]

program = peers / "sample-apiserver"
if program.exists() and (peers / "etcd").exists():
    hub_port, etcd_port, peer_port, port = (free_port() for _ in range(4))
    hub = subprocess.Popen(
        [root / "target/debug/bareboat", "serve", "--in-memory", "--bind", f"127.0.0.1:{hub_port}", "--data-dir", work / "hub"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    etcd = subprocess.Popen(
        [peers / "etcd", "--data-dir", work / "etcd", "--listen-client-urls", f"http://127.0.0.1:{etcd_port}",
         "--advertise-client-urls", f"http://127.0.0.1:{etcd_port}", "--listen-peer-urls", f"http://127.0.0.1:{peer_port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kubeconfig = work / "hub/admin.kubeconfig"
    while not kubeconfig.exists():
        time.sleep(0.1)
    time.sleep(2)
    flags = [program, f"--secure-port={port}", f"--etcd-servers=http://127.0.0.1:{etcd_port}", f"--kubeconfig={kubeconfig}",
             f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}", f"--tls-cert-file={work}/tls.crt",
             f"--tls-private-key-file={work}/tls.key"]
    proxy = [work / "hub/certificates/front-proxy-client.crt", work / "hub/certificates/front-proxy-client.key"]
    headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    try:
        theirs = Running(flags, port, "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders", headers, proxy)
        idle, cpu = theirs.measure()
        rows["start to first answer, ms"].append(theirs.ready * 1e3)
        rows["memory when idle, MiB"].append(idle)
        rows["CPU of a GET, µs"].append(cpu)
        rows["binary, MB"].append(program.stat().st_size / 1e6)
        rows["lines of code"].append(lines(sample, ".go") if sample.is_dir() and str(sample) != "." else 0)
        theirs.stop()
    finally:
        etcd.terminate()
        hub.terminate()
        etcd.wait()
        hub.wait()

print(f"{'':28} {'smallest':>12} {'sample-apiserver':>18} {'ratio':>8}")
for name, values in rows.items():
    ours_, theirs_ = values[0], values[1] if len(values) > 1 else None
    text = f"{theirs_:18.1f} {theirs_ / ours_:7.1f}×" if theirs_ else f"{'not measured':>18}"
    print(f"{name:28} {ours_:12.1f} {text}")
PYTHON
