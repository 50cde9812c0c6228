/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions, and the library that they load. */
#include "../sys_fixture.h"
#include "creds_fixture.h"
#include "secure/plugin.h"
#include "secure/secure.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct ddps_tls_plugin ddps_tls_plugin;

#define FILE_NAME "/a/libddpsess-tls.so"

static void give_library(const struct ddps_tls_plugin *plugin)
{
	static struct dl_symbol symbols[2];

	symbols[0] = (struct dl_symbol){ plugin ? DDPS_TLS_SYMBOL : NULL,
					 (void (*)(void))(uintptr_t)plugin };
	setenv("DDPSESS_TLS_LIBRARY", FILE_NAME, 1);
	dl_replace(FILE_NAME, symbols);
}

static void secure_setup(void)
{
	creds_setup();
	give_library(&ddps_tls_plugin);
}

TestSuite(secure, .init = secure_setup, .fini = creds_teardown);

/* Valid now, since the public functions look at the clock. */
static void make_site_of_today(struct ddps_secure_attr *attr)
{
	static char ca[4096], ca_key[4096], cert[4096], key[4096];
	struct ddps_secure_make m = { .struct_size = sizeof m,
				      .names = (const char *const[]){ "CA", NULL },
				      .not_before = time(NULL) - DAY,
				      .not_after = time(NULL) + 30 * DAY };
	struct ddps_error why;

	cr_assert_eq(ddps_secure_make(&m, ca, sizeof ca, ca_key, sizeof ca_key, &why), 0, "%s",
		     why.text);
	m.names = (const char *const[]){ "host.example", "192.0.2.1", NULL };
	m.ca_cert = ca;
	m.ca_key = ca_key;
	m.ca_key_len = strlen(ca_key);
	cr_assert_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), 0, "%s",
		     why.text);
	ddps_secure_attr_init(attr);
	attr->ca = put_text("ca.pem", ca, 0644);
	attr->cert = put_text("host.pem", cert, 0644);
	attr->key = put_text("host.key", key, 0600);
}

Test(secure, files_are_opened_and_read_again)
{
	struct ddps_secure_attr attr;
	struct ddps_secure *s = NULL, *same;
	struct ddps_error why = { .code = 0 };

	make_site_of_today(&attr);
	cr_assert_eq(ddps_secure_open(&s, &attr, &why), 0, "%s", why.text);
	same = ddps_secure_hold(s);
	ddps_secure_close(s);
	cr_expect_eq(ddps_secure_reload(same, &why), 0);
	put_text("host.key", "nothing", 0600);
	cr_expect_eq(ddps_secure_reload(same, &why), DDPS_E_CONFIG);
	cr_expect_eq(why.code, DDPS_E_CONFIG);
	cr_expect(strstr(why.text, "host.key"), "%s", why.text);
	ddps_secure_close(same);
	ddps_secure_close(NULL);
	s = NULL;
	cr_expect_eq(ddps_secure_open(&s, &attr, NULL), DDPS_E_CONFIG);
	cr_expect_null(s);
}

Test(secure, structs_of_other_releases)
{
	struct {
		struct ddps_secure_attr attr;
		uint64_t more;
	} later;
	struct ddps_secure *s = NULL;

	make_site_of_today(&later.attr);
	later.attr.struct_size = sizeof later;
	later.more = 1;
	cr_expect_eq(ddps_secure_open(&s, &later.attr, NULL), DDPS_E_UNSUPPORTED);
	later.more = 0;
	cr_assert_eq(ddps_secure_open(&s, &later.attr, NULL), 0);
	ddps_secure_close(s);
	later.attr.struct_size = 1;
	cr_expect_eq(ddps_secure_open(&s, &later.attr, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_secure_open(&s, NULL, NULL), DDPS_E_INVAL);
}

static void count_finding(void *user, const struct ddps_secure_finding *f)
{
	unsigned *n = user;

	n[f->code ? f->warning ? 1 : 2 : 0]++;
	cr_expect(f->text && f->what && f->file);
}

Test(secure, each_file_is_judged)
{
	struct ddps_secure_attr attr;
	unsigned n[3] = { 0 };

	make_site_of_today(&attr);
	cr_expect_eq(ddps_secure_check(&attr, time(NULL), count_finding, n), 0);
	cr_expect_eq(n[0], 3u);
	cr_expect_eq(ddps_secure_check(&attr, time(NULL) + 25 * DAY, count_finding, n), 0);
	cr_expect_eq(n[1], 1u);
	cr_expect_gt(ddps_secure_check(&attr, time(NULL) + 31 * DAY, count_finding, n), 0);
	cr_expect_gt(n[2], 0u);
	cr_expect_eq(ddps_secure_check(NULL, 0, count_finding, n), DDPS_E_INVAL);
	cr_expect_eq(ddps_secure_check(&attr, 0, NULL, n), DDPS_E_INVAL);
}

Test(secure, what_cannot_be_made_is_said)
{
	char cert[4096], key[4096];
	struct ddps_error why = { .code = 0 };
	struct ddps_secure_make m = { .struct_size = sizeof m,
				      .names = (const char *const[]){ "CA", NULL },
				      .not_before = NOW,
				      .not_after = NOW };

	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), DDPS_E_INVAL);
	cr_expect(strstr(why.text, "order"), "%s", why.text);
	m.not_after = NOW + DAY;
	cr_expect_eq(ddps_secure_make(&m, cert, 10, key, sizeof key, &why), DDPS_E_TOO_LONG);
	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, 10, &why), DDPS_E_TOO_LONG);
	m.names = (const char *const[]){ NULL };
	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), DDPS_E_INVAL);
	m.names = NULL;
	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), DDPS_E_INVAL);
	m.names = (const char *const[]){ "CA", NULL };
	m.ca_cert = "x"; /* and no key */
	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), DDPS_E_INVAL);
	m.ca_key = "x";
	m.ca_key_len = 1;
	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), DDPS_E_CONFIG);
	m.struct_size = 3;
	cr_expect_eq(ddps_secure_make(&m, cert, sizeof cert, key, sizeof key, &why), DDPS_E_INVAL);
}

/* ---- the library ---- */

static void expect_no_library(const char *says)
{
	struct ddps_secure_attr attr;
	struct ddps_secure *s = NULL;
	struct ddps_error why = { .code = 0 };
	unsigned n[3] = { 0 };

	ddps_secure_attr_init(&attr);
	cr_expect_eq(ddps_secure_open(&s, &attr, &why), DDPS_E_NO_TLS);
	cr_expect(strstr(why.text, says), "no '%s' in: %s", says, why.text);
	cr_expect_eq(ddps_secure_check(&attr, NOW, count_finding, n), 1);
	cr_expect_eq(n[2], 1u);
}

Test(secure, the_library_is_not_there)
{
	setenv("DDPSESS_TLS_LIBRARY", "/nowhere/libddpsess-tls.so", 1);
	expect_no_library("install it, and GnuTLS");
}

Test(secure, the_library_is_of_another_release)
{
	static struct ddps_tls_plugin other;

	other.abi = DDPS_TLS_ABI + 1;
	give_library(&other);
	expect_no_library("another release");
}

Test(secure, the_library_is_another_one)
{
	give_library(NULL);
	expect_no_library("another release");
}
