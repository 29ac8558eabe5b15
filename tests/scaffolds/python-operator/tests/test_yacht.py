"""Tests of the operator against an API server in memory."""

import pytest
from kubernetes import client
from yacht_operator import text

KIND = ("fleet.example.org", "v1", "default", "yachts")


@pytest.fixture
def objects(operator):
    return client.CustomObjectsApi()


def made(name, spec):
    return {"apiVersion": "fleet.example.org/v1", "kind": "Yacht", "metadata": {"name": name}, "spec": spec}


def test_the_message_is_repeated():
    assert text({"message": "ahoy", "times": 2}) == "ahoy\nahoy"


def test_an_object_gets_a_config_map_and_a_status(objects, eventually):
    objects.create_namespaced_custom_object(*KIND, made("yacht-sample", {"message": "ahoy", "times": 2}))

    def ready():
        return objects.get_namespaced_custom_object(*KIND, "yacht-sample").get("status", {}).get("ready")

    eventually(ready)
    found = client.CoreV1Api().read_namespaced_config_map("yacht-sample", "default")
    assert found.data == {"text": "ahoy\nahoy"}

    # It goes with its owner.
    objects.delete_namespaced_custom_object(*KIND, "yacht-sample")

    def gone():
        names = [found.metadata.name for found in client.CoreV1Api().list_namespaced_config_map("default").items]
        return "yacht-sample" not in names

    eventually(gone)


def test_an_object_that_breaks_the_rules_is_refused(objects):
    with pytest.raises(client.ApiException) as refused:
        objects.create_namespaced_custom_object(*KIND, made("yacht-wrong", {"message": "ahoy", "times": 101}))
    assert refused.value.status == 422
