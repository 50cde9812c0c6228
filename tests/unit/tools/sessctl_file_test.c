/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: names from a peer, staying inside a directory, files that appear whole or not. */
#include "xfer/proto.h"
#include "cli/safe.h"
#include "cli/temp.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static int dir = -1;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void write_sessctl_file_file(const char *name, const char *text)
{
	int fd = openat(dir, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* root/served is the directory, root/secret what must not be reached */
static void set_sessctl_file_up(void)
{
	char path[100];

	strcpy(root, "/tmp/sessctl-test-XXXXXX");
	cr_assert(mkdtemp(root));
	snprintf(path, sizeof path, "%s/served", root);
	cr_assert_eq(mkdir(path, 0700), 0);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	write_sessctl_file_file("../secret", "secret");
	write_sessctl_file_file("file", "hello");
	cr_assert_eq(mkdirat(dir, "sub", 0700), 0);
	write_sessctl_file_file("sub/inner", "inner");
	cr_assert_eq(symlinkat("../secret", dir, "out"), 0);
	cr_assert_eq(symlinkat("/etc", dir, "etc"), 0);
	cr_assert_eq(symlinkat("..", dir, "up"), 0);
	cr_assert_eq(mkfifoat(dir, "fifo", 0600), 0);
}

static void tear_down(void)
{
	close(dir);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Entries of the directory, with and without temporary ones. */
static unsigned entries(void)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY);
	DIR *d = fdopendir(fd);
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

Test(sessctl_safe, names)
{
	static const char *const good[] = { "a",
					    "a.txt",
					    "..a",
					    "a..",
					    "...",
					    ".hidden",
					    "a/b/c",
					    "a b",
					    ".part",
					    "x.part",
					    "gr\xc3\xbc\xc3\x9f" };
	static const char *const bad[] = { "",		".",	   "..",
					   "../a",	"a/..",	   "a/../b",
					   "a/./b",	"/a",	   "a//b",
					   "a/",	"a\nb",	   "\x1b[m",
					   "\x7f",	"\xff",	   ".a.0badcafe.part",
					   "d/.a.part", "\xc2\x85" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		cr_expect_null(safe_name_fault(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_expect_not_null(safe_name_fault(bad[i]), "%s", bad[i]);
}

Test(sessctl_safe, name_length_limit)
{
	char name[300];

	for (size_t n = 254; n <= 256; n++) {
		memset(name, 'n', n);
		name[n] = 0;
		cr_expect_eq(safe_name_fault(name) != NULL, n > 255, "%zu", n);
	}
}

Test(sessctl_safe, opens_below_and_nowhere_else, .init = set_sessctl_file_up, .fini = tear_down)
{
	static int (*const how[])(int, const char *, int) = { safe_open, safe_open_walk };
	static const char *const bad[] = { "out",	"etc/passwd",  "up/secret",
					   "../secret", "/etc/passwd", "sub/../../secret" };

	for (size_t h = 0; h < 2; h++) {
		int fd = how[h](dir, "sub/inner", O_RDONLY);

		cr_expect_geq(fd, 0);
		close(fd);
		for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
			fd = how[h](dir, bad[i], O_RDONLY);
			cr_expect_lt(fd, 0, "%zu: %s", h, bad[i]);
			if (fd >= 0)
				close(fd);
		}
		cr_expect_lt(how[h](dir, "nothing", O_RDONLY), 0);
		cr_expect_eq(errno, ENOENT);
	}
}

Test(sessctl_safe, serves_regular_files_within_the_limit, .init = set_sessctl_file_up,
     .fini = tear_down)
{
	const char *why = NULL;
	uint64_t size = 0;
	int fd = safe_open_file(dir, "file", 5, &size, &why);

	cr_assert_geq(fd, 0);
	cr_expect_eq(size, 5);
	cr_expect_null(why);
	close(fd);
	fd = safe_open_file(dir, "file", 6, &size, &why);
	cr_expect_geq(fd, 0);
	close(fd);
	cr_expect_lt(safe_open_file(dir, "file", 4, &size, &why), 0);
	cr_expect(strstr(why, "limit"));
	cr_expect_lt(safe_open_file(dir, "fifo", 9, &size, &why), 0);
	cr_expect(strstr(why, "regular"));
	cr_expect_lt(safe_open_file(dir, "sub", 9, &size, &why), 0);
	cr_expect(strstr(why, "regular"));
	cr_expect_lt(safe_open_file(dir, "out", 9, &size, &why), 0);
	cr_expect(strstr(why, "out of the directory"), "%s", why);
	cr_expect_lt(safe_open_file(dir, "../secret", 9, &size, &why), 0);
	cr_expect_lt(safe_open_file(dir, "none", 9, &size, &why), 0);
	cr_expect(strstr(why, "no such file"));
}

Test(sessctl_safe, parent_of_a_name, .init = set_sessctl_file_up, .fini = tear_down)
{
	const char *base;
	int fd = safe_open_parent(dir, "sub/new", &base);

	cr_assert_geq(fd, 0);
	cr_expect_str_eq(base, "new");
	cr_expect_eq(faccessat(fd, "inner", F_OK, 0), 0);
	close(fd);
	fd = safe_open_parent(dir, "new", &base);
	cr_assert_geq(fd, 0);
	cr_expect_str_eq(base, "new");
	close(fd);
	cr_expect_lt(safe_open_parent(dir, "etc/new", &base), 0);
	cr_expect_lt(safe_open_parent(dir, "up/new", &base), 0);
	cr_expect_lt(safe_open_parent(dir, "file/new", &base), 0);
	cr_expect_lt(safe_open_parent(dir, "none/new", &base), 0);
}

/* Both ways to make a temporary file give the same result. */
static const bool named[] = { false, true };

static void expect_content(const char *name, const char *text)
{
	char buf[100] = "";
	int fd = openat(dir, name, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_expect_eq(read(fd, buf, sizeof buf - 1), (ssize_t)strlen(text));
	cr_expect_str_eq(buf, text);
	close(fd);
}

Test(sessctl_temp, appears_whole_under_its_name, .init = set_sessctl_file_up, .fini = tear_down)
{
	struct temp t = TEMP_NONE;

	for (size_t i = 0; i < 2; i++) {
		unsigned before = entries();
		const char *name = named[i] ? "one" : "two";

		cr_assert_eq(temp_open(&t, dir, name, 6, false, named[i]), 0);
		cr_expect_neq(faccessat(dir, name, F_OK, 0), 0);
		cr_expect_eq(temp_write(&t, "def", 3, 3), 0);
		cr_expect_eq(temp_write(&t, "abc", 3, 0), 0);
		cr_assert_eq(temp_commit(&t, false, NULL), 0);
		cr_expect_eq(t.fd, -1);
		expect_content(name, "abcdef");
		cr_expect_eq(entries(), before + 1);
	}
}

Test(sessctl_temp, never_replaces_without_force, .init = set_sessctl_file_up, .fini = tear_down)
{
	struct temp t = TEMP_NONE;

	for (size_t i = 0; i < 2; i++) {
		unsigned before = entries();

		cr_expect_eq(temp_open(&t, dir, "file", 1, false, named[i]), -1);
		cr_expect_eq(errno, EEXIST);
		/* one that appears in the meantime */
		cr_assert_eq(temp_open(&t, dir, "new", 0, false, named[i]), 0);
		write_sessctl_file_file("new", "other");
		cr_expect_eq(temp_commit(&t, false, NULL), -1);
		cr_expect_eq(errno, EEXIST);
		expect_content("new", "other");
		cr_expect_eq(unlinkat(dir, "new", 0), 0);
		cr_expect_eq(entries(), before);
	}
}

Test(sessctl_temp, replaces_with_force, .init = set_sessctl_file_up, .fini = tear_down)
{
	struct temp t = TEMP_NONE;
	unsigned before = entries();

	for (size_t i = 0; i < 2; i++) {
		cr_assert_eq(temp_open(&t, dir, "file", 2, true, named[i]), 0);
		cr_expect_eq(temp_write(&t, i ? "B!" : "A!", 2, 0), 0);
		expect_content("file", i ? "A!" : "hello");
		cr_assert_eq(temp_commit(&t, true, NULL), 0);
		expect_content("file", i ? "B!" : "A!");
	}
	/* a link is neither followed nor replaced */
	cr_expect_eq(temp_open(&t, dir, "out", 1, true, false), -1);
	cr_expect_eq(errno, ELOOP);
	expect_content("../secret", "secret");
	cr_expect_eq(temp_open(&t, dir, "sub", 1, true, false), -1);
	cr_expect_eq(errno, EISDIR);
	cr_expect_eq(entries(), before);
	cr_assert_eq(mkfifoat(dir, "pipe", 0600), 0);
	cr_expect_eq(temp_open(&t, dir, "pipe", 1, true, false), -1);
	cr_expect_eq(errno, ENXIO, "a rename would put a file in its place");
	cr_expect_eq(unlinkat(dir, "pipe", 0), 0);
}

/* Who could not read the old file cannot read the new one, nor what there is of it so far. */
Test(sessctl_temp, contact_19_a_file_that_is_replaced_keeps_its_mode, .init = set_sessctl_file_up,
     .fini = tear_down)
{
	static const mode_t modes[] = { 0600, 0444, 0751 };
	struct temp t = TEMP_NONE;
	struct stat st;

	for (size_t i = 0; i < 6; i++) {
		cr_assert_eq(fchmodat(dir, "file", modes[i / 2], 0), 0);
		cr_assert_eq(temp_open(&t, dir, "file", 1, true, named[i % 2]), 0);
		cr_expect(!fstat(t.fd, &st) && (st.st_mode & 07777) == modes[i / 2]);
		cr_expect_eq(temp_write(&t, "x", 1, 0), 0);
		cr_assert_eq(temp_commit(&t, true, NULL), 0);
		cr_expect(!fstatat(dir, "file", &st, 0) && (st.st_mode & 07777) == modes[i / 2],
			  "%o", st.st_mode);
		expect_content("file", "x");
	}
}

Test(sessctl_temp, abort_leaves_nothing, .init = set_sessctl_file_up, .fini = tear_down)
{
	struct temp t = TEMP_NONE;
	unsigned before = entries();

	for (size_t i = 0; i < 2; i++) {
		cr_assert_eq(temp_open(&t, dir, "new", 3, false, named[i]), 0);
		cr_expect_eq(entries(), before + (named[i] ? 1 : 0));
		temp_abort(&t);
		temp_abort(&t);
		cr_expect_eq(entries(), before);
	}
}

Test(sessctl_temp, longest_name_has_room_for_the_temporary_one, .init = set_sessctl_file_up,
     .fini = tear_down)
{
	char name[NAME_MAX + 2];
	struct temp t = TEMP_NONE;

	memset(name, 'n', sizeof name);
	name[NAME_MAX + 1] = 0;
	cr_expect_eq(temp_open(&t, dir, name, 0, false, true), -1);
	cr_expect_eq(errno, ENAMETOOLONG);
	name[NAME_MAX] = 0;
	cr_assert_eq(temp_open(&t, dir, name, 0, false, true), 0);
	cr_assert_eq(temp_commit(&t, false, NULL), 0);
	cr_expect_eq(faccessat(dir, name, F_OK, 0), 0);
}

Test(sessctl_temp, a_full_disk_is_met_before_the_transfer, .init = set_sessctl_file_up,
     .fini = tear_down)
{
	struct temp t = TEMP_NONE;
	unsigned before = entries();

	cr_expect_eq(temp_open(&t, dir, "huge", 1ull << 62, false, true), -1);
	cr_expect(errno == ENOSPC || errno == EFBIG, "%s", strerror(errno));
	cr_expect_eq(entries(), before);
}

Test(sessctl_file, windows_are_no_larger_than_needed)
{
	static const struct {
		uint64_t size;
		uint32_t len;
		uint8_t n;
	} row[] = {
		{ 0, 0, 0 },
		{ 1, 1, 1 },
		{ SLOT_LEN_MAX - 1, SLOT_LEN_MAX - 1, 1 },
		{ SLOT_LEN_MAX, SLOT_LEN_MAX, 1 },
		{ SLOT_LEN_MAX + 1, SLOT_LEN_MAX, 2 },
		{ 4ull * SLOT_LEN_MAX, SLOT_LEN_MAX, 4 },
		{ 4ull * SLOT_LEN_MAX + 1, SLOT_LEN_MAX, 4 },
		{ 5ull << 30, SLOT_LEN_MAX, 4 },
		{ INT64_MAX, SLOT_LEN_MAX, 4 },
		{ UINT64_MAX, SLOT_LEN_MAX, 4 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_expect_eq(file_slot_len(row[i].size), row[i].len, "row %zu", i);
		cr_expect_eq(file_nslots(row[i].size), row[i].n, "row %zu", i);
	}
}

Test(sessctl_file, reads_at_an_offset_and_short_only_at_the_end, .init = set_sessctl_file_up,
     .fini = tear_down)
{
	uint8_t buf[8];
	int fd = openat(dir, "file", O_RDONLY);

	cr_expect_eq(file_read(fd, buf, 2, 1), 2);
	cr_expect_arr_eq(buf, "el", 2);
	cr_expect_eq(file_read(fd, buf, sizeof buf, 3), 2);
	cr_expect_eq(file_read(fd, buf, sizeof buf, 5), 0);
	close(fd);
	cr_expect_eq(file_read(fd, buf, 1, 0), -1);
}

/* ---- files of sessctl that never get a name ---- */

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
