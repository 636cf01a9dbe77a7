package oreo.unit;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Takes files that cannot match out of scans. It runs late in Spark's optimizer, when the engine itself has chosen files,
 * and looks for filters directly above a scan. Whatever goes wrong, the plan stays as it was.
 */
public class PruneRule extends Rule {
  /** null while pruning is off; a session may also leave it out by `SET spark.oreo.pruning = false`. */
  public static volatile FactCache cache = null;
  public static volatile List formats = new ArrayList();
  public static final AtomicLong calls = new AtomicLong();
  public static final AtomicLong nanos = new AtomicLong();
  /** Scans that were pruned. */
  public static final AtomicLong scans = new AtomicLong();
  /** Rows in files that the engine itself would have read from maintained tables, and those left out of them. */
  public static final AtomicLong rowsOffered = new AtomicLong();
  public static final AtomicLong rowsDropped = new AtomicLong();
  /** For tests: what the rule throws. */
  public static volatile RuntimeException fault = null;

  private final boolean late;

  /** A rule for the formats that are ready at its stage: each scan is judged once. */
  public PruneRule(boolean late) {
    this.late = late;
  }

  public Object apply(Object plan) {
    return prune((LogicalPlan) plan);
  }

  public TreeNode apply(TreeNode plan) {
    return prune((LogicalPlan) plan);
  }

  private LogicalPlan prune(LogicalPlan plan) {
    FactCache facts = cache;
    if (facts == null || SQLConf.get().getConfString("spark.oreo.pruning", "true").equals("false")) {
      return plan;
    }
    long start = System.nanoTime();
    try {
      if (fault != null) {
        throw fault;
      }
      Found found = new Found(facts, late);
      found.walk(plan, null);
      return found.filters.isEmpty() || found.isWrite ? plan : found.prune(plan);
    } catch (Throwable e) {
      Warnings.once("pruning failed and was left out (" + e + "): queries run without it. Please report it; "
          + "oreo_lakehouse.detach(spark) turns it off");
      return plan;
    } finally {
      calls.incrementAndGet();
      nanos.addAndGet(System.nanoTime() - start);
    }
  }

  /** The scans of maintained tables in a plan. */
  public static class Found {
    private final FactCache cache;
    private final boolean late;
    public final List filters = new ArrayList();
    private final List owners = new ArrayList();
    private final List known = new ArrayList();
    /** From what leaves share to the condition above them; Boolean.FALSE once two of them differ. */
    private final IdentityHashMap shared = new IdentityHashMap();
    public boolean isWrite = false;

    public Found(FactCache cache, boolean late) {
      this.cache = cache;
      this.late = late;
    }

    public void walk(LogicalPlan plan, Filter above) throws Exception {
      scala.collection.immutable.Seq children = plan.children();
      if (plan.expressions().nonEmpty()) {
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
          walk((LogicalPlan) inner.next(), null);
        }
      }
      if (children.isEmpty()) {
        leaf(plan, above);
        return;
      }
      String name = plan.getClass().getSimpleName();
      if (name.equals("WriteDelta") || name.equals("ReplaceData")) {
        isWrite = true; // row-level commands decide about files themselves
      }
      scala.collection.Iterator it = children.iterator();
      while (it.hasNext()) {
        walk((LogicalPlan) it.next(), plan instanceof Filter ? (Filter) plan : null);
      }
    }

    private void leaf(LogicalPlan leaf, Filter above) throws Exception {
      for (int i = 0; i < formats.size(); i++) {
        Format format = (Format) formats.get(i);
        TableFacts facts = format.late() == late ? format.facts(leaf, cache) : null;
        if (facts == null) {
          continue;
        }
        Object common = format.shared(leaf);
        if (common != null) {
          Object condition = above == null ? (Object) Boolean.FALSE : above.condition();
          Object before = shared.get(common);
          if (before != null && (before == Boolean.FALSE || condition == Boolean.FALSE
              || !((Expression) before).semanticEquals((Expression) condition))) {
            condition = Boolean.FALSE;
          }
          shared.put(common, condition);
        }
        if (above != null) {
          filters.add(above);
          owners.add(format);
          known.add(facts);
        }
        return;
      }
    }

    public LogicalPlan prune(LogicalPlan plan) throws Exception {
      IdentityHashMap replaced = new IdentityHashMap();
      boolean inPlace = false;
      for (int i = 0; i < filters.size(); i++) {
        Filter filter = (Filter) filters.get(i);
        Format format = (Format) owners.get(i);
        Object common = format.shared(filter.child());
        if (replaced.containsKey(filter) || (common != null && shared.get(common) == Boolean.FALSE)) {
          continue;
        }
        LogicalPlan leaf = format.pruned(filter, (TableFacts) known.get(i));
        if (leaf == null) {
          continue;
        }
        scans.incrementAndGet();
        if (leaf == filter.child()) {
          inPlace = true;
        } else {
          replaced.put(filter, new Filter(filter.condition(), leaf));
        }
      }
      LogicalPlan out = replaced.isEmpty() ? plan : (LogicalPlan) plan.transformDownWithSubqueries(new Step(replaced));
      if (inPlace) {
        out.invalidateStatsCache();
      }
      return out;
    }
  }

  public static class Step extends scala.runtime.AbstractPartialFunction {
    private final IdentityHashMap replaced;

    public Step(IdentityHashMap replaced) {
      this.replaced = replaced;
    }

    public boolean isDefinedAt(Object plan) {
      return replaced.containsKey(plan);
    }

    public Object applyOrElse(Object plan, scala.Function1 other) {
      Object found = replaced.get(plan);
      return found != null ? found : other.apply(plan);
    }
  }
}
