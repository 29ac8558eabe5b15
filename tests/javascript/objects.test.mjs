// Built-in kinds: create, read, change, page, reject, delete.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as k8s from "@kubernetes/client-node";
import { config, core, inNamespace, refused } from "./server.mjs";

const configMap = (name, data = { value: "1" }) => ({ metadata: { name, labels: { test: "yes" } }, data });

test("a ConfigMap is created, changed and deleted", () =>
  inNamespace(async (namespace) => {
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap("one") });
    assert.ok(made.metadata.uid && made.metadata.creationTimestamp instanceof Date);
    const read = await core.readNamespacedConfigMap({ namespace, name: "one" });
    read.data.more = "yes";
    const changed = await core.replaceNamespacedConfigMap({ namespace, name: "one", body: read });
    assert.deepEqual(changed.data, { value: "1", more: "yes" });
    await refused(409, "Conflict", core.replaceNamespacedConfigMap({ namespace, name: "one", body: made }));
    const gone = await core.deleteNamespacedConfigMap({ namespace, name: "one" });
    assert.equal(gone.status, "Success");
    await refused(404, "NotFound", core.readNamespacedConfigMap({ namespace, name: "one" }));
  }));

test("all patch types are accepted", () =>
  inNamespace(async (namespace) => {
    await core.createNamespacedConfigMap({ namespace, body: configMap("patched") });
    const patch = (strategy, body, options = {}) =>
      core.patchNamespacedConfigMap(
        { namespace, name: "patched", body, ...options },
        k8s.setHeaderOptions("Content-Type", strategy),
      );
    await patch(k8s.PatchStrategy.JsonPatch, [{ op: "add", path: "/data/json", value: "1" }]);
    await patch(k8s.PatchStrategy.MergePatch, { data: { value: null, merge: "1" } });
    await patch(k8s.PatchStrategy.StrategicMergePatch, { data: { strategic: "1" } });
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "patched" }, data: { applied: "1", merge: "2" } };
    const apply = (force) => patch(k8s.PatchStrategy.ServerSideApply, body, { fieldManager: "javascript", force });
    await refused(409, "Conflict", apply(false));
    const applied = await apply(true);
    assert.deepEqual(applied.data, { json: "1", merge: "2", strategic: "1", applied: "1" });
    const manager = applied.metadata.managedFields.find((entry) => entry.manager === "javascript");
    assert.equal(manager.operation, "Apply");
  }));

test("errors have a Status", () =>
  inNamespace(async (namespace) => {
    await core.createNamespacedConfigMap({ namespace, body: configMap("taken") });
    await refused(409, "AlreadyExists", core.createNamespacedConfigMap({ namespace, body: configMap("taken") }));
    const status = await refused(422, "Invalid", core.createNamespacedConfigMap({ namespace, body: configMap("Not_A_Name") }));
    assert.equal(status.details.causes[0].field, "metadata.name");
    await refused(400, "BadRequest", core.listNamespacedConfigMap({ namespace, labelSelector: "a in (" }));
  }));

test("pages contain every object once", () =>
  inNamespace(async (namespace) => {
    const expected = Array.from({ length: 25 }, (_, at) => `page-${String(at).padStart(2, "0")}`);
    for (const name of expected) await core.createNamespacedConfigMap({ namespace, body: configMap(name) });
    const seen = [];
    const versions = new Set();
    let _continue;
    do {
      const page = await core.listNamespacedConfigMap({ namespace, labelSelector: "test=yes", limit: 10, _continue });
      seen.push(...page.items.map((item) => item.metadata.name));
      versions.add(page.metadata.resourceVersion);
      _continue = page.metadata._continue;
    } while (_continue);
    assert.deepEqual(seen, expected);
    assert.equal(versions.size, 1);
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: "test=yes" });
    const left = await core.listNamespacedConfigMap({ namespace, labelSelector: "test=yes" });
    assert.equal(left.items.length, 0);
  }));

test("a Deployment has a status and a scale", () =>
  inNamespace(async (namespace) => {
    const apps = config.makeApiClient(k8s.AppsV1Api);
    const labels = { app: "web" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1" }] } };
    const body = { metadata: { name: "web" }, spec: { selector: { matchLabels: labels }, template } };
    const made = await apps.createNamespacedDeployment({ namespace, body });
    assert.equal(made.spec.replicas, 1);
    made.status = { observedGeneration: 7 };
    made.spec.replicas = 9;
    const observed = await apps.replaceNamespacedDeploymentStatus({ namespace, name: "web", body: made });
    assert.deepEqual([observed.status.observedGeneration, observed.spec.replicas], [7, 1]);
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: "web" });
    scale.spec.replicas = 3;
    await apps.replaceNamespacedDeploymentScale({ namespace, name: "web", body: scale });
    const scaled = await apps.readNamespacedDeployment({ namespace, name: "web" });
    assert.deepEqual([scaled.spec.replicas, scaled.metadata.generation], [3, 2]);
  }));

test("events and leases keep their microseconds", () =>
  inNamespace(async (namespace) => {
    const involvedObject = { kind: "ConfigMap", name: "one", namespace };
    const eventTime = new k8s.V1MicroTime("2026-01-02T03:04:05.678Z");
    await core.createNamespacedEvent({
      namespace,
      body: {
        metadata: { name: "launched" },
        involvedObject,
        reason: "Launched",
        message: "it floats",
        type: "Normal",
        eventTime,
        action: "Launch",
        reportingComponent: "boatyard",
        reportingInstance: "boatyard-1",
      },
    });
    const found = await core.listNamespacedEvent({ namespace, fieldSelector: "involvedObject.name=one" });
    assert.equal(found.items[0].message, "it floats");
    const leases = config.makeApiClient(k8s.CoordinationV1Api);
    const body = { metadata: { name: "lock" }, spec: { holderIdentity: "one", renewTime: eventTime } };
    await leases.createNamespacedLease({ namespace, body });
    const lease = await leases.readNamespacedLease({ namespace, name: "lock" });
    assert.equal(lease.spec.renewTime, "2026-01-02T03:04:05.678000Z");
  }));

test("discovery works", async () => {
  const version = await config.makeApiClient(k8s.VersionApi).getCode();
  assert.equal(version.major, "1");
  const groups = await config.makeApiClient(k8s.ApisApi).getAPIVersions();
  assert.ok(groups.groups.some((group) => group.name === "apps"));
  const review = await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({
    body: { spec: { resourceAttributes: { verb: "list", resource: "secrets" } } },
  });
  assert.equal(review.status.allowed, true);
});
