/* A child of fork, in which the database of its parent does not work, and a daemon, which opens it again. */
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Waits for a child, which must have succeeded. */
static void join(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void child_of_open_database(terrane_db *db, terrane_snapshot *snapshot, terrane_iter *iter,
                                   terrane_transaction *transaction, const char *dir) {
  terrane_error *error;
  terrane_db *again;
  const terrane_keyspace *keys = terrane_default_keyspace(db);
  char *text;

  FAILS(TERRANE_CLOSED, "parent process", terrane_put(keys, NULL, "k", 1, "v", 1, &error));
  FAILS(TERRANE_CLOSED, "parent process", terrane_get(keys, "k", 1, NULL, &error));
  FAILS(TERRANE_CLOSED, "parent process", terrane_flush(db, &error));
  FAILS(TERRANE_CLOSED, "parent process", terrane_snapshot_get(snapshot, keys, "a", 1, NULL, &error));
  FAILS(TERRANE_CLOSED, "parent process", terrane_transaction_commit(transaction, &error));
  CHECK(!terrane_iter_next(iter, &error) && terrane_error_code(error) == TERRANE_CLOSED);
  terrane_error_free(error);
  OK(terrane_stats(db, &text, &error));
  terrane_string_free(text);
  FAILS(TERRANE_LOCKED, "in use", terrane_open(dir, NULL, &again, &error));
  FAILS(TERRANE_CLOSED, "parent process", terrane_close(db, &error));
  terrane_iter_free(iter);
  terrane_transaction_free(transaction);
  terrane_snapshot_free(snapshot);
  terrane_free(db);
}

int main(int count, char **arguments) {
  terrane_error *error;
  terrane_db *db;
  terrane_snapshot *snapshot;
  terrane_iter *iter;
  terrane_transaction *transaction;
  const terrane_keyspace *keys;
  pid_t child;

  CHECK(count == 2);
  OK(terrane_open(arguments[1], NULL, &db, &error));
  keys = terrane_default_keyspace(db);
  put(keys, "a", "1");
  put(keys, "b", "2");
  OK(terrane_snapshot_new(db, &snapshot, &error));
  OK(terrane_iter_range(keys, NULL, NULL, 0, NULL, 0, &iter, &error));
  CHECK(terrane_iter_next(iter, &error));
  OK(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &transaction, &error));
  OK(terrane_transaction_put(transaction, keys, "c", 1, "3", 1, &error));
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(60);
    child_of_open_database(db, snapshot, iter, transaction, arguments[1]);
    _exit(0);
  }
  join(child);
  /* The parent goes on with all of its handles. */
  CHECK(terrane_iter_next(iter, &error));
  expect_entry(iter, "b", "2");
  OK(terrane_transaction_commit(transaction, &error));
  expect(keys, "c", "3");
  terrane_iter_free(iter);
  terrane_transaction_free(transaction);
  terrane_snapshot_free(snapshot);

  /* The child opens the database once the parent has closed it. */
  OK(terrane_close(db, &error));
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(60);
    terrane_free(db);
    OK(terrane_open(arguments[1], NULL, &db, &error));
    expect(terrane_default_keyspace(db), "c", "3");
    put(terrane_default_keyspace(db), "d", "4");
    OK(terrane_close(db, &error));
    terrane_free(db);
    _exit(0);
  }
  join(child);
  terrane_free(db);
  OK(terrane_open(arguments[1], NULL, &db, &error));
  expect(terrane_default_keyspace(db), "d", "4");
  OK(terrane_close(db, &error));
  terrane_free(db);
  printf("forks are safe\n");
  return 0;
}
