/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of the process, told once at its end (DDPSESS_STATS). */
#include "verbs/vd.h"
#include "common/system/say.h"
#include <inttypes.h>

static void print_counter(const char *what, uint64_t n)
{
	ddps_say("ddpsess: %s: %" PRIu64 "\n", what, n);
}

void vd_stats_tell(struct ddps_ctx *ctx)
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	uint64_t sent = 0, received = 0;

	if (ddps_ctx_stats(ctx, &st))
		return;
	for (int i = 0; i < DDPS_STAT_OPS; i++) {
		sent += st.total.sent[i].messages;
		received += st.total.received[i].messages;
	}
	print_counter("messages sent", sent);
	print_counter("messages received", received);
	print_counter("Sends that waited for a receive", st.total.stalls);
	print_counter("Sends without a receive", st.total.no_buffer);
	print_counter("completions lost", st.total.cq_overflow);
	print_counter("receives refused, shared queue full", st.srq_full);
	print_counter("regions refused", st.regions_refused);
}
