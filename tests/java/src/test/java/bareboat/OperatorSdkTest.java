package bareboat;

import static bareboat.Server.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.EventBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.config.LeaderElectionConfigurationBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.KubernetesDependent;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** An operator written with the Java Operator SDK: a dependent object, a status, a finalizer, events, a leader. */
class OperatorSdkTest extends Fabric8 {
  private Operator operator;

  /** The cargo of a boat, written with server-side apply. */
  @KubernetesDependent
  public static class Cargo extends CRUDKubernetesDependentResource<ConfigMap, Boat> {
    @Override
    protected ConfigMap desired(Boat boat, Context<Boat> context) {
      return new ConfigMapBuilder()
          .withNewMetadata()
          .withName("cargo-of-" + boat.getMetadata().getName())
          .withNamespace(boat.getMetadata().getNamespace())
          .endMetadata()
          .withData(Map.of("length", String.valueOf(boat.getSpec().length)))
          .build();
    }
  }

  /** Reconciles boats, and creates a wreck on deletion. */
  @Workflow(dependents = @Dependent(type = Cargo.class))
  @ControllerConfiguration
  public static class Boatyard implements Reconciler<Boat>, Cleaner<Boat> {
    @Override
    public UpdateControl<Boat> reconcile(Boat boat, Context<Boat> context) {
      if (boat.getStatus() == null) {
        launched(boat, context.getClient());
      }
      Boat patch = new Boat();
      patch.getMetadata().setName(boat.getMetadata().getName());
      patch.getMetadata().setNamespace(boat.getMetadata().getNamespace());
      patch.setStatus(new Boat.Status());
      patch.getStatus().phase = "Floating with " + boat.getSpec().sails;
      patch.getStatus().observedGeneration = boat.getMetadata().getGeneration();
      return UpdateControl.patchStatus(patch);
    }

    private static void launched(Boat boat, KubernetesClient client) {
      client
          .resource(
              new EventBuilder()
                  .withNewMetadata()
                  .withGenerateName(boat.getMetadata().getName() + "-")
                  .withNamespace(boat.getMetadata().getNamespace())
                  .endMetadata()
                  .withNewInvolvedObject()
                  .withApiVersion(boat.getApiVersion())
                  .withKind(boat.getKind())
                  .withNamespace(boat.getMetadata().getNamespace())
                  .withName(boat.getMetadata().getName())
                  .withUid(boat.getMetadata().getUid())
                  .endInvolvedObject()
                  .withReason("Launched")
                  .withType("Normal")
                  .build())
          .create();
    }

    @Override
    public DeleteControl cleanup(Boat boat, Context<Boat> context) {
      context
          .getClient()
          .resource(
              new ConfigMapBuilder()
                  .withNewMetadata()
                  .withName("wreck-of-" + boat.getMetadata().getName())
                  .withNamespace(boat.getMetadata().getNamespace())
                  .endMetadata()
                  .build())
          .serverSideApply();
      return DeleteControl.defaultDelete();
    }
  }

  @BeforeEach
  void start() {
    defineBoats();
    operator =
        new Operator(
            settings ->
                settings
                    .withKubernetesClient(client)
                    .withCloseClientOnStop(false)
                    .withLeaderElectionConfiguration(
                        LeaderElectionConfigurationBuilder.aLeaderElectionConfiguration("boatyard")
                            .withLeaseNamespace(namespace)
                            .withLeaseDuration(Duration.ofSeconds(60))
                            .withRenewDeadline(Duration.ofSeconds(50))
                            .withRetryPeriod(Duration.ofMillis(500))
                            .buildForTest(false)));
    operator.register(new Boatyard(), controller -> controller.settingNamespace(namespace));
    operator.start();
  }

  @AfterEach
  void stop() {
    operator.stop();
  }

  private ConfigMap configMap(String name) {
    return client.configMaps().inNamespace(namespace).withName(name).get();
  }

  private Boat boat() {
    return client.resources(Boat.class).inNamespace(namespace).withName("ada").get();
  }

  private void reaches(String phase) {
    eventually(phase, () -> boat().getStatus() != null && phase.equals(boat().getStatus().phase));
  }

  @Test
  void anOperatorHandlesAnObjectFromCreationToDeletion() {
    client.resource(Boat.of("ada", 9)).inNamespace(namespace).create();
    reaches("Floating with 2");
    Boat made = boat();
    assertFalse(made.getMetadata().getFinalizers().isEmpty(), "the cleaner has a finalizer");
    ConfigMap cargo = configMap("cargo-of-ada");
    assertEquals(Map.of("length", "9"), cargo.getData());
    assertEquals(made.getMetadata().getUid(), cargo.getMetadata().getOwnerReferences().get(0).getUid());
    assertEquals(
        1,
        client.v1().events().inNamespace(namespace).withField("involvedObject.uid", made.getMetadata().getUid()).list().getItems().size());

    client.resources(Boat.class).inNamespace(namespace).withName("ada").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"length\":10}}");
    eventually("the cargo follows", () -> "10".equals(configMap("cargo-of-ada").getData().get("length")));
    client.configMaps().inNamespace(namespace).withName("cargo-of-ada").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"length\":\"77\"}}");
    eventually("the drift is undone", () -> "10".equals(configMap("cargo-of-ada").getData().get("length")));

    client.resources(Boat.class).inNamespace(namespace).withName("ada").delete();
    eventually("the boat is gone", () -> boat() == null);
    eventually("its cargo is gone", () -> configMap("cargo-of-ada") == null);
    assertEquals("wreck-of-ada", configMap("wreck-of-ada").getMetadata().getName());
  }

  @Test
  void anOperatorContinuesAfterARestartOfTheServer() {
    client.resource(Boat.of("ada", 9)).inNamespace(namespace).create();
    reaches("Floating with 2");
    Server.restart();
    eventually(
        "the server answers",
        () ->
            client
                    .resources(Boat.class)
                    .inNamespace(namespace)
                    .withName("ada")
                    .patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"sails\":3}}")
                != null);
    reaches("Floating with 3");
    client.resources(Boat.class).inNamespace(namespace).withName("ada").delete();
    eventually("the boat is gone", () -> boat() == null);
    assertNull(boat());
  }
}
