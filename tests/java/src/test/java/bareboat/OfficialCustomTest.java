package bareboat;

import static bareboat.Server.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.apis.ApiextensionsV1Api;
import io.kubernetes.client.openapi.apis.CustomObjectsApi;
import io.kubernetes.client.openapi.models.V1CustomResourceDefinition;
import io.kubernetes.client.util.Watchable;
import io.kubernetes.client.util.Yaml;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import io.kubernetes.client.util.generic.options.ListOptions;
import io.kubernetes.client.util.generic.options.PatchOptions;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The official Java client with a custom kind: dynamic client, untyped API and a watch. */
class OfficialCustomTest extends Official {
  private DynamicKubernetesApi boats;

  @BeforeEach
  void define() throws Exception {
    var manifest = new InputStreamReader(Official.class.getResourceAsStream("/boats.yaml"), StandardCharsets.UTF_8);
    V1CustomResourceDefinition definition = (V1CustomResourceDefinition) Yaml.load(manifest);
    var api = new ApiextensionsV1Api(client);
    String name = definition.getMetadata().getName();
    boolean known = api.listCustomResourceDefinition().execute().getItems().stream().anyMatch(it -> it.getMetadata().getName().equals(name));
    if (!known) {
      api.createCustomResourceDefinition(definition).execute();
    }
    boats = new DynamicKubernetesApi(Boat.GROUP, "v1", "boats", client);
    eventually("boats are served", () -> boats.list(namespace).isSuccess());
  }

  private DynamicKubernetesObject boat(String name, int length) {
    String json =
        """
        {"apiVersion": "%s/v1", "kind": "Boat", "metadata": {"name": "%s", "namespace": "%s"}, "spec": {"length": %d}}
        """;
    return new DynamicKubernetesObject(JsonParser.parseString(json.formatted(Boat.GROUP, name, namespace, length)).getAsJsonObject());
  }

  private static JsonObject spec(DynamicKubernetesObject object) {
    return object.getRaw().getAsJsonObject("spec");
  }

  @Test
  void aCustomObjectIsCreatedChangedAndDeleted() throws Exception {
    DynamicKubernetesObject made = boats.create(boat("ketch", 12)).throwsApiException().getObject();
    assertEquals(2, spec(made).get("sails").getAsInt());
    spec(made).addProperty("length", 13);
    assertEquals(2L, boats.update(made).throwsApiException().getObject().getMetadata().getGeneration());
    made.getRaw().add("status", JsonParser.parseString("{\"phase\":\"Floating\"}"));
    var refused = boats.update(made);
    assertEquals(409, refused.getHttpStatusCode());
    assertEquals("Conflict", refused.getStatus().getReason());
    var invalid = boats.create(boat("wrong", 0));
    assertEquals(422, invalid.getHttpStatusCode());
    assertEquals("spec.length", invalid.getStatus().getDetails().getCauses().get(0).getField());
    assertTrue(boats.delete(namespace, "ketch").isSuccess());
    assertEquals(404, boats.get(namespace, "ketch").getHttpStatusCode());
  }

  @Test
  void customObjectsArePatchedAppliedAndSelected() throws Exception {
    boats.create(boat("patched", 9)).throwsApiException();
    boats.patch(namespace, "patched", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, new V1Patch("{\"spec\":{\"crew\":[\"ann\"]}}")).throwsApiException();
    DynamicKubernetesObject applied =
        boats
            .patch(
                namespace,
                "patched",
                V1Patch.PATCH_FORMAT_APPLY_YAML,
                new V1Patch(boat("patched", 10).getRaw().toString()),
                new PatchOptions().fieldManager("official").force(true))
            .throwsApiException()
            .getObject();
    assertEquals(10, spec(applied).get("length").getAsInt());
    assertEquals("ann", spec(applied).getAsJsonArray("crew").get(0).getAsString());
    ListOptions selected = new ListOptions();
    selected.setFieldSelector("spec.length=10");
    assertEquals(1, boats.list(namespace, selected).throwsApiException().getObject().getItems().size());
    selected.setFieldSelector("spec.length=11");
    assertTrue(boats.list(namespace, selected).throwsApiException().getObject().getItems().isEmpty());
  }

  @Test
  void theStatusIsASubresource() throws Exception {
    DynamicKubernetesObject made = boats.create(boat("afloat", 5)).throwsApiException().getObject();
    JsonObject status = JsonParser.parseString("{\"phase\":\"Floating\"}").getAsJsonObject();
    made.getRaw().add("status", status);
    DynamicKubernetesObject updated = boats.updateStatus(made, it -> it.getRaw().get("status")).throwsApiException().getObject();
    assertEquals("Floating", updated.getRaw().getAsJsonObject("status").get("phase").getAsString());
    assertEquals(1L, updated.getMetadata().getGeneration());
  }

  @Test
  void untypedObjectsAreMapsAndLists() throws Exception {
    CustomObjectsApi custom = new CustomObjectsApi(client);
    Map<String, Object> raft =
        Map.of("apiVersion", Boat.GROUP + "/v1", "kind", "Boat", "metadata", Map.of("name", "raft"), "spec", Map.of("length", 3));
    custom.createNamespacedCustomObject(Boat.GROUP, "v1", namespace, "boats", raft).execute();
    Map<?, ?> list = (Map<?, ?>) custom.listNamespacedCustomObject(Boat.GROUP, "v1", namespace, "boats").execute();
    assertEquals(1, ((List<?>) list.get("items")).size());
    custom.deleteCollectionNamespacedCustomObject(Boat.GROUP, "v1", namespace, "boats").execute();
    assertTrue(boats.list(namespace).getObject().getItems().isEmpty());
  }

  @Test
  void aWatchDeliversEvents() throws Exception {
    ListOptions since = new ListOptions();
    since.setResourceVersion(boats.list(namespace).getObject().getMetadata().getResourceVersion());
    boats.create(boat("watched", 3)).throwsApiException();
    boats.patch(namespace, "watched", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, new V1Patch("{\"spec\":{\"length\":4}}")).throwsApiException();
    boats.delete(namespace, "watched").throwsApiException();
    try (Watchable<DynamicKubernetesObject> watch = boats.watch(namespace, since)) {
      for (String expected : List.of("ADDED 3", "MODIFIED 4", "DELETED 4")) {
        assertTrue(watch.hasNext());
        var event = watch.next();
        assertEquals(expected, event.type + " " + spec(event.object).get("length").getAsInt());
      }
    }
    since.setResourceVersion("not-a-version");
    assertFalse(boats.list(namespace, since).isSuccess());
  }
}
