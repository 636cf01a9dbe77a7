package oreo.unit;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/** Sees every SQL execution of a Spark context, on a thread of its own, and never lets an error out. */
public class Listener extends SparkListener {
  private final String application;
  private final Set redacted = new HashSet();
  private final boolean keepSql;
  private final Batches batches;
  public final AtomicLong nanos = new AtomicLong();
  public final AtomicLong executions = new AtomicLong();
  public volatile boolean active = true;

  public Listener(String application, Configuration conf, String root, String redact, boolean keepSql, long periodMs) {
    this.application = application;
    String[] names = redact.split(",");
    for (int i = 0; i < names.length; i++) {
      if (names[i].trim().length() > 0) {
        redacted.add(names[i].trim().toLowerCase(java.util.Locale.ROOT));
      }
    }
    this.keepSql = keepSql && redacted.isEmpty(); // a statement has all its literals
    batches = new Batches(conf, root, periodMs, 50000000L);
    Thread thread = new Thread(batches, "oreo-capture");
    thread.setDaemon(true);
    thread.start();
  }

  public long spentNanos() {
    return nanos.get();
  }

  public long seen() {
    return executions.get();
  }

  public long dropped() {
    return batches.dropped.get();
  }

  public void flush() {
    batches.flush();
  }

  public void stop() {
    active = false;
    batches.close();
  }

  public void onApplicationEnd(SparkListenerApplicationEnd event) {
    batches.close();
  }

  public void onOtherEvent(SparkListenerEvent event) {
    if (!active || !(event instanceof SparkListenerSQLExecutionEnd)) {
      return;
    }
    long start = System.nanoTime();
    try {
      record((SparkListenerSQLExecutionEnd) event);
    } catch (Throwable e) {
      batches.dropped.incrementAndGet();
    }
    nanos.addAndGet(System.nanoTime() - start);
    executions.incrementAndGet();
  }

  /** Our pruning rule sets a system property of its own name while it is on; a session may leave it out. */
  private static boolean pruning(QueryExecution query) {
    return "oreo.pruning".equals(System.getProperty("oreo.pruning"))
        && !"false".equals(query.sparkSession().conf().get("spark.oreo.pruning", "true"));
  }

  private void record(SparkListenerSQLExecutionEnd end) throws Exception {
    QueryExecution query = end.qe();
    if (query == null || !query.tracker().phases().contains("optimization")) {
      return; // it failed before there was a plan
    }
    Scans scans = new Scans(redacted, pruning(query));
    scans.read(query.optimizedPlan(), query.executedPlan());
    if (scans.found.isEmpty()) {
      return;
    }
    long micros = end.time() * 1000L - end.duration() / 1000L;
    StringBuilder common = new StringBuilder();
    Json.field(common, "source", "capture");
    Json.field(common, "time_us", Long.valueOf(micros));
    Json.field(common, "duration_ms", Long.valueOf(end.duration() / 1000000L));
    Json.field(common, "status", end.executionFailure().isEmpty() ? "finished" : "failed");
    Json.field(common, "time_zone", query.sparkSession().sessionState().conf().sessionLocalTimeZone());
    if (query.logical().origin().sqlText().isDefined()) {
      String sql = (String) query.logical().origin().sqlText().get();
      byte[] hash = java.security.MessageDigest.getInstance("SHA-256").digest(sql.getBytes("UTF-8"));
      StringBuilder hex = new StringBuilder();
      for (int i = 0; i < 8; i++) {
        hex.append(Character.forDigit((hash[i] >> 4) & 15, 16)).append(Character.forDigit(hash[i] & 15, 16));
      }
      Json.field(common, "sql_hash", hex);
      Json.field(common, "sql", keepSql ? sql : null);
    }
    for (int i = 0; i < scans.found.size(); i++) {
      String[] scan = (String[]) scans.found.get(i);
      StringBuilder line = new StringBuilder("{\"scan\":").append(i);
      Json.field(line, "query_id", application + "-" + end.executionId());
      Json.field(line, "table_uuid", scan[0]);
      batches.offer(scan[0], line.append(common).append(scan[1]).append('}').toString());
    }
  }
}
