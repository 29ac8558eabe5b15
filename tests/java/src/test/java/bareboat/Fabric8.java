package bareboat;

import static bareboat.Server.eventually;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;

/** Base of the fabric8 tests: a client that reads KUBECONFIG, and a namespace for each test. */
abstract class Fabric8 {
  protected KubernetesClient client;
  protected String namespace;

  @BeforeEach
  void open() {
    client = new KubernetesClientBuilder().build();
    namespace = Server.unique("fabric8");
    client.resource(new NamespaceBuilder().withNewMetadata().withName(namespace).endMetadata().build()).create();
  }

  @AfterEach
  void close() {
    client.namespaces().withName(namespace).delete();
    client.close();
  }

  /** Installs the definition of boats once, and waits until it is served. */
  protected void defineBoats() {
    client
        .apiextensions()
        .v1()
        .customResourceDefinitions()
        .load(Fabric8.class.getResourceAsStream("/boats.yaml"))
        .serverSideApply();
    eventually("boats are served", () -> client.resources(Boat.class).inNamespace(namespace).list() != null);
  }

  protected ConfigMap configMap(String name, Map<String, String> data, Map<String, String> labels) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(name)
        .withNamespace(namespace)
        .withLabels(labels)
        .endMetadata()
        .withData(data)
        .build();
  }

  protected ConfigMap configMap(String name, String value) {
    return configMap(name, Map.of("value", value), Map.of("test", "yes"));
  }

  /** Returns the exception of a rejected call. */
  protected static KubernetesClientException refused(int code, Executable call) {
    KubernetesClientException refused = Assertions.assertThrows(KubernetesClientException.class, call);
    Assertions.assertEquals(code, refused.getCode(), refused.getMessage());
    return refused;
  }
}
