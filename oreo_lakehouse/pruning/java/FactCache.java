package oreo.unit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Facts by table, read from the store. A run records its facts before it commits, so one look at the store for every
 * version of a table that a query meets is enough; a file whose facts are not here is read.
 */
public class FactCache {
  private final Configuration conf;
  private final String root;
  private final String bidColumn;
  private final ConcurrentHashMap tables = new ConcurrentHashMap();

  /** `bidColumn`: the column that a layout leaves in a table, "" if it leaves none. */
  public FactCache(Configuration conf, String root, String bidColumn) {
    this.conf = conf;
    this.root = root;
    this.bidColumn = bidColumn;
  }

  /** What is known of a table's files; null for a table that is not maintained. */
  public TableFacts of(String uuid, Object version, Format format, LogicalPlan leaf) throws Exception {
    Entry entry = (Entry) tables.get(uuid);
    if (entry == null) {
      tables.putIfAbsent(uuid, new Entry());
      entry = (Entry) tables.get(uuid);
    }
    if (!entry.seen.contains(version)) {
      look(uuid, version, entry);
      String name = entry.facts != null || bidColumn.isEmpty() ? null : format.named(leaf, bidColumn);
      if (name != null) {
        Warnings.once("the table " + name + " was laid out, but no usable file facts of it are in "
            + new Path(root, uuid) + ": it is not pruned. Check the setting `store`; the next layout records them anew");
      }
    }
    return entry.facts;
  }

  public void forget() {
    tables.clear();
  }

  private void look(String uuid, Object version, Entry entry) {
    synchronized (entry) {
      if (entry.seen.contains(version)) {
        return;
      }
      Path folder = new Path(new Path(root, uuid), "files");
      Map loaded = new HashMap();
      try {
        FileSystem storage = folder.getFileSystem(conf);
        FileStatus[] found;
        try {
          found = storage.listStatus(folder);
        } catch (java.io.FileNotFoundException e) {
          found = new FileStatus[0];
        }
        for (int i = 0; i < found.length; i++) {
          String name = found[i].getPath().getName();
          if (found[i].isFile() && !name.startsWith(".")) {
            Object known = entry.byName.get(name);
            loaded.put(name, known != null ? known : read(storage, found[i]));
          }
        }
      } catch (Exception e) {
        Warnings.once("the store " + root + " cannot be read (" + e + "): queries are not pruned. Check the setting "
            + "`store` and that this session may read it");
      }
      List list = new ArrayList();
      Object[] parsed = loaded.values().toArray();
      for (int i = 0; i < parsed.length; i++) {
        if (parsed[i] instanceof Facts) {
          list.add(parsed[i]);
        }
      }
      entry.byName = loaded;
      entry.facts = list.isEmpty() ? null : new TableFacts(list);
      Set seen = new HashSet(entry.seen.size() > 1000 ? new HashSet() : entry.seen);
      seen.add(version);
      entry.seen = seen;
    }
  }

  private Object read(FileSystem storage, FileStatus file) throws java.io.IOException {
    byte[] content = new byte[(int) file.getLen()];
    org.apache.hadoop.fs.FSDataInputStream stream = storage.open(file.getPath());
    try {
      stream.readFully(0L, content);
    } finally {
      stream.close();
    }
    try {
      return new Facts(content);
    } catch (Exception e) {
      Warnings.once("the file facts " + file.getPath() + " cannot be used (" + e.getMessage() + "): the files that they "
          + "speak of are not pruned. Delete them, or upgrade oreo-lakehouse if a newer release wrote them");
      return "unusable";
    }
  }

  public static class Entry {
    public volatile Set seen = new HashSet();
    public volatile TableFacts facts = null;
    public Map byName = new HashMap();
  }
}
