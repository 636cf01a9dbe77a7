package oreo.unit;

import java.util.Map;
import java.util.function.Consumer;
import org.apache.iceberg.events.CreateSnapshotEvent;
import org.apache.iceberg.events.Listener;
import org.apache.iceberg.events.Listeners;

/**
 * Sees every commit that this JVM makes to Iceberg tables, on the thread that made it, and passes on the tables whose
 * data files were replaced by somebody else than us. Spark has no event of a CALL, but Iceberg has one of each snapshot.
 * Iceberg cannot forget a listener, so a closed one stays and passes its tables on to nobody.
 */
public class IcebergWatch implements Listener {
  private final Consumer rewritten;

  public IcebergWatch(Consumer rewritten) {
    this.rewritten = rewritten;
    Listeners.register(this, CreateSnapshotEvent.class);
  }

  public void notify(Object event) {
    try {
      CreateSnapshotEvent made = (CreateSnapshotEvent) event;
      Map summary = made.summary();
      // Manifests and delete files can be replaced alone, which leaves every row where it was.
      boolean data = "replace".equals(made.operation()) && summary.containsKey("deleted-data-files");
      if (data && !summary.containsKey("oreo.run-id")) {
        rewritten.accept(named(made.tableName()));
      }
    } catch (Throwable e) {
      return; // the commit has landed, and its writer must not hear of our troubles
    }
  }

  private static String named(String table) {
    if (table.indexOf('/') >= 0) {
      return table; // loaded by its location
    }
    StringBuilder name = new StringBuilder();
    String[] parts = table.split("\\.");
    for (int i = 0; i < parts.length; i++) {
      boolean plain = parts[i].matches("[A-Za-z_][A-Za-z0-9_]*");
      name.append(i > 0 ? "." : "").append(plain ? parts[i] : "`" + parts[i].replace("`", "``") + "`");
    }
    return name.toString();
  }
}
