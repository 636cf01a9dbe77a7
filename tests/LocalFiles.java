package oreo.unit;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files, checksums and all, but without a process for every chmod and readlink: where its native library
 * is missing it starts one, some 140 while a table is made, laid out and rolled back.
 */
public class LocalFiles extends ChecksumFs {
  public LocalFiles(URI root, Configuration conf) throws IOException, URISyntaxException {
    super(new Context(root, conf));
  }

  /** What FileSystem's users get. */
  public static class Plain extends LocalFileSystem {
    public Plain() {
      super(new Raw());
    }
  }

  /** What FileContext's users get, below the checksums. */
  public static class Context extends DelegateToFileSystem {
    public Context(URI root, Configuration conf) throws IOException, URISyntaxException {
      super(root, new Raw(), conf, "file", false);
    }

    public int getUriDefaultPort() {
      return -1;
    }

    public boolean isValidName(String name) {
      return true;
    }
  }

  /** The same calls to the system, from this process. */
  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
      if (permission.getStickyBit()) {
        super.setPermission(path, permission);
        return;
      }
      Set mode = PosixFilePermissions.fromString(permission.toString());
      Files.setPosixFilePermissions(pathToFile(path).toPath(), mode);
    }

    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath()) ? super.getFileLinkStatus(path) : getFileStatus(path);
    }
  }
}
