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
  private final Set redacted;
  private final Map physical = new HashMap();
  private final Set seen = new HashSet();
  /** Pairs of table UUID and JSON fields. */
  public final List found = new ArrayList();

  public Scans(Set redacted) {
    this.redacted = redacted;
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
    Object uuid = null;
    if (plan instanceof LogicalRelation) {
      uuid = delta((LogicalRelation) plan, values, out);
    } else if (plan instanceof DataSourceV2ScanRelation) {
      uuid = iceberg((DataSourceV2ScanRelation) plan, values, out);
    }
    if (uuid == null) {
      return;
    }
    seen.add(id);
    out.append(",\"columns\":[");
    for (int i = 0; i < read.size(); i++) {
      out.append(i > 0 ? "," : "");
      Json.text(out, read.get(i));
    }
    out.append("],\"filters\":[");
    Json json = new Json(columns, redacted);
    for (int i = 0; i < filters.size(); i++) {
      out.append(i > 0 ? "," : "");
      json.write(out, (Expression) filters.get(i));
    }
    out.append("],\"lost\":[");
    Object[] reasons = lost.toArray();
    for (int i = 0; i < reasons.length; i++) {
      out.append(i > 0 ? "," : "");
      Json.text(out, reasons[i]);
    }
    out.append(']');
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
    if (kind.equals("PreparedDeltaFileIndex")) {
      Object total = Reflect.call(Reflect.call(location, "preparedScan"), "total");
      Object files = total == null ? null : Reflect.call(total, "files");
      Json.field(out, "files_total", files instanceof scala.Option
          ? (((scala.Option) files).isDefined() ? ((scala.Option) files).get() : null) : files);
    }
    return Reflect.call(metadata, "id");
  }

  private boolean hidden(String json) {
    Object[] names = redacted.toArray();
    for (int i = 0; i < names.length; i++) {
      if (json.toLowerCase(java.util.Locale.ROOT).indexOf("\"term\":\"" + names[i] + "\"") >= 0) {
        return true;
      }
    }
    return false;
  }

  private Object iceberg(DataSourceV2ScanRelation relation, Map values, StringBuilder out) throws Exception {
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
    Json.field(out, "files_read", files);
    Json.field(out, "bytes_read", values.get("totalDataFileSize"));
    if (files instanceof Long && skipped instanceof Long) {
      Json.field(out, "files_total", Long.valueOf(((Long) files).longValue() + ((Long) skipped).longValue()));
    }
    Object pushed = Reflect.field(scan, "filters");
    if (pushed == null) {
      pushed = Reflect.field(scan, "filterExpressions");
    }
    out.append(",\"pushed\":[");
    if (pushed instanceof List) {
      for (int i = 0; i < ((List) pushed).size(); i++) {
        String json = Reflect.icebergJson(scan, ((List) pushed).get(i));
        out.append(i > 0 ? "," : "").append(json == null || hidden(json) ? "null" : json);
      }
    }
    out.append("],\"types\":{");
    scala.collection.Iterator it = source.output().iterator();
    boolean first = true;
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      out.append(first ? "" : ",");
      first = false;
      Json.text(out, a.name());
      out.append(':');
      Json.text(out, a.dataType().catalogString());
    }
    out.append('}');
    return uuid;
  }
}
