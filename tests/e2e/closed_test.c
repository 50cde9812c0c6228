/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that closes all descriptors above 2 while it uses the library. */
#include "support/e2e.h"
#include "support/files.h"

static const char *const wires[] = { "tcp://127.0.0.1:0",
				     "sctp://127.0.0.1:0?backend=native&encap=0" };

static bool says_so(int err)
{
	return err == DDPS_E_SYSTEM && errno == EBADF;
}

static void close_and_go_on(const char *wire, enum kind kind)
{
	struct e2e e, anew;
	struct ddps_wc wc;
	struct ddps_cq *cq;

	e2e_up(&e, wire);
	take_numbers(kind);
	if (!says_so(ddps_abort(e.a.ep)) || !says_so(ddps_disconnect(e.b.ep)) ||
	    !says_so(ddps_cq_new(e.ctx, 1, &cq)) || !says_so(ddps_event_fd(e.ctx)) ||
	    !says_so(ddps_progress(e.ctx, 0)) || !says_so(ddps_cq_poll(e.cq, &wc, 1)))
		leave(101);
	ddps_ep_free(e.a.ep);
	ddps_ctx_free(e.ctx);
	if (touched() || touched_by_fork())
		leave(102);
	e2e_up(&anew, wire);
	e2e_close(&anew);
	leave(touched() ? 103 : 0);
}

Test(closed, the_programs_own_files_are_let_alone, .timeout = 60)
{
	for (int i = 0; i < 2; i++)
		for (enum kind kind = MEMORY; kind < KINDS; kind++) {
			const pid_t pid = fork();

			if (!pid)
				close_and_go_on(wires[i], kind);
			ends_well(pid, kind);
		}
}
