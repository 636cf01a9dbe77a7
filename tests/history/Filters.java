package oreo.unit;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What Spark's own plan filters each of its scans by, as SQL that Spark reads again: the judge of what we store. */
public class Filters {
  /** One list a scan: a column of its table, then its conditions. */
  public static List read(LogicalPlan plan) {
    List out = new ArrayList();
    walk(plan, new ArrayList(), out);
    return out;
  }

  private static void walk(LogicalPlan plan, List conditions, List out) {
    scala.collection.Iterator inner = plan.subqueries().iterator();
    while (inner.hasNext()) {
      walk((LogicalPlan) inner.next(), new ArrayList(), out);
    }
    List passed = new ArrayList();
    if (plan instanceof Filter) {
      passed.addAll(conditions);
      split(((Filter) plan).condition(), passed);
    }
    scala.collection.Iterator children = plan.children().iterator();
    if (!children.hasNext() && !plan.output().isEmpty()) {
      List scan = new ArrayList();
      scan.add(((Attribute) plan.output().head()).name());
      scan.addAll(conditions);
      out.add(scan);
    }
    while (children.hasNext()) {
      walk((LogicalPlan) children.next(), passed, out);
    }
  }

  private static void split(Expression e, List out) {
    if (e instanceof And) {
      split(((And) e).left(), out);
      split(((And) e).right(), out);
    } else {
      out.add(e.sql());
    }
  }
}
