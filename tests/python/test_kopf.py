"""Runs a kopf operator in its own process and checks its effects."""

import pathlib
import subprocess
import sys

import pytest
from conftest import GROUP, eventually
from kubernetes.client.exceptions import ApiException

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
# The first start of Python and its packages is slow on a busy machine.
PATIENCE = 180.0


@pytest.fixture
def operator(boats, namespace, tmp_path):
    """Runs the operator of boatyard.py in the namespace of the test; stops it with SIGTERM."""
    script = pathlib.Path(__file__).with_name("boatyard.py")
    command = [sys.executable, "-B", "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(script)]
    # Output goes to a file: a full pipe that is not read would block the operator.
    log = tmp_path / "operator.log"
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        yield process
        process.terminate()
        process.wait(timeout=PATIENCE)
    assert process.returncode == 0, log.read_text()


@pytest.fixture
def boat(custom, boats, namespace, operator):
    """Creates a boat, and reads and changes it while the operator runs."""

    class Boat:
        name = "ada"
        at = (GROUP, "v1", namespace, boats)

        def read(self):
            return custom.get_namespaced_custom_object(*self.at, self.name)

        def status(self, key):
            return self.read().get("status", {}).get(key)

        def patch(self, spec):
            custom.patch_namespaced_custom_object(*self.at, self.name, {"spec": spec})

        def delete(self):
            custom.delete_namespaced_custom_object(*self.at, self.name)

        def is_gone(self):
            return missing(self.read)

    custom.create_namespaced_custom_object(
        *Boat.at, {"apiVersion": f"{GROUP}/v1", "kind": "Boat", "metadata": {"name": Boat.name}, "spec": {"length": 9}}
    )
    return Boat()


def missing(read, *args):
    try:
        read(*args)
    except ApiException as refused:
        assert refused.status == 404
        return True
    return False


def test_an_operator_handles_an_object_from_creation_to_deletion(core, namespace, boat):
    # The handler that failed once was called again, and its result is in the status.
    assert eventually(lambda: boat.status("launch"), PATIENCE) == {"retries": 1}
    made = boat.read()
    assert made["metadata"]["finalizers"] == [FINALIZER]
    cargo = core.read_namespaced_config_map("cargo-of-ada", namespace)
    assert cargo.data == {"length": "9"}
    assert [owner.uid for owner in cargo.metadata.owner_references] == [made["metadata"]["uid"]]

    def launched():
        about = f"involvedObject.name=ada,involvedObject.uid={made['metadata']['uid']},reason=Launched"
        return core.list_namespaced_event(namespace, field_selector=about).items

    event = eventually(launched, PATIENCE)[0]
    assert (event.message, event.type, event.source.component) == ("ada floats", "Normal", "boatyard")

    boat.patch({"sails": 3})
    assert eventually(lambda: boat.status("trim"), PATIENCE) == "2 to 3"
    eventually(lambda: boat.status("watch") == "kept", PATIENCE)
    miles = boat.status("miles") or 0
    eventually(lambda: (boat.status("miles") or 0) >= miles + 2, PATIENCE)

    boat.delete()
    eventually(boat.is_gone, PATIENCE)
    assert core.read_namespaced_config_map("wreck-of-ada", namespace), "the handler of the deletion was called"
    eventually(lambda: missing(core.read_namespaced_config_map, "cargo-of-ada", namespace), PATIENCE)
