package oreo.unit;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;

/** Catalyst's expressions as JSON: ["GreaterThan", ["column", "id", "int"], ["literal", "5", "int"]]. */
public class Json {
  private final java.util.Map columns;
  private final java.util.Set redacted;

  /** @param columns the scan's columns by exprId; others belong to another table.
   *  @param redacted names, in lower case, of columns whose literals must not leave the JVM. */
  public Json(java.util.Map columns, java.util.Set redacted) {
    this.columns = columns;
    this.redacted = redacted;
  }

  public static void text(StringBuilder out, Object value) {
    if (value == null) {
      out.append("null");
      return;
    }
    String text = value.toString();
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 32 || c > 126) {
        String hex = Integer.toHexString(c);
        out.append("\\u").append("0000".substring(hex.length())).append(hex);
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  public static void texts(StringBuilder out, Object[] values) {
    out.append('[');
    for (int i = 0; i < values.length; i++) {
      out.append(i > 0 ? "," : "");
      text(out, values[i]);
    }
    out.append(']');
  }

  public static void field(StringBuilder out, String name, Object value) {
    if (value == null) {
      return;
    }
    out.append(",\"").append(name).append("\":");
    if (value instanceof Long || value instanceof Integer) {
      out.append(value);
    } else {
      text(out, value);
    }
  }

  private static void value(StringBuilder out, Object value) {
    if (value instanceof byte[]) {
      text(out, java.util.Base64.getEncoder().encodeToString((byte[]) value));
    } else {
      text(out, value);
    }
  }

  private String redactedColumn(Expression e) {
    if (redacted.isEmpty()) {
      return null;
    }
    scala.collection.Iterator it = e.references().iterator();
    while (it.hasNext()) {
      String name = ((Attribute) it.next()).name();
      if (redacted.contains(name.toLowerCase(java.util.Locale.ROOT))) {
        return name;
      }
    }
    return null;
  }

  public void write(StringBuilder out, Expression e) {
    String kind = e.getClass().getSimpleName();
    boolean connective = kind.equals("And") || kind.equals("Or") || kind.equals("Not");
    String hidden = connective ? null : redactedColumn(e);
    if (hidden != null && !(e instanceof AttributeReference)) {
      out.append("[\"redacted\",");
      text(out, hidden);
      out.append(',');
      text(out, kind);
      out.append(']');
      return;
    }
    if (e instanceof Literal) {
      out.append("[\"literal\",");
      value(out, ((Literal) e).value());
      out.append(',');
      text(out, e.dataType().catalogString());
      out.append(']');
      return;
    }
    if (e instanceof AttributeReference) {
      Object name = columns.get(Long.valueOf(((AttributeReference) e).exprId().id()));
      out.append("[\"column\",");
      text(out, name);
      out.append(',');
      text(out, e.dataType().catalogString());
      out.append(']');
      return;
    }
    out.append('[');
    text(out, kind);
    if (e instanceof InSet) {
      out.append(",[");
      scala.collection.Iterator it = ((InSet) e).hset().iterator();
      String comma = "";
      while (it.hasNext()) {
        out.append(comma);
        comma = ",";
        value(out, it.next());
      }
      out.append("],");
      text(out, ((InSet) e).child().dataType().catalogString());
    }
    if (e instanceof org.apache.spark.sql.catalyst.expressions.Like) {
      out.append(',');
      text(out, String.valueOf(((org.apache.spark.sql.catalyst.expressions.Like) e).escapeChar()));
    }
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) {
      out.append(',');
      write(out, (Expression) it.next());
    }
    out.append(']');
  }
}
