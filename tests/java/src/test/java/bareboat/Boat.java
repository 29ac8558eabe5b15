package bareboat;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.List;

/** A custom kind for fabric8 and the operator SDK. */
@Group(Boat.GROUP)
@Version("v1")
public class Boat extends CustomResource<Boat.Spec, Boat.Status> implements Namespaced {
  static final String GROUP = "java.bareboat.example";

  /** The desired state. */
  public static class Spec {
    public Integer length;
    public Integer sails;
    public List<String> crew;
  }

  /** The observed state. */
  public static class Status {
    public Integer sails;
    public String phase;
    public Long observedGeneration;
  }

  /** Returns a boat that was not created yet. */
  static Boat of(String name, int length) {
    Boat boat = new Boat();
    boat.getMetadata().setName(name);
    boat.setSpec(new Spec());
    boat.getSpec().length = length;
    return boat;
  }
}
