package bareboat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.EventBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.MicroTime;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReviewBuilder;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** fabric8 with built-in kinds, typed and generic. */
class Fabric8ObjectsTest extends Fabric8 {
  private Resource<ConfigMap> at(String name) {
    return client.configMaps().inNamespace(namespace).withName(name);
  }

  private void eachPatch(String name) {
    at(name).patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"add\",\"path\":\"/data/json\",\"value\":\"1\"}]");
    at(name).patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"value\":null,\"merge\":\"1\"}}");
    at(name).patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"data\":{\"strategic\":\"1\"}}");
  }

  @Test
  void aConfigMapIsCreatedChangedAndDeleted() {
    ConfigMap made = client.resource(configMap("one", "1")).create();
    assertNotNull(made.getMetadata().getUid());
    assertEquals("1", at("one").get().getData().get("value"));

    ConfigMap edited = at("one").edit(it -> new ConfigMapBuilder(it).addToData("more", "yes").build());
    assertEquals(Map.of("value", "1", "more", "yes"), edited.getData());
    assertNotEquals(made.getMetadata().getResourceVersion(), edited.getMetadata().getResourceVersion());
    ConfigMap replaced = client.resource(configMap("one", "2")).update();
    assertEquals(Map.of("value", "2"), replaced.getData());

    assertEquals(1, at("one").delete().size());
    assertNull(at("one").get());
    assertTrue(at("one").delete().isEmpty());
  }

  @Test
  void allPatchTypesAreAccepted() {
    client.resource(configMap("patched", "1")).create();
    eachPatch("patched");
    assertEquals(Map.of("json", "1", "merge", "1", "strategic", "1"), at("patched").get().getData());
  }

  @Test
  void anApplyConflictsWithAnotherManagerUnlessForced() {
    ConfigMap desired = configMap("applied", "1");
    ConfigMap first = client.resource(desired).fieldManager("first").serverSideApply();
    assertEquals("first", first.getMetadata().getManagedFields().get(0).getManager());
    assertEquals("Apply", first.getMetadata().getManagedFields().get(0).getOperation());
    ConfigMap other = configMap("applied", "2");
    refused(409, () -> client.resource(other).fieldManager("second").serverSideApply());
    ConfigMap forced = client.resource(other).fieldManager("second").forceConflicts().serverSideApply();
    assertEquals("2", forced.getData().get("value"));
  }

  @Test
  void anUpdateOfAnOldVersionConflicts() {
    ConfigMap old = client.resource(configMap("raced", "1")).create();
    client.resource(configMap("raced", "2")).update();
    refused(409, () -> client.resource(old).lockResourceVersion().update());
  }

  @Test
  void errorsHaveAStatus() {
    client.resource(configMap("taken", "1")).create();
    var exists = refused(409, () -> client.resource(configMap("taken", "1")).create());
    assertEquals("AlreadyExists", exists.getStatus().getReason());
    var invalid = refused(422, () -> client.resource(configMap("Not_A_Name", "1")).create());
    assertEquals("Invalid", invalid.getStatus().getReason());
    assertEquals("metadata.name", invalid.getStatus().getDetails().getCauses().get(0).getField());
    var missing = refused(404, () -> at("missing").patch(PatchContext.of(PatchType.JSON_MERGE), "{}"));
    assertEquals("missing", missing.getStatus().getDetails().getName());
  }

  @Test
  void aDryRunStoresNothing() {
    assertNotNull(client.resource(configMap("dry", "1")).dryRun().create().getMetadata().getUid());
    assertNull(at("dry").get());
  }

  @Test
  void pagesContainEveryObjectOnce() {
    Set<String> expected = new TreeSet<>();
    for (int at = 0; at < 25; at++) {
      expected.add(String.format("page-%02d", at));
      client.resource(configMap(String.format("page-%02d", at), "1")).create();
    }
    List<String> seen = new ArrayList<>();
    Set<String> versions = new HashSet<>();
    String token = null;
    do {
      ConfigMapList page =
          client
              .configMaps()
              .inNamespace(namespace)
              .list(new ListOptionsBuilder().withLimit(10L).withLabelSelector("test=yes").withContinue(token).build());
      assertTrue(page.getItems().size() <= 10);
      page.getItems().forEach(it -> seen.add(it.getMetadata().getName()));
      versions.add(page.getMetadata().getResourceVersion());
      token = page.getMetadata().getContinue();
    } while (token != null && !token.isEmpty());
    assertEquals(new ArrayList<>(expected), seen);
    assertEquals(1, versions.size());
  }

  @Test
  void listsAndDeletionsAreFilteredBySelectors() {
    client.resource(configMap("a", Map.of(), Map.of("tier", "front"))).create();
    client.resource(configMap("b", Map.of(), Map.of("tier", "back"))).create();
    client.resource(configMap("c", Map.of(), Map.of("tier", "back"))).create();
    var all = client.configMaps().inNamespace(namespace);
    assertEquals(2, all.withLabel("tier", "back").list().getItems().size());
    assertEquals(3, all.withLabelIn("tier", "back", "front").list().getItems().size());
    assertEquals(1, all.withField("metadata.name", "b").list().getItems().size());
    assertEquals(2, all.withLabel("tier", "back").delete().size());
    assertEquals(List.of("a"), all.withLabel("tier").list().getItems().stream().map(it -> it.getMetadata().getName()).toList());
  }

  @Test
  void deploymentsHaveAStatusAndAScale() {
    Deployment made =
        client
            .resource(
                new DeploymentBuilder()
                    .withNewMetadata()
                    .withName("web")
                    .withNamespace(namespace)
                    .endMetadata()
                    .withNewSpec()
                    .withNewSelector()
                    .addToMatchLabels("app", "web")
                    .endSelector()
                    .withNewTemplate()
                    .withNewMetadata()
                    .addToLabels("app", "web")
                    .endMetadata()
                    .withNewSpec()
                    .addNewContainer()
                    .withName("web")
                    .withImage("web:1")
                    .endContainer()
                    .endSpec()
                    .endTemplate()
                    .endSpec()
                    .build())
            .create();
    assertEquals(1, made.getSpec().getReplicas());
    var here = client.apps().deployments().inNamespace(namespace).withName("web");
    Deployment observed =
        here.editStatus(it -> new DeploymentBuilder(it).editOrNewStatus().withObservedGeneration(7L).endStatus().build());
    assertEquals(7L, observed.getStatus().getObservedGeneration());
    assertEquals(1L, observed.getMetadata().getGeneration());
    assertEquals(3, here.scale(3).getSpec().getReplicas());
    assertEquals(3, here.scale().getSpec().getReplicas());
    assertEquals(2L, here.get().getMetadata().getGeneration());
  }

  @Test
  void genericObjectsAreFoundByDiscovery() {
    client.resource(configMap("plain", "1")).create();
    var generic = client.genericKubernetesResources("v1", "ConfigMap").inNamespace(namespace);
    GenericKubernetesResource found = generic.withName("plain").get();
    assertEquals("1", found.get("data", "value"));
    found.setAdditionalProperty("data", Map.of("value", "2"));
    generic.resource(found).update();
    assertEquals("2", at("plain").get().getData().get("value"));
  }

  @Test
  void manifestsOfSeveralObjectsAreLoaded() {
    String manifests =
        """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: first}
        ---
        apiVersion: v1
        kind: Secret
        metadata: {name: second}
        stringData: {user: admin}
        """;
    var stream = new ByteArrayInputStream(manifests.getBytes(StandardCharsets.UTF_8));
    List<HasMetadata> made = client.load(stream).inNamespace(namespace).serverSideApply();
    assertEquals(2, made.size());
    Secret secret = client.secrets().inNamespace(namespace).withName("second").get();
    assertEquals(Map.of("user", "YWRtaW4="), secret.getData());
    assertEquals("Opaque", secret.getType());
    client.resource(new SecretBuilder(secret).editMetadata().endMetadata().build()).delete();
  }

  @Test
  void finalizersDelayADeletion() {
    ConfigMap held = configMap("held", "1");
    held.getMetadata().setFinalizers(List.of("java.bareboat.example/hold"));
    client.resource(held).create();
    at("held").delete();
    assertNotNull(at("held").get().getMetadata().getDeletionTimestamp());
    at("held").edit(it -> new ConfigMapBuilder(it).editMetadata().withFinalizers().endMetadata().build());
    assertNull(at("held").get());
  }

  @Test
  void eventsOfBothGroupsAreTheSame() {
    client
        .resource(
            new EventBuilder()
                .withNewMetadata()
                .withName("launched")
                .withNamespace(namespace)
                .endMetadata()
                .withNewInvolvedObject()
                .withKind("ConfigMap")
                .withNamespace(namespace)
                .withName("one")
                .endInvolvedObject()
                .withReason("Launched")
                .withMessage("it floats")
                .withType("Normal")
                .withEventTime(new MicroTime("2026-01-02T03:04:05.678901Z"))
                .withAction("Launch")
                .withReportingComponent("boatyard")
                .withReportingInstance("boatyard-1")
                .build())
        .create();
    var events = client.v1().events().inNamespace(namespace);
    assertEquals(1, events.withField("involvedObject.name", "one").list().getItems().size());
    var newer = client.events().v1().events().inNamespace(namespace).withName("launched").get();
    assertEquals("it floats", newer.getNote());
    assertEquals("2026-01-02T03:04:05.678901Z", newer.getEventTime().getTime());
  }

  @Test
  void discoveryWorks() {
    assertEquals("1", client.getKubernetesVersion().getMajor());
    assertTrue(client.supports(Deployment.class));
    assertTrue(client.getApiGroups().getGroups().stream().anyMatch(group -> group.getName().equals("apps")));
    var review =
        client
            .authorization()
            .v1()
            .selfSubjectAccessReview()
            .create(
                new SelfSubjectAccessReviewBuilder()
                    .withNewSpec()
                    .withNewResourceAttributes()
                    .withVerb("list")
                    .withResource("secrets")
                    .endResourceAttributes()
                    .endSpec()
                    .build());
    assertTrue(review.getStatus().getAllowed());
  }
}
