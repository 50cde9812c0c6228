/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files a device keeps: what an overlay does not write to one, is not kept. */
#include "session/session.h"
#include "support/child.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ddpsess/advert.h>
#include <ddpsess/err.h>

#define LEN	4096
#define NO_SUCH 77 /* no file systems can be mounted here, or none is kept */
#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			leave_child_fixture(1 + __LINE__ % 70);                                    \
	} while (0)

/* Whether a mapping of a new file in @folder is one that lasts. */
static bool does_file_last(const char *folder)
{
	char name[300];
	bool lasts;
	void *at;
	int fd;

	snprintf(name, sizeof name, "%s/file", folder);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, LEN));
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	lasts = ddps_can_persist(at, LEN);
	munmap(at, LEN);
	close(fd);
	unlink(name);
	return lasts;
}

/* Mount an overlay at @root/all that writes to @root/@upper. */
static void mount_overlay(const char *root, const char *upper, const char *more)
{
	char path[300], options[1200];

	snprintf(path, sizeof path, "%s/%s", root, upper);
	CHECK(!mkdir(path, 0700));
	snprintf(path, sizeof path, "%s/work", root);
	CHECK(!mkdir(path, 0700));
	snprintf(options, sizeof options, "lowerdir=%s/low,upperdir=%s/%s,workdir=%s/work%s", root,
		 root, upper, root, more);
	snprintf(path, sizeof path, "%s/all", root);
	if (mount("overlay", path, "overlay", 0, options))
		leave_child_fixture(NO_SUCH);
}

static void try_overlay(const char *root, const char *more, bool lasts)
{
	char path[300];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", root, i ? "all" : "low");
		CHECK(!mkdir(path, 0700));
	}
	mount_overlay(root, "the upper", more);
	CHECK(does_file_last(path) == lasts);
}

/* An overlay that is seen, though what it writes to is not, as in a container. */
static void try_hidden(const char *root, const char *elsewhere)
{
	char path[300];

	snprintf(path, sizeof path, "%s/all", root);
	CHECK(!mount(path, elsewhere, NULL, MS_BIND, NULL));
	CHECK(!mount("none", root, "tmpfs", 0, NULL));
	CHECK(!does_file_last(elsewhere));
}

static void leave_if_unable(const char *folder)
{
	char map[64];
	int fd;

	snprintf(map, sizeof map, "0 %u 1\n", (unsigned)geteuid());
	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			leave_child_fixture(NO_SUCH);
		fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
		CHECK(fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map));
		close(fd);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || !does_file_last(folder))
		leave_child_fixture(NO_SUCH);
}

static void judge_overlays(char root[4][64])
{
	leave_if_unable(root[0]);
	CHECK(!mount("none", root[1], "tmpfs", 0, NULL));
	CHECK(!does_file_last(root[1]));
	try_overlay(root[1], "", false);
	try_overlay(root[0], "", true);
	try_hidden(root[0], root[3]);
	try_overlay(root[2], ",volatile", false);
	leave_child_fixture(0);
}

static int remove_of_overlay(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

Test(persist, an_overlay_keeps_what_its_upper_folder_keeps, .timeout = 60)
{
	char root[4][64];
	int status;
	pid_t pid;

	for (int i = 0; i < 4; i++) {
		strcpy(root[i], "/var/tmp/ddps_persist_XXXXXX");
		cr_assert_not_null(mkdtemp(root[i]));
	}
	pid = fork();
	if (!pid)
		judge_overlays(root);
	status = await_child_status(pid);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(nftw(root[i], remove_of_overlay, 16, FTW_DEPTH | FTW_PHYS), 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH)
		cr_skip_test("no overlay can be mounted, or nothing is kept here");
	cr_expect_eq(status, 0, "line %d (mod 70)", WEXITSTATUS(status) - 1);
}

/* ---- the advert: its octets, and what is none ---- */

static const uint8_t octets[DDPS_ADVERT_LEN] = { 0x01, 0x02, 0x03, 0x04, 0x10, 0x20, 0x30,
						 0x40, 0x50, 0x60, 0x70, 0x80, 0,    0,
						 0,    1,    0,	   0,	 0,    2 };

Test(advert, octets_are_as_the_header_says)
{
	const struct ddps_advert a = { 0x1020304050607080, 0x100000002, 0x01020304, 0 };
	struct ddps_advert got = { 0 };
	uint8_t out[DDPS_ADVERT_LEN];

	ddps_advert_encode(out, &a);
	cr_expect_arr_eq(out, octets, sizeof out);
	cr_expect_eq(ddps_advert_decode(&got, octets, sizeof octets), 0);
	cr_expect_eq(got.to, a.to);
	cr_expect_eq(got.length, a.length);
	cr_expect_eq(got.stag, a.stag);
	cr_expect_eq(got.reserved, 0);
}

Test(advert, another_length_is_none_and_changes_nothing)
{
	struct ddps_advert a = { 1, 2, 3, 0 };
	uint8_t more[DDPS_ADVERT_LEN + 1] = { 0 };

	for (size_t len = 0; len <= sizeof more; len++)
		if (len != DDPS_ADVERT_LEN)
			cr_expect_eq(ddps_advert_decode(&a, more, len), DDPS_E_PROTOCOL, "%zu",
				     len);
	cr_expect(a.to == 1 && a.length == 2 && a.stag == 3);
}

Test(advert, memory_does_not_run_beyond_the_last_offset)
{
	struct ddps_advert a = { UINT64_MAX - 3, 4, 7, 0 };
	uint8_t out[DDPS_ADVERT_LEN];

	ddps_advert_encode(out, &a);
	cr_expect_eq(ddps_advert_decode(&a, out, sizeof out), 0);
	a.length = 5;
	ddps_advert_encode(out, &a);
	cr_expect_eq(ddps_advert_decode(&a, out, sizeof out), DDPS_E_PROTOCOL);
	a = (struct ddps_advert){ 0 };
	ddps_advert_encode(out, &a);
	cr_expect_eq(ddps_advert_decode(&a, out, sizeof out), 0);
	cr_expect_eq(a.length, 0);
}
