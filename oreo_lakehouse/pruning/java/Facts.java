package oreo.unit;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** The facts of the files that one run wrote, as `maintenance/facts.py` records them. */
public class Facts {
  public static final int FORMAT_VERSION = 1;
  private static final ObjectMapper JSON = new ObjectMapper();

  public final long[] rows;
  private final Map places = new HashMap();
  private final Map columns = new HashMap();
  private final Map pairs = new HashMap();

  /** Throws IllegalArgumentException with the reason if the document is damaged or of another format. */
  public Facts(byte[] content) throws Exception {
    int header = end(content, 0);
    Object version, expected;
    try {
      Map head = (Map) JSON.readValue(content, 0, header, HashMap.class);
      version = head.get("version");
      expected = head.get("sha256");
    } catch (Exception e) {
      throw new IllegalArgumentException("it is not a document of file facts");
    }
    if (!Integer.valueOf(FORMAT_VERSION).equals(version)) {
      throw new IllegalArgumentException("it has format " + version + ", this release reads " + FORMAT_VERSION);
    }
    java.security.MessageDigest hash = java.security.MessageDigest.getInstance("SHA-256");
    hash.update(content, header + 1, content.length - header - 1);
    byte[] seal = hash.digest();
    StringBuilder hex = new StringBuilder();
    for (int i = 0; i < seal.length; i++) {
      hex.append(Character.forDigit((seal[i] >> 4) & 15, 16)).append(Character.forDigit(seal[i] & 15, 16));
    }
    if (!hex.toString().equals(expected)) {
      throw new IllegalArgumentException("its content does not match its checksum");
    }
    int names = end(content, header + 1);
    List list = (List) JSON.readValue(content, header + 1, names - header - 1, java.util.ArrayList.class);
    for (int i = 0; i < list.size(); i++) {
      places.put(list.get(i), Integer.valueOf(i));
    }
    Map body = (Map) JSON.readValue(content, names + 1, content.length - names - 1, HashMap.class);
    rows = FactColumn.longs((List) body.get("rows"));
    Iterator fields = ((Map) body.get("columns")).entrySet().iterator();
    while (fields.hasNext()) {
      Map.Entry field = (Map.Entry) fields.next();
      columns.put(field.getKey(), new FactColumn((Map) field.getValue()));
    }
    Iterator comparisons = ((List) body.get("comparisons")).iterator();
    while (comparisons.hasNext()) {
      List one = (List) comparisons.next();
      pairs.put(one.get(0) + "\n" + one.get(1), FactColumn.longs((List) one.get(2)));
    }
  }

  private static int end(byte[] content, int from) {
    int at = from;
    while (at < content.length && content[at] != 10) {
      at++;
    }
    return Math.min(at, content.length - 1);
  }

  /** A file's place in the arrays, -1 if it is not one of this run. */
  public int place(String name) {
    Integer found = (Integer) places.get(name);
    return found == null ? -1 : found.intValue();
  }

  public java.util.Set names() {
    return places.keySet();
  }

  public FactColumn column(String key) {
    return (FactColumn) columns.get(key);
  }

  /** Per file the bits 1 (less), 2 (equal), 4 (greater) that its rows show for two columns; null if not known. */
  public long[] pair(String left, String right) {
    long[] found = (long[]) pairs.get(left + "\n" + right);
    if (found != null) {
      return found;
    }
    found = (long[]) pairs.get(right + "\n" + left);
    if (found == null) {
      return null;
    }
    long[] mirrored = new long[found.length];
    for (int i = 0; i < found.length; i++) {
      mirrored[i] = (found[i] & 2L) | ((found[i] & 1L) << 2) | ((found[i] & 4L) >> 2);
    }
    return mirrored;
  }
}
