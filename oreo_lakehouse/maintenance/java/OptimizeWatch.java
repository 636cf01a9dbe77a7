package oreo.unit;

import java.lang.reflect.Method;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import scala.Option;

/**
 * Sees Delta's OPTIMIZE end, in any session of a Spark context and however it was asked for, and keeps the tables that
 * wait for maintenance: each once, and not more than MOST. It never lets an error out.
 */
public class OptimizeWatch extends SparkListener implements Consumer {
  private static final int MOST = 1000;
  private final Set waiting = new LinkedHashSet();
  private boolean busy = false;
  private boolean open = true;
  private long lost = 0;

  public void onOtherEvent(SparkListenerEvent event) {
    if (!(event instanceof SparkListenerSQLExecutionEnd)) {
      return;
    }
    try {
      SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
      QueryExecution query = end.qe();
      if (query == null || end.executionFailure().isDefined() || !isOptimize(query.logical())) {
        return;
      }
      // Fetching the command's answer is an execution of its own, and not another OPTIMIZE.
      if (!query.executedPlan().getClass().getSimpleName().equals("CommandResultExec")) {
        accept(named(query.analyzed()));
      }
    } catch (Throwable e) {
      lose();
    }
  }

  /** A table was rewritten. */
  public synchronized void accept(Object table) {
    if (open && (waiting.size() < MOST || waiting.contains(table))) {
      waiting.add(table);
      notifyAll();
    } else if (open) {
      lost++;
    }
  }

  private synchronized void lose() {
    lost++;
  }

  /** The table that has waited longest, or null if there is none yet; done() must follow when it has been maintained. */
  public String take(long millis) throws InterruptedException {
    synchronized (this) {
      if (waiting.isEmpty()) {
        wait(millis);
      }
      if (waiting.isEmpty()) {
        return null;
      }
    }
    if (isRewriting()) { // its next commit would meet ours
      Thread.sleep(millis);
      return null;
    }
    synchronized (this) {
      Iterator first = waiting.iterator();
      if (!first.hasNext()) {
        return null;
      }
      String table = (String) first.next();
      first.remove();
      busy = true;
      return table;
    }
  }

  public synchronized void done() {
    busy = false;
    notifyAll();
  }

  public synchronized boolean awaitIdle(long millis) throws InterruptedException {
    if (busy || !waiting.isEmpty()) {
      wait(millis);
    }
    return !busy && waiting.isEmpty();
  }

  public synchronized int waiting() {
    return waiting.size();
  }

  public synchronized long lost() {
    return lost;
  }

  public synchronized void close() {
    open = false;
    waiting.clear();
    notifyAll();
  }

  /**
   * Whether a thread is inside an OPTIMIZE or a rewrite_data_files: partitions may be rewritten by several threads, and
   * one call may commit several times. Nothing announces the end of a CALL, which runs while it is analysed.
   */
  private static boolean isRewriting() {
    for (Iterator i = Thread.getAllStackTraces().values().iterator(); i.hasNext(); ) {
      StackTraceElement[] stack = (StackTraceElement[]) i.next();
      for (int j = 0; j < stack.length; j++) {
        String name = stack[j].getClassName();
        if (name.endsWith(".OptimizeTableCommand") || name.endsWith(".RewriteDataFilesSparkAction")) {
          return true;
        }
      }
    }
    return false;
  }

  private static boolean isOptimize(Object plan) {
    return plan.getClass().getSimpleName().equals("OptimizeTableCommand");
  }

  private static String named(Object optimize) throws Exception {
    ResolvedTable resolved = (ResolvedTable) call(optimize, "child");
    Object table = resolved.table();
    if (((Option) call(table, "catalogTable")).isEmpty()) {
      return call(call(table, "deltaLog"), "dataPath").toString();
    }
    StringBuilder name = new StringBuilder(quoted(resolved.catalog().name()));
    String[] namespace = resolved.identifier().namespace();
    for (int i = 0; i < namespace.length; i++) {
      name.append('.').append(quoted(namespace[i]));
    }
    return name.append('.').append(quoted(resolved.identifier().name())).toString();
  }

  private static String quoted(String part) {
    return part.matches("[A-Za-z_][A-Za-z0-9_]*") ? part : "`" + part.replace("`", "``") + "`";
  }

  private static Object call(Object target, String name) throws Exception {
    Method method = target.getClass().getMethod(name, new Class[0]);
    method.setAccessible(true);
    return method.invoke(target, new Object[0]);
  }
}
