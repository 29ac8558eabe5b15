"""Watching through the Python client: what happens, what is selected, and going on after a break."""

from conftest import status_of
from kubernetes import client, watch


def config_map(name, value, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data={"value": value})


def collect(call, *args, count, **kwargs):
    """The first `count` events as (type, name, value)."""
    stream, found = watch.Watch(), []
    for event in stream.stream(call, *args, timeout_seconds=120, **kwargs):
        found.append((event["type"], event["object"].metadata.name, event["object"].data["value"]))
        if len(found) == count:
            stream.stop()
    return found


def version(core, namespace):
    return core.list_namespaced_config_map(namespace, limit=1).metadata.resource_version


def history(core, namespace, labels=None):
    """Makes, changes and deletes one object; returns the version before."""
    before = version(core, namespace)
    core.create_namespaced_config_map(namespace, config_map("seen", "1", labels))
    core.patch_namespaced_config_map("seen", namespace, {"data": {"value": "2"}})
    core.delete_namespaced_config_map("seen", namespace)
    return before


def test_a_watch_replays_what_happened_since_a_version(core, namespace):
    before = history(core, namespace)
    seen = collect(
        core.list_namespaced_config_map, namespace, count=3, resource_version=before, field_selector="metadata.name=seen"
    )
    assert seen == [("ADDED", "seen", "1"), ("MODIFIED", "seen", "2"), ("DELETED", "seen", "2")]


def test_a_watch_goes_on_where_it_was_broken_off(core, namespace):
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


def test_leaving_a_selection_looks_like_a_deletion(core, namespace):
    before = version(core, namespace)
    core.create_namespaced_config_map(namespace, config_map("moving", "1", {"side": "left"}))
    core.patch_namespaced_config_map("moving", namespace, {"metadata": {"labels": {"side": "right"}}})
    core.patch_namespaced_config_map("moving", namespace, {"metadata": {"labels": {"side": "left"}}, "data": {"value": "3"}})
    seen = collect(
        core.list_namespaced_config_map, namespace, count=3, resource_version=before, label_selector="side=left"
    )
    assert [(kind, value) for kind, _, value in seen] == [("ADDED", "1"), ("DELETED", "1"), ("ADDED", "3")]


def test_a_watch_without_a_version_begins_with_what_is_there(core, namespace):
    for at in range(3):
        core.create_namespaced_config_map(namespace, config_map(f"here-{at}", str(at), {"here": "yes"}))
    seen = collect(core.list_namespaced_config_map, namespace, count=3, label_selector="here=yes")
    assert sorted(seen) == [("ADDED", f"here-{at}", str(at)) for at in range(3)]


def test_a_watch_ends_when_its_time_is_over(core, namespace):
    # Selected, since the server itself may put a config map into a new namespace.
    events = watch.Watch().stream(
        core.list_namespaced_config_map,
        namespace,
        timeout_seconds=1,
        resource_version=version(core, namespace),
        label_selector="here=no",
    )
    assert list(events) == []


def test_a_version_that_is_no_number_is_refused(core, namespace):
    assert status_of(core.list_namespaced_config_map, namespace, resource_version="yesterday") == 400
