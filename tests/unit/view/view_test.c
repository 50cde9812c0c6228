/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each function of libc's that the view stands before, called in the preload library itself: a path below
 * the device's folders leads into the view, any other one goes where it went.
 */
#include "view_fixture.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN "/sys/class/infiniband/view_test" /* no device is called that */

static char tmp[] = "/tmp/view_test-XXXXXX";
static char root[PATH_MAX], inside[PATH_MAX], outside[PATH_MAX];

static void write_view_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f), "%s", path);
}

static void make_folder(const char *below, char *path)
{
	snprintf(path, PATH_MAX, "%s%s", tmp, below);
	cr_assert(!mkdir(path, 0700), "%s", path);
}

/* tmp/view/sys/class/infiniband/view_test/{file,link}, and tmp/plain/{file,link} */
static void make_tree(void)
{
	char path[PATH_MAX], file[PATH_MAX + 8];

	cr_assert(mkdtemp(tmp));
	make_folder("/view", root);
	make_folder("/view/sys", path);
	make_folder("/view/sys/class", path);
	make_folder("/view/sys/class/infiniband", path);
	make_folder("/view" SHOWN, inside);
	make_folder("/plain", outside);
	for (int i = 0; i < 2; i++) {
		snprintf(file, sizeof file, "%s/file", i ? outside : inside);
		write_view_file(file, i ? "plain" : "shown");
		snprintf(file, sizeof file, "%s/link", i ? outside : inside);
		cr_assert(!symlink("file", file));
	}
}

static void remove_tree(void)
{
	remove_view(tmp);
}

/* The library as a program has it that was started with DDPSESS_VIEW=@view. */
static void load(const char *view)
{
	if (view)
		setenv("DDPSESS_VIEW", view, 1);
	else
		unsetenv("DDPSESS_VIEW");
	load_view();
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
int __xstat(int ver, const char *path, struct stat *st);
int __lxstat(int ver, const char *path, struct stat *st);
int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags);
ssize_t getxattr(const char *path, const char *name, void *to, size_t len);
ssize_t listxattr(const char *path, char *to, size_t len);
char *__realpath_chk(const char *path, char *to, size_t len);

#define AT AT_FDCWD

/* What was opened is read: "shown", "plain", or "" if there is nothing. */
static void reads(int fd, const char *text, const char *how)
{
	char b[8] = "";

	if (fd >= 0) {
		cr_expect_geq(read(fd, b, sizeof b - 1), 0);
		close(fd);
	}
	cr_expect_str_eq(b, text, "%s", how);
}

static void expect_open_text(const char *file, const char *text)
{
	FILE *f;

	reads(THEIRS(open)(file, O_RDONLY), text, "open");
	reads(THEIRS(open64)(file, O_RDONLY), text, "open64");
	reads(THEIRS(openat)(AT, file, O_RDONLY), text, "openat");
	reads(THEIRS(openat64)(AT, file, O_RDONLY), text, "openat64");
	reads(THEIRS(__open_2)(file, O_RDONLY), text, "__open_2");
	reads(THEIRS(__open64_2)(file, O_RDONLY), text, "__open64_2");
	reads(THEIRS(__openat_2)(AT, file, O_RDONLY), text, "__openat_2");
	reads(THEIRS(__openat64_2)(AT, file, O_RDONLY), text, "__openat64_2");
	f = THEIRS(fopen)(file, "r");
	reads(f ? fileno(f) : -1, text, "fopen");
	f = THEIRS(fopen64)(file, "r");
	reads(f ? fileno(f) : -1, text, "fopen64");
}

static void lists(const char *folder, bool there)
{
	struct dirent **list;
	struct dirent64 **list64;
	DIR *d = THEIRS(opendir)(folder);
	int n, n64;

	cr_expect_eq(d != NULL, there);
	if (d)
		closedir(d);
	n = THEIRS(scandir)(folder, &list, NULL, NULL);
	n64 = THEIRS(scandir64)(folder, &list64, NULL, NULL);
	cr_expect_eq(n, there ? 4 : -1); /* ".", "..", the file, the link */
	cr_expect_eq(n64, there ? 4 : -1);
	for (int i = 0; i < n; i++)
		free(list[i]);
	for (int i = 0; i < n64; i++)
		free(list64[i]);
	if (n >= 0)
		free(list);
	if (n64 >= 0)
		free(list64);
}

/* Each of them says the same of whether the file is there, and how long it is. */
static void looks(const char *file, int want)
{
	off_t size = want ? 0 : 5;
	struct stat st;
	struct stat64 st64;
	struct statx stx = { 0 };

	cr_expect_eq(THEIRS(access)(file, R_OK), want);
	cr_expect_eq(THEIRS(faccessat)(AT, file, R_OK, 0), want);
	cr_expect_eq(THEIRS(euidaccess)(file, R_OK), want);
	cr_expect_eq(THEIRS(eaccess)(file, R_OK), want);
#define STAT(f, of, ...) (of.st_size = 0, THEIRS(f)(__VA_ARGS__) == want && of.st_size == size)
	cr_expect(STAT(stat, st, file, &st));
	cr_expect(STAT(lstat, st, file, &st));
	cr_expect(STAT(stat64, st64, file, &st64));
	cr_expect(STAT(lstat64, st64, file, &st64));
	cr_expect(STAT(fstatat, st, AT, file, &st, 0));
	cr_expect(STAT(fstatat64, st64, AT, file, &st64, 0));
	cr_expect_eq(THEIRS(statx)(AT, file, 0, STATX_SIZE, &stx), want);
	cr_expect_eq(stx.stx_size, (uint64_t)size);
}

/* What programs of an old glibc call: they are not in every one. */
static void looks_as_before(const char *file, int want)
{
	off_t size = want ? 0 : 5;
	struct stat st;
	const int ver = sizeof(long) == 8 ? 1 : 3;

	if (!dlsym(RTLD_DEFAULT, "__xstat"))
		return;
	cr_expect(STAT(__xstat, st, ver, file, &st));
	cr_expect(STAT(__lxstat, st, ver, file, &st));
	cr_expect(STAT(__fxstatat, st, ver, AT, file, &st, 0));
#define STAT64(name, ...)                                                                          \
	(st.st_size = 0, ((__typeof__(&name))dlsym(library, #name "64"))(__VA_ARGS__) == want &&   \
				 st.st_size == size)
	cr_expect(STAT64(__xstat, ver, file, &st));
	cr_expect(STAT64(__lxstat, ver, file, &st));
	cr_expect(STAT64(__fxstatat, ver, AT, file, &st, 0));
}

/* Nothing has such an attribute; whether there is a file is reported by the error. */
static void expect_no_attributes(const char *file, bool there)
{
	char b[100];

#define NONE(call, error) (errno = 0, (call) < 0 && (errno == (error) || errno == ENOTSUP))
	cr_expect(NONE(THEIRS(getxattr)(file, "user.none", b, sizeof b), there ? ENODATA : ENOENT));
	cr_expect(NONE(((__typeof__(&getxattr))dlsym(library, "lgetxattr"))(file, "user.none", b,
									    sizeof b),
		       there ? ENODATA : ENOENT));
	cr_expect_eq(THEIRS(listxattr)(file, b, sizeof b) < 0 && errno == ENOENT, !there);
	cr_expect_eq(((__typeof__(&listxattr))dlsym(library, "llistxattr"))(file, b, sizeof b) <
				     0 &&
			     errno == ENOENT,
		     !there);
}

/* A link is named as the program knows it, not by where the view lies. */
static void names(const char *link, const char *file, bool there)
{
	char b[PATH_MAX] = "", *name;

	cr_expect_eq(THEIRS(readlink)(link, b, sizeof b), there ? 4 : -1);
	cr_expect_eq(THEIRS(readlinkat)(AT, link, b, sizeof b), there ? 4 : -1);
	cr_expect(!there || !strncmp(b, "file", 4));
	cr_expect_eq(THEIRS(realpath)(link, b) != NULL, there);
	cr_expect(!there || !strcmp(b, file), "%s", b);
	cr_expect_eq(THEIRS(__realpath_chk)(link, b, sizeof b) != NULL, there);
	cr_expect(!there || !strcmp(b, file), "%s", b);
	name = THEIRS(canonicalize_file_name)(link);
	cr_expect_eq(name != NULL, there);
	cr_expect(!there || !strcmp(name, file));
	free(name);
}

static void goes(const char *folder, int want)
{
	char at[PATH_MAX];

	cr_assert(getcwd(at, sizeof at));
	cr_expect_eq(THEIRS(chdir)(folder), want);
	cr_expect_eq(access("file", R_OK), want);
	cr_expect_eq(chdir(at), 0);
}

/* @text: what the folder's file has, "" if no such folder is to be seen. */
static void expect_folder_text(const char *folder, const char *text)
{
	char file[PATH_MAX + 8], link[PATH_MAX + 8];
	bool there = *text;

	snprintf(file, sizeof file, "%s/file", folder);
	snprintf(link, sizeof link, "%s/link", folder);
	expect_open_text(file, text);
	lists(folder, there);
	looks(file, there ? 0 : -1);
	looks_as_before(file, there ? 0 : -1);
	expect_no_attributes(file, there);
	names(link, file, there);
	goes(folder, there ? 0 : -1);
}

Test(view, leads_each_call_into_the_view_and_leaves_other_paths_alone)
{
	make_tree();
	load(root);
	expect_folder_text(SHOWN, "shown");
	expect_folder_text(outside, "plain");
	expect_folder_text("/sys/class/infiniband/view_test/none", "");
	remove_tree();
}

Test(view, does_nothing_without_a_view)
{
	make_tree();
	load(NULL);
	expect_folder_text(SHOWN, "");
	expect_folder_text(outside, "plain");
	remove_tree();
}

Test(view, does_nothing_with_a_view_that_is_no_folders_name)
{
	make_tree();
	load("relative");
	expect_folder_text(SHOWN, "");
	remove_tree();
}

Test(view, does_nothing_with_a_view_of_too_long_a_name)
{
	static char name[PATH_MAX + 2];

	memset(name, '/', sizeof name - 1);
	make_tree();
	load(name);
	expect_folder_text(SHOWN, "");
	remove_tree();
}

/* The mode is there if a file is made, and only then. */
Test(view, passes_on_the_mode_of_what_is_made)
{
	char path[PATH_MAX + 8], hidden[PATH_MAX + 32];
	struct stat st;
	int fd;

	make_tree();
	load(root);
	umask(0);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, SHOWN "/made%d", i);
		snprintf(hidden, sizeof hidden, "%s/made%d", inside, i);
		fd = i == 0   ? THEIRS(open)(path, O_CREAT | O_WRONLY, 0640)
		     : i == 1 ? THEIRS(open64)(path, O_CREAT | O_WRONLY, 0640)
		     : i == 2 ? THEIRS(openat)(AT, path, O_CREAT | O_WRONLY, 0640)
			      : THEIRS(openat64)(AT, path, O_CREAT | O_WRONLY, 0640);
		cr_expect_geq(fd, 0);
		cr_expect(!stat(hidden, &st) && (st.st_mode & 0777) == 0640, "%d", i);
		close(fd);
		fd = i == 0   ? THEIRS(open)(SHOWN, O_TMPFILE | O_WRONLY, 0640)
		     : i == 1 ? THEIRS(open64)(SHOWN, O_TMPFILE | O_WRONLY, 0640)
		     : i == 2 ? THEIRS(openat)(AT, SHOWN, O_TMPFILE | O_WRONLY, 0640)
			      : THEIRS(openat64)(AT, SHOWN, O_TMPFILE | O_WRONLY, 0640);
		/* Not every file system has these. */
		cr_expect(fd < 0 ? errno == EOPNOTSUPP
				 : !fstat(fd, &st) && (st.st_mode & 0777) == 0640);
		close(fd);
	}
	remove_tree();
}
