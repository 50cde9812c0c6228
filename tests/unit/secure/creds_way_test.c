/* SPDX-License-Identifier: BSD-2-Clause */
/* Who can put another file in the place of one that says whom this side trusts. */
#include "secure/creds/file.h"
#include "support/child.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/err_codes.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OTHER	12345u
#define NO_SUCH 77 /* no namespace of users can be made here */

static char folder[32];

/* up/in/file, and all of it this user's; up is what the tests change */
static void setup(void)
{
	strcpy(folder, "/tmp/ddps-way-XXXXXX");
	cr_assert(mkdtemp(folder));
	cr_assert(!chdir(folder) && !mkdir("up", 0755) && !mkdir("up/in", 0755));
	close(open("up/in/file", O_CREAT | O_WRONLY, 0644));
	if (!geteuid())
		cr_assert(!chown("up", 0, 0));
}

static int remove_way(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	return remove(path);
}

static void teardown(void)
{
	nftw(folder, remove_way, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(creds_way, .init = setup, .fini = teardown);

static void is_safe(const char *path)
{
	char why[160] = "";
	struct stat file;

	cr_assert_eq(stat(path, &file), 0, "%s", path);
	cr_expect_eq(ddps_file_way(path, &file, why, sizeof why), 0, "%s %s", path, why);
}

static void is_not_of(const char *path, const struct stat *file, const char *text)
{
	char why[160] = "";

	cr_expect_eq(ddps_file_way(path, file, why, sizeof why), DDPS_E_CONFIG, "%s", path);
	cr_expect(strstr(why, text), "%s %s", path, why);
}

static void set_mode(const char *path, unsigned mode)
{
	cr_assert_eq(chmod(path, mode), 0);
}

static void is_not(const char *path, const char *text)
{
	struct stat file = { .st_ino = 0 };

	(void)stat(path, &file);
	is_not_of(path, &file, text);
}

/* The names of one file, with each folder that is on the way of all of them. */
static void every_name_is_not(const char *text)
{
	char name[128];

	snprintf(name, sizeof name, "%s/up/in/file", folder);
	is_not(name, text);
	is_not("up/in/file", text);
	is_not("./up//in/../in/file", text);
	cr_assert(!chdir("up/in"));
	is_not("file", text);
	cr_assert(!chdir("../.."));
}

Test(creds_way, whoever_may_write_a_folder_above)
{
	is_safe("up/in/file");
	set_mode("up", 0777);
	every_name_is_not("/up of mode 0777");
	set_mode("up", 01777);
	is_safe("up/in/file");
	set_mode("up", 0755);
	set_mode("up/in", 0757);
	every_name_is_not("/up/in of mode 0757");
	set_mode("up/in", 0755);
	is_safe("up/in/file");
}

Test(creds_way, whose_a_folder_or_a_link_is)
{
	if (geteuid())
		cr_skip_test("only root can give a folder away");
	set_mode("up", 0775);
	is_safe("up/in/file");
	cr_assert_eq(chown("up", 0, OTHER), 0);
	every_name_is_not("/up of mode 0775");
	set_mode("up", 01775);
	is_safe("up/in/file");
	cr_assert_eq(symlink("in/file", "up/link"), 0);
	is_safe("up/link");
	cr_assert_eq(lchown("up/link", OTHER, OTHER), 0);
	is_not("up/link", "/up/link, a link of user 12345");
	set_mode("up", 0755);
	cr_assert_eq(chown("up", OTHER, 0), 0);
	every_name_is_not("/up, a folder of user 12345");
}

Test(creds_way, links_lead_through_other_folders)
{
	char away[128];

	cr_assert(!mkdir("open", 0700) && !chmod("open", 0777));
	snprintf(away, sizeof away, "%s/open/middle", folder);
	cr_assert(!symlink(away, "first") && !symlink("../up/in/file", "open/middle"));
	is_not("first", "/open of mode 0777");
	set_mode("open", 0755);
	is_safe("first");
	cr_assert(!symlink("../up/in", "open/through"));
	is_safe("open/through/file");
	set_mode("up", 0777);
	is_not("open/through/file", "/up of mode 0777");
	is_not("first", "/up of mode 0777");
	cr_assert(!symlink("round", "round"));
	is_not("round", "cannot be looked at: Too many levels");
}

/* An entry for another user, and a mask that lets it write; the group is the user's own. */
Test(creds_way, a_list_of_rights)
{
	static const uint8_t acl[] = { 2,   0,	 0,   0,   1,	0,    7,    0,	 255, 255, 255,
				       255, 2,	 0,   7,   0,	0x39, 0x30, 0,	 0,   4,   0,
				       5,   0,	 255, 255, 255, 255,  16,   0,	 7,   0,   255,
				       255, 255, 255, 32,  0,	5,    0,    255, 255, 255, 255 };

	if (geteuid() || setxattr("up", "system.posix_acl_access", acl, sizeof acl, 0))
		cr_skip_test("no lists of rights here, or the group may be anybody's");
	every_name_is_not("/up of mode 0775");
	cr_assert_eq(removexattr("up", "system.posix_acl_access"), 0);
	set_mode("up", 0755);
	is_safe("up/in/file");
}

/* A file that a program was given open, whether it has a name or not. */
Test(creds_way, descriptors)
{
	const int fd = open("up/in/file", O_RDONLY);
	char name[32];

	cr_assert_geq(fd, 0);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	is_safe(name);
	set_mode("up", 0777);
	is_not(name, "/up of mode 0777");
	cr_assert_eq(unlink("up/in/file"), 0);
	is_not(name, "/up of mode 0777");
	set_mode("up", 0755);
	is_safe(name);
	close(fd);
}

/* Whoever may change the way does so after the file was opened, so that only what is good is walked. */
Test(creds_way, what_is_walked_is_what_was_opened)
{
	const char *const changed = "another file than the one that was opened";
	const int other = open("up/other", O_CREAT | O_RDONLY | O_CLOEXEC, 0644);
	char number[32], its[64], link[32];
	struct stat file, another;

	cr_assert(!stat("up/in/file", &file) && !fstat(other, &another));
	is_not_of("up/in/file", &another, changed);
	is_not_of("up/in", &file, changed);
	is_not_of("gone/file", &file, "looked at: No such file");
	is_not_of("up/gone", &file, "looked at: No such file");
	cr_assert(!symlink("up/other", "link") && !symlink("gone", "broken"));
	is_not_of("link", &file, changed);
	is_not_of("broken", &file, "looked at: No such file");
	/* a link of /proc says where one file is, and no other */
	snprintf(link, sizeof link, "/proc/self/fd/%d", other);
	is_not_of(link, &file, changed);
	cr_assert(!unlink("up/other"));
	is_not_of(link, &file, "looked at: No such file");
	is_safe(link);
	/* nor does a folder of /proc */
	snprintf(number, sizeof number, "/proc/self/fd/%d", open("up", O_PATH | O_CLOEXEC));
	snprintf(its, sizeof its, "%s/in/file", number);
	is_safe(its);
	is_not_of(its, &another, changed);
	cr_assert(!rename("up/in/file", "up/in/moved"));
	is_not_of(its, &file, "looked at: No such file");
	close(other);
}

static unsigned replacements;

/* Somebody who may do so moves another file there, as soon as one was opened. */
static int replace_file(int fd, struct stat *st)
{
	const int err = sys_fstat(fd, st);

	if (!err && S_ISREG(st->st_mode) && replacements) {
		replacements--;
		close(open("up/next", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		cr_assert(!rename("up/next", "up/in/file"));
	}
	return err;
}

Test(creds_way, a_file_that_is_replaced_meanwhile_is_opened_anew)
{
	struct ddps_stamp stamp, now;
	struct ddps_vault v;
	char why[160] = "";

	sys_instead.fstat = replace_file;
	replacements = 3;
	cr_expect_eq(ddps_file_read(&v, "up/in/file", 100, DDPS_FILE_RULES, &stamp, why,
				    sizeof why),
		     0, "%s", why);
	ddps_vault_free(&v);
	now = ddps_stamp_of("up/in/file");
	cr_expect(ddps_stamp_same(&stamp, &now));
	replacements = 1000;
	cr_expect_eq(ddps_file_read(&v, "up/in/file", 100, DDPS_FILE_RULES, &stamp, why,
				    sizeof why),
		     DDPS_E_CONFIG);
	cr_expect(strstr(why, "another file than the one that was opened"), "%s", why);
	cr_expect_gt(replacements, 900, "there is an end to that");
	sys_instead.fstat = NULL;
}

Test(creds_way, a_way_that_cannot_be_walked)
{
	struct stat file;

	cr_assert_eq(stat("up/in/file", &file), 0);
	set_mode("up", 0);
	if (!getuid())
		cr_assert_eq(seteuid(OTHER), 0);
	is_not_of("up/in/file", &file, "looked at: Permission denied");
	cr_assert_eq(seteuid(getuid()), 0);
	set_mode("up", 0755);
}

/* As OTHER, who is root of a namespace if it is @mapped, with "up" as its "/". */
static void judge_as_other(const char *path, bool mapped)
{
	static const char map[] = "0 12345 1\n";
	char why[160];
	struct stat file;
	int fd;

	if (chdir("up") || setresuid(OTHER, OTHER, OTHER) || prctl(PR_SET_DUMPABLE, 1))
		leave_child_fixture(2);
	if (unshare(CLONE_NEWUSER))
		leave_child_fixture(NO_SUCH);
	fd = mapped ? open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC) : -1;
	if (mapped && write(fd, map, sizeof map - 1) != sizeof map - 1)
		leave_child_fixture(NO_SUCH);
	if (chroot(".") || stat(path, &file))
		leave_child_fixture(3);
	leave_child_fixture(path[1] ? ddps_file_way(path, &file, why, sizeof why) != 0
				    : ddps_file_can_others_write(open("/", O_RDONLY), &file));
}

static void other_finds(const char *path, bool mapped, int status)
{
	const pid_t pid = fork();
	int got;

	if (!pid)
		judge_as_other(path, mapped);
	got = await_child_status(pid);
	if (WIFEXITED(got) && WEXITSTATUS(got) == NO_SUCH)
		cr_skip_test("no namespace of users");
	cr_expect(WIFEXITED(got) && WEXITSTATUS(got) == status, "%s: %x", path, (unsigned)got);
}

/* Users that a namespace does not map have one number there, and are not one user. */
Test(creds_way, nobody_is_trusted_with_the_root_alone)
{
	if (geteuid())
		cr_skip_test("only root can give a folder away");
	cr_assert(!mkdir("up/theirs", 0755));
	close(open("up/theirs/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	cr_assert(!chown("up", OTHER + 1, OTHER + 1) && !chown("up/in", OTHER, OTHER) &&
		  !chown("up/theirs", OTHER + 2, OTHER + 2));
	other_finds("/in/file", true, 0);
	other_finds("/theirs/file", true, 1);
	other_finds("/in/file", false, 1); /* its own folder seems to be anybody's */
	other_finds("/", true, 0);
	set_mode("up", 0775); /* nor need its group be its owner's */
	other_finds("/", true, 1);
	other_finds("/in/file", true, 1);
}

/* So far down that no name from "/" on is short enough for a call. */
Test(creds_way, longer_than_a_name_may_be)
{
	char each[201];

	memset(each, 'd', sizeof each - 1);
	each[sizeof each - 1] = 0;
	cr_assert_eq(chdir("up/in"), 0);
	for (int i = 0; i < 30; i++)
		cr_assert(!mkdir(each, 0755) && !chdir(each));
	close(open("deep", O_CREAT | O_WRONLY, 0644));
	is_safe("deep");
	set_mode("../../..", 0777);
	is_not("deep", "of mode 0777");
	cr_assert(!unlink("deep"));
	for (int i = 0; i < 30; i++)
		cr_assert(!chdir("..") && !rmdir(each));
}
