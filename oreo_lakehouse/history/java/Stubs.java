package oreo.unit;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

/** Plans SQL text on tables that have a schema and nothing else: no catalog, no file, no job, and no statement runs. */
public class Stubs {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final Set plans;
  private final Set functions;
  private final Map tables = new ConcurrentHashMap();
  private final Map views = new ConcurrentHashMap();
  private final Set targets = new HashSet();

  /** @param plans names of the parsed plan's nodes that may occur, by commas; anything else is refused.
   *  @param functions names of the functions that may occur. */
  public Stubs(org.apache.spark.sql.classic.SparkSession session, String plans, String functions) {
    this.session = session;
    this.plans = new HashSet(Arrays.asList(plans.split(",")));
    this.functions = new HashSet(Arrays.asList(functions.split(",")));
  }

  /** What a name stands for: a plan of one empty RDD. */
  public void add(String name, LogicalPlan plan, boolean target) {
    tables.put(name, plan);
    if (target) {
      targets.add(((LogicalRDD) plan).rdd());
    }
  }

  /** What a name stands for: a view's text, refused as a statement would be. Its names are relative to `scope`. */
  public boolean addView(String name, String text, String scope, List columns, List names) {
    try {
      LogicalPlan plan = session.sessionState().sqlParser().parsePlan(text);
      if (refusal(plan) != null) {
        return false;
      }
      plan = org.apache.spark.sql.catalyst.analysis.CTESubstitution.apply(plan);
      views.put(name, new Object[] {plan, scope, columns.toArray(), names.toArray()});
      return true;
    } catch (Throwable e) {
      return false;
    }
  }

  /** Puts stubs in the places of tables and texts in those of views, and remembers names that it has neither for. */
  public static class Replace extends scala.runtime.AbstractPartialFunction {
    private final Map tables;
    private final Map views;
    private final Set missing;
    private final String scope;
    private final int depth;

    public Replace(Map tables, Map views, Set missing, String scope, int depth) {
      this.tables = tables;
      this.views = views;
      this.missing = missing;
      this.scope = scope;
      this.depth = depth;
    }

    private LogicalPlan view(Object[] view) {
      LogicalPlan plan = (LogicalPlan) ((LogicalPlan) view[0])
          .transformUpWithSubqueries(new Replace(tables, views, missing, (String) view[1], depth + 1));
      Object[] columns = (Object[]) view[2];
      Object[] names = (Object[]) view[3];
      if (columns.length != names.length) {
        return plan;
      }
      List aliases = new ArrayList(); // as Spark does it: the columns that the text had when the view was made
      for (int i = 0; i < names.length; i++) {
        List name = new ArrayList();
        name.add(columns[i]);
        aliases.add(new org.apache.spark.sql.catalyst.expressions.Alias(
            new org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute(seq(name)), (String) names[i],
            org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), seq(new ArrayList()),
            scala.Option.empty(), seq(new ArrayList())));
      }
      return new Project(seq(aliases), plan);
    }

    private static scala.collection.immutable.Seq seq(List items) {
      return scala.jdk.javaapi.CollectionConverters.asScala((Iterable) items).toSeq();
    }

    public boolean isDefinedAt(Object node) {
      return node instanceof UnresolvedRelation || node instanceof RelationTimeTravel;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (node instanceof RelationTimeTravel) {
        return applyOrElse(((RelationTimeTravel) node).relation(), otherwise);
      }
      if (!(node instanceof UnresolvedRelation)) {
        return node instanceof SubqueryAlias ? node : otherwise.apply(node);
      }
      scala.collection.immutable.Seq parts = ((UnresolvedRelation) node).multipartIdentifier();
      String name = scope + parts.mkString("\u0001");
      if (parts.mkString("").indexOf('\u0001') >= 0) {
        name = ""; // a name with our own separator in it is nobody's
      }
      Object plan = tables.get(name);
      if (plan == null && views.containsKey(name) && depth < 10) {
        plan = view((Object[]) views.get(name));
      }
      if (plan == null) {
        missing.add(name);
        return node;
      }
      return new SubqueryAlias(
          new org.apache.spark.sql.catalyst.AliasIdentifier(
              (String) parts.last(), (scala.collection.immutable.Seq) parts.dropRight(1)),
          (LogicalPlan) plan);
    }
  }

  /** Refuse what is not plainly a query of known functions: planning may evaluate constants. */
  private String refusal(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName().replace("$", "");
    if (!plans.contains(name)) {
      return name;
    }
    scala.collection.Iterator expressions = plan.expressions().iterator();
    while (expressions.hasNext()) {
      String found = refusal((Expression) expressions.next());
      if (found != null) {
        return found;
      }
    }
    scala.collection.Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      String found = refusal((LogicalPlan) children.next());
      if (found != null) {
        return found;
      }
    }
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith) {
      scala.collection.Iterator ctes =
          ((org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith) plan).cteRelations().iterator();
      while (ctes.hasNext()) {
        String found = refusal((LogicalPlan) ((scala.Product) ctes.next()).productElement(1));
        if (found != null) {
          return found;
        }
      }
    }
    return null;
  }

  private String refusal(Expression e) {
    if (e instanceof UnresolvedFunction) {
      String name = ((UnresolvedFunction) e).nameParts().mkString(".").toLowerCase(java.util.Locale.ROOT);
      if (!functions.contains(name)) {
        return "the function " + name;
      }
    }
    if (e instanceof org.apache.spark.sql.catalyst.expressions.PlanExpression) {
      Object inner = ((org.apache.spark.sql.catalyst.expressions.PlanExpression) e).plan();
      String found = inner instanceof LogicalPlan ? refusal((LogicalPlan) inner) : null;
      if (found != null) {
        return found;
      }
    }
    scala.collection.Iterator children = e.children().iterator();
    while (children.hasNext()) {
      String found = refusal((Expression) children.next());
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private static void add(Set ids, AttributeSet attributes) {
    scala.collection.Iterator it = attributes.iterator();
    while (it.hasNext()) {
      ids.add(Long.valueOf(((Attribute) it.next()).exprId().id()));
    }
  }

  private void walk(StringBuilder out, LogicalPlan plan, List filters, Set needed, Set lost) {
    scala.collection.Iterator inner = plan.subqueries().iterator();
    while (inner.hasNext()) {
      LogicalPlan query = (LogicalPlan) inner.next();
      Set own = new HashSet();
      add(own, query.outputSet());
      walk(out, query, new ArrayList(), own, new HashSet());
    }
    if (plan instanceof LogicalRDD) {
      if (targets.contains(((LogicalRDD) plan).rdd())) {
        leaf(out, (LogicalRDD) plan, filters, needed, lost);
      }
      return;
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
    scala.collection.Iterator children = plan.children().iterator();
    boolean first = true;
    while (children.hasNext()) {
      Set here = lost;
      if (first && plan instanceof Join) {
        String kind = ((Join) plan).joinType().getClass().getSimpleName();
        if (kind.startsWith("LeftSemi") || kind.startsWith("LeftAnti") || kind.startsWith("Existence")) {
          here = new HashSet(lost);
          here.add("a subquery");
        }
      }
      walk(out, (LogicalPlan) children.next(), passed, below, here);
      first = false;
    }
  }

  private void leaf(StringBuilder out, LogicalRDD plan, List filters, Set needed, Set lost) {
    Map columns = new HashMap();
    out.append(out.length() > 1 ? "," : "").append("{\"columns\":[");
    String comma = "";
    scala.collection.Iterator it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      Long id = Long.valueOf(a.exprId().id());
      columns.put(id, a.name());
      if (needed.contains(id)) {
        out.append(comma);
        comma = ",";
        Json.text(out, a.name());
      }
    }
    out.append("],\"filters\":[");
    Json json = new Json(columns, new HashSet());
    for (int i = 0; i < filters.size(); i++) {
      out.append(i > 0 ? "," : "");
      json.write(out, (Expression) filters.get(i));
    }
    Json.texts(out.append("],\"lost\":"), lost.toArray());
    out.append('}');
  }

  /** A statement's scans of the target as a JSON list, or an object that says why there is none. */
  public String one(String sql, String scope) {
    StringBuilder out = new StringBuilder();
    try {
      LogicalPlan plan = session.sessionState().sqlParser().parsePlan(sql);
      String refused = refusal(plan);
      if (refused != null) {
        Json.field(out.append("{\"x\":0"), "refused", refused);
        return out.append('}').toString();
      }
      plan = org.apache.spark.sql.catalyst.analysis.CTESubstitution.apply(plan);
      Set missing = new HashSet();
      plan = (LogicalPlan) plan.transformUpWithSubqueries(new Replace(tables, views, missing, scope, 0));
      if (!missing.isEmpty()) {
        Json.texts(out.append("{\"missing\":"), missing.toArray());
        return out.append('}').toString();
      }
      QueryExecution query = session.sessionState().executePlan(plan, CommandExecutionMode.SKIP());
      LogicalPlan optimized = query.optimizedPlan();
      Set needed = new HashSet();
      add(needed, optimized.outputSet());
      out.append('[');
      walk(out, optimized, new ArrayList(), needed, new HashSet());
      return out.append(']').toString();
    } catch (Throwable e) {
      out = new StringBuilder("{\"x\":0");
      String text = String.valueOf(e.getMessage());
      Json.field(out, "error", text.substring(0, Math.min(200, text.length())));
      return out.append('}').toString();
    }
  }

  /** Many statements on several threads; statements and scopes alternate. */
  public Object[] batch(final List texts, int threads) throws Exception {
    final Object[] out = new Object[texts.size() / 2];
    final AtomicInteger next = new AtomicInteger();
    final Stubs stubs = this;
    Thread[] workers = new Thread[threads];
    for (int k = 0; k < threads; k++) {
      workers[k] = new Thread(new Runnable() {
        public void run() {
          org.apache.spark.sql.classic.SparkSession.setActiveSession(stubs.session);
          int i;
          while ((i = next.getAndIncrement()) < out.length) {
            out[i] = stubs.one((String) texts.get(2 * i), (String) texts.get(2 * i + 1));
          }
        }
      }, "oreo-import");
      workers[k].setDaemon(true);
      workers[k].start();
    }
    for (int k = 0; k < threads; k++) {
      workers[k].join();
    }
    return out;
  }

  public String joined(List texts, int threads) throws Exception {
    Object[] answers = batch(texts, threads);
    StringBuilder out = new StringBuilder("[");
    for (int i = 0; i < answers.length; i++) {
      out.append(i > 0 ? "," : "").append(answers[i]);
    }
    return out.append(']').toString();
  }
}
