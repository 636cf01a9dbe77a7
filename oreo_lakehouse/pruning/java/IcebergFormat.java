package oreo.unit;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** Iceberg: the tasks of a built scan, replaced as Iceberg's own runtime filtering replaces them. */
public class IcebergFormat extends Format {
  public static final String MARK = "oreo";
  private static final Object[] NONE = new Object[0];
  private final Class scanClass;
  private final Method table, snapshot, schema, specs, grouping, tasks, reset;
  private final Field filters;

  /** Throws NoSuchMethodException or NoSuchFieldException where Iceberg's internals are not those we know. */
  public IcebergFormat(ClassLoader loader) throws Exception {
    scanClass = loader.loadClass("org.apache.iceberg.spark.source.SparkBatchQueryScan");
    Class[] nothing = new Class[0];
    table = method("table", nothing);
    snapshot = method("snapshotId", nothing);
    schema = method("schema", nothing);
    specs = method("specs", nothing);
    grouping = method("groupingKeyType", nothing);
    tasks = method("tasks", nothing);
    reset = method("resetTasks", new Class[] {List.class});
    Field found = null;
    for (Class c = scanClass; c != null && found == null; c = c.getSuperclass()) {
      try {
        found = c.getDeclaredField("runtimeFilters");
      } catch (NoSuchFieldException e) {
        continue;
      }
    }
    if (found == null || !List.class.isAssignableFrom(found.getType())) {
      throw new NoSuchFieldException("runtimeFilters");
    }
    found.setAccessible(true);
    filters = found;
  }

  private Method method(String name, Class[] types) throws Exception {
    for (Class c = scanClass; c != null; c = c.getSuperclass()) {
      try {
        Method found = c.getDeclaredMethod(name, types);
        found.setAccessible(true);
        return found;
      } catch (NoSuchMethodException e) {
        continue;
      }
    }
    throw new NoSuchMethodException(name);
  }

  public boolean late() {
    return true;
  }

  public Object shared(LogicalPlan leaf) {
    return leaf instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) leaf).scan() : null;
  }

  public TableFacts facts(LogicalPlan leaf, FactCache cache) throws Exception {
    Object scan = shared(leaf);
    if (scan == null || scan.getClass() != scanClass) {
      return null; // DML, streams and metadata tables have other scans
    }
    Object version = snapshot.invoke(scan, NONE);
    if (version == null) {
      return null;
    }
    Object uuid;
    try {
      uuid = ((Table) table.invoke(scan, NONE)).uuid();
    } catch (RuntimeException e) {
      return null; // tables of format version 1 may have none
    }
    return uuid == null ? null : cache.of(uuid.toString(), version, this, leaf);
  }

  public String named(LogicalPlan leaf, String column) throws Exception {
    Table its = (Table) table.invoke(shared(leaf), NONE);
    return its.schema().findField(column) == null ? null : its.name();
  }

  public LogicalPlan pruned(Filter filter, TableFacts facts) throws Exception {
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) filter.child();
    Object scan = relation.scan();
    List marks = (List) filters.get(scan);
    for (int i = 0; i < marks.size(); i++) {
      if (String.valueOf(marks.get(i)).indexOf("\"" + MARK + "\"") >= 0) {
        return null; // done before
      }
    }
    long start = System.nanoTime();
    specs.invoke(scan, NONE); // both remember what they are from all tasks
    grouping.invoke(scan, NONE);
    List all = (List) tasks.invoke(scan, NONE);
    PruneRule.nanos.addAndGet(start - System.nanoTime()); // Iceberg plans its files once, here or later
    int n = all.size();
    String[] names = new String[n];
    long[] sizes = new long[n];
    for (int i = 0; i < n; i++) {
      if (!(all.get(i) instanceof FileScanTask)) {
        return null;
      }
      names[i] = ((FileScanTask) all.get(i)).file().location();
      sizes[i] = ((FileScanTask) all.get(i)).length();
    }
    if (n > 0 && facts.place(names[0]) == null) {
      Table its = (Table) table.invoke(scan, NONE);
      if (!facts.under(its.location())) {
        Warnings.once("the table " + its.name() + " is at " + its.location() + " now, and its file facts were recorded "
            + "elsewhere: its old files are not pruned. The next layout records them anew: oreo-maintain " + its.name());
        return null;
      }
    }
    Choice choice = Choice.of(filter.condition(), names, sizes, facts, keys(relation, (Schema) schema.invoke(scan, NONE)));
    if (choice == null) {
      return null;
    }
    List kept = new ArrayList();
    int hash = 17;
    for (int i = 0; i < n; i++) {
      if (choice.kept[i]) {
        kept.add(all.get(i));
      } else {
        hash = hash * 31 + names[i].hashCode();
      }
    }
    // Without the mark two scans that were pruned differently would be equal, and Spark would run one for both.
    marks.add(Expressions.equal(MARK, (Object) (choice.note() + " (" + choice.dropped + "/" + choice.rowsDropped + "/"
        + Integer.toHexString(hash) + ")")));
    reset.invoke(scan, new Object[] {kept});
    return relation;
  }

  /** From the ids of the scan's attributes to field ids. */
  private static Map keys(DataSourceV2ScanRelation relation, Schema schema) {
    Map ids = new HashMap();
    for (Iterator i = schema.columns().iterator(); i.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) i.next();
      ids.put(field.name(), String.valueOf(field.fieldId()));
    }
    Map keys = new HashMap();
    scala.collection.Iterator output = relation.output().iterator();
    while (output.hasNext()) {
      Attribute attribute = (Attribute) output.next();
      Object id = ids.get(attribute.name());
      if (id != null) {
        keys.put(Long.valueOf(attribute.exprId().id()), id);
      }
    }
    return keys;
  }
}
