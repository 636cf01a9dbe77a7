package oreo.unit;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;

/** Spark's columns, types and literals in the terms of recorded facts. */
public class Terms {
  public static String key(Map keys, Expression e) {
    return e instanceof AttributeReference
        ? (String) keys.get(Long.valueOf(((AttributeReference) e).exprId().id())) : null;
  }

  /** The facts of a column of the scan, if the expression is one and they are of its type. */
  public static FactColumn column(Facts run, Map keys, Expression e) {
    String key = key(keys, e);
    FactColumn column = key == null ? null : run.column(key);
    if (column == null || !column.kind.equals(kind(e.dataType()))) {
      return null;
    }
    return padded(((AttributeReference) e).metadata()) ? null : column;
  }

  /** Whether a column is CHAR: what it compares as depends on settings. */
  public static boolean padded(Metadata notes) {
    String declared = "__CHAR_VARCHAR_TYPE_STRING";
    return notes.contains(declared) && notes.getString(declared).startsWith("char");
  }

  public static String kind(DataType type) {
    if (type.equals(DataTypes.ByteType) || type.equals(DataTypes.ShortType) || type.equals(DataTypes.IntegerType)
        || type.equals(DataTypes.LongType)) {
      return "integer";
    }
    return type.equals(DataTypes.StringType) ? "string"
        : type.equals(DataTypes.DateType) ? "date"
        : type.equals(DataTypes.TimestampType) ? "timestamp"
        : type.equals(DataTypes.TimestampNTZType) ? "timestamp_ntz"
        : type.equals(DataTypes.BooleanType) ? "boolean"
        : type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType) ? "float"
        : type.equals(DataTypes.BinaryType) ? "binary"
        : type instanceof DecimalType ? "decimal" : "other";
  }

  /** A literal in the form of the facts; null if it is NULL, NaN or of another type than the column. */
  public static Object value(Literal literal, DataType type) {
    Object value = literal.value();
    if (value == null || !kind(literal.dataType()).equals(kind(type))) {
      return null;
    }
    if (value instanceof Decimal) {
      return ((Decimal) value).toJavaBigDecimal();
    }
    if (value instanceof Double || value instanceof Float) {
      double number = ((Number) value).doubleValue() + 0.0;
      return Double.isNaN(number) ? null : Double.valueOf(number);
    }
    if (value instanceof Boolean) {
      return Long.valueOf(((Boolean) value).booleanValue() ? 1L : 0L);
    }
    if (value instanceof Number) {
      return Long.valueOf(((Number) value).longValue());
    }
    return value instanceof UTF8String ? value : null;
  }
}
