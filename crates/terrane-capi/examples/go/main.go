// Opens a database through terrane.h, writes and reads a few keys, and lists them.
//
//	PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig go run . /tmp/fruit
package main

/*
#cgo pkg-config: terrane
#include <stdlib.h>
#include <terrane.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// data returns a pointer to bytes, which the library does not keep.
func data(bytes []byte) (unsafe.Pointer, C.size_t) {
	return unsafe.Pointer(unsafe.SliceData(bytes)), C.size_t(len(bytes))
}

// failure returns an error of the library as one of Go, and frees it.
func failure(code C.terrane_code, cause *C.terrane_error) error {
	if code == C.TERRANE_OK {
		return nil
	}
	defer C.terrane_error_free(cause)
	return errors.New(C.GoString(C.terrane_error_message(cause)))
}

// DB is an open database.
type DB struct{ db *C.terrane_db }

// Open opens the database in a directory, or creates one.
func Open(dir string) (*DB, error) {
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var db *C.terrane_db
	var cause *C.terrane_error
	code := C.terrane_open(path, nil, &db, &cause)
	return &DB{db}, failure(code, cause)
}

// Put sets the value of a key.
func (db *DB) Put(key, value []byte) error {
	keyData, keyLen := data(key)
	valueData, valueLen := data(value)
	var cause *C.terrane_error
	keys := C.terrane_default_keyspace(db.db)
	return failure(C.terrane_put(keys, nil, keyData, keyLen, valueData, valueLen, &cause), cause)
}

// Get returns the value of a key, and whether there is one.
func (db *DB) Get(key []byte) ([]byte, bool, error) {
	keyData, keyLen := data(key)
	var value *C.terrane_value
	var cause *C.terrane_error
	code := C.terrane_get(C.terrane_default_keyspace(db.db), keyData, keyLen, &value, &cause)
	if code != C.TERRANE_OK || value == nil {
		return nil, false, failure(code, cause)
	}
	defer C.terrane_value_free(value)
	var valueLen C.size_t
	valueData := C.terrane_value_data(value, &valueLen)
	return C.GoBytes(unsafe.Pointer(valueData), C.int(valueLen)), true, nil
}

// Each calls a function for each key and its value, in order.
func (db *DB) Each(function func(key, value []byte)) error {
	var iter *C.terrane_iter
	var cause *C.terrane_error
	code := C.terrane_iter_range(C.terrane_default_keyspace(db.db), nil, nil, 0, nil, 0, &iter, &cause)
	if code != C.TERRANE_OK {
		return failure(code, cause)
	}
	defer C.terrane_iter_free(iter)
	for C.terrane_iter_next(iter, &cause) {
		var keyLen, valueLen C.size_t
		keyData := C.terrane_iter_key(iter, &keyLen)
		valueData := C.terrane_iter_value(iter, &valueLen)
		key := C.GoBytes(unsafe.Pointer(keyData), C.int(keyLen))
		function(key, C.GoBytes(unsafe.Pointer(valueData), C.int(valueLen)))
	}
	return failure(C.terrane_error_code(cause), cause)
}

// Close flushes and closes the database.
func (db *DB) Close() error {
	defer C.terrane_free(db.db)
	var cause *C.terrane_error
	return failure(C.terrane_close(db.db, &cause), cause)
}

func run(dir string) error {
	db, err := Open(dir)
	if err != nil {
		return err
	}
	for _, fruit := range [][2]string{{"banana", "yellow"}, {"apple", "red"}, {"", "nothing"}} {
		if err := db.Put([]byte(fruit[0]), []byte(fruit[1])); err != nil {
			return err
		}
	}
	value, found, err := db.Get([]byte("apple"))
	if err != nil || !found {
		return fmt.Errorf("apple: %v, %v", found, err)
	}
	fmt.Printf("apple is %s\n", value)
	// The database is in use, so a second opening fails.
	if _, err := Open(dir); err == nil {
		return errors.New("opened twice")
	}
	err = db.Each(func(key, value []byte) { fmt.Printf("%q is %s\n", key, value) })
	if err != nil {
		return err
	}
	return db.Close()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
