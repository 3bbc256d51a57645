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
