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

/*
 The version of the ABI that this header describes; see terrane_abi_version.
 */
#define TERRANE_ABI_VERSION 1

/*
 Open the database, or create it: the default.
 */
#define TERRANE_CREATE_IF_MISSING 0

/*
 Open the database; fail if it does not exist.
 */
#define TERRANE_MUST_EXIST 1

/*
 Create the database; fail if it exists.
 */
#define TERRANE_MUST_BE_NEW 2

/*
 The transaction happens as if no other write happened meanwhile: it conflicts with every write since its
 beginning to a key that it read, or to a range in which it searched.
 */
#define TERRANE_SERIALIZABLE 0

/*
 The transaction reads from a snapshot, and conflicts only with writes to keys that it writes itself.
 */
#define TERRANE_SNAPSHOT_ISOLATION 1

/*
 A key was given a value.
 */
#define TERRANE_CHANGE_PUT 0

/*
 A key was deleted.
 */
#define TERRANE_CHANGE_DELETE 1

/*
 The keys from the key of the change to the exclusive end, its value, were deleted; without an end if the value is
 NULL.
 */
#define TERRANE_CHANGE_DELETE_RANGE 2

/*
 The value of a key was combined with an operand, the value of the change.
 */
#define TERRANE_CHANGE_MERGE 3

/*
 Writes that are not in the log: an ingest, or writes with the durability "none". A follower has to begin with a
 copy. The change has neither a keyspace nor a key.
 */
#define TERRANE_CHANGE_NOT_LOGGED 4

/*
 Writes to any keyspaces of a database that are applied at once. Later ones take precedence over earlier ones
 on the same key. One thread at a time may change a batch.
 */
typedef struct terrane_batch terrane_batch;

/*
 The writes of a database after a position, in the order in which they were committed, by batches that were
 applied at once. One thread at a time may use it.
 */
typedef struct terrane_changes terrane_changes;

/*
 An open database. Any thread may use it.

 terrane_close closes it and keeps the handle: later calls on the database and on its keyspaces, snapshots and
 transactions return TERRANE_CLOSED, and so may calls of other threads that run at that moment. Only
 terrane_free invalidates the handle. Keyspaces, snapshots, iterators, values and transactions have handles of
 their own, which stay valid until they are freed, before or after that of the database. Iterators that have
 a position go on forward after the database was closed, and values stay readable.
 */
typedef struct terrane_db terrane_db;

/*
 Why a call failed: a code and a message. An error belongs to who received it, and may be used from any
 thread.
 */
typedef struct terrane_error terrane_error;

/*
 Sorted entries that are written to tables and become visible at once, with terrane_ingest_commit. Until then, and
 after a crash before it, there is no trace of them. One thread at a time may use it.
 */
typedef struct terrane_ingest terrane_ingest;

/*
 An iterator over the keys and values of a range, in order, from one moment. It moves in both directions; a
 change of direction costs a seek. One thread at a time may use it.

 A new iterator has no position: terrane_iter_next moves to the first entry, and terrane_iter_prev to the last.
 The functions that move it return true if it is then on an entry; false at the end, or after an error, which
 they store. After an error it is on no entry until the next seek. It keeps the memory and the files that it
 reads.
 */
typedef struct terrane_iter terrane_iter;

/*
 A keyspace of a database: an ordered map from keys to values. Any thread may use it. Keys are up to 64 KiB
 long, values up to 1 GiB; both may be empty and have any bytes. Keys are ordered as by memcmp.
 */
typedef struct terrane_keyspace terrane_keyspace;

/*
 A list of names.
 */
typedef struct terrane_names terrane_names;

/*
 Options for opening databases. One thread at a time may change them.
 */
typedef struct terrane_options terrane_options;

/*
 A consistent view of all keyspaces of a database. Any thread may use it. Compactions keep the versions that
 it sees, so one that lives long costs space.
 */
typedef struct terrane_snapshot terrane_snapshot;

/*
 Reads and writes that happen as one, or not at all. Reads return the state when the transaction began, with
 its own writes. Nobody else sees the writes before terrane_transaction_commit. Any thread may use it; calls
 wait for each other.
 */
typedef struct terrane_transaction terrane_transaction;

/*
 A value that was read. It shares its bytes with the memtable or the block that has them, and keeps their
 memory, so it is freed soon, or copied. Any thread may use it, also after the database was closed or freed.
 */
typedef struct terrane_value terrane_value;

/*
 Options of a write. Once they are set, any number of threads may write with them.
 */
typedef struct terrane_write_options terrane_write_options;

/*
 The result of a call: TERRANE_OK, or what the caller should do about the error. Later versions may return
 other codes; treat a code that you do not know like TERRANE_INTERNAL.
 */
typedef int32_t terrane_code;

/*
 Receives an event as a JSON object of `len` bytes, which also end with NUL, and are valid during the call:
 {"number":7,"at_micros":1700000000000000,"event":"flush-ended","keyspace":"default",...}.
 */
typedef void (*terrane_event_listener)(void *context, const char *json, size_t len);

/*
 Frees the context of a listener.
 */
typedef void (*terrane_context_free)(void *context);

/*
 The call succeeded.
 */
#define TERRANE_OK 0

/*
 Fix the call: an argument, an option or the directory is invalid.
 */
#define TERRANE_INVALID 1

/*
 Restore from a backup, or repair: the contents of a file are damaged.
 */
#define TERRANE_CORRUPTION 2

/*
 Use a newer version of this library: this one cannot read the file format.
 */
#define TERRANE_UNSUPPORTED 3

/*
 Retry, perhaps later: the operating system refused an operation. Includes a full disk.
 */
#define TERRANE_IO 4

/*
 Close the other user of the database, or open it read-only.
 */
#define TERRANE_LOCKED 5

/*
 Try again, or read a checkpoint: a writer changed the database during the call.
 */
#define TERRANE_BUSY 6

/*
 Run the transaction again: another write changed what it depends on.
 */
#define TERRANE_CONFLICT 7

/*
 Open the database again: it was closed.
 */
#define TERRANE_CLOSED 8

/*
 Close the database and open it again: a failed sync, or another process that took the directory, may have
 lost writes.
 */
#define TERRANE_POISONED 9

/*
 Report a bug in this library.
 */
#define TERRANE_INTERNAL 10

/*
 The operation was cancelled.
 */
#define TERRANE_CANCELLED 11

/*
 Report a bug in this library: it panicked. The database may be used further.
 */
#define TERRANE_PANIC 12

/* ---- Versions ---- */

/*
 Returns the version of the library, such as "0.1.0". The string is constant.
 */
const char *terrane_version(void);

/*
 Returns the version of the ABI of the library. A program that was compiled with TERRANE_ABI_VERSION n runs
 with every library that returns n. Functions and codes are added without a new version; none is removed,
 and none changes its parameters.
 */
uint32_t terrane_abi_version(void);

/* ---- Errors ---- */

/*
 Returns the code of an error; TERRANE_OK for NULL.
 */
terrane_code terrane_error_code(const terrane_error *error);

/*
 Returns the message of an error: one sentence in UTF-8 that names the cause and what to do. It belongs to
 the error. "no error" for NULL.
 */
const char *terrane_error_message(const terrane_error *error);

/*
 Frees an error; NULL is ignored.
 */
void terrane_error_free(terrane_error *error);

/*
 Returns the name of a code, such as "conflict"; "unknown" for any other number. The string is constant.
 */
const char *terrane_code_name(terrane_code code);

/* ---- Texts and names ---- */

/*
 Frees a string that a function of this library returned as `char *`; NULL is ignored.
 */
void terrane_string_free(char *text);

/*
 Returns the number of names; 0 for NULL.
 */
size_t terrane_names_len(const terrane_names *names);

/*
 Returns a name, counted from 0, which belongs to the list; NULL if there are no more.
 */
const char *terrane_names_get(const terrane_names *names, size_t index);

/*
 Frees a list of names; NULL is ignored.
 */
void terrane_names_free(terrane_names *names);

/* ---- Options ---- */

/*
 Returns new options with the defaults, to be freed with terrane_options_free.
 */
terrane_options *terrane_options_new(void);

/*
 Frees options; NULL is ignored. Databases that were opened with them do not need them.
 */
void terrane_options_free(terrane_options *options);

/*
 Sets an option by its name and the text of its value, for example "memory_budget" to "256MiB", "design" to
 "tiering T=4", or "durability" to "sync". terrane_options_reference lists all. Opening an existing database
 with another "design" is an error; see terrane_options_set_if_new.
 */
terrane_code terrane_options_set(terrane_options *options,
                                 const char *name,
                                 const char *value,
                                 terrane_error **error);

/*
 Sets an option as terrane_options_set does, for the case that the opening creates the database. An existing
 database keeps the value that is stored with it.
 */
terrane_code terrane_options_set_if_new(terrane_options *options,
                                        const char *name,
                                        const char *value,
                                        terrane_error **error);

/*
 Sets the design of the default keyspace, and changes the design of an existing database that differs.
 */
terrane_code terrane_options_change_design(terrane_options *options,
                                           const char *design,
                                           terrane_error **error);

/*
 Sets whether the database must exist: TERRANE_CREATE_IF_MISSING, TERRANE_MUST_EXIST or
 TERRANE_MUST_BE_NEW.
 */
terrane_code terrane_options_set_open_mode(terrane_options *options,
                                           int32_t mode,
                                           terrane_error **error);

/*
 Allows creating a database in a directory that has other files, which is refused otherwise.
 */
terrane_code terrane_options_among_other_files(terrane_options *options, terrane_error **error);

/*
 Opens files that a loss of power may have left, although the machine has run without interruption since:
 a snapshot of a volume, taken while the database was in use. The option is not stored.
 */
terrane_code terrane_options_after_power_loss(terrane_options *options,
                                              terrane_error **error);

/*
 Opens databases also if their keyspaces have merge operators or compaction filters of an application in
 Rust. Their operands are then stored but not combined, and reading a key that has some fails.
 */
terrane_code terrane_options_unknown_functions(terrane_options *options,
                                               terrane_error **error);

/*
 Sets a listener for the events of the database: flushes and compactions with their reasons, changes of
 designs, stalls, background errors. NULL removes it.

 The thread that emits an event calls the listener and waits for it: mostly a background thread of the
 database, and sometimes one of the caller. Several threads may call it concurrently, so `context` must be
 usable from any thread. It must not block. It may read and write; terrane_flush, terrane_close and other
 calls that wait for background work fail in it. It must not unwind.

 `free_context`, unless it is NULL, receives `context` once nothing can call the listener any more: after the
 options were freed and the databases that were opened with them were closed and all their handles freed. If
 this function fails, the caller keeps `context`.
 */
terrane_code terrane_options_on_event(terrane_options *options,
                                      terrane_event_listener listener,
                                      void *context,
                                      terrane_context_free free_context,
                                      terrane_error **error);

/*
 Stores the reference of all options as a JSON array of objects: "name", "about", "default", "accepted",
 "trade_off", "takes_effect". The string is freed with terrane_string_free.
 */
terrane_code terrane_options_reference(char **reference,
                                       terrane_error **error);

/* ---- Databases ---- */

/*
 Opens the database in the directory `dir`, or creates one. `options` may be NULL. The database is closed with
 terrane_close and freed with terrane_free. Only one process at a time may open a database for writing, and
 only once.

 In a child of fork, the handles of the parent do not work: functions that can fail return TERRANE_CLOSED at
 once, and freeing a handle does not touch the database. The child can open the database again once the parent has
 closed it or has ended; a daemon should open it after its last fork.
 */
terrane_code terrane_open(const char *dir,
                          const terrane_options *options,
                          terrane_db **db,
                          terrane_error **error);

/*
 Opens the database in the directory `dir` for reading only, even while another process writes it. Reads see
 the state at one moment of this call. `options` may be NULL. The database must exist.
 */
terrane_code terrane_open_read_only(const char *dir,
                                    const terrane_options *options,
                                    terrane_db **db,
                                    terrane_error **error);

/*
 Flushes all memtables and closes the database for all handles; `db` stays valid and has to be freed. The
 directory may be opened again at once. Even if the call fails the database is closed, and each write has the
 durability that it was written with, unless a sync failed. Any thread may call this while others use the
 database. Closing a closed database succeeds.
 */
terrane_code terrane_close(const terrane_db *db,
                           terrane_error **error);

/*
 Frees the handle of a database; NULL is ignored. No other thread may use the handle or its default keyspace
 at that time or later. Without terrane_close before, the database is closed without a flush once its last
 handle is freed, keyspaces, snapshots, iterators and transactions included; the next opening then replays
 the log, and writes with the durability "none" that were not flushed are lost.
 */
void terrane_free(terrane_db *db);

/*
 Returns the default keyspace, which belongs to the database and is not freed: it is valid until terrane_free.
 NULL for NULL.
 */
const terrane_keyspace *terrane_default_keyspace(const terrane_db *db);

/*
 Flushes the memtables of all keyspaces, and returns when that is done.
 */
terrane_code terrane_flush(const terrane_db *db, terrane_error **error);

/*
 Makes all writes so far survive a power failure, except those with the durability "none".
 */
terrane_code terrane_sync(const terrane_db *db, terrane_error **error);

/*
 Returns once no flush is pending and no tree needs a compaction.
 */
terrane_code terrane_wait_for_compactions(const terrane_db *db, terrane_error **error);

/*
 Creates a copy of the database in the directory `dir`, which must be empty or not exist. Reads and writes
 continue meanwhile. The copy shares tables by hard links if the file system has them.
 */
terrane_code terrane_checkpoint(const terrane_db *db,
                                const char *dir,
                                terrane_error **error);

/*
 Stores counters since the database was opened, and current sizes, as a JSON object with a number for each
 metric. The string is freed with terrane_string_free.
 */
terrane_code terrane_stats(const terrane_db *db,
                           char **stats,
                           terrane_error **error);

/* ---- Keyspaces ---- */

/*
 Opens the keyspace `name`, and creates it if it does not exist. `design` is the design of a keyspace that is
 created; an existing one keeps its own. NULL is the design of the default keyspace. The handle is freed with
 terrane_keyspace_free.
 */
terrane_code terrane_keyspace_open(const terrane_db *db,
                                   const char *name,
                                   const char *design,
                                   terrane_keyspace **keyspace,
                                   terrane_error **error);

/*
 Frees the handle of a keyspace, which stays in the database; NULL is ignored. Not for the result of
 terrane_default_keyspace.
 */
void terrane_keyspace_free(terrane_keyspace *keyspace);

/*
 Stores the name of a keyspace, to be freed with terrane_string_free.
 */
terrane_code terrane_keyspace_name(const terrane_keyspace *keyspace,
                                   char **name,
                                   terrane_error **error);

/*
 Stores the names of all keyspaces, to be freed with terrane_names_free.
 */
terrane_code terrane_keyspace_names(const terrane_db *db,
                                    terrane_names **names,
                                    terrane_error **error);

/*
 Removes the keyspace `name` and its contents, and stores whether it existed. Its handles stay valid and find
 no keys.
 */
terrane_code terrane_keyspace_drop(const terrane_db *db,
                                   const char *name,
                                   bool *existed,
                                   terrane_error **error);

/*
 Renames the keyspace `name`, and stores whether it existed. Its handles stay valid.
 */
terrane_code terrane_keyspace_rename(const terrane_db *db,
                                     const char *name,
                                     const char *new_name,
                                     bool *existed,
                                     terrane_error **error);

/*
 Lets the values of later puts expire after this time, unless they have a time of their own; 0 means no expiry.
 The setting is stored with the keyspace.
 */
terrane_code terrane_keyspace_set_ttl(const terrane_keyspace *keyspace,
                                      uint64_t ttl_micros,
                                      terrane_error **error);

/*
 Gives the keyspace a merge operator, which never changes: "counter_add" (int64_t in little-endian order),
 "append", "max", "min" (in the order of bytes) or "set_union".
 */
terrane_code terrane_keyspace_set_merge_operator(const terrane_keyspace *keyspace,
                                                 const char *name,
                                                 terrane_error **error);

/*
 Stores the design of a keyspace as text, to be freed with terrane_string_free.
 */
terrane_code terrane_keyspace_design(const terrane_keyspace *keyspace,
                                     char **design,
                                     terrane_error **error);

/*
 Changes the design of a keyspace, for example to "tiering T=4; filter=5". The next compactions follow it;
 reads and writes continue meanwhile.
 */
terrane_code terrane_keyspace_set_design(const terrane_keyspace *keyspace,
                                         const char *design,
                                         terrane_error **error);

/*
 Stores the current tree of a keyspace as a JSON object: its design, levels, runs and tables. The string is freed
 with terrane_string_free.
 */
terrane_code terrane_keyspace_tree(const terrane_keyspace *keyspace,
                                   char **tree,
                                   terrane_error **error);

/*
 Flushes the memtables of a keyspace, and returns when that is done.
 */
terrane_code terrane_keyspace_flush(const terrane_keyspace *keyspace, terrane_error **error);

/*
 Compacts the keys from `start` to the exclusive `end`, and returns when that is done. NULL for `start` is the
 first key, NULL for `end` is no end.
 */
terrane_code terrane_compact_range(const terrane_keyspace *keyspace,
                                   const void *start,
                                   size_t start_len,
                                   const void *end,
                                   size_t end_len,
                                   terrane_error **error);

/*
 Estimates the bytes that the keys from `start` to the exclusive `end` take in memory and in files, and their
 number; either result may be NULL. NULL for `start` is the first key, NULL for `end` is no end.
 */
terrane_code terrane_approximate_size(const terrane_keyspace *keyspace,
                                      const void *start,
                                      size_t start_len,
                                      const void *end,
                                      size_t end_len,
                                      uint64_t *bytes_taken,
                                      uint64_t *keys,
                                      terrane_error **error);

/* ---- Options of writes ---- */

/*
 Returns options with the durability of the database, to be freed with terrane_write_options_free.
 */
terrane_write_options *terrane_write_options_new(void);

/*
 Frees options of a write; NULL is ignored.
 */
void terrane_write_options_free(terrane_write_options *options);

/*
 Sets which failures the write survives once the call returns: "none"; "process", the death of the process;
 "interval(100ms)", a power failure after at most this time as well; or "sync", a power failure.
 */
terrane_code terrane_write_options_set_durability(terrane_write_options *options,
                                                  const char *durability,
                                                  terrane_error **error);

/*
 Lets the value expire after this time, counted from the write; UINT64_MAX means no expiry, also in a keyspace
 with a time to live. Only for terrane_put.
 */
terrane_code terrane_write_options_set_ttl(terrane_write_options *options,
                                           uint64_t ttl_micros,
                                           terrane_error **error);

/* ---- Writes ---- */

/*
 Sets the value of a key. `options` may be NULL. Returns once all readers see the value and it has the
 durability that the options ask for.
 */
terrane_code terrane_put(const terrane_keyspace *keyspace,
                         const terrane_write_options *options,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len,
                         terrane_error **error);

/*
 Removes a key, whether it exists or not. `options` may be NULL.
 */
terrane_code terrane_delete(const terrane_keyspace *keyspace,
                            const terrane_write_options *options,
                            const void *key,
                            size_t key_len,
                            terrane_error **error);

/*
 Removes the keys from `start` to the exclusive `end`, at the cost of one write. NULL for `start` is the first
 key, NULL for `end` is no end. A batch can do so with another durability than that of the database.
 */
terrane_code terrane_delete_range(const terrane_keyspace *keyspace,
                                  const void *start,
                                  size_t start_len,
                                  const void *end,
                                  size_t end_len,
                                  terrane_error **error);

/*
 Combines the value of a key with an operand by the merge operator of the keyspace, without reading it; see
 terrane_keyspace_set_merge_operator. `options` may be NULL. An operand that the operator cannot combine with
 the value is accepted, and makes reads of the key return TERRANE_INVALID until it is put or deleted.
 */
terrane_code terrane_merge(const terrane_keyspace *keyspace,
                           const terrane_write_options *options,
                           const void *key,
                           size_t key_len,
                           const void *operand,
                           size_t operand_len,
                           terrane_error **error);

/*
 Sets the value of a key to `new_value` if it is `expected`, and stores whether it was. NULL for `expected` is
 a key without a value, NULL for `new_value` deletes the key; a pointer that is not NULL with the length 0 is an
 empty value.
 */
terrane_code terrane_compare_and_swap(const terrane_keyspace *keyspace,
                                      const void *key,
                                      size_t key_len,
                                      const void *expected,
                                      size_t expected_len,
                                      const void *new_value,
                                      size_t new_value_len,
                                      bool *swapped,
                                      terrane_error **error);

/* ---- Batches ---- */

/*
 Returns an empty batch, to be freed with terrane_batch_free.
 */
terrane_batch *terrane_batch_new(void);

/*
 Frees a batch; NULL is ignored.
 */
void terrane_batch_free(terrane_batch *batch);

/*
 Removes all operations of a batch and keeps its memory; NULL is ignored.
 */
void terrane_batch_clear(terrane_batch *batch);

/*
 Returns the number of operations of a batch; 0 for NULL.
 */
size_t terrane_batch_len(const terrane_batch *batch);

/*
 Adds a put to a batch. NULL for `keyspace` is the default keyspace, here and below. Keys and values that are
 too long, and keyspaces of different databases, are refused by terrane_write.
 */
terrane_code terrane_batch_put(terrane_batch *batch,
                               const terrane_keyspace *keyspace,
                               const void *key,
                               size_t key_len,
                               const void *value,
                               size_t value_len,
                               terrane_error **error);

/*
 Adds a put to a batch whose value expires after a time, counted from the write; UINT64_MAX means no expiry.
 */
terrane_code terrane_batch_put_with_ttl(terrane_batch *batch,
                                        const terrane_keyspace *keyspace,
                                        const void *key,
                                        size_t key_len,
                                        const void *value,
                                        size_t value_len,
                                        uint64_t ttl_micros,
                                        terrane_error **error);

/*
 Adds the removal of a key to a batch.
 */
terrane_code terrane_batch_delete(terrane_batch *batch,
                                  const terrane_keyspace *keyspace,
                                  const void *key,
                                  size_t key_len,
                                  terrane_error **error);

/*
 Adds the removal of the keys from `start` to the exclusive `end` to a batch. NULL for `start` is the first
 key, NULL for `end` is no end.
 */
terrane_code terrane_batch_delete_range(terrane_batch *batch,
                                        const terrane_keyspace *keyspace,
                                        const void *start,
                                        size_t start_len,
                                        const void *end,
                                        size_t end_len,
                                        terrane_error **error);

/*
 Adds a merge to a batch; see terrane_merge.
 */
terrane_code terrane_batch_merge(terrane_batch *batch,
                                 const terrane_keyspace *keyspace,
                                 const void *key,
                                 size_t key_len,
                                 const void *operand,
                                 size_t operand_len,
                                 terrane_error **error);

/*
 Applies a batch at once. `options` may be NULL and has no time to live. The batch stays as it is, and may be
 applied again, or changed and applied.
 */
terrane_code terrane_write(const terrane_db *db,
                           const terrane_write_options *options,
                           const terrane_batch *batch,
                           terrane_error **error);

/* ---- Values ---- */

/*
 Returns the bytes of a value and stores their number. They belong to the value, and do not end with NUL. An
 empty value has a pointer that is not NULL; NULL has NULL and the length 0.
 */
const char *terrane_value_data(const terrane_value *value,
                               size_t *len);

/*
 Frees a value; NULL is ignored.
 */
void terrane_value_free(terrane_value *value);

/* ---- Lookups ---- */

/*
 Stores the value of a key, to be freed with terrane_value_free; NULL if the key has none.
 */
terrane_code terrane_get(const terrane_keyspace *keyspace,
                         const void *key,
                         size_t key_len,
                         terrane_value **value,
                         terrane_error **error);

/*
 Copies the value of a key to `buffer`, and stores whether there is one and its length. A value longer than
 `capacity` is cut: call again with a larger buffer, or use terrane_get. Faster than terrane_get for short
 values, because nothing is allocated.
 */
terrane_code terrane_get_into(const terrane_keyspace *keyspace,
                              const void *key,
                              size_t key_len,
                              void *buffer,
                              size_t capacity,
                              size_t *len,
                              bool *found,
                              terrane_error **error);

/*
 Stores whether a key has a value, without reading a value that is stored apart from its key.
 */
terrane_code terrane_contains(const terrane_keyspace *keyspace,
                              const void *key,
                              size_t key_len,
                              bool *found,
                              terrane_error **error);

/*
 Stores the values of `count` keys, from one moment, in the array `found` of `count` elements: each a value to
 be freed with terrane_value_free, or NULL. Cheaper than as many calls of terrane_get. If the call fails, all
 elements are NULL.
 */
terrane_code terrane_multi_get(const terrane_keyspace *keyspace,
                               size_t count,
                               const void *const *key_data,
                               const size_t *key_lens,
                               terrane_value **found,
                               terrane_error **error);

/* ---- Snapshots ---- */

/*
 Stores a view of the present state, to be freed with terrane_snapshot_free.
 */
terrane_code terrane_snapshot_new(const terrane_db *db,
                                  terrane_snapshot **snapshot,
                                  terrane_error **error);

/*
 Frees a snapshot; NULL is ignored. Iterators over it go on.
 */
void terrane_snapshot_free(terrane_snapshot *snapshot);

/*
 Returns the sequence number of the newest write that a snapshot sees; 0 for NULL.
 */
uint64_t terrane_snapshot_sequence_number(const terrane_snapshot *snapshot);

/*
 Stores the value that a key has in a snapshot, to be freed with terrane_value_free; NULL if it has none. NULL
 for `keyspace` is the default keyspace.
 */
terrane_code terrane_snapshot_get(const terrane_snapshot *snapshot,
                                  const terrane_keyspace *keyspace,
                                  const void *key,
                                  size_t key_len,
                                  terrane_value **value,
                                  terrane_error **error);

/*
 Stores the values that keys have in a snapshot, as terrane_multi_get does. NULL for `keyspace` is the default
 keyspace.
 */
terrane_code terrane_snapshot_multi_get(const terrane_snapshot *snapshot,
                                        const terrane_keyspace *keyspace,
                                        size_t count,
                                        const void *const *key_data,
                                        const size_t *key_lens,
                                        terrane_value **found,
                                        terrane_error **error);

/* ---- Transactions ---- */

/*
 Begins a transaction with an isolation, TERRANE_SERIALIZABLE or TERRANE_SNAPSHOT_ISOLATION, and the durability of
 `durability`, or that of the database for NULL. It is freed with terrane_transaction_free, also after a commit.
 */
terrane_code terrane_transaction_begin(const terrane_db *db,
                                       int32_t isolation,
                                       const terrane_write_options *durability,
                                       terrane_transaction **transaction,
                                       terrane_error **error);

/*
 Frees a transaction, and rolls it back unless it was committed; NULL is ignored.
 */
void terrane_transaction_free(terrane_transaction *transaction);

/*
 Stores the value of a key, to be freed with terrane_value_free; NULL if it has none. NULL for `keyspace` is the
 default keyspace, here and below.
 */
terrane_code terrane_transaction_get(const terrane_transaction *transaction,
                                     const terrane_keyspace *keyspace,
                                     const void *key,
                                     size_t key_len,
                                     terrane_value **value,
                                     terrane_error **error);

/*
 Sets the value of a key at the commit.
 */
terrane_code terrane_transaction_put(const terrane_transaction *transaction,
                                     const terrane_keyspace *keyspace,
                                     const void *key,
                                     size_t key_len,
                                     const void *value,
                                     size_t value_len,
                                     terrane_error **error);

/*
 Sets the value of a key at the commit. It expires after a time that begins then; UINT64_MAX means no expiry.
 */
terrane_code terrane_transaction_put_with_ttl(const terrane_transaction *transaction,
                                              const terrane_keyspace *keyspace,
                                              const void *key,
                                              size_t key_len,
                                              const void *value,
                                              size_t value_len,
                                              uint64_t ttl_micros,
                                              terrane_error **error);

/*
 Removes a key at the commit.
 */
terrane_code terrane_transaction_delete(const terrane_transaction *transaction,
                                        const terrane_keyspace *keyspace,
                                        const void *key,
                                        size_t key_len,
                                        terrane_error **error);

/*
 Removes the keys from `start` to the exclusive `end` at the commit. NULL for `start` is the first key, NULL for
 `end` is no end.
 */
terrane_code terrane_transaction_delete_range(const terrane_transaction *transaction,
                                              const terrane_keyspace *keyspace,
                                              const void *start,
                                              size_t start_len,
                                              const void *end,
                                              size_t end_len,
                                              terrane_error **error);

/*
 Combines the value of a key with an operand at the commit; see terrane_merge. In a transaction this reads the
 key.
 */
terrane_code terrane_transaction_merge(const terrane_transaction *transaction,
                                       const terrane_keyspace *keyspace,
                                       const void *key,
                                       size_t key_len,
                                       const void *operand,
                                       size_t operand_len,
                                       terrane_error **error);

/*
 Marks the present writes of a transaction, for terrane_transaction_roll_back_to_savepoint. Savepoints nest.
 */
terrane_code terrane_transaction_savepoint(const terrane_transaction *transaction,
                                           terrane_error **error);

/*
 Undoes the writes of a transaction since its last savepoint, and removes the savepoint.
 */
terrane_code terrane_transaction_roll_back_to_savepoint(const terrane_transaction *transaction,
                                                        terrane_error **error);

/*
 Performs the writes of a transaction, and ends it whether it succeeds or not. TERRANE_CONFLICT if another write
 changed what it depends on: nothing was written, and the whole transaction has to be run again.
 */
terrane_code terrane_transaction_commit(const terrane_transaction *transaction,
                                        terrane_error **error);

/*
 Discards the writes of a transaction and ends it.
 */
terrane_code terrane_transaction_roll_back(const terrane_transaction *transaction,
                                           terrane_error **error);

/* ---- Iterators ---- */

/*
 Stores an iterator over the keys from `start` to the exclusive `end`, to be freed with terrane_iter_free. It
 reads `snapshot`, or the present state for NULL. NULL for `start` is the first key, NULL for `end` is no end.
 */
terrane_code terrane_iter_range(const terrane_keyspace *keyspace,
                                const terrane_snapshot *snapshot,
                                const void *start,
                                size_t start_len,
                                const void *end,
                                size_t end_len,
                                terrane_iter **iter,
                                terrane_error **error);

/*
 Stores an iterator over the keys that begin with `prefix`, to be freed with terrane_iter_free. It reads
 `snapshot`, or the present state for NULL.
 */
terrane_code terrane_iter_prefix(const terrane_keyspace *keyspace,
                                 const terrane_snapshot *snapshot,
                                 const void *prefix,
                                 size_t prefix_len,
                                 terrane_iter **iter,
                                 terrane_error **error);

/*
 Stores an iterator over the keys from `start` to the exclusive `end` as a transaction sees them, to be freed with
 terrane_iter_free. NULL for `start` is the first key, NULL for `end` is no end, NULL for `keyspace` the default
 keyspace.

 It reads ahead, at most as many entries as it returned and 64, on which the transaction then depends. It may miss
 writes of the transaction that follow its last seek. After the end of the transaction its moves return
 TERRANE_INVALID.
 */
terrane_code terrane_transaction_iter_range(const terrane_transaction *transaction,
                                            const terrane_keyspace *keyspace,
                                            const void *start,
                                            size_t start_len,
                                            const void *end,
                                            size_t end_len,
                                            terrane_iter **iter,
                                            terrane_error **error);

/*
 Stores an iterator over the keys that begin with `prefix` as a transaction sees them; see
 terrane_transaction_iter_range.
 */
terrane_code terrane_transaction_iter_prefix(const terrane_transaction *transaction,
                                             const terrane_keyspace *keyspace,
                                             const void *prefix,
                                             size_t prefix_len,
                                             terrane_iter **iter,
                                             terrane_error **error);

/*
 Frees an iterator; NULL is ignored.
 */
void terrane_iter_free(terrane_iter *iter);

/*
 Leaves out the values from now on, which then are empty, and forgets the position. Such an iterator reads no
 value that is stored apart from its key.
 */
terrane_code terrane_iter_leave_out_values(terrane_iter *iter,
                                           terrane_error **error);

/*
 Moves to the next entry, or to the first one if there is no position.
 */
bool terrane_iter_next(terrane_iter *iter, terrane_error **error);

/*
 Moves to the previous entry, or to the last one if there is no position.
 */
bool terrane_iter_prev(terrane_iter *iter, terrane_error **error);

/*
 Moves to the first entry.
 */
bool terrane_iter_seek_to_first(terrane_iter *iter, terrane_error **error);

/*
 Moves to the last entry.
 */
bool terrane_iter_seek_to_last(terrane_iter *iter, terrane_error **error);

/*
 Moves to the first entry whose key is `key` or above.
 */
bool terrane_iter_seek(terrane_iter *iter, const void *key, size_t key_len, terrane_error **error);

/*
 Moves to the last entry whose key is `key` or below.
 */
bool terrane_iter_seek_for_prev(terrane_iter *iter,
                                const void *key,
                                size_t key_len,
                                terrane_error **error);

/*
 Returns whether the iterator is on an entry; false for NULL.
 */
bool terrane_iter_valid(const terrane_iter *iter);

/*
 Returns the key of the entry and stores its length. The bytes are valid until the iterator moves or is freed, and
 do not end with NUL. NULL and the length 0 if there is no entry.
 */
const char *terrane_iter_key(const terrane_iter *iter,
                             size_t *len);

/*
 Returns the value of the entry and stores its length, as terrane_iter_key does.
 */
const char *terrane_iter_value(const terrane_iter *iter, size_t *len);

/* ---- Ingests ---- */

/*
 Begins an ingest into a keyspace. It is freed with terrane_ingest_free, also after a commit.
 */
terrane_code terrane_ingest_begin(const terrane_keyspace *keyspace,
                                  terrane_ingest **ingest,
                                  terrane_error **error);

/*
 Frees an ingest, and discards its entries unless it was committed; NULL is ignored.
 */
void terrane_ingest_free(terrane_ingest *ingest);

/*
 Adds an entry, whose key must be above the one before. After TERRANE_INVALID the ingest can go on without the
 entry.
 */
terrane_code terrane_ingest_put(terrane_ingest *ingest,
                                const void *key,
                                size_t key_len,
                                const void *value,
                                size_t value_len,
                                terrane_error **error);

/*
 Adds all entries to the keyspace, ends the ingest whether that succeeds or not, and stores the number of entries.
 Returns once they are durable and visible.
 */
terrane_code terrane_ingest_commit(terrane_ingest *ingest,
                                   uint64_t *entries,
                                   terrane_error **error);

/* ---- Changes ---- */

/*
 Stores a feed of the writes after the position `since`, to be freed with terrane_changes_free. 0 is the beginning.
 The database has to keep them: the option "keep_changes". With `include_unsynced` the feed also has writes that a
 power failure may still undo.
 */
terrane_code terrane_changes_new(const terrane_db *db,
                                 uint64_t since,
                                 bool include_unsynced,
                                 terrane_changes **changes,
                                 terrane_error **error);

/*
 Frees a feed; NULL is ignored.
 */
void terrane_changes_free(terrane_changes *changes);

/*
 Moves to the next batch, and stores the number of its changes: 0 if there is no further batch now. It does not
 wait; call it again after terrane_changes_wait.
 */
terrane_code terrane_changes_next(terrane_changes *changes,
                                  size_t *count,
                                  terrane_error **error);

/*
 Waits until there is another write, but at most for a time, and stores whether there is one.
 */
terrane_code terrane_changes_wait(const terrane_changes *changes,
                                  uint64_t timeout_micros,
                                  bool *found,
                                  terrane_error **error);

/*
 Returns the position after the present batch, with which terrane_changes_new continues; 0 for NULL.
 */
uint64_t terrane_changes_position(const terrane_changes *changes);

/*
 Stores the parts of a change of the present batch, counted from 0: its kind, TERRANE_CHANGE_PUT and so on; the name
 of its keyspace, NULL if it has since been dropped; its key and its value, NULL if it has none; and when the value
 expires, in microseconds since 1970, UINT64_MAX for never. Each result may be NULL. Strings and bytes belong to the
 feed until it moves or is freed.
 */
terrane_code terrane_changes_get(const terrane_changes *changes,
                                 size_t index,
                                 int32_t *kind,
                                 const char **keyspace,
                                 const char **key,
                                 size_t *key_len,
                                 const char **value,
                                 size_t *value_len,
                                 uint64_t *expires_at_micros,
                                 terrane_error **error);

/* ---- Databases that are not open ---- */

/*
 Reads every block of the database in `dir`, which may be open, and stores what it found as a JSON object with the
 array "problems", which is empty for a sound database. The string is freed with terrane_string_free.
 */
terrane_code terrane_verify(const char *dir,
                            char **report,
                            terrane_error **error);

/*
 Salvages the readable part of the database in `dir`, which must not be open for writing, into a new database in
 `target`, and stores what it read and lost as a JSON object. The string is freed with terrane_string_free.
 */
terrane_code terrane_repair(const char *dir,
                            const char *target,
                            char **report,
                            terrane_error **error);

/*
 Removes the database in `dir`, which must not be open: its files, its log, and the directory if nothing else is in
 it. Fails with TERRANE_INVALID if there is no database.
 */
terrane_code terrane_destroy(const char *dir,
                             terrane_error **error);

#ifdef __cplusplus
}
#endif

#endif
