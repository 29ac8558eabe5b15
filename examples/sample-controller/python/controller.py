"""The sample controller in Python, with kopf: each Foo of samplecontroller.k8s.io owns a Deployment of nginx.

    kopf run --all-namespaces examples/sample-controller/python/controller.py
"""

import kopf
import kubernetes
from kubernetes.client import ApiException

GROUP, VERSION, PLURAL = "samplecontroller.k8s.io", "v1alpha1", "foos"


@kopf.on.startup()
def connect(**_):
    kubernetes.config.load_kube_config()


def wanted(foo, name, spec):
    labels = {"app": "nginx", "controller": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": spec["deploymentName"]},
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    }
    kopf.adopt(deployment, owner=foo)
    return deployment


@kopf.on.event(GROUP, VERSION, PLURAL)
def keep(name, namespace, uid, spec, meta, body, type=None, **_):
    """Creates the Deployment of a Foo or corrects its replicas, and writes the status of the Foo."""
    if type == "DELETED" or meta.get("deletionTimestamp"):
        return
    apps = kubernetes.client.AppsV1Api()
    try:
        found = apps.read_namespaced_deployment(spec["deploymentName"], namespace)
    except ApiException as error:
        if error.status != 404:
            raise kopf.TemporaryError(f"the Deployment cannot be read: {error.reason}", delay=5)
        found = apps.create_namespaced_deployment(namespace, wanted(body, name, spec))
        kopf.event(body, type="Normal", reason="Synced", message="Foo synced successfully")
    if not any(owner.uid == uid for owner in found.metadata.owner_references or []):
        text = f"Resource {found.metadata.name!r} already exists and is not managed by Foo"
        kopf.event(body, type="Warning", reason="ErrResourceExists", message=text)
        return
    if spec.get("replicas") and found.spec.replicas != spec["replicas"]:
        patch = {"spec": {"replicas": spec["replicas"]}}
        found = apps.patch_namespaced_deployment(found.metadata.name, namespace, patch)
    available = found.status.available_replicas or 0
    if body.get("status", {}).get("availableReplicas") != available:
        foos = kubernetes.client.CustomObjectsApi()
        status = {"status": {"availableReplicas": available}}
        foos.patch_namespaced_custom_object_status(GROUP, VERSION, namespace, PLURAL, name, status)


@kopf.on.event("apps", "v1", "deployments")
def owner_changed(meta, namespace, **_):
    """A change of a Deployment, such as its deletion, is a reason to look at its Foo again."""
    for owner in meta.get("ownerReferences", []):
        if owner["kind"] != "Foo":
            continue
        foos = kubernetes.client.CustomObjectsApi()
        try:
            foo = foos.get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, owner["name"])
        except ApiException:
            return
        keep(owner["name"], namespace, foo["metadata"]["uid"], foo["spec"], foo["metadata"], foo)
