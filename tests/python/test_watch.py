"""Watches with the Python client: events, selectors, and resuming."""

from conftest import status_of
from kubernetes import client, watch


def config_map(name, value, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data={"value": value})


def collect(call, *args, count, **kwargs):
    """Returns the first `count` events as (type, name, value)."""
    stream, found = watch.Watch(), []
    for event in stream.stream(call, *args, timeout_seconds=120, **kwargs):
        found.append((event["type"], event["object"].metadata.name, event["object"].data["value"]))
        if len(found) == count:
            stream.stop()
    return found


def version(core, namespace):
    return core.list_namespaced_config_map(namespace, limit=1).metadata.resource_version


def history(core, namespace, labels=None):
    """Creates, changes and deletes one object; returns the version before that."""
    before = version(core, namespace)
    core.create_namespaced_config_map(namespace, config_map("seen", "1", labels))
    core.patch_namespaced_config_map("seen", namespace, {"data": {"value": "2"}})
    core.delete_namespaced_config_map("seen", namespace)
    return before


def test_a_watch_replays_events_since_a_version(core, namespace):
    before = history(core, namespace)
    seen = collect(
        core.list_namespaced_config_map, namespace, count=3, resource_version=before, field_selector="metadata.name=seen"
    )
    assert seen == [("ADDED", "seen", "1"), ("MODIFIED", "seen", "2"), ("DELETED", "seen", "2")]


def test_a_watch_resumes_after_an_interruption(core, namespace):
    before = history(core, namespace)
    stream, versions = watch.Watch(), []
    for event in stream.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=before,
        timeout_seconds=120,
        field_selector="metadata.name=seen",
    ):
        versions.append(event["object"].metadata.resource_version)
        stream.stop()
        break
    rest = collect(
        core.list_namespaced_config_map,
        namespace,
        count=2,
        resource_version=versions[0],
        field_selector="metadata.name=seen",
    )
    assert [kind for kind, _, _ in rest] == ["MODIFIED", "DELETED"]


def test_an_object_that_no_longer_matches_is_reported_as_deleted(core, namespace):
    before = version(core, namespace)
    core.create_namespaced_config_map(namespace, config_map("moving", "1", {"side": "left"}))
    core.patch_namespaced_config_map("moving", namespace, {"metadata": {"labels": {"side": "right"}}})
    core.patch_namespaced_config_map("moving", namespace, {"metadata": {"labels": {"side": "left"}}, "data": {"value": "3"}})
    seen = collect(
        core.list_namespaced_config_map, namespace, count=3, resource_version=before, label_selector="side=left"
    )
    assert [(kind, value) for kind, _, value in seen] == [("ADDED", "1"), ("DELETED", "1"), ("ADDED", "3")]


def test_a_watch_without_a_version_starts_with_existing_objects(core, namespace):
    for at in range(3):
        core.create_namespaced_config_map(namespace, config_map(f"here-{at}", str(at), {"here": "yes"}))
    seen = collect(core.list_namespaced_config_map, namespace, count=3, label_selector="here=yes")
    assert sorted(seen) == [("ADDED", f"here-{at}", str(at)) for at in range(3)]


def test_a_watch_ends_after_its_timeout(core, namespace):
    # The selector excludes the ConfigMap that the server may create in a new namespace.
    events = watch.Watch().stream(
        core.list_namespaced_config_map,
        namespace,
        timeout_seconds=1,
        resource_version=version(core, namespace),
        label_selector="here=no",
    )
    assert list(events) == []


def test_a_version_that_is_not_a_number_is_rejected(core, namespace):
    assert status_of(core.list_namespaced_config_map, namespace, resource_version="yesterday") == 400
