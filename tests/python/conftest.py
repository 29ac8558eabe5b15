"""Shared fixtures of the Python client tests: clients, a namespace and a custom kind."""

import time
import uuid

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

GROUP = "python.bareboat.example"


@pytest.fixture(scope="session", autouse=True)
def server():
    """Reads KUBECONFIG once."""
    config.load_kube_config()


@pytest.fixture(scope="session")
def core():
    return client.CoreV1Api()


@pytest.fixture(scope="session")
def custom():
    return client.CustomObjectsApi()


@pytest.fixture
def namespace(core):
    """Creates a namespace for each test and deletes it afterwards."""
    name = f"python-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    yield name
    core.delete_namespace(name)


def eventually(condition, within=120.0):
    """Polls until the condition returns a true value, and returns it."""
    deadline = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not so within {within} s"
        time.sleep(0.02)


def status_of(call, *args, **kwargs):
    """Returns the HTTP status of a failed call."""
    with pytest.raises(ApiException) as caught:
        call(*args, **kwargs)
    return caught.value.status


@pytest.fixture(scope="session")
def boats():
    """Defines a custom kind with a schema, defaults, a status and a scale; returns its plural."""
    api = client.ApiextensionsV1Api()
    plural = "boats"
    name = f"{plural}.{GROUP}"
    spec = {
        "type": "object",
        "required": ["length"],
        "properties": {
            "length": {"type": "integer", "minimum": 1},
            "sails": {"type": "integer", "default": 2},
            "crew": {"type": "array", "items": {"type": "string"}},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": "boat", "kind": "Boat", "shortNames": ["bt"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.sails", "statusReplicasPath": ".status.sails"},
                    },
                    "selectableFields": [{"jsonPath": ".spec.length"}],
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
                    },
                }
            ],
        },
    }
    try:
        api.create_custom_resource_definition(definition)
    except ApiException as refused:
        if refused.status != 409:
            raise

    def established():
        conditions = api.read_custom_resource_definition(name).status.conditions or []
        return any(c.type == "Established" and c.status == "True" for c in conditions)

    def served():
        try:
            return client.CustomObjectsApi().list_cluster_custom_object(GROUP, "v1", plural)
        except ApiException as refused:
            assert refused.status == 404
            return None

    eventually(established)
    eventually(served)
    yield plural
    api.delete_custom_resource_definition(name)
