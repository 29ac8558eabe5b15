package bareboat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.NonNamespaceOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.api.model.KubernetesResourceList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** fabric8 with a custom kind, typed and generic, and watches. */
class Fabric8CustomTest extends Fabric8 {
  private NonNamespaceOperation<Boat, KubernetesResourceList<Boat>, Resource<Boat>> boats;

  @BeforeEach
  void define() {
    defineBoats();
    MixedOperation<Boat, KubernetesResourceList<Boat>, Resource<Boat>> all = client.resources(Boat.class);
    boats = all.inNamespace(namespace);
  }

  @Test
  void aCustomObjectIsCreatedChangedAndDeleted() {
    Boat made = boats.resource(Boat.of("ketch", 12)).create();
    assertEquals(2, made.getSpec().sails);
    assertEquals(1L, made.getMetadata().getGeneration());
    Boat edited =
        boats.withName("ketch").edit(it -> {
          it.getSpec().crew = List.of("ann");
          return it;
        });
    assertEquals(List.of("ann"), edited.getSpec().crew);
    assertEquals(2L, edited.getMetadata().getGeneration());
    boats.withName("ketch").delete();
    assertNull(boats.withName("ketch").get());
  }

  @Test
  void aSchemaIsEnforced() {
    var invalid = refused(422, () -> boats.resource(Boat.of("wrong", 0)).create());
    assertEquals("spec.length", invalid.getStatus().getDetails().getCauses().get(0).getField());
  }

  @Test
  void customObjectsArePatchedAndApplied() {
    boats.resource(Boat.of("patched", 9)).create();
    boats.withName("patched").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"crew\":[\"ann\"]}}");
    boats
        .withName("patched")
        .patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"add\",\"path\":\"/spec/crew/-\",\"value\":\"bob\"}]");
    Boat applied = boats.resource(Boat.of("patched", 10)).fieldManager("java").forceConflicts().serverSideApply();
    assertEquals(List.of("ann", "bob"), applied.getSpec().crew);
    assertEquals(10, applied.getSpec().length);
    refused(415, () -> boats.withName("patched").patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{}"));
  }

  @Test
  void statusAndScaleAreSubresources() {
    Boat boat = Boat.of("afloat", 5);
    boat.setStatus(new Boat.Status());
    boat.getStatus().phase = "Invented";
    Boat made = boats.resource(boat).create();
    assertNull(made.getStatus());
    made.setStatus(new Boat.Status());
    made.getStatus().phase = "Floating";
    made.getSpec().length = 99;
    Boat updated = boats.resource(made).updateStatus();
    assertEquals("Floating", updated.getStatus().phase);
    assertEquals(5, updated.getSpec().length);
    assertEquals(1L, updated.getMetadata().getGeneration());
    assertEquals(4, boats.withName("afloat").scale(4).getSpec().sails);
    assertEquals(4, boats.withName("afloat").scale().getSpec().getReplicas());
    PatchContext apply =
        new PatchContext.Builder().withPatchType(PatchType.SERVER_SIDE_APPLY).withFieldManager("java").withForce(true).build();
    Boat applied = boats.withName("afloat").subresource("status").patch(apply, statusOnly("afloat", "Sunk"));
    assertEquals("Sunk", applied.getStatus().phase);
  }

  private static Boat statusOnly(String name, String phase) {
    Boat boat = new Boat();
    boat.getMetadata().setName(name);
    boat.setStatus(new Boat.Status());
    boat.getStatus().phase = phase;
    return boat;
  }

  @Test
  void genericObjectsNeedNoClass() {
    var generic = client.genericKubernetesResources(Boat.GROUP + "/v1", "Boat").inNamespace(namespace);
    GenericKubernetesResource boat = new GenericKubernetesResource();
    boat.setApiVersion(Boat.GROUP + "/v1");
    boat.setKind("Boat");
    boat.setMetadata(Boat.of("raft", 1).getMetadata());
    boat.setAdditionalProperty("spec", Map.of("length", 3, "unknown", true));
    assertEquals(Map.of("length", 3, "sails", 2), generic.resource(boat).create().getAdditionalProperties().get("spec"));
    assertEquals(3, boats.withName("raft").get().getSpec().length);
    assertEquals(1, boats.withField("spec.length", "3").list().getItems().size());
    assertTrue(boats.withField("spec.length", "4").list().getItems().isEmpty());
  }

  @Test
  void aWatchDeliversEvents() {
    List<String> seen = new CopyOnWriteArrayList<>();
    Watcher<Boat> watcher =
        new Watcher<>() {
          @Override
          public void eventReceived(Action action, Boat boat) {
            seen.add(action + " " + boat.getSpec().length);
          }

          @Override
          public void onClose(WatcherException cause) {
            seen.add("closed " + cause);
          }
        };
    String before = boats.list().getMetadata().getResourceVersion();
    try (Watch watch = boats.withResourceVersion(before).watch(watcher)) {
      boats.resource(Boat.of("watched", 3)).create();
      boats.withName("watched").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"length\":4}}");
      boats.withName("watched").delete();
      Server.eventually("three events", () -> seen.size() >= 3);
      assertEquals(List.of("ADDED 3", "MODIFIED 4", "DELETED 4"), seen);
    }
  }

  @Test
  void waitingForAConditionWorks() {
    boats.resource(Boat.of("slow", 3)).create();
    var waiting = new Thread(() -> boats.withName("slow").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"sails\":9}}"));
    waiting.start();
    Boat done = boats.withName("slow").waitUntilCondition(it -> it != null && it.getSpec().sails == 9, 120, TimeUnit.SECONDS);
    assertEquals(9, done.getSpec().sails);
  }
}
