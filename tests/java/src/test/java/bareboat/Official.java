package bareboat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.Config;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;

/** Base of the official client's tests: a client that reads KUBECONFIG, and a namespace for each test. */
abstract class Official {
  protected ApiClient client;
  protected CoreV1Api core;
  protected String namespace;

  @BeforeEach
  void open() throws Exception {
    client = Config.defaultClient();
    core = new CoreV1Api(client);
    namespace = Server.unique("official");
    core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().name(namespace))).execute();
  }

  @AfterEach
  void close() throws Exception {
    core.deleteNamespace(namespace).execute();
    client.getHttpClient().dispatcher().executorService().shutdown();
    client.getHttpClient().connectionPool().evictAll();
  }

  protected V1ConfigMap configMap(String name, String value) {
    return new V1ConfigMap()
        .apiVersion("v1")
        .kind("ConfigMap")
        .metadata(new V1ObjectMeta().name(name).namespace(namespace).putLabelsItem("test", "yes"))
        .data(Map.of("value", value));
  }

  /** Returns the Status of a rejected call. */
  protected static JsonObject refused(int code, String reason, Executable call) {
    ApiException refused = assertThrows(ApiException.class, call);
    assertEquals(code, refused.getCode(), refused.getResponseBody());
    JsonObject status = JsonParser.parseString(refused.getResponseBody()).getAsJsonObject();
    assertEquals("Status", status.get("kind").getAsString());
    assertEquals(reason, status.get("reason").getAsString());
    return status;
  }
}
