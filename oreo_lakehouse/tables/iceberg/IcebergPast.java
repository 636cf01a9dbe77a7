package oreo.unit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.util.JsonUtil;
import org.apache.iceberg.util.SnapshotUtil;

/** What a table's snapshots tell of its past, in one call for all of them. Janino: no generics, no lambdas. */
public class IcebergPast {
  private static final ObjectMapper JSON = JsonUtil.mapper();

  /** The paths of the data files that a snapshot added, or of those that it removed, as JSON. */
  public String changed(Table table, long snapshot, boolean added) {
    Snapshot made = table.snapshot(snapshot);
    ArrayNode paths = JSON.createArrayNode();
    Iterable files = added ? made.addedDataFiles(table.io()) : made.removedDataFiles(table.io());
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      paths.add(((DataFile) i.next()).location());
    }
    return paths.toString();
  }

  /** Every snapshot with those summary entries whose key begins with the prefix; `main` marks the current history. */
  public String snapshots(Table table, String prefix, String tag) throws Exception {
    Set main = history(table, prefix, tag);
    ArrayNode all = JSON.createArrayNode();
    for (Iterator i = table.snapshots().iterator(); i.hasNext(); ) {
      Snapshot snapshot = (Snapshot) i.next();
      ObjectNode entry = all.addObject();
      entry.put("id", snapshot.snapshotId());
      entry.put("millis", snapshot.timestampMillis());
      entry.put("main", main.contains(Long.valueOf(snapshot.snapshotId())));
      ObjectNode summary = entry.putObject("summary");
      for (Iterator s = snapshot.summary().entrySet().iterator(); s.hasNext(); ) {
        Map.Entry property = (Map.Entry) s.next();
        if (((String) property.getKey()).startsWith(prefix)) {
          summary.put((String) property.getKey(), (String) property.getValue());
        }
      }
    }
    return all.toString();
  }

  /**
   * The snapshots that the current one comes from. Where expiry has cut that chain, those before the cut count which
   * one of our tags has kept, from the newest on whose files are still live: a layout that somebody rolled back is none.
   */
  private static Set history(Table table, String prefix, String tag) throws Exception {
    Set main = new HashSet();
    Snapshot oldest = null;
    boolean ours = false;
    for (Iterator i = SnapshotUtil.currentAncestors(table).iterator(); i.hasNext(); ) {
      oldest = (Snapshot) i.next();
      main.add(Long.valueOf(oldest.snapshotId()));
      ours = ours || String.join(" ", oldest.summary().keySet()).contains(prefix);
    }
    if (oldest == null || oldest.parentId() == null) {
      return main;
    }
    Set tagged = new HashSet();
    for (Iterator i = table.refs().entrySet().iterator(); i.hasNext(); ) {
      Map.Entry ref = (Map.Entry) i.next();
      if (((String) ref.getKey()).startsWith(tag)) {
        tagged.add(Long.valueOf(((SnapshotRef) ref.getValue()).snapshotId()));
      }
    }
    List all = new ArrayList();
    for (Iterator i = table.snapshots().iterator(); i.hasNext(); ) {
      all.add(i.next());
    }
    Collections.reverse(all);
    for (Iterator i = all.iterator(); i.hasNext(); ) {
      Snapshot snapshot = (Snapshot) i.next();
      Long id = Long.valueOf(snapshot.snapshotId());
      if (tagged.contains(id) && !main.contains(id) && snapshot.timestampMillis() < oldest.timestampMillis()) {
        ours = ours || isLive(table, snapshot);
        if (ours) {
          main.add(id);
        }
      }
    }
    return main;
  }

  /** Whether any file that a snapshot added is still part of the table. */
  private static boolean isLive(Table table, Snapshot snapshot) throws Exception {
    Set added = new HashSet();
    for (Iterator i = snapshot.addedDataFiles(table.io()).iterator(); i.hasNext(); ) {
      added.add(((DataFile) i.next()).location());
    }
    CloseableIterable planned = table.newScan().planFiles();
    try {
      for (Iterator i = planned.iterator(); i.hasNext(); ) {
        if (added.contains(((DataFile) ((FileScanTask) i.next()).file()).location())) {
          return true;
        }
      }
    } finally {
      planned.close();
    }
    return false;
  }

  /**
   * Snapshots without our mark, since one of ours in the current history, that removed files which one with the mark
   * had added, as JSON; null when that one is not in the current history.
   */
  public String foreign(Table table, long since, String mark) {
    List chain = new ArrayList();
    boolean reached = false;
    for (Iterator i = SnapshotUtil.currentAncestors(table).iterator(); i.hasNext() && !reached; ) {
      Snapshot snapshot = (Snapshot) i.next();
      chain.add(0, snapshot);
      reached = snapshot.snapshotId() == since;
    }
    if (!reached) {
      return null;
    }
    Set ours = new HashSet();
    ArrayNode found = JSON.createArrayNode();
    for (Iterator i = chain.iterator(); i.hasNext(); ) {
      Snapshot snapshot = (Snapshot) i.next();
      boolean marked = snapshot.summary().containsKey(mark);
      if (!marked && "append".equals(snapshot.operation())) {
        continue;
      }
      ArrayNode left = JSON.createArrayNode();
      for (Iterator f = snapshot.removedDataFiles(table.io()).iterator(); f.hasNext(); ) {
        String path = ((DataFile) f.next()).location();
        if (ours.remove(path)) {
          left.add(path);
        }
      }
      if (marked) {
        for (Iterator f = snapshot.addedDataFiles(table.io()).iterator(); f.hasNext(); ) {
          ours.add(((DataFile) f.next()).location());
        }
      } else if (!left.isEmpty()) {
        ObjectNode entry = found.addObject();
        entry.put("id", snapshot.snapshotId());
        entry.put("millis", snapshot.timestampMillis());
        entry.put("operation", snapshot.operation());
        entry.set("files", left);
      }
    }
    return found.toString();
  }
}
