// Opens a database through terrane.h, writes and reads a few keys, and lists them. With JNA, which calls C without a
// compiler, in jna.jar:
//
//     java -cp jna.jar -Djna.library.path=$HOME/.local/lib Fruit.java /tmp/fruit
import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;

public final class Fruit {
    /** The functions of terrane.h that the program uses. A length is a {@code size_t}, so a {@code long}. */
    interface Terrane extends Library {
        int terrane_open(String dir, Pointer options, PointerByReference db, PointerByReference error);

        int terrane_close(Pointer db, PointerByReference error);

        void terrane_free(Pointer db);

        Pointer terrane_default_keyspace(Pointer db);

        int terrane_put(
                Pointer keyspace, Pointer options, byte[] key, long keyLen, byte[] value, long valueLen,
                PointerByReference error);

        int terrane_get(
                Pointer keyspace, byte[] key, long keyLen, PointerByReference value, PointerByReference error);

        Pointer terrane_value_data(Pointer value, LongByReference len);

        void terrane_value_free(Pointer value);

        int terrane_iter_range(
                Pointer keyspace, Pointer snapshot, byte[] from, long fromLen, byte[] to, long toLen,
                PointerByReference iter, PointerByReference error);

        /** Returns a {@code bool}, which is a byte in C; JNA would read four for a {@code boolean}. */
        byte terrane_iter_next(Pointer iter, PointerByReference error);

        Pointer terrane_iter_key(Pointer iter, LongByReference len);

        Pointer terrane_iter_value(Pointer iter, LongByReference len);

        void terrane_iter_free(Pointer iter);

        String terrane_error_message(Pointer error);

        void terrane_error_free(Pointer error);
    }

    private static final Terrane LIB = Native.load("terrane_c", Terrane.class);

    private static final PointerByReference ERROR = new PointerByReference();

    /** Throws the error of the last call, if it failed. */
    private static void check() {
        Pointer error = ERROR.getValue();
        if (error != null) {
            String message = LIB.terrane_error_message(error);
            LIB.terrane_error_free(error);
            throw new IllegalStateException(message);
        }
    }

    private static String text(Pointer data, LongByReference len) {
        return new String(data.getByteArray(0, (int) len.getValue()), UTF_8);
    }

    private static Pointer open(String dir) {
        PointerByReference db = new PointerByReference();
        LIB.terrane_open(dir, null, db, ERROR);
        check();
        return db.getValue();
    }

    private static void put(Pointer keyspace, String key, String value) {
        byte[] keyBytes = key.getBytes(UTF_8);
        byte[] valueBytes = value.getBytes(UTF_8);
        LIB.terrane_put(keyspace, null, keyBytes, keyBytes.length, valueBytes, valueBytes.length, ERROR);
        check();
    }

    private static String get(Pointer keyspace, String key) {
        byte[] bytes = key.getBytes(UTF_8);
        PointerByReference found = new PointerByReference();
        LIB.terrane_get(keyspace, bytes, bytes.length, found, ERROR);
        check();
        if (found.getValue() == null) {
            return null;
        }
        LongByReference len = new LongByReference();
        String value = text(LIB.terrane_value_data(found.getValue(), len), len);
        LIB.terrane_value_free(found.getValue());
        return value;
    }

    public static void main(String[] arguments) {
        if (arguments.length != 1) {
            System.err.println("usage: java Fruit.java DIRECTORY");
            System.exit(2);
        }
        Pointer db = open(arguments[0]);
        Pointer fruit = LIB.terrane_default_keyspace(db);
        put(fruit, "banana", "yellow");
        put(fruit, "apple", "red");
        put(fruit, "", "nothing");
        System.out.println("apple is " + get(fruit, "apple"));
        try {
            open(arguments[0]);
            throw new AssertionError("opened twice");
        } catch (IllegalStateException expected) {
            // The database is in use.
        }
        PointerByReference iter = new PointerByReference();
        LIB.terrane_iter_range(fruit, null, null, 0, null, 0, iter, ERROR);
        check();
        LongByReference len = new LongByReference();
        while (LIB.terrane_iter_next(iter.getValue(), ERROR) != 0) {
            String key = text(LIB.terrane_iter_key(iter.getValue(), len), len);
            String value = text(LIB.terrane_iter_value(iter.getValue(), len), len);
            System.out.println('"' + key + "\" is " + value);
        }
        check();
        LIB.terrane_iter_free(iter.getValue());
        LIB.terrane_close(db, ERROR);
        check();
        LIB.terrane_free(db);
    }
}
