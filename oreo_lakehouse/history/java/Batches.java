package oreo.unit;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Collects records and writes them, on a thread of its own, as batches under each table's folder of the store. */
public class Batches implements Runnable {
  private final Configuration conf;
  private final String root;
  private final long periodMs;
  private final long capacity;
  private final String writer = java.util.UUID.randomUUID().toString().replace("-", "");
  private final List queue = new ArrayList();
  private final Map numbers = new LinkedHashMap();
  private long waiting = 0;
  private long told = 0;
  private boolean closed = false;
  public final AtomicLong dropped = new AtomicLong();

  /** @param capacity characters that may wait to be written. */
  public Batches(Configuration conf, String root, long periodMs, long capacity) {
    this.conf = conf;
    this.root = root;
    this.periodMs = periodMs;
    this.capacity = capacity;
  }

  /** Never waits: a record for which there is no room is dropped and counted. */
  public void offer(String uuid, String line) {
    synchronized (queue) {
      if (waiting + line.length() > capacity) {
        dropped.incrementAndGet();
      } else {
        waiting += line.length();
        queue.add(new String[] {uuid, line});
      }
    }
  }

  public void run() {
    while (!closed) {
      try {
        Thread.sleep(periodMs);
        flush();
      } catch (InterruptedException e) {
        return;
      } catch (Throwable e) {
        // what could not be written has been counted; the next round tries with what comes then
      }
    }
  }

  public void close() {
    closed = true;
    flush();
  }

  /** Write what has been collected. Numbers of one writer become visible in order: readers rely on it. */
  public synchronized void flush() {
    List taken;
    synchronized (queue) {
      taken = new ArrayList(queue);
      queue.clear();
      waiting = 0;
    }
    Map tables = new LinkedHashMap();
    for (int i = 0; i < taken.size(); i++) {
      String[] item = (String[]) taken.get(i);
      StringBuilder lines = (StringBuilder) tables.get(item[0]);
      if (lines == null) {
        lines = new StringBuilder();
        tables.put(item[0], lines);
      }
      lines.append(item[1]).append('\n');
    }
    Iterator it = tables.keySet().iterator();
    while (it.hasNext()) {
      String uuid = (String) it.next();
      String lines = tables.get(uuid).toString();
      if (!write(uuid + "/history", uuid, "jsonl", lines)) {
        dropped.addAndGet(lines.split("\n").length);
      }
    }
    long now = dropped.get();
    if (now > told && write("capture", "drops", "json", "{\"dropped\":" + now + "}\n")) {
      told = now;
    }
  }

  private boolean write(String folder, String counter, String ending, String content) {
    long number = numbers.containsKey(counter) ? ((Long) numbers.get(counter)).longValue() : 0L;
    numbers.put(counter, Long.valueOf(number + 1)); // even if it fails: a number must never mean two batches
    String name = String.format("%016d-%s-%06d.%s",
        new Object[] {Long.valueOf(System.currentTimeMillis() * 1000L), writer, Long.valueOf(number), ending});
    try {
      Path target = new Path(new Path(root, folder), name);
      Path unfinished = new Path(new Path(root, folder), ".unfinished-" + java.util.UUID.randomUUID().toString());
      FileSystem files = target.getFileSystem(conf);
      FSDataOutputStream out = files.create(unfinished, false);
      try {
        out.write(content.getBytes("UTF-8"));
      } finally {
        out.close();
      }
      if (!files.rename(unfinished, target)) {
        files.delete(unfinished, false);
        return false;
      }
      return true;
    } catch (Throwable e) {
      return false;
    }
  }
}
