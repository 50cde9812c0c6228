/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of targets: those that are built in, and files with whatever content. */
#include "conform/profile/conform_profile.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char name[] = "/tmp/ddps-profile-XXXXXX";
static char why[300];

static void write_conform_profile_file(const void *text, size_t len)
{
	int fd = mkstemp(name);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
}

/* Each names cases of the suite, each case once. */
Test(conform_profile, those_built_in)
{
	static const char *const names[] = { "siw", "usrsctp", "linux-sctp", "linux-ib_ipoib" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct cf_profile p;

		cr_assert_eq(cf_profile_load(&p, names[i], why, sizeof why), 0, "%s", why);
		cr_expect_gt(p.n, 0);
		for (size_t k = 0; k < p.n; k++) {
			cr_expect(*p.row[k].does, "%s: %s", names[i], p.row[k].name);
			cr_expect_eq(cf_profile_find(&p, p.row[k].name), &p.row[k], "%s: %s",
				     names[i], p.row[k].name);
		}
		cr_expect_null(cf_profile_find(&p, "no-such-case"));
		cf_profile_free(&p);
	}
}

Test(conform_profile, lines)
{
	static const char text[] = "# a comment\n\n \t# another one\n"
				   "one  does this\r\n"
				   "\ttwo passes: \tand does that # as far as one knows\n"
				   "three harmless:little\n"
				   "four";
	static const struct {
		const char *name, *does;
		enum ddps_conform_grade grade;
	} row[] = { { "one", "does this", DDPS_CONFORM_FAILS },
		    { "two", "and does that ", DDPS_CONFORM_PASSES },
		    { "three", "little", DDPS_CONFORM_HARMLESS },
		    { "four", "", DDPS_CONFORM_FAILS } };
	struct cf_profile p;

	write_conform_profile_file(text, sizeof text - 1);
	cr_assert_eq(cf_profile_load(&p, name, why, sizeof why), 0, "%s", why);
	cr_expect_eq(p.n, 4);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_str_eq(p.row[i].name, row[i].name);
		cr_expect_str_eq(p.row[i].does, row[i].does);
		cr_expect_eq(p.row[i].grade, row[i].grade, "%zu", i);
	}
	cf_profile_free(&p);
	unlink(name);
}

Test(conform_profile, files_that_are_none)
{
	static char large[(1 << 20) + 1];
	struct cf_profile p;

	cr_expect_eq(cf_profile_load(&p, "/tmp/ddps-none/none", why, sizeof why), -1);
	cr_expect(strstr(why, "No such file") && strstr(why, "built in: siw"), "%s", why);
	cr_expect_eq(cf_profile_load(&p, "/tmp", why, sizeof why), -1);
	cr_expect(strstr(why, "Is a directory"), "%s", why);
	memset(large, '\n', sizeof large);
	write_conform_profile_file(large, sizeof large);
	cr_expect_eq(cf_profile_load(&p, name, why, sizeof why), -1);
	cr_expect(strstr(why, "larger than 1 MiB"), "%s", why);
	cr_assert_eq(truncate(name, sizeof large - 1), 0);
	cr_expect_eq(cf_profile_load(&p, name, why, sizeof why), 0, "%s", why);
	cf_profile_free(&p);
	unlink(name);
}

/* Without memory it says so, and keeps nothing. */
Test(conform_profile, without_memory)
{
	static const char text[] = "one does this\ntwo does that\n";
	struct cf_profile p;
	unsigned n = 1;
	long live;

	write_conform_profile_file(text, sizeof text - 1);
	live = mem_live();
	for (;; n++) {
		int err;

		mem_fail(n);
		err = cf_profile_load(&p, name, why, sizeof why);
		if (!mem_failed())
			break;
		cr_expect_eq(err, -1, "%u", n);
		cr_expect(strstr(why, name), "%s", why);
		cr_expect_eq(mem_live(), live, "%u", n);
	}
	mem_fail(0);
	cr_expect_eq(n, 4, "the text, and two lines");
	cr_expect_eq(p.n, 2);
	cf_profile_free(&p);
	unlink(name);
}
