package oreo.unit;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Which files of a run may hold a row for which a condition of Spark's planner is TRUE. Every answer errs on the side of
 * "may": null stands for all files. `wanted` says whether TRUE or FALSE is asked for, so NOT turns the question around
 * and NULL, which is neither, is counted in neither case.
 */
public class Condition {
  private final Facts run;
  private final Map keys;
  private final int n;

  /** `keys`: from the ids of the scan's attributes to the names that facts go by. */
  public Condition(Facts run, Map keys) {
    this.run = run;
    this.keys = keys;
    this.n = run.rows.length;
  }

  public boolean[] might(Expression e, boolean wanted) {
    if (e instanceof And || e instanceof Or) {
      boolean all = (e instanceof And) == wanted;
      boolean[] a = might((Expression) e.children().apply(0), wanted);
      if (a == null && !all) {
        return null;
      }
      boolean[] b = might((Expression) e.children().apply(1), wanted);
      if (a == null || b == null) {
        return !all ? null : a == null ? b : a;
      }
      for (int i = 0; i < n; i++) {
        a[i] = all ? a[i] && b[i] : a[i] || b[i];
      }
      return a;
    }
    if (e instanceof Not) {
      return might(((Not) e).child(), !wanted);
    }
    if (e instanceof Literal) {
      Object value = ((Literal) e).value();
      return value instanceof Boolean && ((Boolean) value).booleanValue() == wanted ? null : new boolean[n];
    }
    boolean[] found = leaf(e, wanted);
    return found != null ? found : new Dictionary(run, keys).might(e, wanted);
  }

  private boolean[] leaf(Expression e, boolean wanted) {
    if (e instanceof IsNull || e instanceof IsNotNull) {
      return nulls((Expression) e.children().apply(0), (e instanceof IsNull) == wanted);
    }
    if (e instanceof AttributeReference && e.dataType().equals(DataTypes.BooleanType)) {
      return compare(e, Order.EQUAL, Long.valueOf(wanted ? 1L : 0L));
    }
    if (e instanceof EqualNullSafe) {
      return same((EqualNullSafe) e, wanted);
    }
    if (e instanceof BinaryComparison) {
      int order = order(e);
      if (order == 0) {
        return null;
      }
      Expression left = (Expression) e.children().apply(0);
      Expression right = (Expression) e.children().apply(1);
      if (left instanceof Literal) {
        Expression swap = left;
        left = right;
        right = swap;
        order = Order.mirrored(order);
      }
      order = wanted ? order : Order.ALL & ~order;
      return right instanceof Literal ? compare(left, order, right) : columns(left, order, right);
    }
    if (e instanceof In) {
      scala.collection.immutable.Seq list = ((In) e).list();
      Object[] literals = new Object[list.size()];
      for (int i = 0; i < literals.length; i++) {
        literals[i] = list.apply(i);
        if (!(literals[i] instanceof Literal)) {
          return null;
        }
      }
      return member(((In) e).value(), literals, wanted);
    }
    if (e instanceof InSet) {
      Expression child = ((InSet) e).child();
      Object[] literals = new Object[((InSet) e).hset().size()];
      scala.collection.Iterator it = ((InSet) e).hset().iterator();
      for (int i = 0; it.hasNext(); i++) {
        literals[i] = new Literal(it.next(), child.dataType());
      }
      return member(child, literals, wanted);
    }
    if (e instanceof StartsWith) {
      return prefix((Expression) e.children().apply(0), (Expression) e.children().apply(1), wanted);
    }
    return null;
  }

  private static int order(Expression e) {
    return e instanceof EqualTo ? Order.EQUAL
        : e instanceof LessThan ? Order.LESS
        : e instanceof LessThanOrEqual ? Order.LESS | Order.EQUAL
        : e instanceof GreaterThan ? Order.GREATER
        : e instanceof GreaterThanOrEqual ? Order.GREATER | Order.EQUAL : 0;
  }

  private boolean[] nulls(Expression e, boolean missing) {
    FactColumn column = Terms.column(run, keys, e);
    if (column == null) {
      return null;
    }
    boolean[] out = new boolean[n];
    for (int i = 0; i < n; i++) {
      out[i] = missing ? column.nulls[i] != 0 : column.nulls[i] != run.rows[i];
    }
    return out;
  }

  /** `<=>` is never NULL: with a literal, it is FALSE also where the column is NULL. */
  private boolean[] same(EqualNullSafe e, boolean wanted) {
    Expression left = (Expression) e.children().apply(0), right = (Expression) e.children().apply(1);
    Expression value = left instanceof Literal ? right : left;
    Expression literal = left instanceof Literal ? left : right;
    if (!(literal instanceof Literal)) {
      return null;
    }
    if (((Literal) literal).value() == null) {
      return nulls(value, wanted);
    }
    boolean[] found = compare(value, wanted ? Order.EQUAL : Order.LESS | Order.GREATER, literal);
    if (found == null || wanted) {
      return found;
    }
    boolean[] missing = nulls(value, true);
    for (int i = 0; i < n; i++) {
      found[i] |= missing[i];
    }
    return found;
  }

  private boolean[] compare(Expression e, int order, Object literal) {
    FactColumn column = Terms.column(run, keys, e);
    if (column == null) {
      return null;
    }
    Object value = literal instanceof Literal ? Terms.value((Literal) literal, e.dataType()) : literal;
    if (value == null) {
      return literal instanceof Literal && ((Literal) literal).value() == null ? new boolean[n] : null;
    }
    long[] wanted = null;
    if (column.values != null) {
      wanted = new long[(column.values.length + 63) / 64];
      for (int v = 0; v < column.values.length; v++) {
        if ((Order.of(FactColumn.compare(column.values[v], value)) & order) != 0) {
          wanted[v / 64] |= 1L << (v % 64);
        }
      }
    }
    boolean[] out = new boolean[n];
    for (int i = 0; i < n; i++) {
      if (column.sets != null && column.sets[i] != null) {
        out[i] = Order.meet(column.sets[i], wanted);
      } else if (!column.onlyNulls(i, run.rows[i])) {
        int low = column.lower[i] == null ? Order.LESS : Order.of(FactColumn.compare(column.lower[i], value));
        int high = column.upper[i] == null ? Order.GREATER : Order.of(FactColumn.compare(column.upper[i], value));
        out[i] = (Order.span(low, high) & order) != 0;
      }
    }
    return out;
  }

  private boolean[] columns(Expression left, int order, Expression right) {
    FactColumn a = Terms.column(run, keys, left), b = Terms.column(run, keys, right);
    if (a == null || b == null || !left.dataType().equals(right.dataType())) {
      return null;
    }
    long[] shown = run.pair(Terms.key(keys, left), Terms.key(keys, right));
    boolean[] out = new boolean[n];
    for (int i = 0; i < n; i++) {
      if (a.onlyNulls(i, run.rows[i]) || b.onlyNulls(i, run.rows[i])) {
        continue;
      }
      int low = a.lower[i] == null || b.upper[i] == null
          ? Order.LESS : Order.of(FactColumn.compare(a.lower[i], b.upper[i]));
      int high = a.upper[i] == null || b.lower[i] == null
          ? Order.GREATER : Order.of(FactColumn.compare(a.upper[i], b.lower[i]));
      int possible = Order.span(low, high);
      out[i] = (possible & order & (shown == null ? Order.ALL : (int) shown[i])) != 0;
    }
    return out;
  }

  private boolean[] member(Expression e, Object[] literals, boolean wanted) {
    boolean[] out = wanted ? new boolean[n] : null;
    for (int at = 0; at < literals.length; at++) {
      if (((Literal) literals[at]).value() == null) {
        if (!wanted) {
          return new boolean[n]; // NOT IN a list with NULL is never TRUE
        }
        continue;
      }
      boolean[] one = compare(e, wanted ? Order.EQUAL : Order.LESS | Order.GREATER, literals[at]);
      if (one == null) {
        return null;
      }
      if (out == null) {
        out = one;
      }
      for (int i = 0; i < n; i++) {
        out[i] = wanted ? out[i] || one[i] : out[i] && one[i];
      }
    }
    return out;
  }

  private boolean[] prefix(Expression e, Expression text, boolean wanted) {
    FactColumn column = Terms.column(run, keys, e);
    if (column == null || !(text instanceof Literal) || !text.dataType().equals(DataTypes.StringType)
        || !(((Literal) text).value() instanceof UTF8String)) {
      return null;
    }
    UTF8String start = (UTF8String) ((Literal) text).value();
    boolean[] out = new boolean[n];
    for (int i = 0; i < n; i++) {
      if (column.sets != null && column.sets[i] != null) {
        for (int v = 0; v < column.values.length && !out[i]; v++) {
          out[i] = (column.sets[i][v / 64] >>> (v % 64) & 1L) != 0
              && ((UTF8String) column.values[v]).startsWith(start) == wanted;
        }
      } else if (!column.onlyNulls(i, run.rows[i])) {
        UTF8String low = (UTF8String) column.lower[i], high = (UTF8String) column.upper[i];
        if (low == null || high == null) {
          out[i] = true;
        } else if (wanted) {
          out[i] = high.compareTo(start) >= 0 && (low.compareTo(start) <= 0 || low.startsWith(start));
        } else {
          out[i] = !low.startsWith(start) || !high.startsWith(start);
        }
      }
    }
    return out;
  }
}
