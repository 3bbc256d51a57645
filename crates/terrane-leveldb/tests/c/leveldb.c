/* A program for LevelDB, and what is different here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leveldb/c.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static char *error;
static leveldb_readoptions_t *reads;
static leveldb_writeoptions_t *writes;

/* Checks that the last call succeeded. */
static void ok(int line) {
  if (error != NULL) {
    fprintf(stderr, "line %d: %s\n", line, error);
    exit(1);
  }
}
#define OK ok(__LINE__)

/* Checks that the last call failed with this message. */
static void failed(const char *text, int line) {
  if (error == NULL || strstr(error, text) == NULL) {
    fprintf(stderr, "line %d: %s\n", line, error == NULL ? "no error" : error);
    exit(1);
  }
  leveldb_free(error);
  error = NULL;
}
#define FAILED(text) failed(text, __LINE__)

static void expect(leveldb_t *db, const char *key, const char *expected) {
  size_t len;
  char *value = leveldb_get(db, reads, key, strlen(key), &len, &error);
  OK;
  CHECK((value == NULL) == (expected == NULL));
  CHECK(expected == NULL || (len == strlen(expected) && memcmp(value, expected, len) == 0));
  free(value);
}

static void put(leveldb_t *db, const char *key, const char *value) {
  leveldb_put(db, writes, key, strlen(key), value, strlen(value), &error);
  OK;
}

static int destroyed;
static void destroy(void *state) {
  CHECK(state == &destroyed);
  destroyed++;
}
static int compare(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
  (void)state, (void)a, (void)a_len, (void)b, (void)b_len;
  abort();
}
static const char *reverse(void *state) {
  CHECK(state == &destroyed);
  return "reverse";
}
static const char *bytewise(void *state) {
  CHECK(state == &destroyed);
  return "leveldb.BytewiseComparator";
}

static void put_letter(void *state, const char *key, size_t key_len, const char *value, size_t value_len) {
  sprintf((char *)state + strlen(state), "+%.*s=%.*s", (int)key_len, key, (int)value_len, value);
}
static void delete_letter(void *state, const char *key, size_t key_len) {
  sprintf((char *)state + strlen(state), "-%.*s", (int)key_len, key);
}

static void open_and_refuse(const char *dir, leveldb_options_t *options) {
  leveldb_t *db;
  leveldb_comparator_t *comparator;
  leveldb_cache_t *cache = leveldb_cache_create_lru(1000);
  leveldb_env_t *env = leveldb_create_default_env();
  char path[4096];
  FILE *file;

  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("Invalid argument: no database");
  leveldb_options_set_create_if_missing(options, 1);
  comparator = leveldb_comparator_create(&destroyed, destroy, compare, reverse);
  leveldb_options_set_comparator(options, comparator);
  CHECK(leveldb_open(options, dir, &error) == NULL);
  /* The next error takes the place of this one. */
  CHECK(strstr(error, "comparator 'reverse' is not supported") != NULL);
  CHECK(leveldb_open(options, NULL, &error) == NULL);
  FAILED("'name' is NULL");
  leveldb_comparator_destroy(comparator);
  CHECK(destroyed == 1);
  comparator = leveldb_comparator_create(&destroyed, destroy, compare, bytewise);
  leveldb_options_set_comparator(options, comparator);
  leveldb_comparator_destroy(comparator);
  CHECK(destroyed == 2);

  leveldb_options_set_error_if_exists(options, 1);
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_write_buffer_size(options, 1);
  leveldb_options_set_block_size(options, 1);
  leveldb_options_set_max_file_size(options, 1);
  leveldb_options_set_max_open_files(options, -1);
  leveldb_options_set_block_restart_interval(options, 1);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_compression(options, leveldb_snappy_compression);
  db = leveldb_open(options, dir, &error);
  OK;
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("IO error");
  leveldb_close(db);
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("already contains");
  leveldb_options_set_create_if_missing(options, 0);
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("error_if_exists is true");
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);

  /* The files of LevelDB itself are neither read nor removed. */
  snprintf(path, sizeof path, "%s/../real/CURRENT", dir);
  file = fopen(path, "w");
  CHECK(file != NULL && fputs("MANIFEST-000002\n", file) > 0 && fclose(file) == 0);
  snprintf(path, sizeof path, "%s/../real/LOG", dir);
  file = fopen(path, "w");
  CHECK(file != NULL && fclose(file) == 0);
  snprintf(path, sizeof path, "%s/../real", dir);
  CHECK(leveldb_open(options, path, &error) == NULL);
  FAILED("has a database of LevelDB");
  leveldb_destroy_db(options, path, &error);
  FAILED("has a database of LevelDB");
  leveldb_repair_db(options, path, &error);
  FAILED("has a database of LevelDB");
}

static void use(const char *dir, leveldb_options_t *options) {
  leveldb_t *db = leveldb_open(options, dir, &error);
  leveldb_writebatch_t *batch = leveldb_writebatch_create(), *more = leveldb_writebatch_create();
  leveldb_iterator_t *iter, *later;
  const leveldb_snapshot_t *snapshot;
  char letters[100] = "";
  const char *starts[2] = {"a", "x"}, *limits[2] = {"x", "z"};
  const size_t lens[2] = {1, 1};
  uint64_t sizes[2];
  size_t len;
  char *text;

  OK;
  put(db, "b", "1");
  leveldb_writebatch_put(batch, "x", 1, "gone", 4);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "a", 1, "2", 1);
  leveldb_writebatch_put(batch, "c", 1, "", 0);
  leveldb_writebatch_delete(more, "b", 1);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_iterate(batch, letters, put_letter, delete_letter);
  CHECK(strcmp(letters, "+a=2+c=-b") == 0);
  snapshot = leveldb_create_snapshot(db);
  leveldb_writeoptions_set_sync(writes, 1);
  leveldb_write(db, writes, batch, &error);
  OK;
  leveldb_writeoptions_set_sync(writes, 0);
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(more);
  expect(db, "a", "2");
  expect(db, "b", NULL);
  expect(db, "c", "");
  leveldb_readoptions_set_snapshot(reads, snapshot);
  expect(db, "a", NULL);
  expect(db, "b", "1");
  later = leveldb_create_iterator(db, reads);
  leveldb_readoptions_set_snapshot(reads, NULL);
  leveldb_release_snapshot(db, snapshot);
  leveldb_put(db, writes, NULL, 3, "x", 1, &error);
  FAILED("'key' is NULL");

  iter = leveldb_create_iterator(db, reads);
  put(db, "d", "too late");
  CHECK(!leveldb_iter_valid(iter));
  leveldb_iter_seek_to_last(iter);
  CHECK(leveldb_iter_key(iter, &len)[0] == 'c' && len == 1);
  CHECK(leveldb_iter_value(iter, &len) != NULL && len == 0);
  leveldb_iter_prev(iter);
  CHECK(leveldb_iter_key(iter, &len)[0] == 'a');
  leveldb_iter_next(iter);
  leveldb_iter_next(iter);
  CHECK(!leveldb_iter_valid(iter));
  leveldb_iter_seek(iter, "b", 1);
  CHECK(leveldb_iter_key(iter, &len)[0] == 'c');
  leveldb_iter_get_error(iter, &error);
  OK;
  leveldb_iter_seek_to_first(later);
  CHECK(leveldb_iter_key(later, &len)[0] == 'b');

  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_compact_range(db, "a", 1, "b", 1);
  leveldb_approximate_sizes(db, 2, starts, lens, limits, lens, sizes);
  CHECK(sizes[0] > 0 && sizes[1] == 0);
  CHECK(leveldb_property_value(db, "leveldb.nothing") == NULL);
  text = leveldb_property_value(db, "leveldb.num-files-at-level99");
  CHECK(text != NULL && strcmp(text, "0") == 0);
  leveldb_free(text);
  text = leveldb_property_value(db, "leveldb.stats");
  CHECK(text != NULL && strlen(text) > 100);
  leveldb_free(text);
  text = leveldb_property_value(db, "leveldb.approximate-memory-usage");
  CHECK(text != NULL && atol(text) > 0);
  leveldb_free(text);
  text = leveldb_property_value(db, "terrane.tree");
  CHECK(text != NULL && text[0] == '{');
  leveldb_free(text);

  /* Iterators after the close, which LevelDB does not allow. */
  leveldb_close(db);
  leveldb_iter_seek_to_last(later);
  leveldb_iter_get_error(later, &error);
  FAILED("IO error: the database is closed");
  CHECK(!leveldb_iter_valid(later));
  leveldb_iter_destroy(iter);
  leveldb_iter_destroy(later);
}

/* Damages the only table, repairs, and finds the readable entries. */
static void repair(const char *dir, leveldb_options_t *options) {
  leveldb_t *db;
  char command[9000], damaged[4096];
  int i;

  leveldb_repair_db(options, dir, &error);
  OK;
  db = leveldb_open(options, dir, &error);
  OK;
  for (i = 0; i < 3000; i++) {
    char key[16], value[100];
    snprintf(key, sizeof key, "key %06d", i);
    snprintf(value, sizeof value, "%060d", i);
    put(db, key, value);
  }
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_close(db);
  snprintf(command, sizeof command,
           "cd '%s' && for table in *.sst; do printf xxxx | dd of=$table bs=1 seek=100 conv=notrunc; done 2>/dev/null", dir);
  CHECK(system(command) == 0);
  leveldb_repair_db(options, dir, &error);
  OK;
  db = leveldb_open(options, dir, &error);
  OK;
  expect(db, "key 002999", "000000000000000000000000000000000000000000000000000000002999");
  leveldb_close(db);
  snprintf(damaged, sizeof damaged, "%s.damaged", dir);
  leveldb_destroy_db(options, damaged, &error);
  OK;
}

/* Runs a command of the shell with the directory `root`. */
static void shell(const char *root, const char *command) {
  char line[8192];

  snprintf(line, sizeof line, "cd '%s' && { %s; }", root, command);
  CHECK(system(line) == 0);
}

/* A mistyped path made a database among documents. */
static void refuse_other_files(const char *root, leveldb_options_t *options) {
  char dir[4096];

  shell(root, "mkdir documents && echo 1 > documents/holiday.jpg");
  snprintf(dir, sizeof dir, "%s/documents", root);
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("Invalid argument: '");
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("has other files, such as 'holiday.jpg', and no database");
  shell(root, "test \"$(ls -A documents)\" = holiday.jpg");
  /* Nor beside what LevelDB left behind. */
  shell(root, "touch documents/LOG documents/LOG.old");
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("has other files");
}

/* A directory that LevelDB used before. */
static void follow_leveldb(const char *root, leveldb_options_t *options) {
  leveldb_t *db;
  char dir[4096];
  int round;

  shell(root, "mkdir -p used/lost && touch used/LOG used/LOG.old used/LOCK used/.hidden used/lost/000003.ldb");
  shell(root, "mkdir unlocked && touch unlocked/LOG unlocked/LOG.old");
  snprintf(dir, sizeof dir, "%s/unlocked", root);
  for (round = 0; round < 3; round++) {
    db = leveldb_open(options, dir, &error);
    OK;
    put(db, "key", "value");
    leveldb_close(db);
    snprintf(dir, sizeof dir, "%s/used", root);
  }
  /* The last round opened a database that was closed, beside LOG. */
  shell(root, "test -e used/LOG && test -e used/CURRENT");

  shell(root, "mkdir theirs && cd theirs && touch 000003.log LOG LOCK && echo MANIFEST-000002 > CURRENT && "
              "printf '\\126\\371\\270\\370\\034\\000\\001\\001\\032leveldb.BytewiseComparator' > MANIFEST-000002");
  snprintf(dir, sizeof dir, "%s/theirs", root);
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("has a database of LevelDB");
  leveldb_destroy_db(options, dir, &error);
  FAILED("has a database of LevelDB");
  /* Its tables are refused without CURRENT too. */
  shell(root, "rm theirs/CURRENT theirs/MANIFEST-000002 && touch theirs/000004.ldb");
  CHECK(leveldb_open(options, dir, &error) == NULL);
  FAILED("has a database of LevelDB");
}

int main(int argc, char **argv) {
  leveldb_options_t *options = leveldb_options_create();
  leveldb_filterpolicy_t *policy;
  char dir[4000], path[4096];

  CHECK(argc == 2);
  CHECK(leveldb_major_version() == 1 && leveldb_minor_version() >= 20);
  reads = leveldb_readoptions_create();
  writes = leveldb_writeoptions_create();
  leveldb_readoptions_set_verify_checksums(reads, 1);
  leveldb_readoptions_set_fill_cache(reads, 0);
  snprintf(path, sizeof path, "mkdir '%s/real'", argv[1]);
  CHECK(system(path) == 0);
  snprintf(dir, sizeof dir, "%s/db", argv[1]);
  open_and_refuse(dir, options);
  use(dir, options);
  leveldb_destroy_db(options, dir, &error);
  OK;
  leveldb_destroy_db(options, dir, &error);
  OK;

  policy = leveldb_filterpolicy_create(&destroyed, destroy, NULL, NULL, NULL);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_filterpolicy_destroy(policy);
  CHECK(destroyed == 3);
  policy = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_filterpolicy_destroy(policy);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_compression(options, leveldb_no_compression);
  use(dir, options);
  repair(dir, options);
  refuse_other_files(argv[1], options);
  follow_leveldb(argv[1], options);

  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_options_destroy(options);
  printf("all functions work\n");
  return 0;
}
