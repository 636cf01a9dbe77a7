package oreo.unit;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** Turns live capture on by configuration only: spark.jars and spark.plugins. */
public class CapturePlugin implements SparkPlugin, DriverPlugin {
  public DriverPlugin driverPlugin() {
    return this;
  }

  public ExecutorPlugin executorPlugin() {
    return null;
  }

  public Map init(SparkContext context, PluginContext plugin) {
    try {
      SparkConf conf = context.getConf();
      String warehouse = conf.get("spark.sql.warehouse.dir", "spark-warehouse");
      Listener listener = new Listener(
          context.applicationId(),
          context.hadoopConfiguration(),
          conf.get("spark.oreo.store", warehouse + "/_oreo"),
          conf.get("spark.oreo.redact", ""),
          conf.getBoolean("spark.oreo.storeSql", false),
          conf.getLong("spark.oreo.flushSeconds", 10L) * 1000L);
      context.listenerBus().addToQueue(listener, "oreo");
    } catch (Throwable e) {
      System.err.println("oreo: live capture could not be turned on: " + e);
    }
    return Collections.emptyMap();
  }
}
