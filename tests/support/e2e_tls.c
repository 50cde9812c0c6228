/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of a process for wires with TLS: one certificate that both ends show and trust. */
#include "support/e2e.h"
#include "support/keys.h"
#include <ddpsess/secure.h>
#include <stdlib.h>
#include <unistd.h>

struct ddps_secure *e2e_secure_judged(ddps_judge_fn *judge, void *user)
{
	char dir[] = "/tmp/ddpsess-e2e-XXXXXX", cert[64], key[64], ca_file[64];
	struct ddps_secure_attr attr;
	struct ddps_secure *s = NULL;
	static struct test_pair ca, host;
	struct ddps_error why;

	if (!host.key[0])
		make_test_site(&ca, &host);
	cr_assert(mkdtemp(dir));
	write_test_file(dir, "ca.pem", ca.cert, 0600, ca_file, sizeof ca_file);
	write_test_file(dir, "host.pem", host.cert, 0600, cert, sizeof cert);
	write_test_file(dir, "host.key", host.key, 0600, key, sizeof key);
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
