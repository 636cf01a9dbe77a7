package oreo.unit;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.Iterator;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Adds up what tasks report, and tells the CPU time and the highest heap of this JVM. */
public class Meter extends SparkListener {
  private long read, written, shuffled, memorySpilled, diskSpilled, execution, taskCpu, tasks;

  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    TaskMetrics metrics = end.taskMetrics();
    if (metrics == null) return;
    read += metrics.inputMetrics().bytesRead();
    written += metrics.outputMetrics().bytesWritten();
    shuffled += metrics.shuffleWriteMetrics().bytesWritten();
    memorySpilled += metrics.memoryBytesSpilled();
    diskSpilled += metrics.diskBytesSpilled();
    execution = Math.max(execution, metrics.peakExecutionMemory());
    taskCpu += metrics.executorCpuTime();
    tasks++;
  }

  public synchronized long[] sums() {
    return new long[] {read, written, shuffled, memorySpilled, diskSpilled, execution, taskCpu, tasks};
  }

  /** Begins anew; the heap's highest use counts from what is alive now. */
  public synchronized void reset(boolean collect) {
    read = written = shuffled = memorySpilled = diskSpilled = execution = taskCpu = tasks = 0L;
    if (collect) System.gc();
    Iterator pools = ManagementFactory.getMemoryPoolMXBeans().iterator();
    while (pools.hasNext()) ((MemoryPoolMXBean) pools.next()).resetPeakUsage();
  }

  public long heap() {
    long sum = 0;
    Iterator pools = ManagementFactory.getMemoryPoolMXBeans().iterator();
    while (pools.hasNext()) {
      MemoryPoolMXBean pool = (MemoryPoolMXBean) pools.next();
      if (pool.getType() == MemoryType.HEAP) sum += pool.getPeakUsage().getUsed();
    }
    return sum;
  }

  public long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }
}
