"""An API server and the operator for all tests. BAREBOAT names the program `bareboat` if it is not in PATH."""

import os
import pathlib
import subprocess
import sys
import time

import pytest
from kubernetes import client, config, utils

ROOT = pathlib.Path(__file__).resolve().parent.parent


def wait(condition, within=120.0):
    """Waits until a condition holds and returns it."""
    deadline = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not so within {within} s"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def eventually():
    return wait


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Starts an API server in memory with the definitions of manifests/; returns the path of its kubeconfig."""
    data = tmp_path_factory.mktemp("server")
    kubeconfig = data / "admin.kubeconfig"
    command = [os.environ.get("BAREBOAT", "bareboat"), "serve", "--in-memory", "--bind", "127.0.0.1:0", "--data-dir", str(data)]
    with subprocess.Popen(command) as process:
        try:
            wait(lambda: kubeconfig.exists() and ready(kubeconfig))
            for manifest in sorted((ROOT / "manifests").glob("definition*.yaml")):
                utils.create_from_yaml(client.ApiClient(), str(manifest))
            yield kubeconfig
        finally:
            process.terminate()
            process.wait()


def ready(kubeconfig):
    try:
        config.load_kube_config(str(kubeconfig))
        client.VersionApi().get_code()
        return True
    except Exception:
        return False


@pytest.fixture(scope="session")
def operator(server, tmp_path_factory):
    """Runs the operator; stops it with SIGTERM."""
    log = tmp_path_factory.mktemp("operator") / "log"
    modules = sorted(str(path) for path in (ROOT / "src").glob("*_operator.py"))
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", *modules]
    environment = {**os.environ, "KUBECONFIG": str(server), "PYTHONPATH": str(ROOT / "src")}
    # A file: a full pipe that is not read would block the operator.
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr, env=environment) as process:
        yield process
        process.terminate()
        process.wait()
    assert process.returncode == 0, log.read_text()
