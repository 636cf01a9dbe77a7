package oreo.unit;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.iceberg.BaseFileScanTask;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ContentFileParser;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkTableCache;
import org.apache.iceberg.util.ContentFileUtil;
import org.apache.iceberg.util.JsonUtil;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * Whatever touches every file of a table, in one call each: a loop from Python would cross the gateway per file.
 * Compiled by Janino in the running JVM, hence without generics and lambdas. Files travel as Iceberg's own JSON.
 */
public class IcebergFiles {
  private static final ObjectMapper JSON = JsonUtil.mapper();

  public List plan(Table table, long snapshot, boolean statistics) throws Exception {
    TableScan scan = (TableScan) table.newScan().useSnapshot(snapshot);
    if (statistics) {
      scan = (TableScan) scan.includeColumnStats();
    }
    List tasks = new ArrayList();
    CloseableIterable planned = scan.planFiles();
    try {
      for (Iterator i = planned.iterator(); i.hasNext(); ) {
        tasks.add(i.next());
      }
    } finally {
      planned.close();
    }
    return tasks;
  }

  /** The tasks of those files that a snapshot added, in the state that it left them. */
  public List addedTasks(Table table, long snapshot) throws Exception {
    Set added = new HashSet();
    for (Iterator i = table.snapshot(snapshot).addedDataFiles(table.io()).iterator(); i.hasNext(); ) {
      added.add(((DataFile) i.next()).location());
    }
    List tasks = plan(table, snapshot, false);
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      if (!added.contains(((DataFile) ((FileScanTask) i.next()).file()).location())) {
        i.remove();
      }
    }
    return tasks;
  }

  public List dataFiles(List tasks) {
    List files = new ArrayList();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      files.add(((FileScanTask) i.next()).file());
    }
    return files;
  }

  public List paths(List tasks) {
    List paths = new ArrayList();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      paths.add(((DataFile) ((FileScanTask) i.next()).file()).location());
    }
    return paths;
  }

  /** [rows, bytes, files, delete files] of the tasks. */
  public String totals(List tasks) {
    long rows = 0, bytes = 0;
    Set deletes = new HashSet();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      rows += ((DataFile) task.file()).recordCount();
      bytes += ((DataFile) task.file()).fileSizeInBytes();
      for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
        deletes.add(identity((DeleteFile) d.next()));
      }
    }
    return "[" + rows + "," + bytes + "," + tasks.size() + "," + deletes.size() + "]";
  }

  /** The replaced files: what else must stay true of them, each data file with its position deletes, dropped deletes. */
  public String describeReplaced(Table table, long base, int formatVersion, List tasks) {
    ObjectNode head = JSON.createObjectNode();
    head.put("snapshot", base);
    head.put("sequence", table.snapshot(base).sequenceNumber());
    head.put("format-version", formatVersion);
    ArrayNode equality = head.putArray("equality-deletes");
    ArrayNode all = JSON.createArrayNode();
    all.addObject().set("base", head);
    Set seen = new HashSet();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      ObjectNode entry = all.addObject();
      entry.set("file", parse(json(table, (ContentFile) task.file())));
      entry.put("positions", positions(task));
      for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
        DeleteFile delete = (DeleteFile) d.next();
        if (!seen.add(identity(delete))) {
          continue;
        }
        if (delete.content() == FileContent.EQUALITY_DELETES) {
          equality.add(delete.location());
        } else if (ContentFileUtil.isFileScoped(delete)) {
          all.addObject().set("file", parse(json(table, (ContentFile) delete.copyWithoutStats())));
        }
      }
    }
    return all.toString();
  }

  public String describe(Table table, Collection files) {
    ArrayNode all = JSON.createArrayNode();
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      all.add(parse(json(table, (ContentFile) i.next())));
    }
    return all.toString();
  }

  /** Register tasks under a name that Spark's Iceberg reader and writer accept in the place of a table's. */
  public void open(Table table, String group, List tasks) {
    SparkTableCache.get().add(group, table);
    ScanTaskSetManager.get().stageTasks(table, group, tasks);
  }

  public Set written(Table table, String group) {
    return FileRewriteCoordinator.get().fetchNewFiles(table, group);
  }

  public void close(Table table, String group) {
    SparkTableCache.get().remove(group);
    ScanTaskSetManager.get().removeTasks(table, group);
    FileRewriteCoordinator.get().clearRewrite(table, group);
  }

  /** Read tasks over staged files. Row lineage is read from the files themselves only where these two are set. */
  public List stagedTasks(Table table, String added, long sequence) throws Exception {
    String schema = SchemaParser.toJson(table.schema());
    ResidualEvaluator all = ResidualEvaluator.unpartitioned(Expressions.alwaysTrue());
    List tasks = new ArrayList();
    for (Iterator i = JSON.readTree(added).elements(); i.hasNext(); ) {
      DataFile file = (DataFile) file(table, (JsonNode) i.next());
      PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(file.specId()));
      file = new DataFiles.Builder(spec).copy(file).withFirstRowId(Long.valueOf(0)).build();
      set(file, "setDataSequenceNumber", sequence);
      set(file, "setFileSequenceNumber", sequence);
      tasks.add(new BaseFileScanTask(file, new DeleteFile[0], schema, PartitionSpecParser.toJson(spec), all));
    }
    return tasks;
  }

  private static void set(DataFile file, String setter, long value) throws Exception {
    java.lang.reflect.Method method = file.getClass().getMethod(setter, new Class[] {Long.class});
    method.setAccessible(true); // public, in a class that is not
    method.invoke(file, new Object[] {Long.valueOf(value)});
  }

  /** Why the replaced files cannot be replaced in this snapshot any more, or null if they can. */
  public String obstacle(Table table, long snapshot, String replaced, Collection staged) throws Exception {
    Map missing = new LinkedHashMap();
    Set equality = new HashSet();
    for (Iterator i = JSON.readTree(replaced).elements(); i.hasNext(); ) {
      JsonNode entry = (JsonNode) i.next();
      if (entry.has("positions")) {
        missing.put(entry.get("file").get("file-path").asText(), entry.get("positions").asText());
      } else if (entry.has("base")) {
        for (Iterator e = entry.get("base").get("equality-deletes").elements(); e.hasNext(); ) {
          equality.add(((JsonNode) e.next()).asText());
        }
      }
    }
    Set fresh = new HashSet(staged);
    for (Iterator i = plan(table, snapshot, false).iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      String path = ((DataFile) task.file()).location();
      if (fresh.contains(path)) {
        return "a staged file is part of the table already: " + path;
      }
      Object before = missing.remove(path);
      if (before != null && !before.equals(positions(task))) {
        return "rows of a replaced file were deleted or updated: " + path;
      }
      for (Iterator d = task.deletes().iterator(); !equality.isEmpty() && d.hasNext(); ) {
        equality.remove(((DeleteFile) d.next()).location());
      }
    }
    if (!missing.isEmpty()) {
      Object first = missing.keySet().iterator().next();
      return missing.size() + " of the replaced files left the table, such as " + first;
    }
    return equality.isEmpty() ? null : "an equality delete that applied left the table: " + equality.iterator().next();
  }

  /** One `replace` snapshot. Files count as old as their snapshot of origin, so later equality deletes still apply. */
  public void replace(Table table, long from, long sequence, String replaced, String added, Map summary)
      throws Exception {
    RewriteFiles rewrite = table.newRewrite().validateFromSnapshot(from).dataSequenceNumber(sequence);
    for (Iterator i = JSON.readTree(replaced).elements(); i.hasNext(); ) {
      JsonNode entry = (JsonNode) i.next();
      if (entry.has("file")) {
        ContentFile file = file(table, entry.get("file"));
        if (file.content() == FileContent.DATA) {
          rewrite.deleteFile((DataFile) file);
        } else {
          rewrite.deleteFile((DeleteFile) file);
        }
      }
    }
    for (Iterator i = JSON.readTree(added).elements(); i.hasNext(); ) {
      rewrite.addFile((DataFile) file(table, (JsonNode) i.next()));
    }
    for (Iterator i = summary.entrySet().iterator(); i.hasNext(); ) {
      Map.Entry entry = (Map.Entry) i.next();
      rewrite.set((String) entry.getKey(), (String) entry.getValue());
    }
    rewrite.commit();
  }

  /** Every snapshot with those summary entries whose key begins with the prefix; `main` marks the current history. */
  public String snapshots(Table table, String prefix) {
    Set main = new HashSet(SnapshotUtil.currentAncestorIds(table));
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

  /** Those of the paths that any retained snapshot refers to. */
  public List referenced(Table table, Collection paths) throws Exception {
    Set wanted = new HashSet(paths);
    List found = new ArrayList();
    Set seen = new HashSet();
    for (Iterator i = table.snapshots().iterator(); i.hasNext(); ) {
      List manifests = ((Snapshot) i.next()).dataManifests(table.io());
      for (Iterator m = manifests.iterator(); m.hasNext(); ) {
        ManifestFile manifest = (ManifestFile) m.next();
        if (!seen.add(manifest.path())) {
          continue;
        }
        CloseableIterable live = ManifestFiles.readPaths(manifest, table.io());
        try {
          for (Iterator p = live.iterator(); p.hasNext(); ) {
            String path = (String) p.next();
            if (wanted.contains(path)) {
              found.add(path);
            }
          }
        } finally {
          live.close();
        }
      }
    }
    return found;
  }

  /** How many of the files were there and are gone now. */
  public int delete(Table table, Collection paths) throws Exception {
    Set absent = new HashSet(absent(table, paths));
    int deleted = 0;
    for (Iterator i = paths.iterator(); i.hasNext(); ) {
      String path = (String) i.next();
      if (!absent.contains(path)) {
        table.io().deleteFile(path);
        deleted++;
      }
    }
    return deleted;
  }

  /** Those of the paths that are not on storage; asked in parallel, because each question may be a network call. */
  public List absent(Table table, Collection paths) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(16);
    try {
      List asked = new ArrayList();
      for (Iterator i = paths.iterator(); i.hasNext(); ) {
        asked.add(pool.submit((Callable) new Presence(table.io(), (String) i.next())));
      }
      List absent = new ArrayList();
      for (Iterator i = asked.iterator(); i.hasNext(); ) {
        Object path = ((Future) i.next()).get();
        if (path != null) {
          absent.add(path);
        }
      }
      return absent;
    } finally {
      pool.shutdown();
    }
  }

  public static class Presence implements Callable {
    private final FileIO io;
    private final String path;

    public Presence(FileIO io, String path) {
      this.io = io;
      this.path = path;
    }

    public Object call() {
      return io.newInputFile(path).exists() ? null : path;
    }
  }

  public byte[] read(Table table, String path) throws Exception {
    java.io.InputStream stream = table.io().newInputFile(path).newStream();
    try {
      return stream.readAllBytes();
    } finally {
      stream.close();
    }
  }

  private static String json(Table table, ContentFile file) {
    return ContentFileParser.toJson(file, (PartitionSpec) table.specs().get(Integer.valueOf(file.specId())));
  }

  private static ContentFile file(Table table, JsonNode node) {
    return ContentFileParser.fromJson(node, table.specs());
  }

  private static JsonNode parse(String text) {
    try {
      return JSON.readTree(text);
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static String identity(DeleteFile delete) {
    Long offset = delete.contentOffset();
    return offset == null ? delete.location() : delete.location() + "#" + offset;
  }

  private static String positions(FileScanTask task) {
    Set found = new TreeSet();
    for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
      DeleteFile delete = (DeleteFile) d.next();
      if (delete.content() == FileContent.POSITION_DELETES) {
        found.add(identity(delete));
      }
    }
    return String.join("\n", found);
  }
}
