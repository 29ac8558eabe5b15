"""An operator for crews.fleet.example.org, with kopf."""

import kopf
from kubernetes import client, config

GROUP, VERSION, PLURAL = "fleet.example.org", "v1", "crews"


@kopf.on.startup()
def start(**_):
    config.load_config()


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL, field="spec")
@kopf.on.resume(GROUP, VERSION, PLURAL)
def keep(spec, name, namespace, meta, patch, **_):
    """Writes the ConfigMap of an object, and the object's status."""
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text(spec)}}
    kopf.adopt(wanted)
    core = client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, wanted)
    except client.ApiException as refused:
        if refused.status != 409:
            raise
        core.patch_namespaced_config_map(name, namespace, wanted)
    patch.status["ready"] = True
    patch.status["observedGeneration"] = meta["generation"]


def text(spec):
    """The message, repeated."""
    return "\n".join([spec["message"]] * spec.get("times", 1))
