/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of sessctl that never get a name. */
#include "cli/temp.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>

/* The mode with which it was made; its name, if it had one, has gone. */
static mode_t get_unnamed_mode(nlink_t *links)
{
	struct temp t;
	struct stat st;

	cr_assert_eq(temp_open_unnamed(&t, 1), 0);
	cr_assert_eq(fstat(t.fd, &st), 0);
	*links = st.st_nlink;
	temp_abort(&t);
	return st.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
}

Test(temp, what_gets_no_name_is_for_its_owner_alone)
{
	nlink_t links;

	umask(0);
	cr_expect_eq(get_unnamed_mode(&links), S_IRUSR | S_IWUSR);
	cr_expect_eq(links, 0);
	sys_fail("access", 0, 1, ENOENT); /* as where O_TMPFILE cannot be used */
	cr_expect_eq(get_unnamed_mode(&links), S_IRUSR | S_IWUSR);
	cr_expect_eq(links, 0);
	cr_expect_eq(sys_failed(), 1);
}
