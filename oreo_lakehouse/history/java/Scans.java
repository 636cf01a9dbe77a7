package oreo.unit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** The scans of Delta and Iceberg tables in a query that ran, each as JSON with its table's UUID. */
public class Scans {
  private static final Long NONE = Long.valueOf(0L);
  private static final int MAX_PLANNED = 1000000;
  private final Set redacted;
  /** Whether our pruning rule was on for this query: then a scan that it left alone has no files pruned. */
  private final boolean pruning;
  private final Map physical = new HashMap();
  private final Set seen = new HashSet();
  /** Pairs of table UUID and JSON fields. */
  public final List found = new ArrayList();

  public Scans(Set redacted, boolean pruning) {
    this.redacted = redacted;
    this.pruning = pruning;
  }

  public void read(LogicalPlan optimized, SparkPlan executed) throws Exception {
    metrics(executed);
    Set needed = new HashSet();
    add(needed, optimized.outputSet());
    plan(optimized, new ArrayList(), needed, new HashSet());
  }

  private static void add(Set ids, AttributeSet attributes) {
    scala.collection.Iterator it = attributes.iterator();
    while (it.hasNext()) {
      ids.add(Long.valueOf(((Attribute) it.next()).exprId().id()));
    }
  }

  /** Remember each physical scan's metrics under the ids of its output: what was planned but never ran has none. */
  private void metrics(SparkPlan plan) {
    if (plan instanceof org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec) {
      metrics(((org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec) plan).executedPlan());
      return;
    }
    if (plan instanceof org.apache.spark.sql.execution.adaptive.QueryStageExec) {
      metrics(((org.apache.spark.sql.execution.adaptive.QueryStageExec) plan).plan());
      return;
    }
    scala.collection.Iterator inner = plan.subqueries().iterator();
    while (inner.hasNext()) {
      metrics((SparkPlan) inner.next());
    }
    scala.collection.Iterator children = plan.children().iterator();
    if (children.hasNext()) {
      while (children.hasNext()) {
        metrics((SparkPlan) children.next());
      }
      return;
    }
    Map values = new HashMap();
    scala.collection.Iterator it = plan.metrics().iterator();
    while (it.hasNext()) {
      scala.Tuple2 pair = (scala.Tuple2) it.next();
      values.put(pair._1(), ((org.apache.spark.util.AccumulatorV2) pair._2()).value());
    }
    scala.collection.Iterator out = plan.output().iterator();
    while (out.hasNext()) {
      physical.put(Long.valueOf(((Attribute) out.next()).exprId().id()), values);
    }
  }

  /** Walk down with the filters directly above, the columns needed above, and what was lost on the way. */
  private void plan(LogicalPlan plan, List filters, Set needed, Set lost) throws Exception {
    scala.collection.Iterator inner = plan.subqueries().iterator();
    while (inner.hasNext()) {
      LogicalPlan query = (LogicalPlan) inner.next();
      Set own = new HashSet();
      add(own, query.outputSet());
      plan(query, new ArrayList(), own, new HashSet());
    }
    scala.collection.Iterator children = plan.children().iterator();
    if (!children.hasNext()) {
      leaf(plan, filters, needed, lost);
      return; // never innerChildren: commands' results, views and cached plans are no reads
    }
    Set below = new HashSet();
    if (!(plan instanceof Project) && !(plan instanceof Aggregate)) {
      below.addAll(needed);
    }
    add(below, plan.references());
    List passed = new ArrayList();
    if (plan instanceof Filter) {
      passed.addAll(filters);
      passed.add(((Filter) plan).condition());
    }
    Set gone = new HashSet(lost);
    if (plan.getClass().getSimpleName().indexOf("EvalPython") >= 0) {
      gone.add("a Python function");
    }
    boolean first = true;
    while (children.hasNext()) {
      Set here = gone;
      if (first && plan instanceof Join) {
        String kind = ((Join) plan).joinType().getClass().getSimpleName();
        if (kind.startsWith("LeftSemi") || kind.startsWith("LeftAnti") || kind.startsWith("Existence")) {
          here = new HashSet(gone);
          here.add("a subquery");
        }
      }
      plan((LogicalPlan) children.next(), passed, below, here);
      first = false;
    }
  }

  private void leaf(LogicalPlan plan, List filters, Set needed, Set lost) throws Exception {
    scala.collection.Iterator it = plan.output().iterator();
    Map columns = new HashMap();
    List read = new ArrayList();
    Map values = null;
    Object id = null;
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      Long key = Long.valueOf(a.exprId().id());
      columns.put(key, a.name());
      if (needed.contains(key)) {
        read.add(a.name());
      }
      if (values == null && physical.containsKey(key)) {
        values = (Map) physical.get(key);
        id = key;
      }
    }
    if (values == null || seen.contains(id)) {
      return; // planned but never run, or a copy for dynamic pruning
    }
    StringBuilder out = new StringBuilder();
    StringBuilder planned = new StringBuilder("{\"filters\":[");
    Json json = new Json(columns, redacted);
    for (int i = 0; i < filters.size(); i++) {
      planned.append(i > 0 ? "," : "");
      json.write(planned, (Expression) filters.get(i));
    }
    planned.append(']');
    Object uuid = null;
    if (plan instanceof LogicalRelation) {
      uuid = delta((LogicalRelation) plan, values, out);
    } else if (plan instanceof DataSourceV2ScanRelation) {
      uuid = iceberg((DataSourceV2ScanRelation) plan, values, out, planned);
    }
    if (uuid == null) {
      return;
    }
    seen.add(id);
    if (planned.length() > MAX_PLANNED) { // a list of a million literals is not worth its memory
      planned = new StringBuilder("{\"filters\":[]");
      lost = new HashSet(lost);
      lost.add("a condition of more than " + MAX_PLANNED + " characters");
    }
    out.append(",\"columns\":");
    Json.texts(out, read.toArray());
    Json.texts(planned.append(",\"lost\":"), lost.toArray());
    Json.field(out, "planned", planned.append('}'));
    found.add(new String[] {uuid.toString(), out.toString()});
  }

  private Object delta(LogicalRelation relation, Map values, StringBuilder out) throws Exception {
    if (!(relation.relation() instanceof HadoopFsRelation)) {
      return null;
    }
    Object location = ((HadoopFsRelation) relation.relation()).location();
    String kind = location.getClass().getSimpleName();
    Object metadata = Reflect.call(location, "metadata");
    if (Reflect.call(location, "deltaLog") == null || metadata == null || kind.equals("TahoeBatchFileIndex")) {
      return null; // not Delta; or DML, OPTIMIZE, streaming
    }
    Object name = Reflect.call(location, "path");
    if (relation.catalogTable().isDefined()) {
      name = ((org.apache.spark.sql.catalyst.catalog.CatalogTable) relation.catalogTable().get())
          .identifier().unquotedString();
    }
    Json.field(out, "table_name", String.valueOf(name));
    Json.field(out, "table_version", Reflect.call(location, "version"));
    Json.field(out, "files_read", values.get("numFiles"));
    Json.field(out, "bytes_read", values.get("filesSize"));
    Object pruned = Reflect.call(location, "filesPruned"); // by our own rule, which has its own index
    Json.field(out, "files_pruned", pruned != null ? pruned : pruning ? NONE : null);
    Json.field(out, "rows_pruned", Reflect.call(location, "rowsPruned"));
    if (Reflect.isA(location, "PreparedDeltaFileIndex")) {
      Object total = Reflect.call(Reflect.call(location, "preparedScan"), "total");
      Object files = total == null ? null : Reflect.call(total, "files");
      Json.field(out, "files_total", files instanceof scala.Option
          ? (((scala.Option) files).isDefined() ? ((scala.Option) files).get() : null) : files);
    }
    return Reflect.call(metadata, "id");
  }

  /** The redacted column that a filter of Iceberg's names, or null. */
  private String hidden(String json) {
    Object[] names = redacted.toArray();
    for (int i = 0; i < names.length; i++) {
      StringBuilder name = new StringBuilder();
      Json.text(name, names[i]);
      if (json.toLowerCase(java.util.Locale.ROOT).indexOf("\"term\":" + name.toString()) >= 0) {
        return (String) names[i];
      }
    }
    return null;
  }

  private Object iceberg(DataSourceV2ScanRelation relation, Map values, StringBuilder out, StringBuilder planned)
      throws Exception {
    DataSourceV2Relation source = relation.relation();
    Object table = Reflect.call(source.table(), "table");
    Object scan = relation.scan();
    String kind = scan.getClass().getSimpleName();
    if (table == null || !source.table().getClass().getSimpleName().equals("SparkTable")
        || Reflect.isA(table, "BaseMetadataTable")) {
      return null; // another format, or one of Iceberg's metadata tables
    }
    if (kind.equals("SparkStagedScan") || kind.equals("SparkCopyOnWriteScan")) {
      return null; // DML
    }
    Object uuid = Reflect.call(table, "uuid");
    if (uuid == null) {
      return null;
    }
    Json.field(out, "table_name", source.name());
    Json.field(out, "table_version", Reflect.call(scan, "snapshotId"));
    Object files = values.get("resultDataFiles");
    Object skipped = values.get("skippedDataFiles");
    long[] pruned = pruned(scan);
    if (pruned != null) { // the metrics are those of Iceberg's own planning, before our rule
      Json.field(out, "files_pruned", Long.valueOf(pruned[0]));
      Json.field(out, "rows_pruned", Long.valueOf(pruned[1]));
    } else if (pruning) {
      Json.field(out, "files_pruned", NONE);
    }
    Json.field(out, "files_read", pruned != null && files instanceof Long
        ? Long.valueOf(((Long) files).longValue() - pruned[0]) : files);
    Json.field(out, "bytes_read", pruned != null ? null : values.get("totalDataFileSize"));
    if (files instanceof Long && skipped instanceof Long) {
      Json.field(out, "files_total", Long.valueOf(((Long) files).longValue() + ((Long) skipped).longValue()));
    }
    Object pushed = Reflect.field(scan, "filters");
    if (pushed == null) {
      pushed = Reflect.field(scan, "filterExpressions");
    }
    planned.append(",\"pushed\":[");
    if (pushed instanceof List) {
      for (int i = 0; i < ((List) pushed).size(); i++) {
        String json = Reflect.icebergJson(scan, ((List) pushed).get(i));
        String name = json == null ? null : hidden(json);
        planned.append(i > 0 ? "," : "");
        if (name == null) {
          planned.append(json == null ? "null" : json);
        } else { // only the operators stay
          Json.text(planned.append("{\"type\":\"redacted\",\"term\":"), name);
          Json.text(planned.append(",\"value\":"), operators(json));
          planned.append('}');
        }
      }
    }
    planned.append("],\"types\":{");
    scala.collection.Iterator it = source.output().iterator();
    boolean first = true;
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      planned.append(first ? "" : ",");
      first = false;
      Json.text(planned, a.name());
      planned.append(':');
      Json.text(planned, a.dataType().catalogString());
    }
    planned.append('}');
    return uuid;
  }

  /** The names of the operators in a filter of Iceberg's. */
  private static String operators(String json) {
    StringBuilder out = new StringBuilder();
    java.util.regex.Matcher found =
        java.util.regex.Pattern.compile("\\{\"type\":\"([a-z-]{1,20})\"").matcher(json);
    while (found.find()) {
      out.append(out.length() > 0 ? " " : "").append(found.group(1));
    }
    return out.toString();
  }

  /** Files and rows that our own rule took out of an Iceberg scan; null if it did not. */
  private static long[] pruned(Object scan) throws Exception {
    Object marks = Reflect.field(scan, "runtimeFilters");
    for (int i = 0; marks instanceof List && i < ((List) marks).size(); i++) {
      java.util.regex.Matcher found = java.util.regex.Pattern.compile("oreo skips .*\\((\\d+)/(\\d+)/")
          .matcher(String.valueOf(((List) marks).get(i)));
      if (found.find()) {
        return new long[] {Long.parseLong(found.group(1)), Long.parseLong(found.group(2))};
      }
    }
    return null;
  }
}
