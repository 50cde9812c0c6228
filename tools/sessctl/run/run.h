/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_RUN_H
#define SESSCTL_RUN_H
/* sessctl run: what it has to find and check before the program may take its place. */
#include <stddef.h>

#define RUN_SONAME     "ddpsess/verbs/libibverbs.so.1"
#define RUN_VIEW       "ddpsess/libddpsess-view.so"
#define RUN_UMAD       "ddpsess/libddpsess-umad.so"
#define RUN_DEVICE_MAX 63 /* IBV_SYSFS_NAME_MAX with its end */

/* Exit statuses of a program that did not start, as shells have them. */
enum { RUN_CANNOT = 126, RUN_NOT_FOUND = 127 };

/* What is wrong, and what may help. */
struct run_fault {
	char why[600];
	char try[300];
};

/*
 * Find @name as a shell would, into @path, and check that a preloaded library reaches it: an
 * executable that is neither static, nor privileged, nor of another architecture.  Scripts pass.
 * Return: 0, RUN_NOT_FOUND or RUN_CANNOT with @f filled.
 */
int run_find_program(const char *name, char *path, size_t len, struct run_fault *f);

/*
 * Find @file (relative to a library directory) next to sessctl, where make install puts it, or in
 * ../lib, and check that it is a shared object for this machine.  Return: 0 or -1 with @f filled.
 */
int run_find_library(const char *file, char *path, size_t len, struct run_fault *f);

#endif
