package oreo.unit;
import java.util.*;
import org.apache.spark.sql.delta.*;
import org.apache.spark.sql.delta.actions.*;
import scala.Option;

/** What the log of a Delta table tells of its past, in one call for many commits. Janino: no generics. */
public class Past {
  private static List list(scala.collection.immutable.Seq actions) {
    return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(actions));
  }

  /** A file is the same file only with the same deletion vector. */
  private static String key(AddFile file) {
    Option vector = file.getDeletionVectorUniqueId();
    return file.path() + (vector.isDefined() ? " " + vector.get() : "");
  }

  private static String key(RemoveFile file) {
    Option vector = file.getDeletionVectorUniqueId();
    return file.path() + (vector.isDefined() ? " " + vector.get() : "");
  }

  /** One commit as the log has it: the files that it added, and the keys of those that it removed. */
  public List change(DeltaLog log, Option table, long version) {
    scala.collection.Iterator commits = log.getChanges(version, version, table, true);
    List actions = list((scala.collection.immutable.Seq) ((scala.Tuple2) commits.next())._2());
    List added = new ArrayList();
    StringBuilder removed = new StringBuilder();
    for (Iterator i = actions.iterator(); i.hasNext();) {
      Object action = i.next();
      if (action instanceof AddFile) added.add(action);
      if (action instanceof RemoveFile) removed.append(key((RemoveFile) action)).append('\n');
    }
    return Arrays.asList(new Object[] {added, removed.toString()});
  }

  /** Whether a file is in one of the partitions, or may be; null stands for all of them. */
  private static boolean in(Set partitions, Object values) {
    return partitions == null || values == null || partitions.contains(values);
  }

  /**
   * The files that commits after a version appended to the partitions, or that commit's version which changed rows in
   * them otherwise.
   */
  public Object appended(DeltaLog log, Option table, long after, long to, Set partitions) {
    List added = new ArrayList();
    if (after >= to) return added;
    scala.collection.Iterator commits = log.getChanges(after + 1, to, table, true);
    while (commits.hasNext()) {
      scala.Tuple2 commit = (scala.Tuple2) commits.next();
      for (Iterator i = list((scala.collection.immutable.Seq) commit._2()).iterator(); i.hasNext();) {
        Object action = i.next();
        if (action instanceof AddFile) {
          AddFile file = (AddFile) action;
          if (file.dataChange() && in(partitions, file.partitionValues())) added.add(file);
        } else if (action instanceof RemoveFile) {
          RemoveFile file = (RemoveFile) action;
          if (file.dataChange() && in(partitions, file.partitionValues())) return commit._1();
        }
      }
    }
    return added;
  }

  /** When the first of the files was removed, in ms; -1 when a file has no tombstone any more. */
  public long firstRemoval(Snapshot snapshot, List files) {
    Map removed = new HashMap();
    for (Iterator i = snapshot.tombstones().collectAsList().iterator(); i.hasNext();) {
      RemoveFile file = (RemoveFile) i.next();
      removed.put(key(file), Long.valueOf(file.delTimestamp()));
    }
    long first = Long.MAX_VALUE;
    for (Iterator i = files.iterator(); i.hasNext();) {
      Long when = (Long) removed.get(key((AddFile) i.next()));
      if (when == null) return -1;
      first = Math.min(first, when.longValue());
    }
    return first;
  }

  /**
   * Commits without our mark that took files out which one with it had put in: version, time in ms, operation, and the
   * files' paths, parted by tabs.
   */
  public String foreign(DeltaLog log, Option table, long from, long to, String mark) {
    StringBuilder lines = new StringBuilder();
    Set ours = new HashSet();
    scala.collection.Iterator commits = log.getChanges(from, to, table, true);
    while (commits.hasNext()) {
      scala.Tuple2 commit = (scala.Tuple2) commits.next();
      Set added = new HashSet(), removed = new LinkedHashSet();
      String operation = "", note = "";
      long time = 0;
      for (Iterator i = list((scala.collection.immutable.Seq) commit._2()).iterator(); i.hasNext();) {
        Object action = i.next();
        if (action instanceof AddFile) added.add(((AddFile) action).path());
        if (action instanceof RemoveFile) removed.add(((RemoveFile) action).path());
        if (action instanceof CommitInfo) {
          CommitInfo info = (CommitInfo) action;
          operation = String.valueOf(info.operation());
          time = info.timestamp() == null ? 0 : info.timestamp().getTime();
          note = info.userMetadata().isDefined() ? (String) info.userMetadata().get() : "";
        }
      }
      if (note.contains(mark)) {
        ours.removeAll(removed);
        ours.addAll(added);
        continue;
      }
      removed.removeAll(added); // the same file with a new deletion vector
      removed.retainAll(ours);
      ours.removeAll(removed);
      if (!removed.isEmpty())
        lines.append(commit._1()).append('\t').append(time).append('\t').append(operation).append('\t')
            .append(String.join("\t", removed)).append('\n');
    }
    return lines.toString();
  }

  /** The operations of the newest commits, one a line. */
  public String operations(DeltaLog log, Option table, int newest) {
    StringBuilder lines = new StringBuilder();
    scala.collection.immutable.Seq entries = log.history().getHistory(Option.apply(Integer.valueOf(newest)), table);
    for (Iterator i = list(entries).iterator(); i.hasNext();)
      lines.append(((DeltaHistory) i.next()).operation()).append('\n');
    return lines.toString();
  }

  /** Our own commits: version, time in ms and the note, oldest or newest first as the log gives them. */
  public String notes(DeltaLog log, Option table, long since, String mark) {
    StringBuilder lines = new StringBuilder();
    for (Iterator i = list(log.history().getHistory(since, Option.empty(), table)).iterator(); i.hasNext();) {
      DeltaHistory entry = (DeltaHistory) i.next();
      Option note = entry.userMetadata();
      if (note.isDefined() && ((String) note.get()).contains(mark))
        lines.append(entry.version().get()).append(' ').append(entry.timestamp().getTime()).append(' ')
            .append(((String) note.get()).replace('\n', ' ')).append('\n');
    }
    return lines.toString();
  }
}
