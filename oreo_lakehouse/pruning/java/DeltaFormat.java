package oreo.unit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.delta.DeltaColumnMapping;
import org.apache.spark.sql.delta.DeltaTableUtils;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import scala.Option;

/** Delta: the index that Delta prepared for a query, with fewer files. DML, streams and OPTIMIZE have other indexes. */
public class DeltaFormat extends Format {
  private static PreparedDeltaFileIndex index(LogicalPlan leaf) {
    if (!(leaf instanceof LogicalRelation) || !(((LogicalRelation) leaf).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    FileIndex location = ((HadoopFsRelation) ((LogicalRelation) leaf).relation()).location();
    return location instanceof PreparedDeltaFileIndex && !(location instanceof OreoDeltaFileIndex)
        ? (PreparedDeltaFileIndex) location : null;
  }

  public TableFacts facts(LogicalPlan leaf, FactCache cache) throws Exception {
    PreparedDeltaFileIndex index = index(leaf);
    return index == null ? null
        : cache.of(index.metadata().id(), Long.valueOf(index.preparedScan().version()), this, leaf);
  }

  public String named(LogicalPlan leaf, String column) {
    PreparedDeltaFileIndex index = index(leaf);
    return index.metadata().schema().getFieldIndex(column).isDefined() ? index.path().toString() : null;
  }

  public boolean late() {
    return false;
  }

  public Object shared(LogicalPlan leaf) {
    return null;
  }

  public LogicalPlan pruned(Filter filter, TableFacts facts) {
    LogicalRelation relation = (LogicalRelation) filter.child();
    PreparedDeltaFileIndex index = index(relation);
    DeltaScan scan = index.preparedScan();
    int n = scan.files().size();
    AddFile[] files = new AddFile[n];
    String[] names = new String[n];
    long[] sizes = new long[n];
    scala.collection.Iterator it = scan.files().iterator();
    for (int i = 0; i < n; i++) {
      files[i] = (AddFile) it.next();
      names[i] = files[i].path();
      sizes[i] = files[i].size();
    }
    Choice choice = Choice.of(filter.condition(), names, sizes, facts, keys(relation, index));
    if (choice == null) {
      return null;
    }
    List kept = new ArrayList();
    Set dropped = new HashSet();
    long bytes = 0;
    for (int i = 0; i < n; i++) {
      if (choice.kept[i]) {
        kept.add(files[i]);
        bytes += sizes[i];
      } else {
        dropped.add(names[i]);
      }
    }
    DataSize size = new DataSize(Option.apply((Object) Long.valueOf(bytes)), Option.empty(),
        Option.apply((Object) Long.valueOf((long) kept.size())), Option.empty());
    DeltaScan fewer = scan.copy(scan.version(), seq(kept), scan.total(), scan.partition(), size,
        scan.scannedSnapshot(), scan.partitionFilters(), scan.dataFilters(), scan.partitionLikeDataFilters(),
        scan.rewrittenPartitionLikeDataFilters(), scan.unusedFilters(), scan.scanDurationMs(), scan.dataSkippingType());
    return DeltaTableUtils.replaceFileIndex(relation, (FileIndex) new OreoDeltaFileIndex(index, fewer, dropped, choice));
  }

  /**
   * From the ids of the scan's attributes to physical names, which column mapping keeps through renames. Left out are
   * columns whose values depend on who reads: CHAR is padded or not, and a timestamp in a partition's name may have been
   * written in the session's time zone.
   */
  private static Map keys(LogicalRelation relation, PreparedDeltaFileIndex index) {
    Map physical = new HashMap();
    scala.collection.Iterator fields = index.metadata().schema().iterator();
    while (fields.hasNext()) {
      StructField field = (StructField) fields.next();
      boolean shifts = field.dataType().equals(DataTypes.TimestampType)
          && index.metadata().partitionColumns().contains(field.name());
      if (!shifts && !Terms.padded(field.metadata())) {
        physical.put(field.name(), DeltaColumnMapping.getPhysicalName(field));
      }
    }
    Map keys = new HashMap();
    scala.collection.Iterator output = relation.output().iterator();
    while (output.hasNext()) {
      Attribute attribute = (Attribute) output.next();
      Object name = physical.get(attribute.name());
      if (name != null) {
        keys.put(Long.valueOf(attribute.exprId().id()), name);
      }
    }
    return keys;
  }

  private static scala.collection.immutable.Seq seq(List items) {
    return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
  }

  /** Leaves the files out also when Delta selects them anew, for dynamic pruning or filters that other rules add. */
  public static class OreoDeltaFileIndex extends PreparedDeltaFileIndex {
    private final Set dropped;
    private final Choice choice;

    public OreoDeltaFileIndex(PreparedDeltaFileIndex index, DeltaScan scan, Set dropped, Choice choice) {
      super(index.spark(), index.deltaLog(), index.path(), index.catalogTableOpt(), scan, index.versionScanned());
      this.dropped = dropped;
      this.choice = choice;
    }

    public scala.collection.immutable.Seq matchingFiles(
        scala.collection.immutable.Seq partitionFilters, scala.collection.immutable.Seq dataFilters) {
      List kept = new ArrayList();
      scala.collection.Iterator it = super.matchingFiles(partitionFilters, dataFilters).iterator();
      while (it.hasNext()) {
        AddFile file = (AddFile) it.next();
        if (!dropped.contains(file.path())) {
          kept.add(file);
        }
      }
      return seq(kept);
    }

    /** What EXPLAIN prints of an index. */
    public scala.collection.immutable.Seq rootPaths() {
      List one = new ArrayList();
      one.add(new NotedPath(path(), choice.note()));
      return seq(one);
    }

    public long filesPruned() {
      return choice.dropped;
    }

    public long rowsPruned() {
      return choice.rowsDropped;
    }
  }

  /** The same path, except in print. */
  public static class NotedPath extends Path {
    private final String note;

    public NotedPath(Path path, String note) {
      super(path.toUri());
      this.note = note;
    }

    public String toString() {
      return note + ": " + super.toString(); // the note first, since Spark prints the first 100 characters
    }
  }
}
