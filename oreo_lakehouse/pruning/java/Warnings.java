package oreo.unit;

import java.util.Collections;
import java.util.HashSet;
import java.util.Set;

/** Says each thing once, in Spark's own log. */
public class Warnings {
  private static final Set said = Collections.synchronizedSet(new HashSet());
  /** What was said, for whoever asks. */
  public static String all() {
    return String.join("\n", said);
  }

  public static void once(String message) {
    if (said.add(message)) {
      org.slf4j.LoggerFactory.getLogger("oreo_lakehouse.pruning").warn("oreo: " + message + ".");
    }
  }
}
