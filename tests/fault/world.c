/* SPDX-License-Identifier: BSD-2-Clause */
/* The worlds of scenarios: what is there before they begin. */
#include "fault/fault.h"
#include "sim/tls_stub.h"
#include <stdio.h>
#include <string.h>

#define ALSO "10.0.0.2"

const struct fault_scenario fault_scenarios[] = {
	{ .name = "transfer", .play = fault_transfer },
	{ .name = "several", .play = fault_several, .neps = FAULT_EPS },
	{ .name = "refused", .play = fault_refused },
	{ .name = "nobody", .play = fault_nobody },
	{ .name = "aborted", .play = fault_aborted },
	{ .name = "unheard", .play = fault_unheard },
	{ .name = "shared",
	  .play = fault_shared,
	  .neps = 2,
	  .how = FAULT_7306 | FAULT_SRQ | FAULT_STALL },
	{ .name = "atomics", .play = fault_atomics, .how = FAULT_7306 },
	{ .name = "windows", .play = fault_windows, .how = FAULT_7306 },
	{ .name = "lent", .play = fault_lent, .how = FAULT_NO_CRC },
	{ .name = "stalled", .play = fault_stalled, .how = FAULT_STALL },
	{ .name = "looked", .play = fault_looked, .how = FAULT_CAPTURE },
	{ .name = "homes", .play = fault_homes, .also = ALSO },
	{ .name = "p2p",
	  .play = fault_several,
	  .neps = 3,
	  .how = FAULT_NO_CRC,
	  .ask = fault_ask_p2p },
	{ .name = "asleep", .play = fault_asleep, .how = FAULT_GATHER },
	{ .name = "late", .play = fault_late, .how = FAULT_LATE },
	{ .name = "afresh", .play = fault_afresh, .ask = fault_ask_legacy },
	{ .name = "patient", .play = fault_patient, .ask = fault_ask_patience },
	{ .name = "blamed", .play = fault_blamed },
	{ .name = "lasting", .play = fault_lasting, .neps = FAULT_EPS },
	{ .name = "one_goes", .play = fault_one_goes, .neps = 2 },
};
const unsigned fault_nscenarios = sizeof fault_scenarios / sizeof *fault_scenarios;

static int make_ctx(struct fault_world *w)
{
	struct ddps_ctx_attr attr;
	int err = 0;

	ddps_ctx_attr_init(&attr);
	attr.gather = w->s->how & FAULT_GATHER;
	if (w->s->how & FAULT_CAPTURE) {
		err = ddps_capture_open(&w->capture, "/dev/null");
		attr.capture = ddps_capture_add;
		attr.capture_user = w->capture;
	}
	if (!err && (!strncmp(w->wire, "tls", 3) || !strncmp(w->wire, "sctps", 5))) {
		attr.secure = tls_stub_secure();
		err = attr.secure ? 0 : DDPS_E_NOMEM;
	}
	if (!err)
		err = ddps_ctx_new(&w->ctx, &attr);
	ddps_secure_close(attr.secure);
	return err;
}

/* With the other addresses behind the first one, which ends before the last colon. */
static int listen_in_fault_world(struct fault_world *w)
{
	const char *port = strrchr(w->wire, ':');
	char uri[128];

	if (!w->s->also || w->tcp || !strncmp(w->wire, "sctps", 5)) /* one path */
		return ddps_listen(w->ctx, w->wire, NULL, &w->listener);
	snprintf(uri, sizeof uri, "%.*s,%s%s", (int)(port - w->wire), w->wire, w->s->also, port);
	return ddps_listen(w->ctx, uri, NULL, &w->listener);
}

static int make_eps(struct fault_world *w)
{
	const unsigned how = w->s->how;
	struct ddps_ep_attr attr;
	int err = 0;

	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	attr.rfc7306 = attr.send_imm = how & FAULT_7306;
	attr.flush_late = how & FAULT_LATE;
	attr.no_recv = how & FAULT_STALL ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	for (unsigned i = 0; !err && i < w->neps; i++) {
		attr.srq = NULL;
		err = ddps_ep_new(w->ctx, &attr, &w->a[i]);
		attr.srq = w->srq;
		if (!err)
			err = ddps_ep_new(w->ctx, &attr, &w->b[i]);
	}
	return err;
}

static int make_fault_world(struct fault_world *w)
{
	int err = make_ctx(w);

	if (!err)
		err = ddps_pd_new(w->ctx, &w->pd);
	if (!err)
		err = ddps_cq_new(w->ctx, 256, &w->cq);
	if (!err)
		err = listen_in_fault_world(w);
	if (!err && w->s->how & FAULT_SRQ)
		err = ddps_srq_new(w->pd, 4, 1, NULL, &w->srq);
	return err ? err : make_eps(w);
}

int fault_play(struct fault_world *w, const struct fault_scenario *s)
{
	int err, lost;

	w->s = s;
	w->neps = s->neps ? s->neps : 1;
	err = make_fault_world(w);
	if (!err)
		err = s->play(w);
	if (err && err != SILENT && w->up && fault_ends(w))
		err = SILENT;
	ddps_ctx_free(w->ctx);
	lost = ddps_capture_close(w->capture);
	return err ? err : lost;
}
