/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an operation costs when there are many objects of a kind: nanoseconds for each.
 *
 * usage: growth KIND COUNT SECONDS
 * register: a region registered and deregistered next to COUNT others
 * write: an RDMA Write of 64 octets to any of COUNT regions, 64 under way, over TCP in one thread
 * endpoint: an endpoint made and freed next to COUNT others
 */
#include "peer.h"
#include <ddpsess/ddpsess.h>

#define LEN   64u
#define DEPTH 64u
#define BATCH 64u

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int err_ = (call);                                                                 \
		if (err_ < 0) {                                                                    \
			fprintf(stderr, "growth: %s: %s\n", #call, ddps_strerror(err_));           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct world {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_mr *from, **to;
	uint8_t *mem;
	uint64_t random;
};

static size_t any(struct world *w, size_t n)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(w->random >> 33) % n;
}

static struct ddps_ep *new_world_ep(struct world *w)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	CHECK(ddps_ep_new(w->ctx, &attr, &ep));
	return ep;
}

static struct ddps_mr *new_region(struct world *w)
{
	struct ddps_mr *mr;

	CHECK(ddps_mr_reg(w->pd, w->mem, LEN, DDPS_REMOTE_WRITE, NULL, &mr));
	return mr;
}

static void new_regions(struct world *w, size_t n)
{
	w->to = peer_memory(n * sizeof(*w->to));
	for (size_t i = 0; i < n; i++)
		w->to[i] = new_region(w);
}

/* ---- the kinds; each does BATCH operations ---- */

static void do_register(struct world *w, size_t n)
{
	for (unsigned i = 0; i < BATCH; i++) {
		size_t k = any(w, n);

		CHECK(ddps_mr_dereg(w->to[k]));
		w->to[k] = new_region(w);
	}
}

static void do_write(struct world *w, size_t n)
{
	struct ddps_sge sge = { w->mem, LEN, ddps_mr_stag(w->from) };
	struct ddps_wc wc[BATCH];
	unsigned done = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		const struct ddps_mr *to = w->to[any(w, n)];
		struct ddps_send_wr wr = { .op = DDPS_OP_WRITE,
					   .flags = i + 1 < BATCH ? DDPS_WR_MORE : 0,
					   .sge = &sge,
					   .nsge = 1,
					   .stag = ddps_mr_stag(to),
					   .to = ddps_mr_to(to) };

		CHECK(ddps_post_send(w->ep, &wr));
	}
	while (done < BATCH) {
		int k = ddps_cq_poll(w->cq, wc, BATCH);

		CHECK(k);
		for (int i = 0; i < k; i++)
			if (wc[i].status != DDPS_WC_SUCCESS)
				peer_die("a Write failed");
		done += (unsigned)k;
	}
}

static void do_endpoint(struct world *w, size_t n)
{
	(void)n;
	for (unsigned i = 0; i < BATCH; i++)
		ddps_ep_free(new_world_ep(w));
}

/* ---- set-up ---- */

static void session(struct world *w)
{
	struct ddps_ep *peer = new_world_ep(w);
	struct ddps_listener *l;
	struct ddps_event ev;
	char uri[128];
	unsigned up = 0;

	w->ep = new_world_ep(w);
	CHECK(ddps_mr_reg(w->pd, w->mem, LEN, 0, NULL, &w->from));
	CHECK(ddps_listen(w->ctx, "tcp://127.0.0.1:0", NULL, &l));
	CHECK(ddps_listener_uri(l, uri, sizeof uri));
	CHECK(ddps_connect(w->ep, uri, NULL));
	while (up < 2) {
		CHECK(ddps_event_wait(w->ctx, &ev, 5000));
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			CHECK(ddps_accept(ev.request, peer, NULL));
		up += ev.type == DDPS_EV_ESTABLISHED;
	}
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "register|write|endpoint");
	void (*batch)(struct world *, size_t) = do_endpoint;
	struct world w = { .mem = peer_memory(LEN), .random = 1 };
	struct ddps_ctx_attr attr;
	uint64_t n = 0;
	double begin;

	ddps_ctx_attr_init(&attr);
	attr.max_regions = 1u << 20;
	CHECK(ddps_ctx_new(&w.ctx, &attr));
	CHECK(ddps_pd_new(w.ctx, &w.pd));
	CHECK(ddps_cq_new(w.ctx, 65536, &w.cq));
	if (!strcmp(a.mode, "write")) {
		session(&w);
		batch = do_write;
	}
	if (!strcmp(a.mode, "register"))
		batch = do_register;
	if (!strcmp(a.mode, "endpoint"))
		for (size_t i = 0; i < a.size; i++)
			(void)new_world_ep(&w);
	else
		new_regions(&w, a.size);
	peer_pin(1);
	for (begin = peer_now(); n < 64 || peer_now() - begin < a.seconds; n++)
		batch(&w, a.size);
	printf("{\"op\":\"%s\",\"size\":%zu,\"ns_each\":%.1f}\n", a.mode, a.size,
	       (peer_now() - begin) * 1e9 / (double)(n * BATCH));
	return 0; /* what there is goes with the process */
}
