/* SPDX-License-Identifier: BSD-2-Clause */
/* Shown in the README, hence as short as it reads well: clang-format leaves it alone. */
/* clang-format off */
/* One RDMA Write to oneself, over the wire named on the command line. */
#include <ddpsess/ddpsess.h>
#include <stdio.h>

#define CHECK(call) do { int e_ = (call); if (e_ < 0) { \
	fprintf(stderr, "%s: %s\n", #call, ddps_strerror(e_)); return 1; } } while (0)

int main(int argc, char **argv)
{
	static char from[] = "hello over RDMA", to[sizeof from];
	struct ddps_ctx *ctx; struct ddps_pd *pd; struct ddps_cq *cq; struct ddps_listener *l;
	struct ddps_mr *src, *dst; struct ddps_ep *ep, *peer; struct ddps_event ev;
	struct ddps_ep_attr attr; struct ddps_wc wc; char uri[128];

	CHECK(ddps_ctx_new(&ctx, NULL));
	CHECK(ddps_pd_new(ctx, &pd));
	CHECK(ddps_cq_new(ctx, 16, &cq));
	CHECK(ddps_mr_reg(pd, from, sizeof from, 0, NULL, &src));
	CHECK(ddps_mr_reg(pd, to, sizeof to, DDPS_REMOTE_WRITE, NULL, &dst));
	ddps_ep_attr_init(&attr);
	attr.pd = pd; attr.send_cq = attr.recv_cq = cq;
	CHECK(ddps_ep_new(ctx, &attr, &ep));
	CHECK(ddps_ep_new(ctx, &attr, &peer));

	CHECK(ddps_listen(ctx, argc > 1 ? argv[1] : "tcp://127.0.0.1:0", NULL, &l));
	CHECK(ddps_listener_uri(l, uri, sizeof uri));
	CHECK(ddps_connect(ep, uri, NULL));		/* the same for tcp:// and sctp:// */
	CHECK(ddps_event_wait(ctx, &ev, 5000));		/* connect request */
	CHECK(ddps_accept(ev.request, peer, NULL));
	do CHECK(ddps_event_wait(ctx, &ev, 5000)); while (ev.ep != ep);	/* established */

	struct ddps_sge sge = { from, sizeof from, ddps_mr_stag(src) };
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1,
				   .stag = ddps_mr_stag(dst), .to = ddps_mr_to(dst) };
	CHECK(ddps_post_send(ep, &wr));
	wr = (struct ddps_send_wr){ .op = DDPS_OP_READ };	/* done: the Write was placed */
	CHECK(ddps_post_send(ep, &wr));
	for (int n = 0; n < 2; n++)
		CHECK(ddps_cq_wait(cq, &wc, 1, 5000));
	printf("%s: \"%s\"\n", uri, to);
	ddps_ctx_free(ctx);
	return 0;
}
