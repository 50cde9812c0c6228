/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's rings: indexes of the target's that cannot be are its fault, and no silence. */
#include "conform/peer/inside.h"
#include "conform/peer/shared.h"
#include "mpa_tcp/shm/shm_pass.h"
#include <criterion/criterion.h>
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

static void init(void)
{
	int pair[2], fd;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	conn = (struct cf_conn){ .fd = pair[0] };
	cf.run = &run;
	cf.c = &as_responder;
	cf.conn = &conn;
	cf.res = &res;
	target = pair[1];
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
