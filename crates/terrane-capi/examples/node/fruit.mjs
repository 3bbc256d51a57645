// Opens a database through terrane.h, writes and reads a few keys, and lists them. With koffi from npm, which calls C
// without a compiler:
//
//     LD_LIBRARY_PATH=$HOME/.local/lib node fruit.mjs /tmp/fruit
import koffi from 'koffi';

const lib = koffi.load('libterrane_c.so.1');
const open = lib.func('int terrane_open(const char *dir, void *options, _Out_ void **db, _Out_ void **error)');
const close = lib.func('int terrane_close(void *db, _Out_ void **error)');
const free = lib.func('void terrane_free(void *db)');
const defaultKeyspace = lib.func('void *terrane_default_keyspace(void *db)');
const put = lib.func(
  'int terrane_put(void *keyspace, void *options, const void *key, size_t len, const void *value, size_t value_len, _Out_ void **error)',
);
const get = lib.func('int terrane_get(void *keyspace, const void *key, size_t len, _Out_ void **value, _Out_ void **error)');
const valueData = lib.func('void *terrane_value_data(void *value, _Out_ size_t *len)');
const valueFree = lib.func('void terrane_value_free(void *value)');
const iterRange = lib.func(
  'int terrane_iter_range(void *keyspace, void *snapshot, const void *from, size_t from_len, const void *to, size_t to_len, _Out_ void **iter, _Out_ void **error)',
);
const iterNext = lib.func('bool terrane_iter_next(void *iter, _Out_ void **error)');
const iterKey = lib.func('void *terrane_iter_key(void *iter, _Out_ size_t *len)');
const iterValue = lib.func('void *terrane_iter_value(void *iter, _Out_ size_t *len)');
const iterFree = lib.func('void terrane_iter_free(void *iter)');
const errorMessage = lib.func('const char *terrane_error_message(void *error)');
const errorFree = lib.func('void terrane_error_free(void *error)');

const error = [null];

// Throws the error of the last call, if it failed.
function check() {
  if (error[0] === null) return;
  const message = errorMessage(error[0]);
  errorFree(error[0]);
  throw new Error(message);
}

// Copies the bytes that a function returns to a text.
function text(data, handle) {
  const len = [0];
  const bytes = data(handle, len);
  return Buffer.from(koffi.decode(bytes, 'uint8_t', Number(len[0]))).toString();
}

function openDatabase(dir) {
  const db = [null];
  open(dir, null, db, error);
  check();
  return db[0];
}

function putText(keyspace, key, value) {
  const [keyBytes, valueBytes] = [Buffer.from(key), Buffer.from(value)];
  put(keyspace, null, keyBytes, keyBytes.length, valueBytes, valueBytes.length, error);
  check();
}

function getText(keyspace, key) {
  const [bytes, value] = [Buffer.from(key), [null]];
  get(keyspace, bytes, bytes.length, value, error);
  check();
  if (value[0] === null) return undefined;
  const found = text(valueData, value[0]);
  valueFree(value[0]);
  return found;
}

const dir = process.argv[2];
if (dir === undefined) {
  console.error('usage: node fruit.mjs DIRECTORY');
  process.exit(2);
}
const db = openDatabase(dir);
const fruit = defaultKeyspace(db);
for (const [key, value] of [['banana', 'yellow'], ['apple', 'red'], ['', 'nothing']]) putText(fruit, key, value);
console.log(`apple is ${getText(fruit, 'apple')}`);

// The database is in use, so a second opening fails.
let failure;
try {
  openDatabase(dir);
} catch (caught) {
  failure = caught;
}
if (failure === undefined) throw new Error('opened twice');

const iter = [null];
iterRange(fruit, null, null, 0, null, 0, iter, error);
check();
while (iterNext(iter[0], error)) console.log(`"${text(iterKey, iter[0])}" is ${text(iterValue, iter[0])}`);
check();
iterFree(iter[0]);
close(db, error);
check();
free(db);
