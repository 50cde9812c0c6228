/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates for tests, made by the library as sessctl keys does. */
#include "support/keys.h"
#include <criterion/criterion.h>
#include <ddpsess/secure.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void make_test_pair(struct test_pair *p, const struct test_pair *ca, const char *const *names,
		    long from, long until)
{
	struct ddps_secure_make m = { .struct_size = sizeof m,
				      .names = names,
				      .not_before = time(NULL) + from,
				      .not_after = time(NULL) + until };
	struct ddps_error why;

	if (ca) {
		m.ca_cert = ca->cert;
		m.ca_key = ca->key;
		m.ca_key_len = strlen(ca->key);
	}
	cr_assert_eq(ddps_secure_make(&m, p->cert, sizeof p->cert, p->key, sizeof p->key, &why), 0,
		     "%s", why.text);
}

void make_test_site(struct test_pair *ca, struct test_pair *host)
{
	static const char *const ca_name[] = { "test", NULL };
	static const char *const names[] = { "127.0.0.1", "::1", "localhost", NULL };

	make_test_pair(ca, NULL, ca_name, -3 * 86400, 3600);
	make_test_pair(host, ca, names, -60, 3600);
}

void write_test_file(const char *dir, const char *name, const char *text, mode_t mode, char *path,
		     size_t size)
{
	const ssize_t len = (ssize_t)strlen(text);
	int fd;

	snprintf(path, size, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	cr_assert_geq(fd, 0, "%s: %m", path);
	cr_assert_eq(write(fd, text, (size_t)len), len);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}
