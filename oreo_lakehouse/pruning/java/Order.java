package oreo.unit;

/** Comparisons as sets of outcomes: less, equal, greater. */
public class Order {
  public static final int LESS = 1, EQUAL = 2, GREATER = 4, ALL = 7;

  public static int of(int comparison) {
    return comparison < 0 ? LESS : comparison == 0 ? EQUAL : GREATER;
  }

  public static int mirrored(int order) {
    return (order & EQUAL) | ((order & LESS) << 2) | ((order & GREATER) >> 2);
  }

  /** The outcomes that lie between that of a smallest and that of a largest value. */
  public static int span(int low, int high) {
    return low == LESS && high == GREATER ? ALL : low | high;
  }

  /** Whether two sets of bits have one in common. */
  public static boolean meet(long[] a, long[] b) {
    for (int i = 0; i < Math.min(a.length, b.length); i++) {
      if ((a[i] & b[i]) != 0) {
        return true;
      }
    }
    return false;
  }
}
