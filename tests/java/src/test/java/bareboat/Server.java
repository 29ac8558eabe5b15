package bareboat;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.Callable;

/** The server under test: names nobody else uses, a restart on request, and waiting for a condition. */
final class Server {
  /** Only a test that fails waits so long. */
  static final Duration PATIENCE = Duration.ofSeconds(120);

  private Server() {}

  /** A name that no other test uses. */
  static String unique(String prefix) {
    return prefix + "-" + UUID.randomUUID().toString().substring(0, 8);
  }

  /**
   * Has the server killed and started again on its data. The program that runs these tests does it: it waits for the
   * file that BAREBOAT_RESTART names, and deletes it when the server is up again.
   */
  static void restart() {
    String request = System.getenv("BAREBOAT_RESTART");
    assumeTrue(request != null, "nobody can restart this server");
    try {
      Files.createFile(Path.of(request));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    eventually("the server is up again", () -> !Files.exists(Path.of(request)));
  }

  /** Asks until the answer is yes. */
  static void eventually(String what, Callable<Boolean> condition) {
    Instant deadline = Instant.now().plus(PATIENCE);
    Exception last = null;
    while (Instant.now().isBefore(deadline)) {
      try {
        if (condition.call()) {
          return;
        }
        last = null;
      } catch (Exception error) {
        last = error;
      }
      try {
        Thread.sleep(20);
      } catch (InterruptedException ended) {
        throw new AssertionError("interrupted before: " + what, last);
      }
    }
    throw new AssertionError("not within " + PATIENCE + ": " + what, last);
  }
}
