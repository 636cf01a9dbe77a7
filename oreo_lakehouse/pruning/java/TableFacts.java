package oreo.unit;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The facts of all runs of one table. */
public class TableFacts {
  public final List runs;
  private final Map places = new HashMap();

  public TableFacts(List runs) {
    this.runs = runs;
    for (int r = runs.size() - 1; r >= 0; r--) {
      Object[] names = ((Facts) runs.get(r)).names().toArray();
      for (int i = 0; i < names.length; i++) {
        int place = ((Facts) runs.get(r)).place((String) names[i]);
        places.put(names[i], Long.valueOf(((long) r << 32) | place));
      }
    }
  }

  /** Whether some known file lies in a folder. */
  public boolean under(String folder) {
    for (java.util.Iterator it = places.keySet().iterator(); it.hasNext(); ) {
      if (((String) it.next()).startsWith(folder)) {
        return true;
      }
    }
    return false;
  }

  /** Run (upper half) and place in it (lower half) of a file; null if nothing is known of it. */
  public Long place(String name) {
    return (Long) places.get(name);
  }
}
