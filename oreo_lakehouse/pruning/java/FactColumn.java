package oreo.unit;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One column's facts over the files of a run. Values are Long (whole numbers, dates, microseconds, booleans as 0 and 1),
 * Double, BigDecimal or UTF8String; null where not known.
 */
public class FactColumn {
  public final String kind;
  public final Object[] lower;
  public final Object[] upper;
  public final long[] nulls;
  /** All values of the sets below, or null if there are no sets. */
  public final Object[] values;
  /** Per file the bits of its values, or null where its set is not known. */
  public final long[][] sets;

  public FactColumn(Map document) {
    kind = (String) document.get("kind");
    lower = values(kind, (List) document.get("lower"));
    upper = values(kind, (List) document.get("upper"));
    nulls = longs((List) document.get("nulls"));
    if (document.containsKey("values")) {
      values = values(kind, (List) document.get("values"));
      Object[] texts = ((List) document.get("sets")).toArray();
      sets = new long[texts.length][];
      for (int i = 0; i < sets.length; i++) {
        if (texts[i] != null) {
          sets[i] = bits((String) texts[i], (values.length + 63) / 64);
        }
      }
    } else {
      values = null;
      sets = null;
    }
  }

  public static long[] longs(List numbers) {
    long[] out = new long[numbers.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = ((Number) numbers.get(i)).longValue();
    }
    return out;
  }

  private static Object[] values(String kind, List given) {
    Object[] out = new Object[given.size()];
    for (int i = 0; i < out.length; i++) {
      Object value = given.get(i);
      if (value == null || kind.equals("binary")) {
        continue;
      }
      if (kind.equals("string")) {
        out[i] = UTF8String.fromString((String) value);
      } else if (kind.equals("decimal")) {
        out[i] = new BigDecimal((String) value);
      } else if (kind.equals("float")) {
        out[i] = Double.valueOf(number(value));
      } else if (kind.equals("boolean")) {
        out[i] = Long.valueOf(((Boolean) value).booleanValue() ? 1L : 0L);
      } else {
        out[i] = Long.valueOf(((Number) value).longValue());
      }
    }
    return out;
  }

  private static double number(Object value) {
    if (value instanceof Number) {
      return ((Number) value).doubleValue() + 0.0; // -0.0 is 0.0, as Spark compares
    }
    return value.equals("nan") ? Double.NaN
        : value.equals("-inf") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
  }

  /** A hexadecimal number, its lowest bit the first value. */
  private static long[] bits(String hex, int words) {
    long[] out = new long[Math.max(words, (hex.length() + 15) / 16)];
    for (int i = 0; i < hex.length(); i++) {
      long digit = Character.digit(hex.charAt(hex.length() - 1 - i), 16);
      out[i / 16] |= digit << (4 * (i % 16));
    }
    return out;
  }

  /** Order of two values of this form; NaN is the largest number, as in Spark. */
  public static int compare(Object a, Object b) {
    if (a instanceof Long) {
      return Long.compare(((Long) a).longValue(), ((Long) b).longValue());
    }
    if (a instanceof Double) {
      return Double.compare(((Double) a).doubleValue(), ((Double) b).doubleValue());
    }
    if (a instanceof BigDecimal) {
      return ((BigDecimal) a).compareTo((BigDecimal) b);
    }
    return ((UTF8String) a).compareTo((UTF8String) b);
  }

  public boolean onlyNulls(int file, long rows) {
    return nulls[file] == rows && lower[file] == null && upper[file] == null;
  }
}
