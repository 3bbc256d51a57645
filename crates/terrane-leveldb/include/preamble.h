/*
 * The interface of LevelDB for C, on Terrane: the functions of LevelDB 1.23, with the same names, parameters and
 * meaning unless a comment says otherwise. Link with libterrane_leveldb.
 *
 * Generated from the sources by the test `header`; do not edit.
 *
 * A call that can fail has a place for an error, `char **errptr`, which has to be NULL or to have an earlier error.
 * If the call fails, the earlier error is freed and a text of malloc() takes its place; otherwise nothing changes.
 */
#ifndef TERRANE_LEVELDB_C_H
#define TERRANE_LEVELDB_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
