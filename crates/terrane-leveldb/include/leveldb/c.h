/*
 * The interface of LevelDB for C, on Terrane: the functions of LevelDB 1.23, with the same names, parameters and
 * meaning unless a comment says otherwise. Link with libterrane_leveldb.
 *
 * Generated from the sources by the test `header`; do not edit.
 *
 * A call that can fail takes a `char **errptr`, which must point to NULL or to an earlier error. If the call fails,
 * it frees the earlier error and stores a string from malloc() in its place; otherwise it changes nothing.
 */
#ifndef TERRANE_LEVELDB_C_H
#define TERRANE_LEVELDB_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 Blocks are not compressed.
 */
#define leveldb_no_compression 0

/*
 Blocks are compressed, here with LZ4.
 */
#define leveldb_snappy_compression 1

/*
 The size of a cache.
 */
typedef struct leveldb_cache_t leveldb_cache_t;

/*
 An order of keys.
 */
typedef struct leveldb_comparator_t leveldb_comparator_t;

/*
 The operating system.
 */
typedef struct leveldb_env_t leveldb_env_t;

/*
 A policy for filters.
 */
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;

/*
 An iterator over all keys, as of one moment. One thread at a time may use it.
 */
typedef struct leveldb_iterator_t leveldb_iterator_t;

/*
 A log for messages; there are none.
 */
typedef struct leveldb_logger_t leveldb_logger_t;

/*
 Options of a database.
 */
typedef struct leveldb_options_t leveldb_options_t;

/*
 Options of a read.
 */
typedef struct leveldb_readoptions_t leveldb_readoptions_t;

/*
 A consistent view of a database.
 */
typedef struct leveldb_snapshot_t leveldb_snapshot_t;

/*
 An open database, in the default keyspace. Any thread may use it.
 */
typedef struct leveldb_t leveldb_t;

/*
 Puts and deletes that are applied at once, kept as they were added, so that a program can read them back.
 */
typedef struct leveldb_writebatch_t leveldb_writebatch_t;

/*
 Options of a write.
 */
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/* ---- Errors and versions ---- */

extern void *malloc(size_t size);

extern void free(void *pointer);

/*
 Frees memory that a function of this library returned, as free() does.
 */
void leveldb_free(void *ptr);

/*
 Returns the major version of the interface of LevelDB that this library has: 1.
 */
int leveldb_major_version(void);

/*
 Returns the minor version of the interface of LevelDB that this library has: 23.
 */
int leveldb_minor_version(void);

/* ---- Objects of options ---- */

/*
 Returns an order of keys defined by the application; see leveldb_options_set_comparator. `compare` is never called.
 */
leveldb_comparator_t *leveldb_comparator_create(void *state,
                                                void (*destructor)(void*),
                                                int (*_compare)(void*,
                                                                const char*,
                                                                size_t,
                                                                const char*,
                                                                size_t),
                                                const char *(*name)(void*));

/*
 Frees an order of keys.
 */
void leveldb_comparator_destroy(leveldb_comparator_t *comparator);

/*
 Returns a policy of the application, which is accepted but never called.
 */
leveldb_filterpolicy_t *leveldb_filterpolicy_create(void *state,
                                                    void (*destructor)(void*),
                                                    char *(*_create_filter)(void*,
                                                                            const char*const *,
                                                                            const size_t*,
                                                                            int,
                                                                            size_t*),
                                                    uint8_t (*_key_may_match)(void*,
                                                                              const char*,
                                                                              size_t,
                                                                              const char*,
                                                                              size_t),
                                                    const char *(*_name)(void*));

/*
 Returns a policy with this many bits per key.
 */
leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);

/*
 Frees a policy.
 */
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *policy);

/*
 Returns the size of a cache, in bytes.
 */
leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);

/*
 Frees the size of a cache.
 */
void leveldb_cache_destroy(leveldb_cache_t *cache);

/*
 Returns the operating system.
 */
leveldb_env_t *leveldb_create_default_env(void);

/*
 Frees the operating system.
 */
void leveldb_env_destroy(leveldb_env_t *_env);

/*
 Returns a directory for tests, to be freed with leveldb_free, and creates it: that of the variable TEST_TMPDIR,
 or one in the directory for temporary files. NULL if it cannot be created.
 */
char *leveldb_env_get_test_directory(leveldb_env_t *_env);

/* ---- Options ---- */

/*
 Returns new options with the defaults.
 */
leveldb_options_t *leveldb_options_create(void);

/*
 Frees options.
 */
void leveldb_options_destroy(leveldb_options_t *options);

/*
 Sets the order of keys. Only an order whose name is "leveldb.BytewiseComparator" can be opened.
 */
void leveldb_options_set_comparator(leveldb_options_t *options,
                                    leveldb_comparator_t *comparator);

/*
 Sets the bits per key of the filters of a database that is created. A policy of the application is accepted but
 never called: tables have the filters of this engine, which give the same answers.
 */
void leveldb_options_set_filter_policy(leveldb_options_t *options,
                                       leveldb_filterpolicy_t *policy);

/*
 Sets whether a database that does not exist is created; it is not, unless this is set.
 */
void leveldb_options_set_create_if_missing(leveldb_options_t *options, uint8_t value);

/*
 Sets whether opening a database that exists is an error.
 */
void leveldb_options_set_error_if_exists(leveldb_options_t *options, uint8_t value);

/*
 Does nothing: every read is checked.
 */
void leveldb_options_set_paranoid_checks(leveldb_options_t *_options, uint8_t _value);

/*
 Does nothing: there is one environment.
 */
void leveldb_options_set_env(leveldb_options_t *_options, leveldb_env_t *_env);

/*
 Does nothing: terrane.h has a listener for events.
 */
void leveldb_options_set_info_log(leveldb_options_t *_options, leveldb_logger_t *_logger);

/*
 Sets the size of memtables of a database that is created, at least 64 KiB.
 */
void leveldb_options_set_write_buffer_size(leveldb_options_t *options, size_t bytes);

/*
 Sets how many files of tables stay open.
 */
void leveldb_options_set_max_open_files(leveldb_options_t *options, int count);

/*
 Sets the size of the cache, at least 64 KiB. Each database has a cache of its own.
 */
void leveldb_options_set_cache(leveldb_options_t *options, leveldb_cache_t *cache);

/*
 Sets the size of blocks of a database that is created, 1 KiB to 4 MiB.
 */
void leveldb_options_set_block_size(leveldb_options_t *options, size_t bytes);

/*
 Does nothing: blocks have another structure.
 */
void leveldb_options_set_block_restart_interval(leveldb_options_t *_options, int _keys);

/*
 Sets the size of tables of a database that is created, at least 1 MiB.
 */
void leveldb_options_set_max_file_size(leveldb_options_t *options, size_t bytes);

/*
 Sets whether blocks of a database that is created are compressed. They are not, unless this is set.
 */
void leveldb_options_set_compression(leveldb_options_t *options, int compression);

/*
 Returns new options of a read.
 */
leveldb_readoptions_t *leveldb_readoptions_create(void);

/*
 Frees options of a read.
 */
void leveldb_readoptions_destroy(leveldb_readoptions_t *options);

/*
 Does nothing: every read is checked.
 */
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t *_options, uint8_t _value);

/*
 Does nothing: the engine decides which blocks stay in memory.
 */
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t *_options, uint8_t _value);

/*
 Sets the snapshot that reads see; NULL is the present state. The options keep it until they are freed or get
 another one.
 */
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t *options,
                                      const leveldb_snapshot_t *snapshot);

/*
 Returns new options for a write that survives the death of the process.
 */
leveldb_writeoptions_t *leveldb_writeoptions_create(void);

/*
 Frees options of a write.
 */
void leveldb_writeoptions_destroy(leveldb_writeoptions_t *options);

/*
 Sets whether the write survives a power failure.
 */
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t *options, uint8_t value);

/* ---- Batches ---- */

/*
 Returns an empty batch.
 */
leveldb_writebatch_t *leveldb_writebatch_create(void);

/*
 Frees a batch.
 */
void leveldb_writebatch_destroy(leveldb_writebatch_t *batch);

/*
 Removes all operations of a batch.
 */
void leveldb_writebatch_clear(leveldb_writebatch_t *batch);

/*
 Adds a put to a batch. NULL with a nonzero length adds nothing.
 */
void leveldb_writebatch_put(leveldb_writebatch_t *batch,
                            const char *key,
                            size_t klen,
                            const char *val,
                            size_t vlen);

/*
 Adds a delete to a batch.
 */
void leveldb_writebatch_delete(leveldb_writebatch_t *batch, const char *key, size_t klen);

/*
 Calls a function for each operation of a batch, in order.
 */
void leveldb_writebatch_iterate(const leveldb_writebatch_t *batch,
                                void *state,
                                void (*put)(void*, const char*, size_t, const char*, size_t),
                                void (*deleted)(void*, const char*, size_t));

/*
 Adds the operations of another batch to a batch.
 */
void leveldb_writebatch_append(leveldb_writebatch_t *destination,
                               const leveldb_writebatch_t *source);

/* ---- Databases ---- */

/*
 Opens the database in the directory `name`. Returns NULL and stores an error in `errptr` if that fails.
 */
leveldb_t *leveldb_open(const leveldb_options_t *options,
                        const char *name,
                        char **errptr);

/*
 Flushes, closes and frees a database. Its iterators and snapshots may be freed later.
 */
void leveldb_close(leveldb_t *db);

/*
 Sets the value of a key.
 */
void leveldb_put(leveldb_t *db,
                 const leveldb_writeoptions_t *options,
                 const char *key,
                 size_t keylen,
                 const char *val,
                 size_t vallen,
                 char **errptr);

/*
 Removes a key, whether it exists or not.
 */
void leveldb_delete(leveldb_t *db,
                    const leveldb_writeoptions_t *options,
                    const char *key,
                    size_t keylen,
                    char **errptr);

/*
 Applies a batch at once.
 */
void leveldb_write(leveldb_t *db,
                   const leveldb_writeoptions_t *options,
                   leveldb_writebatch_t *batch,
                   char **errptr);

/*
 Returns the value of a key and stores its length; the memory is freed with leveldb_free. NULL if the key has no
 value.
 */
char *leveldb_get(leveldb_t *db,
                  const leveldb_readoptions_t *options,
                  const char *key,
                  size_t keylen,
                  size_t *vallen,
                  char **errptr);

/*
 Returns a consistent view of a database, to be freed with leveldb_release_snapshot.
 */
const leveldb_snapshot_t *leveldb_create_snapshot(leveldb_t *db);

/*
 Frees a snapshot. Read options that refer to it keep its view.
 */
void leveldb_release_snapshot(leveldb_t *_db, const leveldb_snapshot_t *snapshot);

/*
 Returns a property as text, to be freed with leveldb_free: "leveldb.stats", "leveldb.sstables",
 "leveldb.num-files-at-levelN", "leveldb.approximate-memory-usage"; "terrane.stats" and "terrane.tree" as JSON.
 NULL for any other name.
 */
char *leveldb_property_value(leveldb_t *db,
                             const char *propname);

/*
 Stores estimates of the bytes that ranges of keys take, in memory and in files. 0 for a range that could not be
 read.
 */
void leveldb_approximate_sizes(leveldb_t *db,
                               int num_ranges,
                               const char *const *range_start_key,
                               const size_t *range_start_key_len,
                               const char *const *range_limit_key,
                               const size_t *range_limit_key_len,
                               uint64_t *sizes);

/*
 Compacts the keys from `start_key` to `limit_key`; NULL means no bound.
 */
void leveldb_compact_range(leveldb_t *db,
                           const char *start_key,
                           size_t start_key_len,
                           const char *limit_key,
                           size_t limit_key_len);

/* ---- Iterators ---- */

/*
 Returns an iterator without a position. If it cannot be created, the iterator holds the error.
 */
leveldb_iterator_t *leveldb_create_iterator(leveldb_t *db,
                                            const leveldb_readoptions_t *options);

/*
 Frees an iterator.
 */
void leveldb_iter_destroy(leveldb_iterator_t *iter);

/*
 Returns whether an iterator is on an entry.
 */
uint8_t leveldb_iter_valid(const leveldb_iterator_t *iter);

/*
 Moves to the first entry.
 */
void leveldb_iter_seek_to_first(leveldb_iterator_t *iter);

/*
 Moves to the last entry.
 */
void leveldb_iter_seek_to_last(leveldb_iterator_t *iter);

/*
 Moves to the first entry whose key is `k` or above.
 */
void leveldb_iter_seek(leveldb_iterator_t *iter, const char *k, size_t klen);

/*
 Moves to the next entry.
 */
void leveldb_iter_next(leveldb_iterator_t *iter);

/*
 Moves to the previous entry.
 */
void leveldb_iter_prev(leveldb_iterator_t *iter);

/*
 Returns the key of the entry and stores its length. It is valid until the iterator moves. NULL if there is no entry.
 */
const char *leveldb_iter_key(const leveldb_iterator_t *iter,
                             size_t *klen);

/*
 Returns the value of the entry and stores its length, as leveldb_iter_key does.
 */
const char *leveldb_iter_value(const leveldb_iterator_t *iter, size_t *vlen);

/*
 Stores the error of the last move, if it failed.
 */
void leveldb_iter_get_error(const leveldb_iterator_t *iter, char **errptr);

/* ---- Databases that are not open ---- */

/*
 Removes the database in the directory `name`, and the directory if nothing else is in it. A missing database is
 not an error.
 */
void leveldb_destroy_db(const leveldb_options_t *_options,
                        const char *name,
                        char **errptr);

/*
 Repairs the database in the directory `name`. A sound one stays as it is. A damaged one is replaced by what can be
 read of it, and is kept in a directory next to it whose name ends in ".damaged".
 */
void leveldb_repair_db(const leveldb_options_t *_options,
                       const char *name,
                       char **errptr);

#ifdef __cplusplus
}
#endif

#endif
