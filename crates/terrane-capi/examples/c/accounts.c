/*
 * Moves money between accounts from several threads, each transfer in a transaction that is run again if it
 * conflicts. The sum stays the same.
 *
 *     cc accounts.c $(pkg-config --cflags --libs terrane) -pthread -o accounts && ./accounts /tmp/bank
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <terrane.h>

enum { ACCOUNTS = 8, THREADS = 4, TRANSFERS = 200, DEPOSIT = 100 };

/* Ends the program if a call failed. */
static void check(terrane_code code, terrane_error *error) {
  if (code != TERRANE_OK) {
    fprintf(stderr, "%s: %s\n", terrane_code_name(code), terrane_error_message(error));
    exit(1);
  }
}

static int64_t balance_of(const terrane_transaction *transaction, unsigned char account) {
  int64_t balance = 0;
  size_t len;
  terrane_value *value;
  terrane_error *error;
  check(terrane_transaction_get(transaction, NULL, &account, 1, &value, &error), error);
  if (value != NULL) {
    const char *data = terrane_value_data(value, &len);
    if (len == sizeof balance) {
      memcpy(&balance, data, sizeof balance);
    }
    terrane_value_free(value);
  }
  return balance;
}

static void set_balance(const terrane_transaction *transaction, unsigned char account, int64_t balance) {
  terrane_error *error;
  check(terrane_transaction_put(transaction, NULL, &account, 1, &balance, sizeof balance, &error), error);
}

/* Moves one unit from an account to another, and returns how often the transaction ran. */
static long transfer(const terrane_db *db, unsigned char from, unsigned char to) {
  long runs = 0;
  for (;;) {
    terrane_transaction *transaction;
    terrane_error *error;
    terrane_code code;
    runs++;
    check(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &transaction, &error), error);
    set_balance(transaction, from, balance_of(transaction, from) - 1);
    set_balance(transaction, to, balance_of(transaction, to) + 1);
    code = terrane_transaction_commit(transaction, &error);
    terrane_transaction_free(transaction);
    if (code != TERRANE_CONFLICT) {
      check(code, error);
      return runs;
    }
    terrane_error_free(error);
  }
}

typedef struct {
  const terrane_db *db;
  unsigned seed;
  long runs;
} teller;

static void *work(void *context) {
  teller *self = context;
  unsigned random = self->seed;
  int i;
  for (i = 0; i < TRANSFERS; i++) {
    unsigned char from, to;
    random = random * 1103515245u + 12345u;
    from = (unsigned char)(random >> 16) % ACCOUNTS;
    to = (unsigned char)((from + 1 + (random >> 24) % (ACCOUNTS - 1)) % ACCOUNTS);
    self->runs += transfer(self->db, from, to);
  }
  return NULL;
}

int main(int argc, char **argv) {
  terrane_db *db;
  terrane_error *error;
  terrane_transaction *transaction;
  pthread_t threads[THREADS];
  teller tellers[THREADS];
  int64_t sum = 0;
  int i;
  long runs = 0;

  if (argc != 2) {
    fprintf(stderr, "usage: accounts DIRECTORY\n");
    return 2;
  }
  check(terrane_open(argv[1], NULL, &db, &error), error);
  check(terrane_transaction_begin(db, TERRANE_SERIALIZABLE, NULL, &transaction, &error), error);
  for (i = 0; i < ACCOUNTS; i++) {
    set_balance(transaction, (unsigned char)i, DEPOSIT);
  }
  check(terrane_transaction_commit(transaction, &error), error);
  terrane_transaction_free(transaction);

  for (i = 0; i < THREADS; i++) {
    tellers[i].db = db;
    tellers[i].seed = (unsigned)i + 1;
    tellers[i].runs = 0;
    if (pthread_create(&threads[i], NULL, work, &tellers[i]) != 0) {
      return 1;
    }
  }
  for (i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    runs += tellers[i].runs;
  }

  check(terrane_transaction_begin(db, TERRANE_SNAPSHOT_ISOLATION, NULL, &transaction, &error), error);
  for (i = 0; i < ACCOUNTS; i++) {
    sum += balance_of(transaction, (unsigned char)i);
  }
  terrane_transaction_free(transaction);
  printf("%d transfers, sum %ld\n", THREADS * TRANSFERS, (long)sum);
  fprintf(stderr, "%ld transactions, %ld of them conflicts\n", runs, runs - THREADS * TRANSFERS);
  check(terrane_close(db, &error), error);
  terrane_free(db);
  return sum == ACCOUNTS * DEPOSIT ? 0 : 1;
}
