package oreo.unit;

import java.math.BigDecimal;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;

/**
 * Any condition on one column, asked of each of the column's known values by Spark's own evaluator: LIKE with a wildcard
 * in front, functions, casts. What Spark says of a value is what it would say of a row with that value.
 */
public class Dictionary {
  /** More values than this would take longer to ask than they save. */
  public static final int MOST = 512;
  private final Facts run;
  private final Map keys;

  public Dictionary(Facts run, Map keys) {
    this.run = run;
    this.keys = keys;
  }

  public boolean[] might(Expression e, boolean wanted) {
    if (e.references().size() != 1 || !harmless(e)) {
      return null;
    }
    Attribute attribute = (Attribute) e.references().toSeq().apply(0);
    FactColumn column = Terms.column(run, keys, attribute);
    if (column == null || column.sets == null || column.values.length > MOST) {
      return null;
    }
    Expression bound = (Expression) e.transform(new Bind(attribute));
    long[] good = new long[(column.values.length + 63) / 64];
    boolean[] out = new boolean[run.rows.length];
    boolean missing;
    try {
      missing = holds(bound, null, wanted);
      for (int v = 0; v < column.values.length; v++) {
        if (holds(bound, catalyst(column.values[v], attribute.dataType()), wanted)) {
          good[v / 64] |= 1L << (v % 64);
        }
      }
    } catch (Exception error) {
      return null; // as the query itself may fail on this value, in its own time
    }
    for (int i = 0; i < out.length; i++) {
      out[i] = column.sets[i] == null || Order.meet(column.sets[i], good) || (missing && column.nulls[i] != 0);
    }
    return out;
  }

  private static boolean holds(Expression bound, Object value, boolean wanted) {
    Object answer = bound.eval((InternalRow) new GenericInternalRow(new Object[] {value}));
    return answer instanceof Boolean && ((Boolean) answer).booleanValue() == wanted;
  }

  /** Only Catalyst's own functions of their arguments: no user code, no subqueries, nothing that varies or is costly. */
  private static boolean harmless(Expression e) {
    if (!e.deterministic() || !e.resolved()) {
      return false;
    }
    String name = e.getClass().getName();
    if (!name.startsWith("org.apache.spark.sql.catalyst.expressions.") || name.indexOf("UDF") >= 0
        || name.indexOf("Subquery") >= 0 || name.indexOf("objects.") >= 0 || name.indexOf("Dynamic") >= 0
        || name.indexOf("Bloom") >= 0 || name.indexOf("Reflect") >= 0 || name.indexOf("InputFile") >= 0) {
      return false;
    }
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) {
      if (!harmless((Expression) it.next())) {
        return false;
      }
    }
    return true;
  }

  private static Object catalyst(Object value, DataType type) {
    if (type.equals(DataTypes.ByteType)) {
      return Byte.valueOf(((Long) value).byteValue());
    }
    if (type.equals(DataTypes.ShortType)) {
      return Short.valueOf(((Long) value).shortValue());
    }
    if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) {
      return Integer.valueOf(((Long) value).intValue());
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new scala.math.BigDecimal((BigDecimal) value), decimal.precision(), decimal.scale());
    }
    return value;
  }

  /** The column's value is the only field of the row. */
  public static class Bind extends scala.runtime.AbstractPartialFunction {
    private final Expression field;

    public Bind(Attribute attribute) {
      field = new BoundReference(0, attribute.dataType(), true);
    }

    public boolean isDefinedAt(Object e) {
      return e instanceof AttributeReference;
    }

    public Object applyOrElse(Object e, scala.Function1 other) {
      return e instanceof AttributeReference ? field : other.apply(e);
    }
  }
}
