/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_KEYS_H
#define DDPS_TEST_KEYS_H
/* Certificates and their keys, for wires with TLS. */
#include <stddef.h>
#include <sys/types.h>

struct test_pair {
	char cert[4096], key[4096]; /* PEM */
};

/* Valid from @from to @until seconds from now, from @ca; NULL: a CA of its own.  @names: NULL behind the last. */
void make_test_pair(struct test_pair *p, const struct test_pair *ca, const char *const *names,
		    long from, long until);
/* A CA for three days ago until in an hour, and a host's pair of it for this hour: 127.0.0.1, ::1 and localhost. */
void make_test_site(struct test_pair *ca, struct test_pair *host);
/* The file @dir/@name, whose name goes to @path. */
void write_test_file(const char *dir, const char *name, const char *text, mode_t mode, char *path,
		     size_t size);

#endif
