/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the port in the preload library itself: which calls give the present value, and of whom it is. */
#include "view/view_counters.h"
#include "view_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PORT	"/sys/class/infiniband/view_count/ports/1"
#define FILE_AT PORT "/counters/port_rcv_data"

static char tmp[] = "/tmp/view_count_test-XXXXXX";

static void make_below(const char *path)
{
	char all[PATH_MAX];

	snprintf(all, sizeof all, "%s%s", tmp, path);
	cr_assert(!mkdir(all, 0700), "%s", all);
}

static void write_below(const char *path, const void *octets, size_t len)
{
	char all[PATH_MAX];
	FILE *f;

	snprintf(all, sizeof all, "%s%s", tmp, path);
	f = fopen(all, "w");
	cr_assert(f && fwrite(octets, 1, len, f) == len && !fclose(f), "%s", all);
}

static bool lies_in_view(const char *path)
{
	char all[PATH_MAX];

	snprintf(all, sizeof all, "%s%s", tmp, path);
	return !access(all, F_OK);
}

/* All counters of @name are @n, in its file. */
static void write_sum(const char *name, uint64_t n)
{
	uint64_t v[VIEW_NCOUNTERS];
	char path[64];

	for (int i = 0; i < VIEW_NCOUNTERS; i++)
		v[i] = n;
	snprintf(path, sizeof path, "/" VIEW_LIVE "/%s", name);
	write_below(path, v, sizeof v);
}

static void setup(void)
{
	open_view(tmp);
	make_below("/sys");
	make_below("/sys/class");
	make_below("/sys/class/infiniband");
	make_below("/sys/class/infiniband/view_count");
	make_below("/sys/class/infiniband/view_count/ports");
	make_below(PORT);
	make_below(PORT "/counters");
	make_below("/" VIEW_LIVE);
	write_below(FILE_AT, "0\n", 2);
	write_below(PORT "/counters/state", "4\n", 2);
	write_below(PORT "/port_rcv_data", "5\n", 2);
}

static void fini(void)
{
	remove_view(tmp);
}

TestSuite(view_count, .init = setup, .fini = fini, .timeout = 30);

static long read_counter(int fd)
{
	char b[32] = "";

	if (fd < 0)
		return -1;
	cr_expect_geq(read(fd, b, sizeof b - 1), 0);
	close(fd);
	return strtol(b, NULL, 10);
}

static long count_now(void)
{
	return read_counter(THEIRS(open)(FILE_AT, O_RDONLY));
}

Test(view_count, by_each_call_that_opens)
{
	int dir = THEIRS(open)(PORT, O_RDONLY | O_DIRECTORY), fd;
	FILE *f;

	write_sum(VIEW_ENDED, 42);
	cr_assert_geq(dir, 0);
	cr_expect_eq(count_now(), 42);
	cr_expect_eq(read_counter(THEIRS(open64)(FILE_AT, O_RDONLY)), 42);
	cr_expect_eq(read_counter(THEIRS(openat)(AT_FDCWD, FILE_AT, O_RDONLY)), 42);
	cr_expect_eq(read_counter(THEIRS(openat64)(dir, "counters/port_rcv_data", O_RDONLY)), 42);
	cr_expect_eq(read_counter(THEIRS(openat)(dir, "../1/./counters/port_rcv_data", O_RDONLY)),
		     42);
	f = THEIRS(fopen)(FILE_AT, "re");
	cr_assert(f);
	cr_expect_eq(read_counter(dup(fileno(f))), 42);
	fclose(f);
	cr_assert_eq(THEIRS(chdir)(PORT "/counters"), 0);
	cr_expect_eq(read_counter(THEIRS(open)("port_rcv_data", O_RDONLY)), 42);
	fd = THEIRS(open)(FILE_AT, O_RDONLY | O_CLOEXEC);
	cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	fd = THEIRS(open)(FILE_AT, O_RDONLY);
	cr_expect_eq(fcntl(fd, F_GETFD), 0);
	close(fd);
	cr_assert_eq(chdir("/"), 0);
}

/* Other files of such names, and of such folders, are what they are. */
Test(view_count, and_nothing_else)
{
	char plain[sizeof tmp + 32];

	write_sum(VIEW_ENDED, 42);
	cr_expect_eq(read_counter(THEIRS(open)(PORT "/counters/state", O_RDONLY)), 4);
	cr_expect_eq(read_counter(THEIRS(open)(PORT "/port_rcv_data", O_RDONLY)), 5);
	cr_expect_eq(read_counter(THEIRS(open)(FILE_AT, O_RDWR)), 0);
	errno = 0;
	cr_expect_eq(THEIRS(open)(PORT "/counters/port_xmit_data", O_RDONLY), -1, "is not there");
	cr_expect_eq(errno, ENOENT);
	snprintf(plain, sizeof plain, "%s-counters", tmp);
	cr_assert(!mkdir(plain, 0700) && !chdir(plain));
	cr_expect_eq(THEIRS(open)("port_rcv_data", O_RDONLY), -1);
	cr_assert(!chdir("/") && !rmdir(plain));
}

static int open_process(const char *name, bool listens)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s/" VIEW_LIVE "/%s", tmp, name);
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	cr_assert(!listens || !listen(fd, 4));
	return fd;
}

/* A process that is gone is added to those that have ended, once; one that does not answer counts as it did last. */
Test(view_count, of_processes_that_hang_and_that_were_killed)
{
	int hangs = open_process("1.1", true);

	close(open_process("22.1", false));
	close(open_process("333.12", false)); /* nothing is known of it */
	write_sum("1.1" VIEW_SUM, 1);
	write_sum("22.1" VIEW_SUM, 20);
	write_sum("55.1" VIEW_SUM, 5000); /* of nobody */
	cr_expect_eq(count_now(), 21);
	cr_expect_not(lies_in_view("/" VIEW_LIVE "/22.1") || lies_in_view("/" VIEW_LIVE "/333.12"));
	cr_expect_not(lies_in_view("/" VIEW_LIVE "/22.1" VIEW_SUM));
	cr_expect(lies_in_view("/" VIEW_LIVE "/1.1"));
	cr_expect_eq(count_now(), 21);
	write_sum("1.1" VIEW_SUM, 3);
	cr_expect_eq(count_now(), 23);
	close(hangs);
	cr_expect_eq(count_now(), 23);
	cr_expect_not(lies_in_view("/" VIEW_LIVE "/1.1"));
	cr_expect_eq(count_now(), 23);
}

/* They are asked at the same time, and nobody else has to wait for that. */
Test(view_count, many_that_hang_cost_the_time_of_one)
{
	struct timespec begin, end;
	char name[16], file[24];
	int hangs[20];

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "%d.1", 1 + i);
		snprintf(file, sizeof file, "%s" VIEW_SUM, name);
		hangs[i] = open_process(name, true);
		write_sum(file, 1);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	cr_expect_eq(count_now(), 20);
	clock_gettime(CLOCK_MONOTONIC, &end);
	cr_expect_lt(end.tv_sec - begin.tv_sec, 3, "20 times 0.2 s are four");
	for (int i = 0; i < 20; i++)
		close(hangs[i]);
}

/* What is no file is not read, and nobody waits for it. */
Test(view_count, of_pipes)
{
	char path[sizeof tmp + 32];
	int hangs = open_process("1.1", true);

	close(open_process("22.1", false));
	write_sum("1.1" VIEW_SUM, 1);
	snprintf(path, sizeof path, "%s/" VIEW_LIVE "/22.1" VIEW_SUM, tmp);
	cr_assert(!mkfifo(path, 0600));
	cr_expect_eq(count_now(), 1);
	cr_expect_not(lies_in_view("/" VIEW_LIVE "/22.1" VIEW_SUM));
	snprintf(path, sizeof path, "%s/" VIEW_LIVE "/1.1" VIEW_SUM, tmp);
	cr_assert(!unlink(path) && !mkfifo(path, 0600));
	cr_expect_eq(count_now(), 0);
	close(hangs);
}

Test(view_count, where_nothing_is_known)
{
	char live[sizeof tmp + 16];

	cr_expect_eq(count_now(), 0);
	write_below("/" VIEW_LIVE "/" VIEW_ENDED, "short", 5);
	cr_expect_eq(count_now(), 0);
	snprintf(live, sizeof live, "%s/" VIEW_LIVE, tmp);
	cr_assert(!chmod(live, 0));
	cr_expect_geq(count_now(), 0);
	cr_assert(!chmod(live, 0700));
}

/* Whoever has the sum locked, and is stopped, keeps nobody else waiting, and nobody reads a wrong number. */
Test(view_count, that_somebody_keeps_locked)
{
	char ended[sizeof tmp + 32];
	int fd;

	write_sum(VIEW_ENDED, 42);
	snprintf(ended, sizeof ended, "%s/" VIEW_LIVE "/" VIEW_ENDED, tmp);
	fd = open(ended, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && !flock(fd, LOCK_EX));
	cr_expect_eq(count_now(), -1);
	cr_expect_eq(errno, EBUSY);
	cr_expect_null(THEIRS(fopen)(FILE_AT, "r"));
	cr_expect_eq(errno, EBUSY);
	cr_expect_eq(THEIRS(openat)(AT_FDCWD, FILE_AT, O_RDONLY), -1);
	cr_assert(!flock(fd, LOCK_SH));
	cr_expect_eq(count_now(), 42, "another reader");
	close(fd);
}
