/* Every group of functions, with good and bad arguments. */
#include <stdint.h>

#include "check.h"

static char path[4096];

static const char *in(const char *dir, const char *name) {
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static void basics(const char *dir) {
  terrane_error *error;
  terrane_db *db;
  terrane_value *value;
  const terrane_keyspace *keys;
  size_t len;
  bool found;
  char buffer[4];
  const char nul[3] = {'a', 0, 'b'};

  CHECK(terrane_abi_version() == TERRANE_ABI_VERSION);
  CHECK(strlen(terrane_version()) >= 5);
  OK(terrane_open(in(dir, "basics"), NULL, &db, &error));
  keys = terrane_default_keyspace(db);

  /* Keys with NUL, an empty key and an empty value. */
  OK(terrane_put(keys, NULL, nul, 3, nul, 2, &error));
  OK(terrane_put(keys, NULL, NULL, 0, "empty key", 9, &error));
  OK(terrane_put(keys, NULL, "empty value", 11, NULL, 0, &error));
  OK(terrane_get(keys, nul, 3, &value, &error));
  CHECK(memcmp(terrane_value_data(value, &len), nul, 2) == 0 && len == 2);
  terrane_value_free(value);
  expect(keys, "", "empty key");
  expect(keys, "empty value", "");
  expect(keys, "a", NULL);
  OK(terrane_contains(keys, "", 0, &found, &error));
  CHECK(found);

  /* A value longer than the buffer, and one that fits. */
  OK(terrane_get_into(keys, "", 0, buffer, sizeof buffer, &len, &found, &error));
  CHECK(found && len == 9 && memcmp(buffer, "empt", 4) == 0);
  OK(terrane_get_into(keys, nul, 3, buffer, sizeof buffer, &len, &found, &error));
  CHECK(found && len == 2 && memcmp(buffer, nul, 2) == 0);
  OK(terrane_get_into(keys, "none", 4, NULL, 0, &len, &found, &error));
  CHECK(!found && len == 0);
  FAILS(TERRANE_INVALID, "'buffer' is NULL", terrane_get_into(keys, "", 0, NULL, 4, &len, &found, &error));

  /* Results and errors that nobody wants. */
  CHECK(terrane_put(keys, NULL, "k", 1, "v", 1, NULL) == TERRANE_OK);
  CHECK(terrane_get(keys, "k", 1, NULL, NULL) == TERRANE_OK);
  CHECK(terrane_get(NULL, "k", 1, NULL, NULL) == TERRANE_INVALID);

  /* Bad arguments. */
  FAILS(TERRANE_INVALID, "'key' is NULL", terrane_put(keys, NULL, NULL, 1, "v", 1, &error));
  FAILS(TERRANE_INVALID, "'value' is NULL", terrane_put(keys, NULL, "k", 1, NULL, 1, &error));
  FAILS(TERRANE_INVALID, "'keyspace' is NULL", terrane_put(NULL, NULL, "k", 1, "v", 1, &error));
  FAILS(TERRANE_INVALID, "pass the length", terrane_put(keys, NULL, "k", SIZE_MAX, "v", 1, &error));
  FAILS(TERRANE_INVALID, "'dir' is NULL", terrane_open(NULL, NULL, &db + 1, &error));
  FAILS(TERRANE_LOCKED, "in use", terrane_open(in(dir, "basics"), NULL, NULL, &error));
  FAILS(TERRANE_INVALID, "'db' is NULL", terrane_close(NULL, &error));

  OK(terrane_delete(keys, NULL, "k", 1, &error));
  expect(keys, "k", NULL);
  OK(terrane_close(db, &error));
  OK(terrane_close(db, &error));
  terrane_free(db);

  OK(terrane_open_read_only(in(dir, "basics"), NULL, &db, &error));
  expect(terrane_default_keyspace(db), "", "empty key");
  FAILS(TERRANE_INVALID, "read-only", terrane_delete(terrane_default_keyspace(db), NULL, "", 0, &error));
  terrane_free(db);
  FAILS(TERRANE_INVALID, "no database", terrane_open_read_only(in(dir, "missing"), NULL, &db, &error));
  CHECK(db == NULL);

  OK(terrane_destroy(in(dir, "basics"), &error));
  FAILS(TERRANE_INVALID, "no database", terrane_destroy(in(dir, "basics"), &error));

  terrane_free(NULL);
  terrane_error_free(NULL);
  terrane_value_free(NULL);
  terrane_string_free(NULL);
  CHECK(terrane_value_data(NULL, &len) == NULL && len == 0);
  CHECK(terrane_error_code(NULL) == TERRANE_OK && terrane_default_keyspace(NULL) == NULL);
  CHECK(strcmp(terrane_code_name(TERRANE_CONFLICT), "conflict") == 0);
  CHECK(strcmp(terrane_code_name(-1), "unknown") == 0);
}

static void options(const char *dir) {
  terrane_error *error;
  terrane_db *db;
  terrane_options *options = terrane_options_new();
  terrane_write_options *sync = terrane_write_options_new();
  char *text;

  OK(terrane_options_set(options, "design", "tiering T=4", &error));
  OK(terrane_options_set_if_new(options, "memory_budget", "64MiB", &error));
  FAILS(TERRANE_INVALID, "such as 'memory_budget'", terrane_options_set(options, "memory_budgt", "1", &error));
  FAILS(TERRANE_INVALID, "design", terrane_options_set(options, "design", "tearing", &error));
  FAILS(TERRANE_INVALID, "not UTF-8", terrane_options_set(options, "design", "\xff", &error));
  OK(terrane_options_set_open_mode(options, TERRANE_MUST_EXIST, &error));
  FAILS(TERRANE_INVALID, "no database", terrane_open(in(dir, "options"), options, &db, &error));
  FAILS(TERRANE_INVALID, "open mode 9", terrane_options_set_open_mode(options, 9, &error));
  OK(terrane_options_set_open_mode(options, TERRANE_MUST_BE_NEW, &error));
  OK(terrane_open(in(dir, "options"), options, &db, &error));
  OK(terrane_keyspace_design(terrane_default_keyspace(db), &text, &error));
  CHECK(strstr(text, "tiering T=4") != NULL);
  terrane_string_free(text);
  OK(terrane_keyspace_set_design(terrane_default_keyspace(db), "leveling T=6", &error));
  FAILS(TERRANE_INVALID, "design", terrane_keyspace_set_design(terrane_default_keyspace(db), "no", &error));
  OK(terrane_keyspace_tree(terrane_default_keyspace(db), &text, &error));
  CHECK(strstr(text, "leveling T=6") != NULL);
  terrane_string_free(text);

  OK(terrane_write_options_set_durability(sync, "sync", &error));
  OK(terrane_put(terrane_default_keyspace(db), sync, "k", 1, "v", 1, &error));
  OK(terrane_write_options_set_durability(sync, "interval(10ms)", &error));
  OK(terrane_delete(terrane_default_keyspace(db), sync, "k", 1, &error));
  FAILS(TERRANE_INVALID, "durability", terrane_write_options_set_durability(sync, "maybe", &error));
  terrane_write_options_free(sync);
  OK(terrane_close(db, &error));
  terrane_free(db);
  FAILS(TERRANE_INVALID, "already contains", terrane_open(in(dir, "options"), options, &db, &error));
  terrane_options_free(options);

  options = terrane_options_new();
  OK(terrane_options_change_design(options, "tiering T=3", &error));
  OK(terrane_options_after_power_loss(options, &error));
  OK(terrane_options_unknown_functions(options, &error));
  OK(terrane_options_among_other_files(options, &error));
  OK(terrane_open(in(dir, "options"), options, &db, &error));
  terrane_free(db);
  terrane_options_free(options);
  OK(terrane_options_reference(&text, &error));
  CHECK(strstr(text, "\"log_segment_bytes\"") != NULL);
  terrane_string_free(text);
}

static void keyspaces(const char *dir) {
  terrane_error *error;
  terrane_db *db, *other;
  terrane_keyspace *users, *visits, *same;
  const terrane_keyspace *keys;
  terrane_names *names;
  terrane_batch *batch;
  terrane_value *values[3];
  const void *wanted[3] = {"ada", "none", "bob"};
  const size_t wanted_lens[3] = {3, 4, 3};
  terrane_write_options *brief;
  terrane_snapshot *snapshot;
  char *text;
  bool done;
  int64_t one = 1;
  uint64_t bytes, count;
  size_t len;

  OK(terrane_open(in(dir, "keyspaces"), NULL, &db, &error));
  keys = terrane_default_keyspace(db);
  OK(terrane_keyspace_open(db, "users", NULL, &users, &error));
  OK(terrane_keyspace_open(db, "visits", "tiering T=4", &visits, &error));
  OK(terrane_keyspace_open(db, "visits", NULL, &same, &error));
  FAILS(TERRANE_INVALID, "keyspace", terrane_keyspace_open(db, "", NULL, NULL, &error));

  /* A batch across keyspaces, applied twice. */
  batch = terrane_batch_new();
  OK(terrane_batch_put(batch, users, "ada", 3, "Lovelace", 8, &error));
  OK(terrane_batch_put(batch, users, "bob", 3, "Builder", 7, &error));
  OK(terrane_batch_put(batch, NULL, "count", 5, "2", 1, &error));
  OK(terrane_batch_delete(batch, NULL, "old", 3, &error));
  OK(terrane_batch_put_with_ttl(batch, NULL, "expired", 7, "x", 1, 1, &error));
  CHECK(terrane_batch_len(batch) == 5);
  OK(terrane_write(db, NULL, batch, &error));
  OK(terrane_write(db, NULL, batch, &error));
  terrane_batch_clear(batch);
  CHECK(terrane_batch_len(batch) == 0);
  OK(terrane_write(db, NULL, batch, &error));
  expect(users, "ada", "Lovelace");
  expect(keys, "ada", NULL);
  expect(keys, "count", "2");

  /* Several keys at once; values outlive what they are of. */
  OK(terrane_multi_get(users, 3, wanted, wanted_lens, values, &error));
  CHECK(values[0] != NULL && values[1] == NULL && values[2] != NULL);
  OK(terrane_multi_get(users, 0, NULL, NULL, NULL, &error));
  FAILS(TERRANE_INVALID, "NULL", terrane_multi_get(users, 1, NULL, NULL, values + 1, &error));
  CHECK(values[1] == NULL);
  CHECK(memcmp(terrane_value_data(values[2], &len), "Builder", 7) == 0 && len == 7);

  OK(terrane_snapshot_new(db, &snapshot, &error));
  CHECK(terrane_snapshot_sequence_number(snapshot) > 0);
  OK(terrane_delete_range(users, "a", 1, "b", 1, &error));
  expect(users, "ada", NULL);
  expect(users, "bob", "Builder");
  terrane_value_free(values[0]);
  OK(terrane_snapshot_get(snapshot, users, "ada", 3, &values[0], &error));
  CHECK(values[0] != NULL);
  terrane_value_free(values[0]);
  terrane_value_free(values[2]);
  OK(terrane_snapshot_multi_get(snapshot, NULL, 3, wanted, wanted_lens, values, &error));
  CHECK(values[0] == NULL && values[1] == NULL && values[2] == NULL);
  terrane_snapshot_free(snapshot);
  OK(terrane_batch_delete_range(batch, users, NULL, 0, NULL, 0, &error));
  OK(terrane_write(db, NULL, batch, &error));
  expect(users, "bob", NULL);

  /* Merges. */
  FAILS(TERRANE_INVALID, "operator", terrane_merge(visits, NULL, "home", 4, &one, 8, &error));
  FAILS(TERRANE_INVALID, "operator", terrane_keyspace_set_merge_operator(visits, "multiply", &error));
  OK(terrane_keyspace_set_merge_operator(visits, "counter_add", &error));
  OK(terrane_merge(visits, NULL, "home", 4, &one, 8, &error));
  terrane_batch_clear(batch);
  OK(terrane_batch_merge(batch, same, "home", 4, &one, 8, &error));
  OK(terrane_write(db, NULL, batch, &error));
  OK(terrane_get(same, "home", 4, &values[0], &error));
  CHECK(*(const unsigned char *)terrane_value_data(values[0], &len) == 2 && len == 8);
  terrane_value_free(values[0]);

  /* Compare and swap: an empty value is not the same as none. */
  OK(terrane_compare_and_swap(users, "eve", 3, NULL, 0, "", 0, &done, &error));
  CHECK(done);
  OK(terrane_compare_and_swap(users, "eve", 3, NULL, 0, "x", 1, &done, &error));
  CHECK(!done);
  OK(terrane_compare_and_swap(users, "eve", 3, "", 0, NULL, 0, &done, &error));
  CHECK(done);
  expect(users, "eve", NULL);

  /* Values that expire. */
  brief = terrane_write_options_new();
  OK(terrane_write_options_set_ttl(brief, 1, &error));
  OK(terrane_put(users, brief, "gone", 4, "x", 1, &error));
  OK(terrane_keyspace_set_ttl(users, 3600000000u, &error));
  OK(terrane_write_options_set_ttl(brief, UINT64_MAX, &error));
  OK(terrane_put(users, brief, "kept", 4, "x", 1, &error));
  OK(terrane_keyspace_set_ttl(users, 0, &error));
  FAILS(TERRANE_INVALID, "ttl", terrane_delete(users, brief, "kept", 4, &error));
  terrane_write_options_free(brief);
  while (terrane_contains(users, "gone", 4, &done, &error) == TERRANE_OK && done) {
  }
  expect(users, "kept", "x");

  /* Maintenance. */
  OK(terrane_keyspace_flush(users, &error));
  OK(terrane_flush(db, &error));
  OK(terrane_sync(db, &error));
  OK(terrane_compact_range(users, NULL, 0, NULL, 0, &error));
  OK(terrane_wait_for_compactions(db, &error));
  OK(terrane_approximate_size(users, NULL, 0, NULL, 0, &bytes, &count, &error));
  CHECK(bytes > 0 && count == 1);
  OK(terrane_stats(db, &text, &error));
  CHECK(text[0] == '{' && strstr(text, "\"durability\":\"process\"") != NULL);
  terrane_string_free(text);
  OK(terrane_checkpoint(db, in(dir, "copy"), &error));
  OK(terrane_open(in(dir, "copy"), NULL, &other, &error));

  /* Keyspaces of another database. */
  terrane_batch_clear(batch);
  OK(terrane_batch_put(batch, users, "x", 1, "y", 1, &error));
  FAILS(TERRANE_INVALID, "keyspace", terrane_write(other, NULL, batch, &error));
  OK(terrane_snapshot_new(other, &snapshot, &error));
  FAILS(TERRANE_INVALID, "another database",
        terrane_snapshot_get(snapshot, users, "x", 1, &values[0], &error));
  FAILS(TERRANE_INVALID, "another database",
        terrane_iter_range(users, snapshot, NULL, 0, NULL, 0, NULL, &error));
  terrane_snapshot_free(snapshot);
  terrane_free(other);
  terrane_batch_free(batch);

  /* Names. */
  OK(terrane_keyspace_rename(db, "users", "people", &done, &error));
  CHECK(done);
  OK(terrane_keyspace_name(users, &text, &error));
  CHECK(strcmp(text, "people") == 0);
  terrane_string_free(text);
  OK(terrane_keyspace_names(db, &names, &error));
  CHECK(terrane_names_len(names) == 3 && terrane_names_get(names, 3) == NULL);
  CHECK(strcmp(terrane_names_get(names, 0), "default") == 0);
  terrane_names_free(names);
  OK(terrane_keyspace_drop(db, "visits", &done, &error));
  CHECK(done);
  OK(terrane_keyspace_drop(db, "visits", &done, &error));
  CHECK(!done);
  FAILS(TERRANE_INVALID, "dropped", terrane_put(visits, NULL, "k", 1, "v", 1, &error));
  expect(visits, "home", NULL);
  terrane_keyspace_free(users);
  terrane_keyspace_free(visits);
  terrane_keyspace_free(same);
  OK(terrane_close(db, &error));
  terrane_free(db);

  OK(terrane_verify(in(dir, "copy"), &text, &error));
  CHECK(strstr(text, "\"problems\":[]") != NULL);
  terrane_string_free(text);
  {
    char target[4096];
    snprintf(target, sizeof target, "%s/repaired", dir);
    OK(terrane_repair(in(dir, "copy"), target, &text, &error));
    CHECK(strstr(text, "\"keys\":") != NULL);
    terrane_string_free(text);
  }
}

static void iterators(const char *dir) {
  terrane_error *error = NULL;
  terrane_db *db;
  const terrane_keyspace *keys;
  terrane_iter *iter;
  size_t len;

  OK(terrane_open(in(dir, "iterators"), NULL, &db, &error));
  keys = terrane_default_keyspace(db);
  OK(terrane_iter_range(keys, NULL, NULL, 0, NULL, 0, &iter, &error));
  CHECK(!terrane_iter_valid(iter) && !terrane_iter_next(iter, &error) && error == NULL);
  CHECK(!terrane_iter_prev(iter, &error) && !terrane_iter_seek_to_last(iter, &error) && error == NULL);
  CHECK(terrane_iter_key(iter, &len) == NULL && len == 0);
  terrane_iter_free(iter);

  put(keys, "a", "1");
  put(keys, "b1", "2");
  OK(terrane_flush(db, &error));
  put(keys, "b2", "3");
  put(keys, "c", "4");

  OK(terrane_iter_range(keys, NULL, NULL, 0, NULL, 0, &iter, &error));
  put(keys, "d", "too late");
  CHECK(terrane_iter_next(iter, &error));
  expect_entry(iter, "a", "1");
  CHECK(!terrane_iter_prev(iter, &error) && !terrane_iter_prev(iter, &error) && error == NULL);
  CHECK(terrane_iter_next(iter, &error));
  expect_entry(iter, "a", "1");
  CHECK(terrane_iter_next(iter, &error) && terrane_iter_next(iter, &error));
  expect_entry(iter, "b2", "3");
  CHECK(terrane_iter_prev(iter, &error));
  expect_entry(iter, "b1", "2");
  CHECK(terrane_iter_next(iter, &error) && terrane_iter_next(iter, &error));
  expect_entry(iter, "c", "4");
  CHECK(!terrane_iter_next(iter, &error) && !terrane_iter_next(iter, &error) && error == NULL);
  CHECK(terrane_iter_prev(iter, &error));
  expect_entry(iter, "c", "4");
  CHECK(terrane_iter_seek(iter, "b", 1, &error));
  expect_entry(iter, "b1", "2");
  CHECK(terrane_iter_seek_for_prev(iter, "b", 1, &error));
  expect_entry(iter, "a", "1");
  CHECK(terrane_iter_seek_for_prev(iter, "b1", 2, &error));
  expect_entry(iter, "b1", "2");
  CHECK(!terrane_iter_seek(iter, "x", 1, &error) && terrane_iter_prev(iter, &error));
  expect_entry(iter, "c", "4");
  CHECK(terrane_iter_seek_to_first(iter, &error));
  expect_entry(iter, "a", "1");
  OK(terrane_iter_leave_out_values(iter, &error));
  CHECK(!terrane_iter_valid(iter) && terrane_iter_prev(iter, &error));
  expect_entry(iter, "c", "");
  terrane_iter_free(iter);

  /* A prefix, from both ends; positions outside of the range. */
  OK(terrane_iter_prefix(keys, NULL, "b", 1, &iter, &error));
  CHECK(terrane_iter_prev(iter, &error));
  expect_entry(iter, "b2", "3");
  CHECK(terrane_iter_prev(iter, &error));
  expect_entry(iter, "b1", "2");
  CHECK(!terrane_iter_prev(iter, &error));
  CHECK(terrane_iter_seek(iter, "a", 1, &error));
  expect_entry(iter, "b1", "2");
  CHECK(!terrane_iter_seek(iter, "c", 1, &error));
  CHECK(terrane_iter_seek_for_prev(iter, "z", 1, &error));
  expect_entry(iter, "b2", "3");
  CHECK(!terrane_iter_seek_for_prev(iter, "a", 1, &error) && error == NULL);
  CHECK(terrane_iter_next(iter, &error));
  expect_entry(iter, "b1", "2");
  terrane_iter_free(iter);

  /* An end that is given and empty is an empty range. */
  OK(terrane_iter_range(keys, NULL, NULL, 0, "", 0, &iter, &error));
  CHECK(!terrane_iter_next(iter, &error) && !terrane_iter_seek_to_last(iter, &error) && error == NULL);
  terrane_iter_free(iter);
  CHECK(!terrane_iter_next(NULL, &error) && terrane_error_code(error) == TERRANE_INVALID);
  terrane_error_free(error);
  terrane_iter_free(NULL);
  OK(terrane_close(db, &error));
  terrane_free(db);
}

static void transactions(const char *dir) {
  terrane_error *error;
  terrane_db *db;
  const terrane_keyspace *keys;
  terrane_transaction *first, *second;
  terrane_iter *iter;
  terrane_value *value;
  int i, count;

  OK(terrane_open(in(dir, "transactions"), NULL, &db, &error));
  keys = terrane_default_keyspace(db);
  put(keys, "x", "1");
  OK(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &first, &error));
  OK(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &second, &error));
  FAILS(TERRANE_INVALID, "isolation 7", terrane_transaction_begin(db, 7, NULL, NULL, &error));
  OK(terrane_transaction_get(first, NULL, "x", 1, &value, &error));
  terrane_value_free(value);
  OK(terrane_transaction_put(first, NULL, "x", 1, "2", 1, &error));
  expect(keys, "x", "1");
  OK(terrane_transaction_get(second, NULL, "x", 1, &value, &error));
  terrane_value_free(value);
  OK(terrane_transaction_put(second, keys, "x", 1, "3", 1, &error));
  OK(terrane_transaction_commit(second, &error));
  FAILS(TERRANE_CONFLICT, "run it again", terrane_transaction_commit(first, &error));
  FAILS(TERRANE_INVALID, "has ended", terrane_transaction_commit(first, &error));
  FAILS(TERRANE_INVALID, "has ended", terrane_transaction_put(first, NULL, "x", 1, "4", 1, &error));
  expect(keys, "x", "3");
  terrane_transaction_free(first);
  terrane_transaction_free(second);

  /* Savepoints, and an iterator over stored keys and the transaction's own. */
  for (i = 0; i < 300; i++) {
    char key[8];
    snprintf(key, sizeof key, "n%03d", i);
    put(keys, key, "stored");
  }
  OK(terrane_transaction_begin(db, TERRANE_SNAPSHOT_ISOLATION, NULL, &first, &error));
  OK(terrane_transaction_put_with_ttl(first, NULL, "n100a", 5, "own", 3, UINT64_MAX, &error));
  OK(terrane_transaction_delete(first, NULL, "n000", 4, &error));
  OK(terrane_transaction_savepoint(first, &error));
  OK(terrane_transaction_delete_range(first, NULL, "n", 1, NULL, 0, &error));
  OK(terrane_transaction_roll_back_to_savepoint(first, &error));
  FAILS(TERRANE_INVALID, "savepoint", terrane_transaction_roll_back_to_savepoint(first, &error));
  OK(terrane_transaction_iter_prefix(first, NULL, "n", 1, &iter, &error));
  for (count = 0; terrane_iter_next(iter, &error); count++) {
  }
  CHECK(error == NULL && count == 300);
  CHECK(terrane_iter_prev(iter, &error));
  expect_entry(iter, "n299", "stored");
  for (count = 1; terrane_iter_prev(iter, &error); count++) {
  }
  CHECK(error == NULL && count == 300);
  CHECK(terrane_iter_seek(iter, "n100", 4, &error) && terrane_iter_next(iter, &error));
  expect_entry(iter, "n100a", "own");
  CHECK(terrane_iter_prev(iter, &error));
  expect_entry(iter, "n100", "stored");
  CHECK(terrane_iter_seek_for_prev(iter, "n100b", 5, &error));
  expect_entry(iter, "n100a", "own");
  CHECK(terrane_iter_seek_to_first(iter, &error));
  expect_entry(iter, "n001", "stored");
  OK(terrane_iter_leave_out_values(iter, &error));
  CHECK(terrane_iter_seek_to_last(iter, &error));
  expect_entry(iter, "n299", "");
  OK(terrane_transaction_roll_back(first, &error));
  CHECK(!terrane_iter_seek_to_first(iter, &error) && terrane_error_code(error) == TERRANE_INVALID);
  terrane_error_free(error);
  terrane_transaction_free(first);
  terrane_iter_free(iter);
  expect(keys, "n000", "stored");

  OK(terrane_keyspace_set_merge_operator(keys, "append", &error));
  OK(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &first, &error));
  OK(terrane_transaction_merge(first, NULL, "x", 1, "4", 1, &error));
  OK(terrane_transaction_iter_range(first, keys, "x", 1, NULL, 0, &iter, &error));
  CHECK(terrane_iter_next(iter, &error));
  expect_entry(iter, "x", "34");
  terrane_transaction_free(first);
  CHECK(!terrane_iter_seek_to_last(iter, &error) && terrane_error_code(error) == TERRANE_INVALID);
  terrane_error_free(error);
  terrane_iter_free(iter);
  OK(terrane_close(db, &error));
  terrane_free(db);
}

static void loads_and_changes(const char *dir) {
  terrane_error *error;
  terrane_db *db;
  terrane_options *options = terrane_options_new();
  const terrane_keyspace *keys;
  terrane_ingest *ingest;
  terrane_changes *changes;
  terrane_batch *batch;
  uint64_t entries, position, expires_at;
  size_t count, key_len, value_len;
  const char *keyspace, *key, *value;
  int kind;
  bool found;

  OK(terrane_options_set(options, "keep_changes", "16MiB", &error));
  OK(terrane_open(in(dir, "changes"), options, &db, &error));
  terrane_options_free(options);
  keys = terrane_default_keyspace(db);
  batch = terrane_batch_new();
  OK(terrane_batch_put(batch, NULL, "a", 1, "1", 1, &error));
  OK(terrane_batch_delete(batch, NULL, "b", 1, &error));
  OK(terrane_write(db, NULL, batch, &error));
  terrane_batch_free(batch);
  OK(terrane_delete_range(keys, "c", 1, NULL, 0, &error));

  OK(terrane_changes_new(db, 0, false, &changes, &error));
  OK(terrane_changes_next(changes, &count, &error));
  CHECK(count == 2);
  OK(terrane_changes_get(changes, 0, &kind, &keyspace, &key, &key_len, &value, &value_len, &expires_at, &error));
  CHECK(kind == TERRANE_CHANGE_PUT && strcmp(keyspace, "default") == 0 && key_len == 1 && key[0] == 'a');
  CHECK(value_len == 1 && value[0] == '1' && expires_at == UINT64_MAX);
  OK(terrane_changes_get(changes, 1, &kind, NULL, NULL, NULL, &value, NULL, NULL, &error));
  CHECK(kind == TERRANE_CHANGE_DELETE && value == NULL);
  FAILS(TERRANE_INVALID, "index",
        terrane_changes_get(changes, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  position = terrane_changes_position(changes);
  OK(terrane_changes_next(changes, &count, &error));
  CHECK(count == 1);
  OK(terrane_changes_get(changes, 0, &kind, NULL, &key, &key_len, &value, NULL, NULL, &error));
  CHECK(kind == TERRANE_CHANGE_DELETE_RANGE && key_len == 1 && value == NULL);
  OK(terrane_changes_next(changes, &count, &error));
  CHECK(count == 0);
  OK(terrane_changes_wait(changes, 1000, &found, &error));
  CHECK(!found);
  terrane_changes_free(changes);
  OK(terrane_changes_new(db, position, true, &changes, &error));
  OK(terrane_changes_next(changes, &count, &error));
  CHECK(count == 1);
  terrane_changes_free(changes);
  FAILS(TERRANE_INVALID, "position", terrane_changes_new(db, 1000, false, &changes, &error));

  OK(terrane_ingest_begin(keys, &ingest, &error));
  OK(terrane_ingest_put(ingest, "k1", 2, "v", 1, &error));
  FAILS(TERRANE_INVALID, "does not follow", terrane_ingest_put(ingest, "k1", 2, "v", 1, &error));
  OK(terrane_ingest_put(ingest, "k2", 2, "v", 1, &error));
  expect(keys, "k1", NULL);
  OK(terrane_ingest_commit(ingest, &entries, &error));
  CHECK(entries == 2);
  FAILS(TERRANE_INVALID, "has ended", terrane_ingest_commit(ingest, &entries, &error));
  terrane_ingest_free(ingest);
  expect(keys, "k2", "v");
  OK(terrane_ingest_begin(keys, &ingest, &error));
  OK(terrane_ingest_put(ingest, "k3", 2, "v", 1, &error));
  terrane_ingest_free(ingest);
  expect(keys, "k3", NULL);
  OK(terrane_close(db, &error));
  terrane_free(db);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  basics(argv[1]);
  options(argv[1]);
  keyspaces(argv[1]);
  iterators(argv[1]);
  transactions(argv[1]);
  loads_and_changes(argv[1]);
  printf("all functions work\n");
  return 0;
}
