package oreo.unit;

import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** How the scans of one table format are pruned. */
public abstract class Format {
  /** Whether its scans exist only when Spark has pushed filters into them, or already before. */
  public abstract boolean late();

  /** What is known of the files of a scan; null if it is none of this format, or its table is not maintained. */
  public abstract TableFacts facts(LogicalPlan leaf, FactCache cache) throws Exception;

  /** What people call the table of such a leaf, if it has that column; null if it has not. */
  public abstract String named(LogicalPlan leaf, String column) throws Exception;

  /** The scan below a filter with fewer files, as a new leaf or the same one changed; the same if nothing is gained. */
  public abstract LogicalPlan pruned(Filter filter, TableFacts facts) throws Exception;

  /** The object that a leaf shares with others when it is changed in place, or null. */
  public abstract Object shared(LogicalPlan leaf);
}
