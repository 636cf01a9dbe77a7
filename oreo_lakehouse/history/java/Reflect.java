package oreo.unit;

/** Delta's and Iceberg's own classes, reached by name: they may be absent, and their members change between versions. */
public class Reflect {
  public static Object call(Object target, String name) throws Exception {
    Class c = target.getClass();
    while (c != null) {
      java.lang.reflect.Method[] methods = c.getDeclaredMethods();
      for (int i = 0; i < methods.length; i++) {
        if (methods[i].getName().equals(name) && methods[i].getParameterTypes().length == 0) {
          methods[i].setAccessible(true);
          return methods[i].invoke(target, new Object[0]);
        }
      }
      c = c.getSuperclass();
    }
    return null;
  }

  public static Object field(Object target, String name) throws Exception {
    Class c = target.getClass();
    while (c != null) {
      try {
        java.lang.reflect.Field f = c.getDeclaredField(name);
        f.setAccessible(true);
        return f.get(target);
      } catch (NoSuchFieldException e) {
        c = c.getSuperclass();
      }
    }
    return null;
  }

  /** Whether an object's class, or one that it extends, has this simple name. */
  public static boolean isA(Object target, String name) {
    Class c = target.getClass();
    while (c != null) {
      if (c.getSimpleName().equals(name)) {
        return true;
      }
      c = c.getSuperclass();
    }
    return false;
  }

  /** Iceberg's expressions as its own JSON, or null if its parser is not the one we know. */
  public static String icebergJson(Object scan, Object expression) {
    try {
      Class parser = scan.getClass().getClassLoader().loadClass("org.apache.iceberg.expressions.ExpressionParser");
      java.lang.reflect.Method[] methods = parser.getMethods();
      for (int i = 0; i < methods.length; i++) {
        if (methods[i].getName().equals("toJson") && methods[i].getParameterTypes().length == 1) {
          return (String) methods[i].invoke(null, new Object[] {expression});
        }
      }
    } catch (Exception e) {
      return null;
    }
    return null;
  }
}
