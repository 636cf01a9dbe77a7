package oreo.unit;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.ErrorResponseParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;

/** An Iceberg REST catalog: Iceberg's own server-side handlers behind the JDK's HTTP server, over any other catalog. */
public class RestCatalog implements HttpHandler {
  private final Catalog catalog;
  private final ObjectMapper mapper;
  private final HttpServer server;
  private int passing = 0;
  private int failures = 0;
  private boolean lands = false;
  private volatile long pause = 0;
  private volatile boolean gone = false;

  public RestCatalog(Catalog catalog, String port) throws Exception {
    this.catalog = catalog;
    java.lang.reflect.Method method =
        Class.forName("org.apache.iceberg.rest.RESTObjectMapper", true, catalog.getClass().getClassLoader())
            .getDeclaredMethod("mapper", new Class[0]);
    method.setAccessible(true);
    this.mapper = (ObjectMapper) method.invoke(null, new Object[0]);
    this.server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(port)), 0);
    server.createContext("/v1/", this);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.start();
  }

  public void stop() {
    server.stop(0);
  }

  /** Let some commits pass, and answer the next so many with an error after they were done, or instead of doing them. */
  public synchronized void fail(int first, int commits, boolean afterLanding) {
    passing = first;
    failures = commits;
    lands = afterLanding;
  }

  /** Let every answer come so much later. */
  public void slow(long milliseconds) {
    pause = milliseconds;
  }

  /** Answer nobody any more, or again. */
  public void gone(boolean now) {
    gone = now;
  }

  public void handle(HttpExchange exchange) {
    try {
      Thread.sleep(pause);
      if (gone) {
        exchange.close();
        return;
      }
      String body = new String(exchange.getRequestBody().readAllBytes(), "UTF-8");
      try {
        String[] path = exchange.getRequestURI().getPath().substring(4).split("/");
        Object answer = answer(exchange.getRequestMethod(), path, body);
        send(exchange, answer == null ? 204 : 200, answer == null ? "" : mapper.writeValueAsString(answer));
      } catch (Exception e) {
        int code = code(e);
        ErrorResponse error =
            ErrorResponse.builder().responseCode(Integer.valueOf(code)).withType(e.getClass().getSimpleName())
                .withMessage(String.valueOf(e.getMessage())).build();
        send(exchange, code, ErrorResponseParser.toJson(error));
      }
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    } catch (InterruptedException e) {
      exchange.close();
    }
  }

  private Object answer(String method, String[] path, String body) throws Exception {
    if (path[0].equals("config")) {
      return mapper.readTree("{\"defaults\": {}, \"overrides\": {}}");
    }
    SupportsNamespaces namespaces = (SupportsNamespaces) catalog;
    if (path.length == 1) {
      return method.equals("POST")
          ? (Object) CatalogHandlers.createNamespace(
              namespaces, (CreateNamespaceRequest) mapper.readValue(body, CreateNamespaceRequest.class))
          : (Object) CatalogHandlers.listNamespaces(namespaces, Namespace.empty());
    }
    Namespace namespace = Namespace.of(new String[] {path[1]});
    if (path.length == 2) {
      return CatalogHandlers.loadNamespace(namespaces, namespace);
    }
    if (path.length == 3) {
      if (method.equals("GET")) {
        return CatalogHandlers.listTables(catalog, namespace);
      }
      CreateTableRequest request = (CreateTableRequest) mapper.readValue(body, CreateTableRequest.class);
      return request.stageCreate()
          ? (Object) CatalogHandlers.stageTableCreate(catalog, namespace, request)
          : (Object) CatalogHandlers.createTable(catalog, namespace, request);
    }
    TableIdentifier table = TableIdentifier.of(namespace, path[3]);
    if (path.length > 4) {
      return null; // metrics reports
    }
    if (method.equals("GET")) {
      return CatalogHandlers.loadTable(catalog, table);
    }
    if (method.equals("HEAD")) {
      CatalogHandlers.tableExists(catalog, table);
      return null;
    }
    if (method.equals("DELETE")) {
      CatalogHandlers.dropTable(catalog, table);
      return null;
    }
    return update(table, (UpdateTableRequest) mapper.readValue(body, UpdateTableRequest.class));
  }

  private synchronized Object update(TableIdentifier table, UpdateTableRequest request) {
    boolean fails = passing == 0 && failures > 0;
    failures = fails ? failures - 1 : failures;
    passing = passing > 0 ? passing - 1 : 0;
    Object done = fails && !lands ? null : CatalogHandlers.updateTable(catalog, table, request);
    if (fails) {
      throw new IllegalStateException("the connection was lost");
    }
    return done;
  }

  private static int code(Exception e) {
    if (e instanceof NoSuchTableException || e instanceof NoSuchNamespaceException) {
      return 404;
    }
    if (e instanceof CommitFailedException || e instanceof AlreadyExistsException) {
      return 409;
    }
    return e instanceof IllegalStateException ? 504 : 400;
  }

  private static void send(HttpExchange exchange, int code, String text) throws java.io.IOException {
    byte[] bytes = text.getBytes("UTF-8");
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    boolean empty = bytes.length == 0 || exchange.getRequestMethod().equals("HEAD");
    exchange.sendResponseHeaders(code, empty ? -1 : bytes.length);
    if (!empty) {
      exchange.getResponseBody().write(bytes);
    }
    exchange.close();
  }
}
