"""/metrics, parsed by Prometheus' own parser."""

import pytest
from kubernetes import client
from prometheus_client.parser import text_string_to_metric_families

FORGED = '/apis/x%22%7D%201%0Aforged_total%7Ba%3D%22b/v1/things'


def scrape():
    """Returns all families of a scrape by name."""
    text = get(client.ApiClient(), "/metrics")
    return {family.name: family for family in text_string_to_metric_families(text)}


def get(api, path):
    """Returns the body of a response with any status."""
    url = api.configuration.host + path
    return api.rest_client.pool_manager.request("GET", url).data.decode()


def samples(family, **labels):
    """Returns the samples of a family with these labels."""
    return [s for s in family.samples if all(s.labels.get(k) == v for k, v in labels.items())]


def test_families_have_the_expected_types_and_labels(core, namespace):
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}}, dry_run="All")
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})
    core.read_namespaced_config_map("a", namespace)
    families = scrape()
    total = families["apiserver_request"]
    assert total.type == "counter"
    names = {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"}
    assert all(set(sample.labels) == names for sample in total.samples)
    maps = {"group": "", "version": "v1", "resource": "configmaps", "component": "apiserver"}
    assert samples(total, verb="POST", scope="resource", dry_run="All", code="201", **maps)
    assert samples(total, verb="GET", scope="resource", dry_run="", code="200", **maps)
    for name in ["apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds"]:
        family = families[name]
        assert family.type == "histogram"
        for le in ["1", "5", "30"]:
            assert samples(family, verb="GET", le=le, **maps)
        assert not any("code" in sample.labels for sample in family.samples)
    for name in ["process_cpu_seconds", "process_resident_memory_bytes", "process_start_time_seconds"]:
        assert families[name].samples[0].value > 0
    assert families["apiserver_storage_size_bytes"].samples[0].value > 0


@pytest.mark.parametrize("query", ["", "?timeout=never"])
def test_values_from_clients_do_not_become_labels(query):
    get(client.ApiClient(), FORGED + query)
    families = scrape()
    assert "forged" not in families
    for family in families.values():
        for sample in family.samples:
            assert not any("forged" in value for value in sample.labels.values())
