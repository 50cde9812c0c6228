/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of a process for wires with TLS: one certificate that both ends show and trust. */
#include "support/e2e.h"
#include <ddpsess/secure.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct key_pair {
	char cert[4096], key[4096];
};

static void make_e2e_pair(struct key_pair *p, const struct key_pair *ca, const char *const *names)
{
	struct ddps_secure_make m = { .struct_size = sizeof m,
				      .names = names,
				      .not_before = time(NULL) - 60,
				      .not_after = time(NULL) + 3600 };
	struct ddps_error why;

	if (ca) {
		m.ca_cert = ca->cert;
		m.ca_key = ca->key;
		m.ca_key_len = strlen(ca->key);
	}
	cr_assert_eq(ddps_secure_make(&m, p->cert, sizeof p->cert, p->key, sizeof p->key, &why), 0,
		     "%s", why.text);
}

static void write_pem(const char *dir, const char *name, const char *text, char *path, size_t size)
{
	FILE *f;

	snprintf(path, size, "%s/%s", dir, name);
	umask(077);
	f = fopen(path, "w");
	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

struct ddps_secure *e2e_secure_judged(ddps_judge_fn *judge, void *user)
{
	static const char *const ca_name[] = { "test", NULL };
	static const char *const names[] = { "127.0.0.1", "::1", "localhost", NULL };
	char dir[] = "/tmp/ddpsess-e2e-XXXXXX", cert[64], key[64], ca_file[64];
	struct ddps_secure_attr attr;
	struct ddps_secure *s = NULL;
	static struct key_pair ca, host;
	struct ddps_error why;

	if (!host.key[0]) {
		make_e2e_pair(&ca, NULL, ca_name);
		make_e2e_pair(&host, &ca, names);
	}
	cr_assert(mkdtemp(dir));
	write_pem(dir, "ca.pem", ca.cert, ca_file, sizeof ca_file);
	write_pem(dir, "host.pem", host.cert, cert, sizeof cert);
	write_pem(dir, "host.key", host.key, key, sizeof key);
	ddps_secure_attr_init(&attr);
	attr.ca = ca_file;
	attr.cert = cert;
	attr.key = key;
	attr.judge = judge;
	attr.judge_user = user;
	cr_assert_eq(ddps_secure_open(&s, &attr, &why), 0, "%s", why.text);
	unlink(ca_file);
	unlink(cert);
	unlink(key);
	rmdir(dir);
	return s;
}

struct ddps_secure *e2e_secure(void)
{
	return e2e_secure_judged(NULL, NULL);
}
