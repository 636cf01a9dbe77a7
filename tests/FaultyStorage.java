package oreo.unit;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.Progressable;

/**
 * This machine's disk as the scheme `faulty:`, which can be made full or closed to writing. A test may run as root and
 * without the right to mount, so neither a real quota nor real permissions would do on every machine.
 */
public class FaultyStorage extends RawLocalFileSystem {
  /** How many bytes still fit. */
  private long space = Long.MAX_VALUE;
  /** Nothing can be created where this is part of the path. */
  private String closed = null;

  public URI getUri() {
    return URI.create("faulty:///");
  }

  public String getScheme() {
    return "faulty";
  }

  public void fault(long bytes, String folder) {
    space = bytes;
    closed = folder;
  }

  public FSDataOutputStream create(Path path, boolean overwrite, int buffer, short replication, long block,
      Progressable progress) throws IOException {
    refuse(path);
    return limited(super.create(path, overwrite, buffer, replication, block, progress));
  }

  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer,
      short replication, long block, Progressable progress) throws IOException {
    refuse(path);
    return limited(super.create(path, permission, overwrite, buffer, replication, block, progress));
  }

  /** Plain, because the status of a local file insists on the scheme `file:`. */
  public FileStatus getFileStatus(Path path) throws IOException {
    return plain(super.getFileStatus(path));
  }

  public FileStatus[] listStatus(Path path) throws IOException {
    FileStatus[] found = super.listStatus(path);
    for (int i = 0; i < found.length; i++) {
      found[i] = plain(found[i]);
    }
    return found;
  }

  private static FileStatus plain(FileStatus one) {
    return new FileStatus(one.getLen(), one.isDirectory(), 1, 1 << 20, one.getModificationTime(), one.getPath());
  }

  private void refuse(Path path) throws IOException {
    if (closed != null && path.toString().contains(closed)) {
      throw new AccessControlException("Permission denied: " + path);
    }
  }

  private FSDataOutputStream limited(OutputStream out) throws IOException {
    return new FSDataOutputStream(new Limited(this, out), null);
  }

  public synchronized void take(int bytes) throws IOException {
    if (bytes > space) {
      throw new IOException("No space left on device");
    }
    space -= bytes;
  }

  public static class Limited extends FilterOutputStream {
    private final FaultyStorage storage;

    public Limited(FaultyStorage storage, OutputStream out) {
      super(out);
      this.storage = storage;
    }

    public void write(int one) throws IOException {
      storage.take(1);
      out.write(one);
    }

    public void write(byte[] bytes, int offset, int length) throws IOException {
      storage.take(length);
      out.write(bytes, offset, length);
    }
  }
}
