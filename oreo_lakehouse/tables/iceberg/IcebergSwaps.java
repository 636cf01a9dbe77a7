package oreo.unit;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.BaseFileScanTask;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ContentFileParser;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.util.ContentFileUtil;
import org.apache.iceberg.util.JsonUtil;

/**
 * Files out, files in. Files are described in Iceberg's own JSON, so that another process can finish a swap. Outgoing
 * files come as a list that begins with {"base": …}, what held when they were read, followed by {"file", "positions"}
 * for each data file with the position deletes on it, and {"file"} for each delete file that goes with its data file.
 */
public class IcebergSwaps {
  private static final ObjectMapper JSON = JsonUtil.mapper();

  public String outgoing(Table table, long sequence, int formatVersion, List tasks) {
    ArrayNode all = JSON.createArrayNode();
    ObjectNode base = all.addObject().putObject("base");
    base.put("sequence", sequence);
    base.put("format-version", formatVersion);
    ArrayNode equality = base.putArray("equality-deletes");
    Set seen = new HashSet();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      ObjectNode entry = all.addObject();
      entry.set("file", json(table, (ContentFile) task.file()));
      entry.put("positions", positions(task));
      for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
        DeleteFile delete = (DeleteFile) d.next();
        if (!seen.add(identity(delete))) {
          continue;
        }
        if (delete.content() == FileContent.EQUALITY_DELETES) {
          equality.add(delete.location());
        } else if (ContentFileUtil.isFileScoped(delete)) {
          all.addObject().set("file", json(table, (ContentFile) delete.copyWithoutStats()));
        }
      }
    }
    return all.toString();
  }

  public String incoming(Table table, Collection files) {
    ArrayNode all = JSON.createArrayNode();
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      all.add(json(table, (ContentFile) i.next()));
    }
    return all.toString();
  }

  /** Read tasks over incoming files. A reader takes row lineage from a file only where its table would know these. */
  public List tasks(Table table, String incoming, long sequence) throws Exception {
    String schema = SchemaParser.toJson(table.schema());
    ResidualEvaluator all = ResidualEvaluator.unpartitioned(Expressions.alwaysTrue());
    List tasks = new ArrayList();
    for (Iterator i = JSON.readTree(incoming).elements(); i.hasNext(); ) {
      DataFile file = (DataFile) file(table, (JsonNode) i.next());
      PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(file.specId()));
      file = new DataFiles.Builder(spec).copy(file).withFirstRowId(Long.valueOf(0)).build();
      set(file, "setDataSequenceNumber", sequence);
      set(file, "setFileSequenceNumber", sequence);
      tasks.add(new BaseFileScanTask(file, new DeleteFile[0], schema, PartitionSpecParser.toJson(spec), all));
    }
    return tasks;
  }

  /** Why the outgoing files cannot leave a table of these tasks any more, or null if they can. */
  public String obstacle(List tasks, String outgoing, Collection incoming) throws Exception {
    Map missing = new LinkedHashMap();
    Set equality = new HashSet();
    for (Iterator i = JSON.readTree(outgoing).elements(); i.hasNext(); ) {
      JsonNode entry = (JsonNode) i.next();
      if (entry.has("positions")) {
        missing.put(entry.get("file").get("file-path").asText(), entry.get("positions").asText());
      } else if (entry.has("base")) {
        for (Iterator e = entry.get("base").get("equality-deletes").elements(); e.hasNext(); ) {
          equality.add(((JsonNode) e.next()).asText());
        }
      }
    }
    Set fresh = new HashSet(incoming);
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      String path = ((DataFile) task.file()).location();
      if (fresh.contains(path)) {
        return "an incoming file is part of the table already: " + path;
      }
      Object before = missing.remove(path);
      if (before != null && !before.equals(positions(task))) {
        return "rows of a file that would be replaced were deleted or updated: " + path;
      }
      for (Iterator d = task.deletes().iterator(); !equality.isEmpty() && d.hasNext(); ) {
        equality.remove(((DeleteFile) d.next()).location());
      }
    }
    if (!missing.isEmpty()) {
      Object first = missing.keySet().iterator().next();
      return missing.size() + " of the files that would be replaced left the table, such as " + first;
    }
    return equality.isEmpty() ? null : "an equality delete that applied left the table: " + equality.iterator().next();
  }

  /** One `replace` snapshot. Files count as old as their rows' snapshot, so later equality deletes still apply. */
  public void replace(Table table, long from, long sequence, String outgoing, String incoming, Map summary)
      throws Exception {
    RewriteFiles rewrite = table.newRewrite().validateFromSnapshot(from).dataSequenceNumber(sequence);
    for (Iterator i = JSON.readTree(outgoing).elements(); i.hasNext(); ) {
      JsonNode entry = (JsonNode) i.next();
      if (entry.has("file")) {
        ContentFile file = file(table, entry.get("file"));
        if (file.content() == FileContent.DATA) {
          rewrite.deleteFile((DataFile) file);
        } else {
          rewrite.deleteFile((DeleteFile) file);
        }
      }
    }
    for (Iterator i = JSON.readTree(incoming).elements(); i.hasNext(); ) {
      rewrite.addFile((DataFile) file(table, (JsonNode) i.next()));
    }
    for (Iterator i = summary.entrySet().iterator(); i.hasNext(); ) {
      Map.Entry entry = (Map.Entry) i.next();
      rewrite.set((String) entry.getKey(), (String) entry.getValue());
    }
    rewrite.commit();
  }

  private static void set(DataFile file, String setter, long value) throws Exception {
    java.lang.reflect.Method method = file.getClass().getMethod(setter, new Class[] {Long.class});
    method.setAccessible(true); // public, in a class that is not
    method.invoke(file, new Object[] {Long.valueOf(value)});
  }

  private static JsonNode json(Table table, ContentFile file) {
    PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(file.specId()));
    try {
      return JSON.readTree(ContentFileParser.toJson(file, spec));
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static ContentFile file(Table table, JsonNode node) {
    return ContentFileParser.fromJson(node, table.specs());
  }

  private static String identity(DeleteFile delete) {
    return delete.location() + "#" + delete.contentOffset(); // one Puffin file holds many deletion vectors
  }

  private static String positions(FileScanTask task) {
    Set found = new TreeSet();
    for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
      DeleteFile delete = (DeleteFile) d.next();
      if (delete.content() == FileContent.POSITION_DELETES) {
        found.add(identity(delete));
      }
    }
    return String.join("\n", found);
  }
}
