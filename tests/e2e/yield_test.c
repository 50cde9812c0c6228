/* SPDX-License-Identifier: BSD-2-Clause */
/* Whoever polls in vain makes room for whoever has something to do. */
#include "support/e2e.h"
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MANY 32u

static _Thread_local unsigned yields;
static void (*meanwhile)(void);

/* Instead of libc's, for the whole program. */
int sched_yield(void)
{
	yields++;
	if (meanwhile)
		meanwhile();
	return (int)syscall(SYS_sched_yield);
}

static unsigned poll_in_vain(struct e2e *e, unsigned n)
{
	struct ddps_wc wc;

	yields = 0;
	while (n--)
		cr_assert_eq(ddps_cq_poll(e->cq, &wc, 1), 0);
	return yields;
}

Test(yield, a_thread_that_polls_in_vain_gives_its_processor_away, .timeout = 60)
{
	uint8_t octet = 0;
	struct ddps_mr *mr;
	struct e2e e;

	e2e_up(&e, "tcp://127.0.0.1:0");
	mr = e2e_reg(&e, &octet, 1, DDPS_REMOTE_WRITE);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, &octet, 1, mr, ddps_mr_stag(mr),
				      ddps_mr_to(mr)),
			     0);
		e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, 1);
		cr_expect_eq(poll_in_vain(&e, MANY - 1), 0, "the next message may be near");
		cr_expect_eq(poll_in_vain(&e, 10), 10, "it is not");
	}
	e2e_close(&e);
}

/* A step of a set-up, or a Write that came: nothing completes, and more of it is near. */
Test(yield, a_poll_that_moves_something_was_not_in_vain, .timeout = 60)
{
	uint8_t octet[2] = { 1, 0 };
	struct ddps_sge sge;
	struct ddps_mr *mr;
	struct e2e e;

	e2e_up(&e, "tcp://127.0.0.1:0");
	mr = e2e_reg(&e, octet, 2, DDPS_REMOTE_WRITE);
	sge = (struct ddps_sge){ octet, 1, ddps_mr_stag(mr) };
	cr_expect_geq(poll_in_vain(&e, 2 * MANY), MANY);
	cr_assert_eq(ddps_post_send(e.a.ep, &(struct ddps_send_wr){ .op = DDPS_OP_WRITE,
								    .flags = DDPS_WR_SILENT,
								    .sge = &sge,
								    .nsge = 1,
								    .stag = ddps_mr_stag(mr),
								    .to = ddps_mr_to(mr) + 1 }),
		     0);
	while (!*(volatile uint8_t *)&octet[1])
		poll_in_vain(&e, 1);
	cr_expect_eq(poll_in_vain(&e, MANY - 2), 0, "more may be near");
	e2e_close(&e);
}

static struct e2e busy;
static struct ddps_mr *busy_mr;
static uint8_t busy_octet;

/* What others do while the thread does not run: here a request that completes. */
static void others_run(void)
{
	meanwhile = NULL;
	cr_assert_eq(e2e_post(&busy.a, DDPS_OP_WRITE, &busy_octet, 1, busy_mr,
			      ddps_mr_stag(busy_mr), ddps_mr_to(busy_mr)),
		     0);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_geq(ddps_progress(busy.ctx, 0), 0);
}

/* A program that gets "nothing" goes on to look for the end of its connection. */
Test(yield, what_came_meanwhile_is_found_by_the_same_poll, .timeout = 60)
{
	struct ddps_wc wc;

	e2e_up(&busy, "tcp://127.0.0.1:0");
	busy_mr = e2e_reg(&busy, &busy_octet, 1, DDPS_REMOTE_WRITE);
	poll_in_vain(&busy, 2 * MANY);
	meanwhile = others_run;
	cr_expect_eq(ddps_cq_poll(busy.cq, &wc, 1), 1);
	cr_expect_null(meanwhile, "it has not been polled in vain often enough");
	e2e_close(&busy);
}
