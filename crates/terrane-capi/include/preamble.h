/*
 * Terrane: an embedded, persistent, ordered key-value database.
 *
 * Generated from the sources by the test `header`; do not edit.
 *
 *     terrane_db *db;
 *     terrane_error *error;
 *     if (terrane_open("/tmp/fruit", NULL, &db, &error) != TERRANE_OK) {
 *         fprintf(stderr, "%s\n", terrane_error_message(error));
 *         terrane_error_free(error);
 *         return 1;
 *     }
 *     const terrane_keyspace *keys = terrane_default_keyspace(db);
 *     terrane_put(keys, NULL, "apple", 5, "red", 3, NULL);
 *     terrane_value *value;
 *     terrane_get(keys, "apple", 5, &value, NULL);
 *     size_t len;
 *     const char *data = terrane_value_data(value, &len);
 *     printf("%.*s\n", (int)len, data);
 *     terrane_value_free(value);
 *     terrane_close(db, NULL);
 *     terrane_free(db);
 *
 * Rules of all functions:
 *
 * Errors. A function that can fail returns a terrane_code; the moves of an iterator return a bool. Its last
 * parameter is a place for an error, or NULL. Every call writes it: NULL if it succeeded, and otherwise an error
 * that the caller frees with terrane_error_free. What was there before is neither read nor freed. If a call
 * fails, its other results are NULL, 0 or false. No panic and no exception leaves the library.
 *
 * Bytes. Keys and values are a pointer and a length, may have any bytes, and may be empty: NULL with the length
 * 0 is empty. They are copied before the call returns. Paths, names, designs and option values are
 * NUL-terminated strings in UTF-8, except that paths are any bytes on Unix.
 *
 * Ownership. The caller owns a handle or a `char *` that a function stored or returned, and frees it once with
 * the function that its comment names; freeing NULL does nothing. A `const` pointer belongs to the handle that
 * it comes from. Using a handle after it was freed, and freeing it twice, is undefined, as with free().
 *
 * Threads. There is no global state. A parameter `const T *` may be used by several threads at once, a parameter
 * `T *` by one at a time. Different handles are independent, so each thread can have iterators of its own.
 *
 * Order of freeing. Any: a handle keeps what it needs. See terrane_db for what closing does to other handles.
 *
 * ABI. All types are opaque, and there are no structs. Functions and codes are added, and none is removed or
 * changed while TERRANE_ABI_VERSION stays the same; see terrane_abi_version. Treat a code that you do not know
 * like TERRANE_INTERNAL.
 */
#ifndef TERRANE_H
#define TERRANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
