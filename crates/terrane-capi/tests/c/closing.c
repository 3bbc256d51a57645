/* Handles that outlive their database, and a database that is closed while threads use it. */
#include <pthread.h>
#include <stdint.h>

#include "check.h"

static void outlive(const char *dir) {
  terrane_error *error;
  terrane_db *db, *again;
  terrane_keyspace *other;
  terrane_snapshot *snapshot;
  terrane_transaction *transaction;
  terrane_iter *iter, *fresh, *in_transaction;
  terrane_value *value;
  terrane_batch *batch = terrane_batch_new();
  terrane_changes *changes;
  terrane_ingest *ingest;
  terrane_options *options = terrane_options_new();
  const terrane_keyspace *keys;
  char *text;
  size_t len;
  uint64_t entries;
  char long_value[1000];
  int i;

  memset(long_value, 'v', sizeof long_value);
  OK(terrane_options_set(options, "keep_changes", "16MiB", &error));
  OK(terrane_open(dir, options, &db, &error));
  keys = terrane_default_keyspace(db);
  OK(terrane_keyspace_open(db, "other", NULL, &other, &error));
  for (i = 0; i < 100; i++) {
    char key[8];
    snprintf(key, sizeof key, "%03d", i);
    OK(terrane_put(other, NULL, key, 3, long_value, sizeof long_value, &error));
  }
  OK(terrane_keyspace_flush(other, &error));
  OK(terrane_snapshot_new(db, &snapshot, &error));
  OK(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &transaction, &error));
  OK(terrane_transaction_put(transaction, other, "t", 1, "t", 1, &error));
  OK(terrane_iter_range(other, NULL, NULL, 0, NULL, 0, &iter, &error));
  OK(terrane_iter_range(other, snapshot, NULL, 0, NULL, 0, &fresh, &error));
  OK(terrane_transaction_iter_range(transaction, other, NULL, 0, NULL, 0, &in_transaction, &error));
  CHECK(terrane_iter_next(iter, &error) && terrane_iter_next(in_transaction, &error));
  OK(terrane_get(other, "050", 3, &value, &error));
  OK(terrane_changes_new(db, 0, true, &changes, &error));
  OK(terrane_ingest_begin(other, &ingest, &error));
  OK(terrane_ingest_put(ingest, "x", 1, "x", 1, &error));
  OK(terrane_batch_put(batch, other, "x", 1, "x", 1, &error));

  OK(terrane_close(db, &error));
  /* The directory is free although the handles are not. */
  OK(terrane_open(dir, options, &again, &error));
  terrane_options_free(options);

  FAILS(TERRANE_CLOSED, "closed", terrane_put(keys, NULL, "k", 1, "v", 1, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_put(other, NULL, "k", 1, "v", 1, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_get(other, "000", 3, NULL, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_write(db, NULL, batch, &error));
  FAILS(TERRANE_INVALID, "keyspaces", terrane_write(again, NULL, batch, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_snapshot_get(snapshot, other, "000", 3, NULL, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_iter_range(other, NULL, NULL, 0, NULL, 0, NULL, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_transaction_commit(transaction, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_changes_next(changes, &len, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_ingest_commit(ingest, &entries, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_flush(db, &error));
  FAILS(TERRANE_CLOSED, "closed", terrane_keyspace_set_ttl(other, 1, &error));
  OK(terrane_stats(db, &text, &error));
  terrane_string_free(text);
  OK(terrane_keyspace_tree(other, &text, &error));
  terrane_string_free(text);

  /* Iterators that began go on forward, and values stay. */
  for (i = 1; terrane_iter_next(iter, &error); i++) {
    CHECK(terrane_iter_value(iter, &len)[999] == 'v' && len == 1000);
  }
  CHECK(error == NULL && i == 100);
  CHECK(!terrane_iter_next(fresh, &error) && terrane_error_code(error) == TERRANE_CLOSED);
  terrane_error_free(error);
  CHECK(!terrane_iter_prev(iter, &error) && terrane_error_code(error) == TERRANE_CLOSED);
  terrane_error_free(error);
  CHECK(memcmp(terrane_value_data(value, &len), long_value, sizeof long_value) == 0);

  /* Freed in an order that no one would choose. */
  terrane_free(db);
  CHECK(memcmp(terrane_value_data(value, &len), long_value, sizeof long_value) == 0);
  FAILS(TERRANE_CLOSED, "closed", terrane_delete(other, NULL, "k", 1, &error));
  terrane_transaction_free(transaction);
  terrane_snapshot_free(snapshot);
  terrane_keyspace_free(other);
  terrane_iter_free(in_transaction);
  terrane_iter_free(fresh);
  terrane_changes_free(changes);
  terrane_ingest_free(ingest);
  terrane_batch_free(batch);
  terrane_iter_free(iter);
  CHECK(terrane_value_data(value, &len)[0] == 'v');
  terrane_value_free(value);
  OK(terrane_close(again, &error));
  terrane_free(again);
}

typedef struct {
  terrane_db *db;
  int number;
  long done;
} worker;

/* Writes, reads and scans until the database is closed. */
static void *work(void *context) {
  worker *self = context;
  const terrane_keyspace *keys = terrane_default_keyspace(self->db);
  for (;;) {
    terrane_error *error;
    terrane_code code;
    terrane_iter *iter;
    terrane_value *value;
    char key[32];
    size_t len = (size_t)snprintf(key, sizeof key, "%d %ld", self->number, self->done);
    code = terrane_put(keys, NULL, key, len, key, len, &error);
    if (code == TERRANE_OK) {
      code = terrane_get(keys, key, len, &value, &error);
      if (code == TERRANE_OK) {
        CHECK(value != NULL);
        terrane_value_free(value);
        code = terrane_iter_range(keys, NULL, key, len, NULL, 0, &iter, &error);
        if (code == TERRANE_OK) {
          while (terrane_iter_next(iter, &error)) {
          }
          code = terrane_error_code(error);
          terrane_iter_free(iter);
        }
      }
    }
    if (code != TERRANE_OK) {
      CHECK(code == TERRANE_CLOSED);
      terrane_error_free(error);
      return NULL;
    }
    self->done++;
  }
}

static void *close_database(void *context) {
  terrane_error *error;
  OK(terrane_close(context, &error));
  return NULL;
}

static void close_while_used(const char *dir) {
  int round, i;
  for (round = 0; round < 5; round++) {
    terrane_error *error;
    terrane_db *db;
    pthread_t threads[4], closers[2];
    worker workers[4];
    OK(terrane_open(dir, NULL, &db, &error));
    for (i = 0; i < 4; i++) {
      workers[i].db = db;
      workers[i].number = i;
      workers[i].done = 0;
      CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    while (__atomic_load_n(&workers[round % 4].done, __ATOMIC_RELAXED) < 20) {
    }
    for (i = 0; i < 2; i++) {
      CHECK(pthread_create(&closers[i], NULL, close_database, db) == 0);
    }
    for (i = 0; i < 2; i++) {
      pthread_join(closers[i], NULL);
    }
    for (i = 0; i < 4; i++) {
      pthread_join(threads[i], NULL);
    }
    terrane_free(db);

    /* What was acknowledged is there. */
    OK(terrane_open(dir, NULL, &db, &error));
    for (i = 0; i < 4; i++) {
      char key[32];
      long number;
      for (number = 0; number < workers[i].done; number++) {
        snprintf(key, sizeof key, "%d %ld", i, number);
        expect(terrane_default_keyspace(db), key, key);
      }
    }
    OK(terrane_close(db, &error));
    terrane_free(db);
  }
}

int main(int argc, char **argv) {
  char path[4096];
  CHECK(argc == 2);
  snprintf(path, sizeof path, "%s/outlive", argv[1]);
  outlive(path);
  snprintf(path, sizeof path, "%s/threads", argv[1]);
  close_while_used(path);
  printf("closing is safe\n");
  return 0;
}
