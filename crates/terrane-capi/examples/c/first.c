/*
 * Opens a database, writes and reads a few keys, and closes it.
 *
 *     cc first.c $(pkg-config --cflags --libs terrane) -o first && ./first /tmp/fruit
 */
#include <stdio.h>
#include <string.h>

#include <terrane.h>

/* Ends the program with the message of an error. */
static int fail(const char *what, terrane_error *error) {
  fprintf(stderr, "%s: %s\n", what, terrane_error_message(error));
  terrane_error_free(error);
  return 1;
}

int main(int argc, char **argv) {
  terrane_error *error;
  terrane_db *db;
  terrane_iter *iter;
  terrane_value *value;
  const terrane_keyspace *fruit;
  size_t len;

  if (argc != 2) {
    fprintf(stderr, "usage: first DIRECTORY\n");
    return 2;
  }
  if (terrane_open(argv[1], NULL, &db, &error) != TERRANE_OK) {
    return fail("cannot open the database", error);
  }
  fruit = terrane_default_keyspace(db);
  if (terrane_put(fruit, NULL, "apple", 5, "red", 3, &error) != TERRANE_OK ||
      terrane_put(fruit, NULL, "banana", 6, "yellow", 6, &error) != TERRANE_OK ||
      terrane_put(fruit, NULL, "cherry", 6, "dark red", 8, &error) != TERRANE_OK) {
    return fail("cannot write", error);
  }

  /* A value is lent by the database until it is freed. */
  if (terrane_get(fruit, "apple", 5, &value, &error) != TERRANE_OK) {
    return fail("cannot read", error);
  }
  if (value != NULL) {
    const char *data = terrane_value_data(value, &len);
    printf("apple is %.*s\n", (int)len, data);
    terrane_value_free(value);
  }

  /* Keys from "b" on, in order. */
  if (terrane_iter_range(fruit, NULL, "b", 1, NULL, 0, &iter, &error) != TERRANE_OK) {
    return fail("cannot iterate", error);
  }
  while (terrane_iter_next(iter, &error)) {
    size_t key_len, value_len;
    const char *key = terrane_iter_key(iter, &key_len);
    const char *color = terrane_iter_value(iter, &value_len);
    printf("%.*s is %.*s\n", (int)key_len, key, (int)value_len, color);
  }
  terrane_iter_free(iter);
  if (error != NULL) {
    return fail("the scan ended early", error);
  }

  if (terrane_close(db, &error) != TERRANE_OK) {
    return fail("cannot close the database", error);
  }
  terrane_free(db);
  return 0;
}
