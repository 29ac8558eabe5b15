package bareboat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kubernetes.client.Discovery;
import io.kubernetes.client.ProtoClient;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.AutoscalingV1Api;
import io.kubernetes.client.openapi.apis.CoordinationV1Api;
import io.kubernetes.client.openapi.apis.EventsV1Api;
import io.kubernetes.client.openapi.apis.VersionApi;
import io.kubernetes.client.openapi.models.CoreV1Event;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1DeploymentSpec;
import io.kubernetes.client.openapi.models.V1DeploymentStatus;
import io.kubernetes.client.openapi.models.V1LabelSelector;
import io.kubernetes.client.openapi.models.V1Lease;
import io.kubernetes.client.openapi.models.V1LeaseSpec;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1ObjectReference;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.openapi.models.V1PodTemplateSpec;
import io.kubernetes.client.openapi.models.V1Scale;
import io.kubernetes.client.openapi.models.V1Secret;
import io.kubernetes.client.proto.V1;
import io.kubernetes.client.proto.Meta.ObjectMeta;
import io.kubernetes.client.util.PatchUtils;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The official Java client with built-in kinds, in JSON and protobuf. */
class OfficialObjectsTest extends Official {
  private V1ConfigMap patch(String name, String format, String body, String manager, Boolean force) throws ApiException {
    return PatchUtils.patch(
        V1ConfigMap.class,
        () -> core.patchNamespacedConfigMap(name, namespace, new V1Patch(body)).fieldManager(manager).force(force).buildCall(null),
        format,
        client);
  }

  private V1ConfigMap patch(String name, String format, String body) throws ApiException {
    return patch(name, format, body, null, null);
  }

  private V1ConfigMap apply(String value, String manager, Boolean force) throws ApiException {
    String body = "{apiVersion: v1, kind: ConfigMap, metadata: {name: patched}, data: {applied: \"" + value + "\"}}";
    return patch("patched", V1Patch.PATCH_FORMAT_APPLY_YAML, body, manager, force);
  }

  @Test
  void aConfigMapIsCreatedChangedAndDeleted() throws Exception {
    V1ConfigMap made = core.createNamespacedConfigMap(namespace, configMap("one", "1")).execute();
    assertNotNull(made.getMetadata().getUid());
    V1ConfigMap changed = core.readNamespacedConfigMap("one", namespace).execute().data(Map.of("value", "2"));
    assertEquals("2", core.replaceNamespacedConfigMap("one", namespace, changed).execute().getData().get("value"));
    refused(409, "Conflict", () -> core.replaceNamespacedConfigMap("one", namespace, made).execute());
    assertEquals("Success", core.deleteNamespacedConfigMap("one", namespace).execute().getStatus());
    refused(404, "NotFound", () -> core.readNamespacedConfigMap("one", namespace).execute());
  }

  @Test
  void allPatchTypesAreAccepted() throws Exception {
    core.createNamespacedConfigMap(namespace, configMap("patched", "1")).execute();
    patch("patched", V1Patch.PATCH_FORMAT_JSON_PATCH, "[{\"op\":\"add\",\"path\":\"/data/json\",\"value\":\"1\"}]");
    patch("patched", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"value\":null,\"merge\":\"1\"}}");
    patch("patched", V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH, "{\"data\":{\"strategic\":\"1\"}}");
    V1ConfigMap applied = apply("1", "first", null);
    assertEquals(Map.of("json", "1", "merge", "1", "strategic", "1", "applied", "1"), applied.getData());
    refused(409, "Conflict", () -> apply("2", "second", null));
    assertEquals("2", apply("2", "second", true).getData().get("applied"));
  }

  @Test
  void errorsHaveAStatus() throws Exception {
    core.createNamespacedConfigMap(namespace, configMap("taken", "1")).execute();
    refused(409, "AlreadyExists", () -> core.createNamespacedConfigMap(namespace, configMap("taken", "1")).execute());
    var invalid = refused(422, "Invalid", () -> core.createNamespacedConfigMap(namespace, configMap("Not_A_Name", "1")).execute());
    assertEquals("ConfigMap", invalid.getAsJsonObject("details").get("kind").getAsString());
    refused(400, "BadRequest", () -> core.listNamespacedConfigMap(namespace).labelSelector("a in (").execute());
  }

  @Test
  void pagesContainEveryObjectOnce() throws Exception {
    List<String> expected = new ArrayList<>();
    for (int at = 0; at < 25; at++) {
      expected.add(String.format("page-%02d", at));
      core.createNamespacedConfigMap(namespace, configMap(String.format("page-%02d", at), "1")).execute();
    }
    List<String> seen = new ArrayList<>();
    Set<String> versions = new HashSet<>();
    String token = null;
    do {
      V1ConfigMapList page =
          core.listNamespacedConfigMap(namespace).labelSelector("test=yes").limit(10)._continue(token).execute();
      page.getItems().forEach(it -> seen.add(it.getMetadata().getName()));
      versions.add(page.getMetadata().getResourceVersion());
      token = page.getMetadata().getContinue();
    } while (token != null && !token.isEmpty());
    assertEquals(expected, seen);
    assertEquals(1, versions.size());
    core.deleteCollectionNamespacedConfigMap(namespace).labelSelector("test=yes").execute();
    assertTrue(core.listNamespacedConfigMap(namespace).labelSelector("test=yes").execute().getItems().isEmpty());
  }

  @Test
  void deploymentsHaveAStatusAndAScale() throws Exception {
    AppsV1Api apps = new AppsV1Api(client);
    V1Deployment made =
        apps.createNamespacedDeployment(
                namespace,
                new V1Deployment()
                    .metadata(new V1ObjectMeta().name("web"))
                    .spec(
                        new V1DeploymentSpec()
                            .selector(new V1LabelSelector().putMatchLabelsItem("app", "web"))
                            .template(
                                new V1PodTemplateSpec()
                                    .metadata(new V1ObjectMeta().putLabelsItem("app", "web"))
                                    .spec(new V1PodSpec().addContainersItem(new V1Container().name("web").image("web:1"))))))
            .execute();
    assertEquals("RollingUpdate", made.getSpec().getStrategy().getType());
    made.status(new V1DeploymentStatus().observedGeneration(7L)).getSpec().replicas(9);
    V1Deployment observed = apps.replaceNamespacedDeploymentStatus("web", namespace, made).execute();
    assertEquals(7L, observed.getStatus().getObservedGeneration());
    assertEquals(1, observed.getSpec().getReplicas());
    V1Scale scale = apps.readNamespacedDeploymentScale("web", namespace).execute();
    scale.getSpec().setReplicas(3);
    apps.replaceNamespacedDeploymentScale("web", namespace, scale).execute();
    assertEquals(3, apps.readNamespacedDeployment("web", namespace).execute().getSpec().getReplicas());
    assertTrue(new AutoscalingV1Api(client).listNamespacedHorizontalPodAutoscaler(namespace).execute().getItems().isEmpty());
  }

  @Test
  void protobufEqualsJson() throws Exception {
    ProtoClient proto = new ProtoClient(client);
    String path = "/api/v1/namespaces/" + namespace + "/configmaps";
    V1.ConfigMap desired =
        V1.ConfigMap.newBuilder().setMetadata(ObjectMeta.newBuilder().setName("binary")).putData("value", "1").build();
    ProtoClient.ObjectOrStatus<V1.ConfigMap> made = proto.create(desired, path, "v1", "ConfigMap");
    assertEquals("binary", made.object.getMetadata().getName());
    assertEquals("1", core.readNamespacedConfigMap("binary", namespace).execute().getData().get("value"));
    ProtoClient.ObjectOrStatus<V1.ConfigMapList> list = proto.list(V1.ConfigMapList.newBuilder(), path);
    assertTrue(list.object.getItemsList().stream().anyMatch(it -> it.getMetadata().getName().equals("binary")));
    ProtoClient.ObjectOrStatus<V1.ConfigMap> missing = proto.get(V1.ConfigMap.newBuilder(), path + "/missing");
    assertEquals(404, missing.status.getCode());
    assertEquals("NotFound", missing.status.getReason());
  }

  @Test
  void secretsLeasesAndEventsKeepBytesAndMicroseconds() throws Exception {
    V1Secret secret = new V1Secret().metadata(new V1ObjectMeta().name("password")).putStringDataItem("user", "admin");
    secret.putDataItem("key", new byte[] {0, 1, (byte) 255});
    V1Secret stored = core.createNamespacedSecret(namespace, secret).execute();
    assertEquals("admin", new String(stored.getData().get("user")));
    assertEquals(3, stored.getData().get("key").length);

    OffsetDateTime time = OffsetDateTime.parse("2026-01-02T03:04:05.678901Z");
    V1Lease lease = new V1Lease().metadata(new V1ObjectMeta().name("lock")).spec(new V1LeaseSpec().holderIdentity("one").renewTime(time));
    CoordinationV1Api leases = new CoordinationV1Api(client);
    leases.createNamespacedLease(namespace, lease).execute();
    assertEquals(time, leases.readNamespacedLease("lock", namespace).execute().getSpec().getRenewTime());

    core.createNamespacedEvent(
            namespace,
            new CoreV1Event()
                .metadata(new V1ObjectMeta().name("launched"))
                .involvedObject(new V1ObjectReference().kind("Lease").name("lock").namespace(namespace))
                .reason("Launched")
                .message("it floats")
                .type("Normal")
                .eventTime(time)
                .action("Launch")
                .reportingComponent("boatyard")
                .reportingInstance("boatyard-1"))
        .execute();
    assertEquals("it floats", new EventsV1Api(client).readNamespacedEvent("launched", namespace).execute().getNote());
  }

  @Test
  void discoveryWorks() throws Exception {
    assertEquals("1", new VersionApi(client).getCode().execute().getMajor());
    var found = new Discovery(client).findAll();
    assertTrue(found.stream().anyMatch(it -> it.getGroup().equals("apps") && it.getKind().equals("Deployment")));
  }
}
