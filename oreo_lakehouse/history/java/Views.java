package oreo.unit;

import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.catalog.ViewCatalog;

/** The text of views that a session knows, looked up by name: nothing is analysed or run. */
public class Views {
  /** A view as JSON, with its text, what its names are relative to, and its columns; null if the name is no view's. */
  public static String find(org.apache.spark.sql.classic.SparkSession session, List parts) {
    try {
      SessionCatalog sessionCatalog = session.sessionState().catalog();
      String name = (String) parts.get(parts.size() - 1);
      if (parts.size() == 1 && sessionCatalog.getTempView(name).isDefined()) {
        return text(((org.apache.spark.sql.catalyst.plans.logical.View) sessionCatalog.getTempView(name).get()).desc());
      }
      CatalogManager catalogs = session.sessionState().catalogManager();
      String catalog = catalogs.currentCatalog().name();
      int at = 0;
      if (parts.size() > 1 && catalogs.isCatalogRegistered((String) parts.get(0))) {
        catalog = (String) parts.get(0);
        at = 1;
      }
      String[] namespace = catalogs.currentNamespace();
      if (parts.size() - at > 1) {
        namespace = new String[parts.size() - at - 1];
        for (int i = 0; i < namespace.length; i++) {
          namespace[i] = (String) parts.get(at + i);
        }
      }
      if (catalog.equals("spark_catalog")) {
        TableIdentifier id = new TableIdentifier(name, scala.Option.apply(namespace[0]));
        return sessionCatalog.tableExists(id) ? text(sessionCatalog.getTableMetadata(id)) : null;
      }
      Object plugin = catalogs.catalog(catalog);
      if (!(plugin instanceof ViewCatalog)) {
        return null;
      }
      // by reflection: Janino does not call an interface's static methods
      Object id = Identifier.class.getMethod("of", new Class[] {String[].class, String.class})
          .invoke(null, new Object[] {namespace, name});
      return text(((ViewCatalog) plugin).loadView((Identifier) id));
    } catch (Throwable e) {
      return null; // not a view that we can know
    }
  }

  private static String text(CatalogTable view) {
    if (view.viewText().isEmpty()) {
      return null;
    }
    return json((String) view.viewText().get(), strings(view.viewCatalogAndNamespace()),
        strings(view.viewQueryColumnNames()), view.schema().fieldNames());
  }

  private static String text(View view) {
    String[] namespace = new String[view.currentNamespace().length + 1];
    namespace[0] = view.currentCatalog();
    System.arraycopy(view.currentNamespace(), 0, namespace, 1, view.currentNamespace().length);
    return json(view.query(), namespace, view.queryColumnNames(), view.schema().fieldNames());
  }

  private static String json(String text, Object[] namespace, Object[] columns, Object[] names) {
    StringBuilder out = new StringBuilder("{\"text\":");
    Json.text(out, text);
    Json.texts(out.append(",\"namespace\":"), namespace);
    Json.texts(out.append(",\"columns\":"), columns);
    Json.texts(out.append(",\"names\":"), names);
    return out.append('}').toString();
  }

  private static Object[] strings(scala.collection.Seq values) {
    Object[] out = new Object[values.length()];
    for (int i = 0; i < out.length; i++) {
      out[i] = values.apply(i);
    }
    return out;
  }
}
