// Shared helpers: clients that read KUBECONFIG, a namespace for each test, a custom kind, and polling.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as k8s from "@kubernetes/client-node";

export const GROUP = "javascript.bareboat.example";
export const config = new k8s.KubeConfig();
config.loadFromDefault();
export const core = config.makeApiClient(k8s.CoreV1Api);
export const custom = config.makeApiClient(k8s.CustomObjectsApi);

// Only a failing test waits this long.
const PATIENCE = 120_000;

/** Polls until the result is true, and returns it. */
export async function eventually(what, condition) {
  const deadline = Date.now() + PATIENCE;
  let last;
  while (Date.now() < deadline) {
    try {
      const answer = await condition();
      if (answer) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await sleep(20);
  }
  throw new Error(`not within ${PATIENCE} ms: ${what}`, { cause: last });
}

/** Calls a test with the name of its own namespace. */
export async function inNamespace(test) {
  const name = `javascript-${randomUUID().slice(0, 8)}`;
  await core.createNamespace({ body: { metadata: { name } } });
  try {
    await test(name);
  } finally {
    await core.deleteNamespace({ name });
  }
}

/** Returns the Status of a rejected call. */
export async function refused(code, reason, call) {
  const error = await call.then(
    () => assert.fail(`not refused with ${code}`),
    (refusal) => refusal,
  );
  assert.equal(error.code, code, error.message);
  const status = JSON.parse(error.body);
  assert.equal(status.kind, "Status");
  assert.equal(status.reason, reason);
  return status;
}

/** Whether the test runner can restart the server. */
export const restartable = process.env.BAREBOAT_RESTART !== undefined;

/**
 * Restarts the server with its data: the program that runs these tests waits for this file, restarts the server, and
 * deletes the file when the server is up again.
 */
export async function restart() {
  writeFileSync(process.env.BAREBOAT_RESTART, "");
  await eventually("the server is up again", () => !existsSync(process.env.BAREBOAT_RESTART));
}

/**
 * Installs the definition of boats, and waits until they are served. The client has a class for definitions, in which
 * some fields have other names.
 */
export async function defineBoats() {
  const spec = {
    type: "object",
    required: ["length"],
    properties: {
      length: { type: "integer", minimum: 1 },
      sails: { type: "integer", _default: 2 },
      crew: { type: "array", items: { type: "string" } },
    },
  };
  const status = { type: "object", x_kubernetes_preserve_unknown_fields: true };
  const body = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `boats.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { plural: "boats", singular: "boat", kind: "Boat" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {}, scale: { specReplicasPath: ".spec.sails", statusReplicasPath: ".status.sails" } },
          schema: { openAPIV3Schema: { type: "object", properties: { spec, status } } },
        },
      ],
    },
  };
  const objects = k8s.KubernetesObjectApi.makeApiClient(config);
  await objects.patch(body, undefined, undefined, "javascript", true, k8s.PatchStrategy.ServerSideApply);
  await eventually("boats are served", () => custom.listClusterCustomObject({ group: GROUP, version: "v1", plural: "boats" }));
}

/** Returns a boat that was not created yet. */
export function boat(namespace, name, spec) {
  return { apiVersion: `${GROUP}/v1`, kind: "Boat", metadata: { name, namespace }, spec };
}
