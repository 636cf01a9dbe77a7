package oreo.unit;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.LocationProviders;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkTableCache;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.JsonUtil;

/**
 * What a table holds, in one call for all its files: a loop from Python would cross the gateway once a file. Compiled
 * by Janino in the running JVM, hence without generics and lambdas.
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

  /** Bytes by top-level column in the first so many data files, as far as manifests tell them. */
  public String columnBytes(Table table, int most) throws Exception {
    Map owners = new HashMap();
    for (Iterator i = table.schema().columns().iterator(); i.hasNext(); ) {
      Types.NestedField column = (Types.NestedField) i.next();
      Map inside = TypeUtil.indexById(Types.StructType.of(Collections.singletonList(column)));
      for (Iterator id = inside.keySet().iterator(); id.hasNext(); ) {
        owners.put(id.next(), column.name());
      }
    }
    Map sums = new HashMap();
    TableScan scan = (TableScan) table.newScan().includeColumnStats();
    CloseableIterable planned = scan.planFiles();
    try {
      int seen = 0;
      for (Iterator i = planned.iterator(); i.hasNext() && seen < most; seen++) {
        Map sizes = file(i.next()).columnSizes();
        for (Iterator e = sizes == null ? Collections.emptyIterator() : sizes.entrySet().iterator(); e.hasNext(); ) {
          Map.Entry entry = (Map.Entry) e.next();
          Object name = owners.get(entry.getKey());
          if (name != null) {
            long before = sums.containsKey(name) ? ((Long) sums.get(name)).longValue() : 0L;
            sums.put(name, Long.valueOf(before + ((Long) entry.getValue()).longValue()));
          }
        }
      }
    } finally {
      planned.close();
    }
    return JSON.writeValueAsString(sums);
  }

  /** Those of the tasks whose data file is one of the paths. */
  public List only(List tasks, Collection paths) {
    Set wanted = new HashSet(paths);
    List kept = new ArrayList();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      Object task = i.next();
      if (wanted.contains(file(task).location())) {
        kept.add(task);
      }
    }
    return kept;
  }

  public List dataFiles(List tasks) {
    List files = new ArrayList();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      files.add(file(i.next()));
    }
    return files;
  }

  /** The paths of the tasks' data files, as JSON. */
  public String locations(List tasks) {
    ArrayNode paths = JSON.createArrayNode();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      paths.add(file(i.next()).location());
    }
    return paths.toString();
  }

  /** [rows, bytes, files, delete files] of the tasks. */
  public String totals(List tasks) {
    long rows = 0, bytes = 0;
    Set deletes = new HashSet();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      rows += file(task).recordCount();
      bytes += file(task).fileSizeInBytes();
      for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
        DeleteFile delete = (DeleteFile) d.next();
        deletes.add(delete.location() + "#" + delete.contentOffset());
      }
    }
    return "[" + rows + "," + bytes + "," + tasks.size() + "," + deletes.size() + "]";
  }

  /** Register tasks under a name that Spark's Iceberg reader and writer accept in the place of a table's. */
  public void open(Table table, String group, List tasks, String folder) {
    SparkTableCache.get().add(group, folder == null ? table : new Apart(table, folder));
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

  /** Those of the paths that any retained snapshot refers to, as JSON. */
  public String referenced(Table table, Collection paths) throws Exception {
    Set wanted = new HashSet(paths);
    ArrayNode found = JSON.createArrayNode();
    for (Iterator i = mentioned(table, "").iterator(); i.hasNext(); ) {
      Object path = i.next();
      if (wanted.contains(path)) {
        found.add((String) path);
      }
    }
    return found.toString();
  }

  /** Delete the files in a run's folder that no retained snapshot refers to; how many that were. */
  public int sweep(Table table, String folder) throws Exception {
    if (!(table.io() instanceof SupportsPrefixOperations)) {
      return 0;
    }
    SupportsPrefixOperations storage = (SupportsPrefixOperations) table.io();
    String mark = folder.substring(folder.lastIndexOf('/')) + "/";
    Set kept = new HashSet(); // by what follows the run's folder, since a storage may spell the rest otherwise
    for (Iterator i = mentioned(table, mark).iterator(); i.hasNext(); ) {
      String path = (String) i.next();
      kept.add(path.substring(path.indexOf(mark) + mark.length()));
    }
    List stray = new ArrayList();
    try {
      for (Iterator i = storage.listPrefix(folder + "/").iterator(); i.hasNext(); ) {
        String path = ((FileInfo) i.next()).location();
        if (!kept.contains(path.substring(path.indexOf(mark) + mark.length()))) {
          stray.add(path);
        }
      }
    } catch (java.io.UncheckedIOException none) { // it never wrote
      return 0;
    }
    for (Iterator i = stray.iterator(); i.hasNext(); ) {
      storage.deleteFile((String) i.next());
    }
    if (kept.isEmpty()) {
      storage.deletePrefix(folder + "/"); // what is left are empty folders
    }
    return stray.size();
  }

  /** The paths with `part` in them that any retained snapshot refers to. */
  private static Set mentioned(Table table, String part) throws Exception {
    Set found = new HashSet();
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
            if (path.contains(part)) {
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

  /** The table, with a folder of its own for the data files that are written through it. */
  public static class Apart extends BaseTable {
    private final Map properties;

    public Apart(Table table, String folder) {
      super(((HasTableOperations) table).operations(), table.name());
      properties = new HashMap(table.properties());
      properties.put("write.data.path", folder);
    }

    public Map properties() {
      return properties;
    }

    public LocationProvider locationProvider() {
      return LocationProviders.locationsFor(location(), properties);
    }
  }

  /** Delete what is there of the paths; how many that were. */
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

  public List texts(String json) throws Exception {
    return (List) JSON.readValue(json, ArrayList.class);
  }

  public byte[] read(Table table, String path) throws Exception {
    java.io.InputStream stream = table.io().newInputFile(path).newStream();
    try {
      return stream.readAllBytes();
    } finally {
      stream.close();
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

  private static DataFile file(Object task) {
    return (DataFile) ((FileScanTask) task).file();
  }
}
