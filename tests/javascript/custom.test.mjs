// A custom kind, with the untyped API and with the generic object client.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import * as k8s from "@kubernetes/client-node";
import { boat, config, custom, defineBoats, GROUP, inNamespace, refused } from "./server.mjs";

before(defineBoats);

const at = (namespace) => ({ group: GROUP, version: "v1", plural: "boats", namespace });
const merge = k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch);

test("a custom object is created, changed and deleted", () =>
  inNamespace(async (namespace) => {
    const made = await custom.createNamespacedCustomObject({ ...at(namespace), body: boat(namespace, "ketch", { length: 12, anchor: true }) });
    assert.deepEqual(made.spec, { length: 12, sails: 2 });
    made.spec.crew = ["ann"];
    const changed = await custom.replaceNamespacedCustomObject({ ...at(namespace), name: "ketch", body: made });
    assert.equal(changed.metadata.generation, 2);
    const status = await refused(
      422,
      "Invalid",
      custom.createNamespacedCustomObject({ ...at(namespace), body: boat(namespace, "wrong", { length: 0 }) }),
    );
    assert.equal(status.details.causes[0].field, "spec.length");
    await custom.deleteNamespacedCustomObject({ ...at(namespace), name: "ketch" });
    await refused(404, "NotFound", custom.getNamespacedCustomObject({ ...at(namespace), name: "ketch" }));
  }));

test("status and scale are subresources", () =>
  inNamespace(async (namespace) => {
    await custom.createNamespacedCustomObject({ ...at(namespace), body: boat(namespace, "afloat", { length: 5 }) });
    const patched = await custom.patchNamespacedCustomObjectStatus(
      { ...at(namespace), name: "afloat", body: { status: { phase: "Floating" }, spec: { length: 99 } } },
      merge,
    );
    assert.deepEqual([patched.status, patched.spec.length], [{ phase: "Floating" }, 5]);
    await custom.patchNamespacedCustomObjectScale({ ...at(namespace), name: "afloat", body: { spec: { replicas: 4 } } }, merge);
    const scaled = await custom.getNamespacedCustomObject({ ...at(namespace), name: "afloat" });
    assert.equal(scaled.spec.sails, 4);
  }));

test("the generic client works with any kind", () =>
  inNamespace(async (namespace) => {
    const objects = k8s.KubernetesObjectApi.makeApiClient(config);
    const made = await objects.create(boat(namespace, "raft", { length: 3 }));
    assert.equal(made.spec.sails, 2);
    const applied = await objects.patch(
      boat(namespace, "raft", { length: 4 }),
      undefined,
      undefined,
      "javascript",
      true,
      k8s.PatchStrategy.ServerSideApply,
    );
    assert.deepEqual(applied.spec, { length: 4, sails: 2 });
    const merged = await objects.patch(boat(namespace, "raft", { sails: 5 }), undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
    assert.deepEqual(merged.spec, { length: 4, sails: 5 });
    const listed = await objects.list(`${GROUP}/v1`, "Boat", namespace);
    assert.equal(listed.items.length, 1);
    await objects.delete(merged);
    await refused(404, "NotFound", objects.read(boat(namespace, "raft")));
  }));
