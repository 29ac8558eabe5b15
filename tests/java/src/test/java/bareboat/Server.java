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

/** Helpers for the server under test: unique names, a restart on request, and polling. */
final class Server {
  /** Only a failing test waits this long. */
  static final Duration PATIENCE = Duration.ofSeconds(120);

  private Server() {}

  /** Returns a name that no other test uses. */
  static String unique(String prefix) {
    return prefix + "-" + UUID.randomUUID().toString().substring(0, 8);
  }

  /**
   * Restarts the server with its data. The program that runs these tests does it: it waits for the
   * file that BAREBOAT_RESTART names, restarts the server, and deletes the file when the server is up again.
   */
  static void restart() {
    String request = System.getenv("BAREBOAT_RESTART");
    assumeTrue(request != null, "this server cannot be restarted");
    try {
      Files.createFile(Path.of(request));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    eventually("the server is up again", () -> !Files.exists(Path.of(request)));
  }

  /** Polls until the condition is true. */
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
