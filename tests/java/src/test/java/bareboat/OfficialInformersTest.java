package bareboat;

import static bareboat.Server.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.informer.cache.Lister;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Informers of the official Java client. */
class OfficialInformersTest extends Official {
  private final List<String> events = new CopyOnWriteArrayList<>();
  private final AtomicInteger resyncs = new AtomicInteger();
  private SharedInformerFactory factory;
  private SharedIndexInformer<V1ConfigMap> informer;

  @BeforeEach
  void start() {
    factory = new SharedInformerFactory(client);
    informer =
        factory.sharedIndexInformerFor(
            params ->
                core.listNamespacedConfigMap(namespace)
                    .labelSelector("test=yes")
                    .resourceVersion(params.resourceVersion)
                    .timeoutSeconds(params.timeoutSeconds)
                    .watch(params.watch)
                    .buildCall(null),
            V1ConfigMap.class,
            V1ConfigMapList.class,
            1000);
    informer.addEventHandlerWithResyncPeriod(
        new ResourceEventHandler<>() {
          @Override
          public void onAdd(V1ConfigMap object) {
            events.add("add " + object.getMetadata().getName());
          }

          @Override
          public void onUpdate(V1ConfigMap before, V1ConfigMap after) {
            if (before.getMetadata().getResourceVersion().equals(after.getMetadata().getResourceVersion())) {
              resyncs.incrementAndGet();
            } else {
              events.add("update " + after.getMetadata().getName());
            }
          }

          @Override
          public void onDelete(V1ConfigMap object, boolean finalStateUnknown) {
            events.add("delete " + object.getMetadata().getName());
          }
        },
        1000);
    factory.startAllRegisteredInformers();
    eventually("the informer has synced", informer::hasSynced);
  }

  @AfterEach
  void stop() {
    factory.stopAllRegisteredInformers();
  }

  @Test
  void anInformerDeliversEveryChangeAndResyncs() throws Exception {
    core.createNamespacedConfigMap(namespace, configMap("one", "1")).execute();
    core.createNamespacedConfigMap(namespace, configMap("two", "1")).execute();
    core.replaceNamespacedConfigMap("one", namespace, configMap("one", "2")).execute();
    core.deleteNamespacedConfigMap("two", namespace).execute();
    eventually("all events arrive", () -> events.size() >= 4);
    // The order is defined for each object, not between objects.
    assertEquals(List.of("add one", "update one"), about("one"));
    assertEquals(List.of("add two", "delete two"), about("two"));
    Lister<V1ConfigMap> lister = new Lister<>(informer.getIndexer(), namespace);
    assertEquals("2", lister.get("one").getData().get("value"));
    eventually("a resync", () -> resyncs.get() >= 1);
    assertEquals(4, events.size(), events::toString);
  }

  private List<String> about(String name) {
    return events.stream().filter(event -> event.endsWith(" " + name)).toList();
  }

  @Test
  void anInformerContinuesAfterARestartOfTheServer() throws Exception {
    core.createNamespacedConfigMap(namespace, configMap("before", "1")).execute();
    eventually("it arrives", () -> events.contains("add before"));
    Server.restart();
    eventually("the server answers", () -> core.createNamespacedConfigMap(namespace, configMap("after", "1")).execute() != null);
    eventually("a new object arrives", () -> events.contains("add after"));
    core.deleteNamespacedConfigMap("before", namespace).execute();
    eventually("a deletion arrives", () -> events.contains("delete before"));
    assertEquals(List.of("add before", "add after", "delete before"), events);
  }
}
