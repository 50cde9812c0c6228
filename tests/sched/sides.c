/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts and their sessions. */
#include "sched/sides.h"
#include "sim/kern.h"
#include "sim/tls_stub.h"
#include <ddpsess/secure.h>
#include <stdio.h>
#include <string.h>

struct side own, peer;
uint8_t buf[2][EPS][LEN];
uint64_t begun;
const char *wrong;
const char *side_wire = "tcp";

static void side_new(struct side *s, unsigned host, bool thread, bool gather)
{
	struct ddps_ctx_attr attr;
	struct ddps_ep_attr ep;

	kern.host = host;
	ddps_ctx_attr_init(&attr);
	attr.thread = thread;
	attr.gather = attr.poll_drives = gather;
	attr.secure = strcmp(side_wire, "tcp") ? tls_stub_secure() : NULL;
	*s = (struct side){ .up = 0 };
	want(!ddps_ctx_new(&s->ctx, &attr));
	ddps_secure_close(attr.secure);
	want(!ddps_pd_new(s->ctx, &s->pd));
	want(!ddps_mr_reg(s->pd, buf[host], sizeof buf[host], DDPS_LOCAL_WRITE, NULL, &s->mr));
	ddps_ep_attr_init(&ep);
	ep.pd = s->pd;
	for (unsigned i = 0; i < EPS; i++) {
		want(!ddps_cq_new(s->ctx, 64, &s->cq[i]));
		ep.send_cq = ep.recv_cq = s->cq[i];
		want(!ddps_ep_new(s->ctx, &ep, &s->ep[i]));
	}
}

static void side_events(struct side *s)
{
	struct ddps_event ev;

	ddps_progress(s->ctx, 0);
	while (ddps_event_get(s->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_ESTABLISHED)
			s->up++;
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			want(!ddps_accept(ev.request, s->ep[s->up], NULL));
	}
}

static bool is_never_done(void *arg)
{
	(void)arg;
	return false;
}

void let_pass(uint64_t ns)
{
	kern_block(is_never_done, NULL, kern.now + ns);
}

static void connect_all_sched_sides(void)
{
	struct ddps_listener *l;
	char uri[128];

	kern.host = 0;
	snprintf(uri, sizeof uri, "%s://10.0.0.1:7000", side_wire);
	want(!ddps_listen(own.ctx, uri, NULL, &l));
	want(ddps_listener_uri(l, uri, sizeof uri) > 0);
	for (unsigned i = 0; i < EPS; i++) {
		kern.host = 1;
		want(!ddps_connect(peer.ep[i], uri, NULL));
		for (unsigned k = 0; k < 20 && (own.up <= i || peer.up <= i) && !wrong; k++) {
			kern.host = 0;
			side_events(&own);
			kern.host = 1;
			side_events(&peer);
			let_pass(ARRIVE);
		}
	}
	want(own.up == EPS && peer.up == EPS);
	kern.host = 0;
	ddps_listener_free(l);
}

void send_to(unsigned i)
{
	struct ddps_sge sge = { buf[1][i], LEN, ddps_mr_stag(peer.mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	want(!ddps_post_send(peer.ep[i], &wr));
}

void make_as(bool thread, bool gather)
{
	wrong = NULL;
	kern_start(1);
	kern.locks_only = true;
	side_new(&own, 0, thread, gather);
	side_new(&peer, 1, false, false);
	connect_all_sched_sides();
	for (unsigned i = 0; i < EPS; i++) {
		struct ddps_sge sge = { buf[0][i], LEN, ddps_mr_stag(own.mr) };

		memset(buf[0][i], 0, LEN); /* of another world */
		memset(buf[1][i], (int)i + 1, LEN);
		want(!ddps_post_recv(own.ep[i], i, &sge, 1));
	}
}

void make(bool thread)
{
	make_as(thread, false);
}

void messages(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_to(i);
	ddps_progress(peer.ctx, 0);
	let_pass(ARRIVE);
	begun = kern.now;
}

const char *end(void)
{
	ddps_ctx_free(own.ctx);
	ddps_ctx_free(peer.ctx);
	want(!kern_stop());
	return wrong;
}
