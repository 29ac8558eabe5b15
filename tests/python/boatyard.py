"""A kopf operator: it handles creation, update and deletion of boats."""

import kopf
from conftest import GROUP
from kubernetes import client, config


@kopf.on.startup()
def start(settings, **_):
    config.load_kube_config()
    settings.posting.reporting_component = "boatyard"
    # The test checks every step, so events must not be batched.
    settings.queueing.idle_timeout = 0.5


@kopf.on.create(GROUP, "v1", "boats")
def launch(body, spec, name, namespace, retry, **_):
    """Fails once, so that progress is stored in the object; then creates the cargo of the boat."""
    if retry == 0:
        raise kopf.TemporaryError("the tide is out", delay=0.1)
    cargo = {"metadata": {"name": f"cargo-of-{name}"}, "data": {"length": str(spec["length"])}}
    kopf.adopt(cargo)
    client.CoreV1Api().create_namespaced_config_map(namespace, cargo)
    kopf.info(body, reason="Launched", message=f"{name} floats")
    return {"retries": retry}


@kopf.on.update(GROUP, "v1", "boats", field="spec.sails")
def trim(old, new, patch, **_):
    patch.status["trim"] = f"{old} to {new}"


@kopf.timer(GROUP, "v1", "boats", interval=0.2)
def drift(status, patch, **_):
    patch.status["miles"] = status.get("miles", 0) + 1


@kopf.daemon(GROUP, "v1", "boats")
async def watch_keeping(stopped, patch, **_):
    patch.status["watch"] = "kept"
    await stopped.wait(1)


@kopf.on.delete(GROUP, "v1", "boats")
def sink(name, namespace, **_):
    wreck = {"metadata": {"name": f"wreck-of-{name}"}}
    client.CoreV1Api().create_namespaced_config_map(namespace, wreck)
