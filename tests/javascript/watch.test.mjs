// Watches and informers, also across a restart of the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as k8s from "@kubernetes/client-node";
import { config, core, eventually, inNamespace, restart, restartable } from "./server.mjs";

const path = (namespace) => `/api/v1/namespaces/${namespace}/configmaps`;
const labels = { test: "yes" };
const create = (namespace, name, value) =>
  core.createNamespacedConfigMap({ namespace, body: { metadata: { name, labels }, data: { value } } });
const replace = (namespace, name, value) =>
  core.replaceNamespacedConfigMap({ namespace, name, body: { metadata: { name, labels }, data: { value } } });

/** An informer that records its events and restarts after an error, as its documentation recommends. */
async function inform(namespace) {
  const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: "test=yes" });
  const informer = k8s.makeInformer(config, path(namespace), list, "test=yes");
  const events = [];
  let stopped = false;
  for (const verb of ["add", "update", "delete"]) informer.on(verb, (object) => events.push(`${verb} ${object.metadata.name}`));
  informer.on("error", async () => {
    while (!stopped) {
      try {
        return await informer.start();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  });
  await informer.start();
  const stop = async () => {
    stopped = true;
    await informer.stop();
  };
  return { informer, events, stop };
}

test("a watch delivers events", () =>
  inNamespace(async (namespace) => {
    const before = await core.listNamespacedConfigMap({ namespace });
    const seen = [];
    let end;
    const done = new Promise((resolve) => (end = resolve));
    const query = { resourceVersion: before.metadata.resourceVersion, labelSelector: "test=yes", allowWatchBookmarks: true };
    const watch = new k8s.Watch(config);
    const abort = await watch.watch(
      path(namespace),
      query,
      (type, object) => type === "BOOKMARK" || seen.push(`${type} ${object.data.value}`),
      end,
    );
    await create(namespace, "one", "1");
    await replace(namespace, "one", "2");
    await core.deleteNamespacedConfigMap({ namespace, name: "one" });
    await eventually("three events", () => seen.length >= 3);
    assert.deepEqual(seen, ["ADDED 1", "MODIFIED 2", "DELETED 2"]);
    abort.abort();
    await done;
  }));

test("a watch ends after its timeout", () =>
  inNamespace(async (namespace) => {
    const ended = await new Promise((resolve, reject) => {
      new k8s.Watch(config).watch(path(namespace), { timeoutSeconds: 1 }, () => {}, resolve).catch(reject);
    });
    assert.equal(ended, null);
  }));

test("an informer delivers every change", () =>
  inNamespace(async (namespace) => {
    await create(namespace, "before", "1");
    const { informer, events, stop } = await inform(namespace);
    await create(namespace, "after", "1");
    await replace(namespace, "after", "2");
    await core.deleteNamespacedConfigMap({ namespace, name: "after" });
    await eventually("all events", () => events.length >= 4);
    assert.deepEqual(events, ["add before", "add after", "update after", "delete after"]);
    assert.equal(informer.get("before", namespace).data.value, "1");
    assert.equal(informer.list(namespace).length, 1);
    await stop();
  }));

test("an informer continues after a restart of the server", { skip: !restartable && "this server cannot be restarted" }, () =>
  inNamespace(async (namespace) => {
    await create(namespace, "before", "1");
    const { events, stop } = await inform(namespace);
    await restart();
    await eventually("the server answers", () => create(namespace, "after", "1"));
    await eventually("a new object arrives", () => events.includes("add after"));
    await core.deleteNamespacedConfigMap({ namespace, name: "before" });
    await eventually("a deletion arrives", () => events.includes("delete before"));
    await stop();
  }));
