package oreo.unit;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Which of a scan's files are read. */
public class Choice {
  /** Scans that would keep more than this share of their rows are left as they are. */
  public static final double LITTLE_TO_GAIN = 0.9;
  public final boolean[] kept;
  public final int files;
  public final int dropped;
  public final long rowsDropped;
  public final double shareDropped;

  private Choice(boolean[] kept, int dropped, long rowsDropped, double shareDropped) {
    this.kept = kept;
    this.files = kept.length;
    this.dropped = dropped;
    this.rowsDropped = rowsDropped;
    this.shareDropped = shareDropped;
  }

  /** The choice for a scan's files, or null if there is nothing to gain. Files without facts are kept. */
  public static Choice of(Expression condition, String[] names, long[] sizes, TableFacts facts, Map keys) {
    boolean[] kept = new boolean[names.length];
    boolean[][] might = new boolean[facts.runs.size()][];
    boolean[] asked = new boolean[facts.runs.size()];
    int dropped = 0;
    long knownRows = 0, knownBytes = 0, unknownBytes = 0, rowsDropped = 0;
    for (int i = 0; i < names.length; i++) {
      Long place = facts.place(names[i]);
      if (place == null) {
        kept[i] = true;
        unknownBytes += sizes[i];
        continue;
      }
      int run = (int) (place.longValue() >> 32), at = (int) place.longValue();
      Facts its = (Facts) facts.runs.get(run);
      if (!asked[run]) {
        might[run] = new Condition(its, keys).might(condition, true);
        asked[run] = true;
      }
      kept[i] = might[run] == null || might[run][at];
      knownRows += its.rows[at];
      knownBytes += sizes[i];
      if (!kept[i]) {
        dropped++;
        rowsDropped += its.rows[at];
      }
    }
    double total = knownRows + unknownBytes * (knownRows / (double) Math.max(1L, knownBytes));
    double share = rowsDropped / Math.max(1.0, total);
    PruneRule.rowsOffered.addAndGet(Math.round(total));
    if (dropped == 0 || 1 - share > LITTLE_TO_GAIN) {
      return null;
    }
    PruneRule.rowsDropped.addAndGet(rowsDropped);
    return new Choice(kept, dropped, rowsDropped, share);
  }

  /** For people, in the plan. */
  public String note() {
    return "oreo skips " + dropped + " of " + files + " files, "
        + Math.round(shareDropped * 1000) / 10.0 + "% of the rows";
  }
}
