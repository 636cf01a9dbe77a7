package oreo.unit;
import io.delta.storage.HDFSLogStore;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.storage.*;

/**
 * Commits to a log on this machine's disk that replace nobody's. Delta looks whether a version is there and renames
 * then, and what another process commits in between is gone; a link is made only where nothing is. Janino: no generics.
 */
public class LinkedLog extends HDFSLogStore {
  public LinkedLog() {
    super(new Configuration());
  }

  /**
   * Puts this in the place of Delta's own, if that is what the log has; whether commits are linked from now on. A Delta
   * that keeps its stores otherwise than we know commits as it always did.
   */
  public boolean into(DeltaLog log) {
    if (!"file".equals(log.logPath().toUri().getScheme()) || !(log.store() instanceof DelegatingLogStore)) return false;
    DelegatingLogStore store = (DelegatingLogStore) log.store();
    LogStore now = store.getDelegate(log.logPath());
    if (!(now instanceof LogStoreAdaptor)) return false;
    io.delta.storage.LogStore one = ((LogStoreAdaptor) now).logStoreImpl();
    if (one.getClass().getSimpleName().equals("LinkedLog")) return true;
    if (one.getClass() != HDFSLogStore.class) return false; // the user's own choice
    try {
      java.lang.reflect.Field stores = DelegatingLogStore.class.getDeclaredField("schemeToLogStoreMap");
      stores.setAccessible(true);
      synchronized (store) { // as Delta does when it looks there
        ((scala.collection.mutable.Map) stores.get(store)).put("file", new LogStoreAdaptor(this));
      }
      return true;
    } catch (ReflectiveOperationException other) {
      return false;
    } catch (RuntimeException closed) {
      return false;
    }
  }

  public void write(Path path, Iterator lines, Boolean overwrite, Configuration conf) throws IOException {
    if (overwrite.booleanValue()) {
      super.write(path, lines, overwrite, conf);
      return;
    }
    File target = new File(path.toUri().getPath());
    File written = new File(target.getParentFile(), "." + target.getName() + "." + UUID.randomUUID() + ".tmp");
    try {
      toDisk(written, lines);
      Files.createLink(target.toPath(), written.toPath());
    } catch (FileAlreadyExistsException taken) { // which is Delta's word for a conflict, too
      throw taken;
    } catch (FileSystemException none) {
      again(path, written, conf, none);
    } catch (UnsupportedOperationException none) {
      again(path, written, conf, new IOException(none));
    } finally {
      written.delete();
    }
  }

  private static void toDisk(File file, Iterator lines) throws IOException {
    FileOutputStream bytes = new FileOutputStream(file);
    try {
      Writer out = new BufferedWriter(new OutputStreamWriter(bytes, StandardCharsets.UTF_8));
      while (lines.hasNext()) {
        out.write((String) lines.next());
        out.write('\n');
      }
      out.flush();
      bytes.getFD().sync();
    } finally {
      bytes.close();
    }
  }

  /** A disk without links, as some that are mounted: Delta's own way is as good as it gets there. */
  public void again(Path path, File written, Configuration conf, IOException why) throws IOException {
    if (!written.exists()) throw why;
    super.write(path, Files.readAllLines(written.toPath()).iterator(), Boolean.FALSE, conf);
  }
}
