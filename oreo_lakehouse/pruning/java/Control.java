package oreo.unit;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;

/** Turns pruning on and off; the rule itself stays where it was put and does nothing while it is off. */
public class Control {
  private boolean injected = false;

  public synchronized void start(
      SparkSession session, Configuration conf, String root, String bidColumn, List formats) {
    PruneRule.formats = new ArrayList(formats);
    PruneRule.cache = new FactCache(conf, root, bidColumn);
    System.setProperty("oreo.pruning", "oreo.pruning"); // history records say that it was on
    if (!injected) {
      session.extensions().injectPreCBORule(new Make());
      injected = true;
    }
  }

  public synchronized void stop() {
    PruneRule.cache = null;
    System.clearProperty("oreo.pruning");
  }

  public void refresh() {
    FactCache cache = PruneRule.cache;
    if (cache != null) {
      cache.forget();
    }
  }

  public long calls() {
    return PruneRule.calls.get();
  }

  public long nanos() {
    return PruneRule.nanos.get();
  }

  public long scans() {
    return PruneRule.scans.get();
  }

  public long rowsOffered() {
    return PruneRule.rowsOffered.get();
  }

  public long rowsDropped() {
    return PruneRule.rowsDropped.get();
  }

  public String warnings() {
    return Warnings.all();
  }

  public void warn(String message) {
    Warnings.once(message);
  }

  public void breakWith(String message) {
    PruneRule.fault = message == null ? null : new RuntimeException(message);
  }

  /**
   * Called for every query of every session that shares the extensions. Delta's files are chosen by the pre-CBO stage;
   * Iceberg's scan exists only later, and the one later stage is the session's own list: so the rule joins that too.
   */
  public static class Make extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) {
      ExperimentalMethods methods = ((org.apache.spark.sql.SparkSession) session).experimental();
      synchronized (methods) {
        boolean has = false;
        scala.collection.Iterator it = methods.extraOptimizations().iterator();
        while (it.hasNext()) {
          has |= it.next() instanceof PruneRule;
        }
        if (!has) {
          methods.extraOptimizations_$eq(
              (scala.collection.immutable.Seq) methods.extraOptimizations().appended(new PruneRule(true)));
        }
      }
      return new PruneRule(false);
    }
  }
}
