/*
 * Prints what a database does in the background while it is filled, then its tree, as JSON.
 *
 *     cc events.c $(pkg-config --cflags --libs terrane) -pthread -o events && ./events /tmp/busy
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <terrane.h>

typedef struct {
  pthread_mutex_t lock;
  long count;
} event_log;

/* Called by threads of the database, perhaps by several at once. */
static void on_event(void *context, const char *json, size_t len) {
  event_log *log = context;
  pthread_mutex_lock(&log->lock);
  log->count++;
  fprintf(stderr, "%.*s\n", (int)len, json);
  pthread_mutex_unlock(&log->lock);
}

static void free_log(void *context) {
  event_log *log = context;
  printf("%s\n", log->count >= 2 ? "events arrived" : "no events");
  pthread_mutex_destroy(&log->lock);
  free(log);
}

static void check(terrane_code code, terrane_error *error) {
  if (code != TERRANE_OK) {
    fprintf(stderr, "%s: %s\n", terrane_code_name(code), terrane_error_message(error));
    exit(1);
  }
}

int main(int argc, char **argv) {
  terrane_options *options = terrane_options_new();
  terrane_db *db;
  terrane_error *error;
  const terrane_keyspace *keyspace;
  event_log *log = malloc(sizeof *log);
  char *text;
  int i;

  if (argc != 2 || log == NULL) {
    fprintf(stderr, "usage: events DIRECTORY\n");
    return 2;
  }
  pthread_mutex_init(&log->lock, NULL);
  log->count = 0;
  check(terrane_options_set(options, "design", "tiering T=4; buffer=64KiB", &error), error);
  check(terrane_options_set(options, "memory_budget", "8MiB", &error), error);
  check(terrane_options_on_event(options, on_event, log, free_log, &error), error);
  check(terrane_open(argv[1], options, &db, &error), error);
  terrane_options_free(options);
  keyspace = terrane_default_keyspace(db);
  for (i = 0; i < 5000; i++) {
    char key[16];
    int len = snprintf(key, sizeof key, "key %06d", i * 7919 % 5000);
    check(terrane_put(keyspace, NULL, key, (size_t)len, "some value of thirty-two bytes..", 32, &error), error);
  }
  check(terrane_flush(db, &error), error);
  check(terrane_wait_for_compactions(db, &error), error);

  check(terrane_keyspace_tree(keyspace, &text, &error), error);
  fprintf(stderr, "tree: %s\n", text);
  terrane_string_free(text);
  check(terrane_stats(db, &text, &error), error);
  printf("%s\n", strstr(text, "\"writes\":5000") != NULL ? "statistics count writes" : text);
  terrane_string_free(text);
  check(terrane_close(db, &error), error);
  terrane_free(db);
  return 0;
}
