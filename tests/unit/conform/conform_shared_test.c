/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's rings: indexes of the target's that cannot be are its fault, and no silence. */
#include "conform/peer/inside.h"
#include "conform/peer/shared.h"
#include "mpa_tcp/shm/shm_pass.h"
#include "conform/peer/left.h"
#include "unit/linger_fixture.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct cf_run run = { .limit_ms = 5000, .shared = true };
static const struct cf_case as_responder = { .target = CF_RESPONDER };
static struct ddps_shm_memory *memory; /* the target's */
static int target;
static struct cf_conn conn;
static struct cf_res res = { .listen_fd = -1 };
static struct cf cf;

static void meet_target(void)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	conn = (struct cf_conn){ .fd = pair[0] };
	cf.run = &run;
	cf.c = &as_responder;
	cf.conn = &conn;
	cf.res = &res;
	target = pair[1];
}

static void init(void)
{
	int fd;

	meet_target();
	memory = ddps_shm_make(&fd);
	cr_assert(memory);
	cr_assert_eq(ddps_shm_pass(target, fd), 0);
	close(fd);
	if (setjmp(cf.left.to))
		cr_assert(false, "%s", cf.left.why);
	cf_shared_open(&cf);
}

static void fini(void)
{
	cf_shared_close(&conn);
	close(conn.fd);
	close(target);
	munmap(memory, sizeof *memory);
}

TestSuite(conform_shared, .init = init, .fini = fini);

Test(conform_shared, octets_that_there_cannot_be)
{
	char b[8];

	if (setjmp(cf.left.to)) {
		cr_expect_str_eq(cf.left.why,
				 "the target's writing index is not possible: there are "
				 "262145 octets in a ring of 262144");
		return;
	}
	memory->words.head = DDPS_SHM_OCTETS;
	cr_expect_eq(cf_shared_recv(&cf, b, sizeof b), (ssize_t)sizeof b);
	memory->words.head = DDPS_SHM_OCTETS + sizeof b + 1;
	(void)cf_shared_recv(&cf, b, sizeof b);
	cr_assert(false, "it is let pass");
}

Test(conform_shared, octets_read_that_were_not_written)
{
	if (setjmp(cf.left.to)) {
		cr_expect(strstr(cf.left.why, "the target's reading index is not possible"), "%s",
			  cf.left.why);
		return;
	}
	cr_expect_eq(cf_shared_send(&cf, "octets", 6), 6);
	memory->words.tail = 7;
	(void)cf_shared_send(&cf, "octets", 6);
	cr_assert(false, "it is let pass");
}

/* The peer has room for one, and a little more. */
static void refuse_passed(int n)
{
	int pipes[2], fds[8];
	char b;

	meet_target();
	cr_assert_eq(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	for (int i = 0; i < n; i++)
		fds[i] = pipes[1];
	pass_flags(target, "ddpsess\n\0\0\0\2\0\4\0", 16, fds, n, 0);
	close(pipes[1]);
	if (!setjmp(cf.left.to)) {
		cf_shared_open(&cf);
		cr_assert(false, "%d are let pass", n);
	}
	cr_expect(strstr(cf.left.why, n == 1 ? "passes no memory of" : "or more than one"),
		  "%d: %s", n, cf.left.why);
	cf_shared_close(&conn);
	close(conn.fd);
	close(target);
	cr_expect_eq(read(pipes[0], &b, 1), 0, "some of %d are open", n);
	close(pipes[0]);
}

Test(conform_passed, each_descriptor_of_several_is_closed)
{
	for (int n = 0; n <= 8; n++)
		refuse_passed(n);
}

/* ---- whether a wait was lost by the suite's own host: the clock is the test's ---- */

#define MS UINT64_C(1000000)

static uint64_t now;

/* A nap of @ms in wait @key that lasts @late ms too long. */
static void nap(struct cf_late *l, uint64_t key, int ms, unsigned late)
{
	int sleeps = cf_late_nap(l, key, now, ms);

	now += ((unsigned)sleeps + late) * MS;
	cf_late_woke(l, now);
}

static bool doubt(struct cf_late *l)
{
	char why[300] = "waited 500 ms for it";

	return cf_late_doubt(l, why, sizeof why);
}

Test(conform_late, contact_31_a_wait_without_a_processor_is_undecided)
{
	char why[300] = "waited 500 ms for an FPDU";
	struct cf_late l = { 0 };

	for (unsigned i = 0; i < 6; i++)
		nap(&l, 1, 500, i == 3 ? 200 : 0);
	cr_assert(cf_late_doubt(&l, why, sizeof why));
	cr_expect_str_eq(why,
			 "undecided: this host had no processor for 200 of 500 ms: run again on "
			 "a quieter one (waited 500 ms for an FPDU)");
}

Test(conform_late, a_wait_with_a_processor_decides)
{
	struct cf_late l = { 0 };

	for (unsigned i = 0; i < 100; i++)
		nap(&l, 1, 5000, 1);
	nap(&l, 1, 5000, 200);
	cr_expect(!doubt(&l), "a small part of it is lost");
	nap(&l, 2, 10, 49);
	cr_expect(!doubt(&l), "too little to matter");
}

Test(conform_late, the_worst_wait_of_a_case_counts)
{
	char why[300] = "x";
	struct cf_late l = { 0 };

	nap(&l, 1, 50, 100);
	nap(&l, 2, 50, 3000);
	nap(&l, 3, 50, 60);
	nap(&l, 4, 50, 0);
	cr_assert(cf_late_doubt(&l, why, sizeof why));
	cr_expect(strstr(why, " 3000 of 3050 ms"), "%s", why);
}

Test(conform_late, time_between_two_naps_of_a_wait_is_lost_and_between_waits_is_not)
{
	struct cf_late l = { 0 };

	nap(&l, 1, 50, 0);
	now += 900 * MS;
	nap(&l, 2, 50, 0);
	cr_expect(!doubt(&l), "the case had something else to do");
	now += 900 * MS;
	nap(&l, 2, 50, 0);
	cr_expect(doubt(&l));
}

Test(conform_late, naps_are_short)
{
	struct cf_late l = { 0 };

	cr_expect_eq(cf_late_nap(&l, 1, 0, 60000), CF_NAP_MS);
	cr_expect_eq(cf_late_nap(&l, 1, 0, 3), 3);
	cr_expect_eq(cf_late_nap(&l, 1, 0, -1), -1);
}
