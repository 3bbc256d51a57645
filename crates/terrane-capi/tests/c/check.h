/* Checks of the test programs: a failed one prints its line and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <terrane.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

/* A call that must succeed; `error` is a variable. */
#define OK(call)                                                                                       \
  do {                                                                                                 \
    terrane_code ok_code = (call);                                                                     \
    if (ok_code != TERRANE_OK || error != NULL) {                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, terrane_error_message(error)); \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)

/* A call that must fail with a code, and a message that has a text. */
#define FAILS(code, text, call)                                                                             \
  do {                                                                                                      \
    terrane_code fails_code = (call);                                                                       \
    if (fails_code != (code) || error == NULL || terrane_error_code(error) != (code) ||                    \
        strstr(terrane_error_message(error), (text)) == NULL) {                                             \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, terrane_code_name(fails_code), \
              terrane_error_message(error));                                                                \
      exit(1);                                                                                              \
    }                                                                                                       \
    terrane_error_free(error);                                                                              \
    error = NULL;                                                                                           \
  } while (0)

/* Whether a key of a keyspace has a value; NULL for no value. */
static void expect(const terrane_keyspace *keyspace, const char *key, const char *expected) {
  terrane_error *error;
  terrane_value *value;
  OK(terrane_get(keyspace, key, strlen(key), &value, &error));
  if (expected == NULL) {
    CHECK(value == NULL);
  } else {
    size_t len;
    const char *data = terrane_value_data(value, &len);
    CHECK(data != NULL && len == strlen(expected) && memcmp(data, expected, len) == 0);
  }
  terrane_value_free(value);
}

static void put(const terrane_keyspace *keyspace, const char *key, const char *value) {
  terrane_error *error;
  OK(terrane_put(keyspace, NULL, key, strlen(key), value, strlen(value), &error));
}

/* Whether an iterator is on a key and a value. */
static void expect_entry(const terrane_iter *iter, const char *key, const char *value) {
  size_t key_len, value_len;
  const char *found_key = terrane_iter_key(iter, &key_len);
  const char *found_value = terrane_iter_value(iter, &value_len);
  CHECK(terrane_iter_valid(iter));
  CHECK(key_len == strlen(key) && memcmp(found_key, key, key_len) == 0);
  CHECK(value_len == strlen(value) && memcmp(found_value, value, value_len) == 0);
}

#endif
