package bareboat;

import static bareboat.Server.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Informers of fabric8: they watch over WebSockets, and continue after a restart of the server. */
class Fabric8InformersTest extends Fabric8 {
  /** Records the events of each object, in order. */
  private static final class Log<T extends HasMetadata> implements ResourceEventHandler<T> {
    final Map<String, List<String>> events = new ConcurrentHashMap<>();
    final AtomicInteger resyncs = new AtomicInteger();

    private void note(T object, String what) {
      events.computeIfAbsent(object.getMetadata().getName(), name -> new CopyOnWriteArrayList<>()).add(what);
    }

    @Override
    public void onAdd(T object) {
      note(object, "add");
    }

    @Override
    public void onUpdate(T before, T after) {
      if (before.getMetadata().getResourceVersion().equals(after.getMetadata().getResourceVersion())) {
        resyncs.incrementAndGet();
      } else {
        note(after, "update");
      }
    }

    @Override
    public void onDelete(T object, boolean finalStateUnknown) {
      note(object, "delete");
    }

    List<String> of(String name) {
      return events.getOrDefault(name, List.of());
    }
  }

  private Set<String> names(SharedIndexInformer<ConfigMap> informer) {
    return informer.getStore().list().stream().map(it -> it.getMetadata().getName()).collect(Collectors.toSet());
  }

  @Test
  void anInformerDeliversEveryChange() {
    Log<ConfigMap> log = new Log<>();
    client.resource(configMap("before", "1")).create();
    try (var informer = client.configMaps().inNamespace(namespace).withLabel("test", "yes").inform(log)) {
      assertTrue(informer.hasSynced() && informer.isWatching());
      assertEquals(Set.of("before"), names(informer));
      client.resource(configMap("after", "1")).create();
      client.resource(configMap("after", "2")).update();
      client.configMaps().inNamespace(namespace).withName("after").delete();
      client.configMaps().inNamespace(namespace).withName("before").delete();
      eventually("the deletions arrive", () -> log.of("after").size() == 3 && log.of("before").size() == 2);
      assertEquals(List.of("add", "update", "delete"), log.of("after"));
      assertEquals(List.of("add", "delete"), log.of("before"));
      assertTrue(names(informer).isEmpty());
    }
  }

  @Test
  void anInformerDeliversItsStoreAtEachResync() {
    Log<ConfigMap> log = new Log<>();
    client.resource(configMap("steady", "1")).create();
    try (var informer = client.configMaps().inNamespace(namespace).withLabel("test", "yes").inform(log, 200)) {
      eventually("three rounds", () -> log.resyncs.get() >= 3);
      assertEquals(List.of("add"), log.of("steady"));
    }
  }

  @Test
  void anInformerKeepsAnIndex() {
    try (var informer = client.configMaps().inNamespace(namespace).withLabel("test", "yes").runnableInformer(0)) {
      informer.addIndexers(Map.of("value", it -> List.of(it.getData().get("value"))));
      informer.run();
      client.resource(configMap("one", "a")).create();
      client.resource(configMap("two", "b")).create();
      client.resource(configMap("three", "b")).create();
      eventually("all are indexed", () -> informer.getIndexer().byIndex("value", "b").size() == 2);
    }
  }

  @Test
  void largeObjectsArriveCompletely() {
    Log<ConfigMap> log = new Log<>();
    String large = "x".repeat(600_000);
    try (var informer = client.configMaps().inNamespace(namespace).withLabel("test", "yes").inform(log)) {
      client.resource(configMap("large", large)).create();
      eventually("it arrives", () -> names(informer).contains("large"));
      assertEquals(large, informer.getStore().getByKey(namespace + "/large").getData().get("value"));
    }
  }

  @Test
  void informersOfCustomKindsAreTypedOrGeneric() {
    defineBoats();
    try (var typed = client.resources(Boat.class).inNamespace(namespace).inform();
        var generic = client.genericKubernetesResources(Boat.GROUP + "/v1", "Boat").inNamespace(namespace).inform()) {
      client.resource(Boat.of("ketch", 12)).inNamespace(namespace).create();
      eventually("both see it", () -> typed.getStore().list().size() == 1 && generic.getStore().list().size() == 1);
      assertEquals(12, typed.getStore().list().get(0).getSpec().length);
      assertEquals(12, (Integer) generic.getStore().list().get(0).get("spec", "length"));
    }
  }

  @Test
  void anInformerContinuesAfterARestartOfTheServer() {
    Log<ConfigMap> log = new Log<>();
    client.resource(configMap("stays", "1")).create();
    client.resource(configMap("goes", "1")).create();
    try (var informer = client.configMaps().inNamespace(namespace).withLabel("test", "yes").inform(log)) {
      for (int round = 0; round < 2; round++) {
        Server.restart();
        String name = "after-" + round;
        eventually("the server answers", () -> client.resource(configMap(name, "1")).create() != null);
        eventually("a new object arrives", () -> log.of(name).size() == 1);
      }
      client.configMaps().inNamespace(namespace).withName("goes").delete();
      client.resource(configMap("stays", "2")).update();
      eventually("the deletion arrives", () -> log.of("goes").size() == 2);
      eventually("the update arrives", () -> log.of("stays").size() == 2);
      assertEquals(List.of("add", "delete"), log.of("goes"), "nothing was told twice");
      assertEquals(List.of("add", "update"), log.of("stays"), "nothing was told twice");
      assertFalse(informer.stopped().toCompletableFuture().isDone());
    }
  }
}
