package bareboat;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.List;

/** A custom kind as users of fabric8 and of the operator SDK write one. */
@Group(Boat.GROUP)
@Version("v1")
public class Boat extends CustomResource<Boat.Spec, Boat.Status> implements Namespaced {
  static final String GROUP = "java.bareboat.example";

  /** What is asked for. */
  public static class Spec {
    public Integer length;
    public Integer sails;
    public List<String> crew;
  }

  /** What was observed. */
  public static class Status {
    public Integer sails;
    public String phase;
    public Long observedGeneration;
  }

  /** A boat that was not sent anywhere yet. */
  static Boat of(String name, int length) {
    Boat boat = new Boat();
    boat.getMetadata().setName(name);
    boat.setSpec(new Spec());
    boat.getSpec().length = length;
    return boat;
  }
}
