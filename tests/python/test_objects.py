"""Built-in kinds with the typed API: create, read, change, select, page, delete, reject."""

import json
import uuid

import pytest
from conftest import eventually, status_of
from kubernetes import client
from kubernetes.client.exceptions import ApiException


def config_map(name, data=None, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data or {"key": "value"})


def test_a_configmap_is_created_changed_and_deleted(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("one"))
    assert made.metadata.uid and made.metadata.resource_version and made.metadata.creation_timestamp
    read = core.read_namespaced_config_map("one", namespace)
    assert read.data == {"key": "value"} and read.metadata.uid == made.metadata.uid

    read.data["more"] = "yes"
    changed = core.replace_namespaced_config_map("one", namespace, read)
    assert changed.data == {"key": "value", "more": "yes"}
    assert changed.metadata.resource_version != made.metadata.resource_version

    gone = core.delete_namespaced_config_map("one", namespace)
    assert gone["status"] == "Success" and gone["details"]["uid"] == made.metadata.uid
    assert status_of(core.read_namespaced_config_map, "one", namespace) == 404


def test_an_update_without_a_change_keeps_the_version(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("same"))
    again = core.patch_namespaced_config_map("same", namespace, {"data": {"key": "value"}})
    assert again.metadata.resource_version == made.metadata.resource_version


def test_a_dry_run_stores_nothing(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("dry"), dry_run="All")
    assert made.metadata.uid
    assert status_of(core.read_namespaced_config_map, "dry", namespace) == 404


def test_errors_have_their_class_and_a_status(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("taken"))
    cases = [
        (404, "NotFound", lambda: core.read_namespaced_config_map("missing", namespace)),
        (409, "AlreadyExists", lambda: core.create_namespaced_config_map(namespace, config_map("taken"))),
        (422, "Invalid", lambda: core.create_namespaced_config_map(namespace, config_map("Not_A_Name"))),
        (404, "NotFound", lambda: core.create_namespaced_config_map("no-such-namespace", config_map("one"))),
    ]
    for code, reason, call in cases:
        with pytest.raises(ApiException) as caught:
            call()
        body = json.loads(caught.value.body)
        assert (caught.value.status, body["kind"], body["code"], body["reason"]) == (code, "Status", code, reason)


def test_an_update_of_an_old_version_conflicts(core, namespace):
    old = core.create_namespaced_config_map(namespace, config_map("raced"))
    core.patch_namespaced_config_map("raced", namespace, {"data": {"first": "yes"}})
    old.data["second"] = "yes"
    assert status_of(core.replace_namespaced_config_map, "raced", namespace, old) == 409


def test_all_patch_types_are_accepted(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("patched", {"a": "1", "b": "2"}))
    patches = [
        ("application/json-patch+json", [{"op": "add", "path": "/data/json", "value": "yes"}]),
        ("application/merge-patch+json", {"data": {"a": None, "merge": "yes"}}),
        ("application/strategic-merge-patch+json", {"data": {"strategic": "yes"}}),
    ]
    for kind, body in patches:
        core.patch_namespaced_config_map("patched", namespace, body, _content_type=kind)
    applied = core.patch_namespaced_config_map(
        "patched",
        namespace,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}, "data": {"applied": "yes"}},
        field_manager="python",
        _content_type="application/apply-patch+yaml",
    )
    assert applied.data == {"b": "2", "json": "yes", "merge": "yes", "strategic": "yes", "applied": "yes"}
    managers = {entry.manager: entry.operation for entry in applied.metadata.managed_fields}
    assert managers["python"] == "Apply"


def test_an_applied_field_of_another_manager_conflicts(core, namespace):
    def apply(manager, value, force=None):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"key": value}}
        return core.patch_namespaced_config_map(
            "shared", namespace, body, field_manager=manager, force=force, _content_type="application/apply-patch+yaml"
        )

    apply("first", "1")
    assert status_of(apply, "second", "2") == 409
    assert apply("second", "2", force=True).data == {"key": "2"}


def test_lists_are_filtered_by_selectors(core, namespace):
    for name, tier in [("a", "front"), ("b", "back"), ("c", "back")]:
        core.create_namespaced_config_map(namespace, config_map(name, labels={"tier": tier}))

    def names(**selectors):
        found = core.list_namespaced_config_map(namespace, **selectors)
        return sorted(o.metadata.name for o in found.items if o.metadata.name != "kube-root-ca.crt")

    assert names(label_selector="tier=back") == ["b", "c"]
    assert names(label_selector="tier!=back") == ["a"]
    assert names(label_selector="tier in (front,side)") == ["a"]
    assert names(field_selector="metadata.name=b") == ["b"]
    assert names(field_selector="metadata.name!=b") == ["a", "c"]
    assert names(label_selector="tier=back", field_selector="metadata.name=b") == ["b"]
    assert status_of(core.list_namespaced_config_map, namespace, label_selector="tier in (") == 400
    assert status_of(core.list_namespaced_config_map, namespace, field_selector="data.key=x") == 400


def test_pages_contain_every_object_once(core, namespace):
    expected = {f"page-{at:02}" for at in range(25)}
    for name in expected:
        core.create_namespaced_config_map(namespace, config_map(name, labels={"paged": "yes"}))
    seen, token, versions = [], None, set()
    while True:
        page = core.list_namespaced_config_map(namespace, limit=10, _continue=token, label_selector="paged=yes")
        assert len(page.items) <= 10
        versions.add(page.metadata.resource_version)
        seen += [found.metadata.name for found in page.items]
        # Pages of one list show one state, without later writes.
        if token is None:
            core.create_namespaced_config_map(namespace, config_map("page-99", labels={"paged": "yes"}))
        token = page.metadata._continue
        if not token:
            break
    assert sorted(seen) == sorted(expected) and len(versions) == 1


def test_a_collection_is_deleted_by_selector(core, namespace):
    for name, keep in [("x", "no"), ("y", "no"), ("z", "yes")]:
        core.create_namespaced_config_map(namespace, config_map(name, labels={"keep": keep}))
    core.delete_collection_namespaced_config_map(namespace, label_selector="keep=no")
    left = core.list_namespaced_config_map(namespace, label_selector="keep")
    assert [found.metadata.name for found in left.items] == ["z"]


def test_a_finalizer_delays_a_deletion(core, namespace):
    held = config_map("held")
    held.metadata.finalizers = ["python.bareboat.example/hold"]
    core.create_namespaced_config_map(namespace, held)
    core.delete_namespaced_config_map("held", namespace)
    waiting = core.read_namespaced_config_map("held", namespace)
    assert waiting.metadata.deletion_timestamp
    core.patch_namespaced_config_map("held", namespace, {"metadata": {"finalizers": None}})
    assert status_of(core.read_namespaced_config_map, "held", namespace) == 404


def test_string_data_of_secrets_is_merged_into_data(core, namespace):
    made = core.create_namespaced_secret(
        namespace, client.V1Secret(metadata=client.V1ObjectMeta(name="password"), string_data={"user": "admin"})
    )
    assert made.type == "Opaque" and made.data == {"user": "YWRtaW4="} and not made.string_data


def test_a_namespace_is_active_and_then_terminating_or_gone(core):
    name = f"python-passing-{uuid.uuid4().hex[:8]}"
    made = core.create_namespace({"metadata": {"name": name}})
    assert made.status.phase == "Active" and made.metadata.labels["kubernetes.io/metadata.name"] == name
    core.delete_namespace(name)

    def leaving():
        try:
            return core.read_namespace(name).status.phase == "Terminating"
        except ApiException as refused:
            return refused.status == 404

    assert eventually(leaving)


def test_access_reviews_are_answered():
    review = client.AuthorizationV1Api().create_self_subject_access_review(
        {"spec": {"resourceAttributes": {"verb": "list", "resource": "secrets", "namespace": "default"}}}
    )
    assert review.status.allowed


def test_versions_and_resources_are_discovered(core):
    assert client.VersionApi().get_code().major == "1"
    assert {"configmaps", "namespaces", "secrets"} <= {found.name for found in core.get_api_resources().resources}
    assert "apiextensions.k8s.io" in {group.name for group in client.ApisApi().get_api_versions().groups}
