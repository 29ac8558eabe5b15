package bareboat;

import static bareboat.Server.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.ConfigMapLock;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.Lock;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;

/** Leader election of fabric8, with a Lease and with a ConfigMap. */
class Fabric8LeaderElectionTest extends Fabric8 {
  private final Set<String> leaders = ConcurrentHashMap.newKeySet();

  private CompletableFuture<?> candidate(Lock lock, Duration lease) {
    String identity = lock.identity();
    return client
        .leaderElector()
        .withConfig(
            new LeaderElectionConfigBuilder()
                .withName(identity)
                .withLock(lock)
                .withLeaseDuration(lease)
                .withRenewDeadline(lease.minusSeconds(1))
                .withRetryPeriod(Duration.ofMillis(100))
                .withReleaseOnCancel(true)
                .withLeaderCallbacks(new LeaderCallbacks(() -> leaders.add(identity), () -> leaders.remove(identity), name -> {}))
                .build())
        .build()
        .start();
  }

  private void oneLeadsAfterTheOther(Lock one, Lock two) {
    CompletableFuture<?> first = candidate(one, Duration.ofSeconds(60));
    eventually("the first leads", () -> leaders.contains("one"));
    CompletableFuture<?> second = candidate(two, Duration.ofSeconds(60));
    assertFalse(leaders.contains("two"));
    first.cancel(true);
    eventually("the second leads", () -> leaders.contains("two"));
    assertFalse(leaders.contains("one"));
    second.cancel(true);
    eventually("nobody leads", leaders::isEmpty);
  }

  @Test
  void aLeaseHasOneHolderAtATime() {
    oneLeadsAfterTheOther(new LeaseLock(namespace, "lock", "one"), new LeaseLock(namespace, "lock", "two"));
    var lease = client.leases().inNamespace(namespace).withName("lock").get();
    assertTrue(lease.getSpec().getLeaseTransitions() >= 1);
  }

  @Test
  void aConfigMapHasOneHolderAtATime() {
    oneLeadsAfterTheOther(new ConfigMapLock(namespace, "lock", "one"), new ConfigMapLock(namespace, "lock", "two"));
  }

  @Test
  void aLeaderKeepsItsLeaseAcrossARestartOfTheServer() {
    CompletableFuture<?> leader = candidate(new LeaseLock(namespace, "lock", "one"), Duration.ofSeconds(120));
    eventually("it leads", () -> leaders.contains("one"));
    var before = client.leases().inNamespace(namespace).withName("lock").get().getSpec().getRenewTime();
    Server.restart();
    eventually(
        "it renews",
        () -> client.leases().inNamespace(namespace).withName("lock").get().getSpec().getRenewTime().isAfter(before));
    assertEquals(Set.of("one"), leaders);
    leader.cancel(true);
    eventually("nobody leads", leaders::isEmpty);
  }
}
