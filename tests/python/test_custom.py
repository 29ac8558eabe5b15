"""Custom kinds with the Python client's untyped API."""

import pytest
from conftest import GROUP, status_of
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException


def boat(name, **spec):
    return {"apiVersion": f"{GROUP}/v1", "kind": "Boat", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def yard(custom, boats, namespace):
    """The custom objects API with fixed group, version, namespace and plural."""

    class Yard:
        where = (GROUP, "v1", namespace, boats)

        def create(self, body):
            return custom.create_namespaced_custom_object(*self.where, body)

        def get(self, name):
            return custom.get_namespaced_custom_object(*self.where, name)

        def list(self, **options):
            return custom.list_namespaced_custom_object(*self.where, **options)

        def replace(self, name, body):
            return custom.replace_namespaced_custom_object(*self.where, name, body)

        def patch(self, name, body, kind="application/merge-patch+json", **options):
            return custom.patch_namespaced_custom_object(*self.where, name, body, _content_type=kind, **options)

        def delete(self, name):
            return custom.delete_namespaced_custom_object(*self.where, name)

    return Yard()


def test_a_custom_object_is_created_changed_and_deleted(yard):
    made = yard.create(boat("ketch", length=12))
    assert made["spec"] == {"length": 12, "sails": 2} and made["metadata"]["generation"] == 1
    made["spec"]["crew"] = ["ann"]
    changed = yard.replace("ketch", made)
    assert changed["metadata"]["generation"] == 2
    assert yard.get("ketch")["spec"]["crew"] == ["ann"]
    assert yard.delete("ketch")["status"] == "Success"
    assert status_of(yard.get, "ketch") == 404


def test_a_schema_is_enforced(yard):
    for spec in [{}, {"length": 0}, {"length": "long"}]:
        with pytest.raises(ApiException) as caught:
            yard.create(boat("wrong", **spec))
        assert caught.value.status == 422 and "spec" in caught.value.body


def test_unknown_fields_are_pruned(yard):
    assert "anchor" not in yard.create(boat("sloop", length=7, anchor=True))["spec"]


def test_custom_objects_are_patched(yard):
    yard.create(boat("patched", length=9, crew=["ann"]))
    yard.patch("patched", {"spec": {"sails": 3}})
    yard.patch("patched", [{"op": "add", "path": "/spec/crew/-", "value": "bob"}], "application/json-patch+json")
    applied = yard.patch(
        "patched", boat("patched", length=10), "application/apply-patch+yaml", field_manager="python", force=True
    )
    assert applied["spec"] == {"length": 10, "sails": 3, "crew": ["ann", "bob"]}
    refused = status_of(yard.patch, "patched", {"spec": {}}, "application/strategic-merge-patch+json")
    assert refused == 415


def test_status_is_a_subresource(custom, yard):
    yard.create({**boat("afloat", length=5), "status": {"sails": 9}})
    assert "status" not in yard.get("afloat")
    patched = custom.patch_namespaced_custom_object_status(
        *yard.where, "afloat", {"status": {"sails": 1}, "spec": {"length": 99}}, _content_type="application/merge-patch+json"
    )
    assert patched["status"] == {"sails": 1} and patched["spec"]["length"] == 5
    assert patched["metadata"]["generation"] == 1


def test_scale_is_read_and_written(custom, yard):
    yard.create(boat("scaled", length=5))
    scale = custom.get_namespaced_custom_object_scale(*yard.where, "scaled")
    assert scale["kind"] == "Scale" and scale["spec"]["replicas"] == 2
    custom.patch_namespaced_custom_object_scale(
        *yard.where, "scaled", {"spec": {"replicas": 4}}, _content_type="application/merge-patch+json"
    )
    assert yard.get("scaled")["spec"]["sails"] == 4


def test_custom_objects_are_selected_and_paged(yard):
    for at in range(7):
        made = boat(f"fleet-{at}", length=1 + at % 2)
        made["metadata"]["labels"] = {"odd": str(at % 2)}
        yard.create(made)
    assert len(yard.list(label_selector="odd=1")["items"]) == 3
    assert len(yard.list(field_selector="spec.length=1")["items"]) == 4
    seen, token = [], None
    while True:
        page = yard.list(limit=3, _continue=token) if token else yard.list(limit=3)
        seen += [found["metadata"]["name"] for found in page["items"]]
        token = page["metadata"].get("continue")
        if not token:
            break
    assert seen == [f"fleet-{at}" for at in range(7)]


def test_custom_objects_are_watched(custom, yard):
    before = yard.list()["metadata"]["resourceVersion"]
    yard.create(boat("watched", length=3))
    yard.patch("watched", {"spec": {"length": 4}})
    yard.delete("watched")
    stream, seen = watch.Watch(), []
    for event in stream.stream(
        custom.list_namespaced_custom_object, *yard.where, resource_version=before, timeout_seconds=120
    ):
        seen.append((event["type"], event["object"]["spec"]["length"]))
        if len(seen) == 3:
            stream.stop()
    assert seen == [("ADDED", 3), ("MODIFIED", 4), ("DELETED", 4)]


def test_a_definition_is_reported_by_discovery(boats):
    found = client.CustomObjectsApi().get_api_resources(GROUP, "v1").resources
    assert {resource.name for resource in found} == {boats, f"{boats}/status", f"{boats}/scale"}
