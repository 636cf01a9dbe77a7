package oreo.unit;
import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.*;
import org.apache.spark.sql.delta.actions.*;
import org.apache.spark.sql.delta.stats.*;
import org.apache.spark.sql.execution.metric.*;
import scala.Option;

/** Delta's file actions in bulk: lists stay in the JVM, and Python holds handles on them. Janino: no generics. */
public class Actions {
  public static scala.collection.immutable.Seq seq(List items) {
    return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
  }

  public List parse(String lines) {
    List actions = new ArrayList();
    String[] each = lines.split("\n");
    for (int i = 0; i < each.length; i++)
      if (!each[i].isEmpty()) actions.add(Action$.MODULE$.fromJson(each[i]));
    return actions;
  }

  public List list(scala.collection.immutable.Seq actions) {
    return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(actions));
  }

  public String json(List actions) {
    StringBuilder lines = new StringBuilder();
    for (Iterator i = actions.iterator(); i.hasNext();) lines.append(((Action) i.next()).json()).append('\n');
    return lines.toString();
  }

  /** A file is the same file only with the same deletion vector. */
  public static String key(AddFile file) {
    Option vector = file.getDeletionVectorUniqueId();
    return file.path() + (vector.isDefined() ? " " + vector.get() : "");
  }

  public String keys(List files) {
    StringBuilder lines = new StringBuilder();
    for (Iterator i = files.iterator(); i.hasNext();) lines.append(key((AddFile) i.next())).append('\n');
    return lines.toString();
  }

  /** The files with one of the keys, or those with none of them. */
  public List select(List files, String keys, boolean inside) {
    Set wanted = new HashSet(Arrays.asList(keys.split("\n")));
    List chosen = new ArrayList();
    for (Iterator i = files.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      if (wanted.contains(key(file)) == inside) chosen.add(file);
    }
    return chosen;
  }

  /** The files with one of the paths. */
  public List at(List files, String paths) {
    Set wanted = new HashSet(Arrays.asList(paths.split("\n")));
    List chosen = new ArrayList();
    for (Iterator i = files.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      if (wanted.contains(file.path())) chosen.add(file);
    }
    return chosen;
  }

  /** The partitions, each a map of values, that the files with these paths are in. */
  public Set partitions(List files, String paths) {
    Set found = new HashSet();
    for (Iterator i = at(files, paths).iterator(); i.hasNext();) found.add(((AddFile) i.next()).partitionValues());
    return found;
  }

  /** The files in one of the partitions. */
  public List inside(List files, Set partitions) {
    List chosen = new ArrayList();
    for (Iterator i = files.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      if (partitions.contains(file.partitionValues())) chosen.add(file);
    }
    return chosen;
  }

  public List union(List files, List more) {
    List all = new ArrayList(files);
    all.addAll(more);
    return all;
  }

  public List sorted(List files) {
    Map ordered = new TreeMap();
    for (Iterator i = files.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      ordered.put(key(file), file);
    }
    return new ArrayList(ordered.values());
  }

  public List paths(DeltaLog log, List files) {
    List found = new ArrayList();
    for (Iterator i = files.iterator(); i.hasNext();) found.add(((AddFile) i.next()).absolutePath(log));
    return found;
  }

  /** Bytes by top-level column in at most so many of the files, from their footers: the log tells none. */
  public String columnBytes(DeltaLog log, List files, int most) throws java.io.IOException {
    Map sums = new TreeMap();
    int step = Math.max(1, (files.size() + most - 1) / most);
    for (int i = 0; i < files.size(); i += step) {
      Path path = ((AddFile) files.get(i)).absolutePath(log);
      ParquetFileReader file = ParquetFileReader.open(HadoopInputFile.fromPath(path, log.newDeltaHadoopConf()));
      try {
        for (Iterator groups = file.getFooter().getBlocks().iterator(); groups.hasNext();) {
          for (Iterator c = ((BlockMetaData) groups.next()).getColumns().iterator(); c.hasNext();) {
            ColumnChunkMetaData chunk = (ColumnChunkMetaData) c.next();
            String name = chunk.getPath().toArray()[0];
            long before = sums.containsKey(name) ? ((Long) sums.get(name)).longValue() : 0L;
            sums.put(name, Long.valueOf(before + chunk.getTotalSize()));
          }
        }
      } finally {
        file.close();
      }
    }
    return new com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(sums);
  }

  /** Every file below the table whose name begins so. */
  public List named(DeltaLog log, String prefix) throws java.io.IOException {
    List found = new ArrayList();
    RemoteIterator all = log.dataPath().getFileSystem(log.newDeltaHadoopConf()).listFiles(log.dataPath(), true);
    while (all.hasNext()) {
      Path path = ((LocatedFileStatus) all.next()).getPath();
      if (path.getName().startsWith(prefix)) found.add(path);
    }
    return found;
  }

  public void delete(DeltaLog log, List paths) throws java.io.IOException {
    FileSystem storage = log.dataPath().getFileSystem(log.newDeltaHadoopConf());
    for (Iterator i = paths.iterator(); i.hasNext();) storage.delete((Path) i.next(), false);
  }

  /** Delete those files that the log does not know: neither live, nor removed but still needed by older versions. */
  public int deleteUnknown(DeltaLog log, Snapshot snapshot, List paths) throws java.io.IOException {
    Set known = new HashSet();
    List actions = new ArrayList(snapshot.allFiles().collectAsList());
    actions.addAll(snapshot.tombstones().collectAsList());
    for (Iterator i = actions.iterator(); i.hasNext();) {
      String path = ((FileAction) i.next()).path();
      known.add(path.substring(path.lastIndexOf('/') + 1));
    }
    int deleted = 0;
    FileSystem storage = log.dataPath().getFileSystem(log.newDeltaHadoopConf());
    for (Iterator i = paths.iterator(); i.hasNext();) {
      Path path = (Path) i.next();
      if (!known.contains(path.getName()) && storage.delete(path, false)) deleted++;
    }
    return deleted;
  }

  /** Number of files, their bytes, their rows with deletes applied, and how many files do not tell their rows. */
  public long[] totals(List files) {
    long bytes = 0, rows = 0, silent = 0;
    for (Iterator i = files.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      bytes += file.size();
      Option known = file.numLogicalRecords();
      if (known.isDefined()) rows += ((Long) known.get()).longValue(); else silent++;
    }
    return new long[] {files.size(), bytes, rows, silent};
  }

  /** For each file its path and, on the next line, the statistics that its Parquet footer tells. */
  public String footers(SparkSession session, DeltaLog log, Snapshot snapshot, List files) {
    Dataset added = session.createDataset(files, org.apache.spark.sql.delta.implicits.package$.MODULE$.addFileEncoder());
    List told = StatsCollectionUtils$.MODULE$.computeStats(session, log.newDeltaHadoopConf(), log, snapshot, added,
        Option.apply(Long.valueOf(files.size())),
        StatsCollectionUtils$.MODULE$.getDataSkippingStringPrefixLength(session, snapshot.metadata()), true, false)
        .collectAsList();
    StringBuilder lines = new StringBuilder();
    for (Iterator i = told.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      lines.append(file.path()).append('\n').append(file.stats()).append('\n');
    }
    return lines.toString();
  }

  public boolean haveRowIds(List files) {
    for (Iterator i = files.iterator(); i.hasNext();)
      if (((AddFile) i.next()).baseRowId().isEmpty()) return false;
    return true;
  }

  /** Paths of data files and deletion vectors that are not on storage; one listing a folder. */
  public String missing(DeltaLog log, List files) throws java.io.IOException {
    Map folders = new HashMap();
    StringBuilder lines = new StringBuilder();
    FileSystem storage = log.dataPath().getFileSystem(log.newDeltaHadoopConf());
    for (Iterator i = files.iterator(); i.hasNext();) {
      AddFile file = (AddFile) i.next();
      List paths = new ArrayList();
      paths.add(file.absolutePath(log));
      DeletionVectorDescriptor vector = file.deletionVector();
      if (vector != null && vector.isOnDisk()) paths.add(vector.absolutePath(log.dataPath()));
      for (Iterator j = paths.iterator(); j.hasNext();) {
        Path path = (Path) j.next();
        Path folder = path.getParent();
        if (!folders.containsKey(folder)) {
          Set names = new HashSet();
          FileSystem there = folder.getFileSystem(log.newDeltaHadoopConf());
          try {
            FileStatus[] found = there.listStatus(folder);
            for (int k = 0; k < found.length; k++) names.add(found[k].getPath().getName());
          } catch (java.io.FileNotFoundException gone) {
          }
          folders.put(folder, names);
        }
        if (!((Set) folders.get(folder)).contains(path.getName())) lines.append(path.toString()).append('\n');
      }
    }
    return lines.toString();
  }

  /** Swap files in one commit that changes no data; the caller's thread has the session with our settings. */
  public long swap(SparkSession session, DeltaLog log, Option table, Snapshot from, List out, List in) {
    long now = System.currentTimeMillis();
    List actions = new ArrayList();
    long addedBytes = 0, removedBytes = 0;
    for (Iterator i = in.iterator(); i.hasNext();) {
      AddFile f = (AddFile) i.next();
      addedBytes += f.size();
      actions.add(f.copy(f.path(), f.partitionValues(), f.size(), f.modificationTime(), false, f.stats(), f.tags(),
          f.deletionVector(), f.baseRowId(), f.defaultRowCommitVersion(), f.clusteringProvider()));
    }
    for (Iterator i = out.iterator(); i.hasNext();) {
      AddFile f = (AddFile) i.next();
      removedBytes += f.size();
      actions.add(f.removeWithTimestamp(now, false));
    }
    OptimisticTransaction transaction = log.startTransaction(table, Option.apply(from));
    transaction.trackFilesRead(seq(out));
    Map metrics = new HashMap();
    metric(session, metrics, "numAddedFiles", in.size());
    metric(session, metrics, "numAddedBytes", addedBytes);
    metric(session, metrics, "numRemovedFiles", out.size());
    metric(session, metrics, "numRemovedBytes", removedBytes);
    transaction.registerSQLMetrics(session, scala.collection.immutable.Map$.MODULE$.from(
        scala.jdk.javaapi.CollectionConverters.asScala(metrics)));
    Object operation = new DeltaOperations$Optimize(
        seq(new ArrayList()), seq(new ArrayList()), false, Option.empty(), false);
    return transaction.commit(seq(actions), (DeltaOperations.Operation) operation,
        RowTracking$.MODULE$.addPreservedRowTrackingTagIfNotSet(from, scala.collection.immutable.Map$.MODULE$.empty()));
  }

  private static void metric(SparkSession session, Map metrics, String name, long value) {
    SQLMetric metric = SQLMetrics.createMetric(session.sparkContext(), name);
    metric.set(value);
    metrics.put(name, metric);
  }
}
