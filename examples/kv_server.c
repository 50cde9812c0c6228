/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key-value store: clients put and get by messages, and read values out of this program's memory.
 * It ends with the first client that puts the key "quit".  usage: kv_server [URI]
 *
 * cc kv_server.c $(pkg-config --cflags --libs libddpsess)
 */
#include "kv.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 1024

#define CHECK(call) check_server_call((call), #call)

/* One client, with one request under way. */
struct client {
	struct client *next, **at; /* in the list of all */
	struct ddps_ep *ep;
	struct ddps_mr *in, *out; /* of request and answer */
	uint8_t request[KV_REQUEST_MAX], answer[DDPS_ADVERT_LEN];
};

static struct client *clients;
static struct ddps_ctx *ctx;
static struct ddps_pd *pd;
static struct ddps_cq *cq;
static struct ddps_mr *values;
static uint8_t
	heap[1 << 22]; /* values; none is overwritten, so clients may read them at any time */
static size_t heap_used;
static struct {
	uint8_t len, key[KV_KEY_MAX];
	struct ddps_advert at;
} keys[KEYS];
static size_t key_count;
static bool quit;

static void check_server_call(int result, const char *call)
{
	if (result >= 0)
		return;
	fprintf(stderr, "kv_server: %s: %s\n", call, ddps_strerror(result));
	exit(1);
}

static struct ddps_advert *find_key(const uint8_t *key, uint8_t len)
{
	size_t i = 0;

	while (i < key_count && (keys[i].len != len || memcmp(keys[i].key, key, len)))
		i++;
	if (i == KEYS)
		return NULL;
	if (i == key_count) {
		keys[i].len = len;
		memcpy(keys[i].key, key, len);
		keys[i].at = (struct ddps_advert){ 0 };
	}
	return &keys[i].at;
}

/* What a request of @len octets asks for: where the value is, or nothing. */
static struct ddps_advert serve_request(const uint8_t *request, uint32_t len)
{
	const struct ddps_advert none = { 0 };
	struct ddps_advert *at;
	size_t head, size;

	if (len < 2 || len < 2u + request[1])
		return none;
	head = 2u + request[1];
	size = len - head;
	at = find_key(request + 2, request[1]);
	if (!at || request[0] != 'P')
		return at ? *at : none;
	if (size > sizeof heap - heap_used)
		return none;
	memcpy(heap + heap_used, request + head, size);
	*at = (struct ddps_advert){ ddps_mr_to(values) + heap_used, size, ddps_mr_stag(values), 0 };
	heap_used += size;
	key_count += at == &keys[key_count].at;
	quit |= request[1] == 4 && !memcmp(request + 2, "quit", 4);
	return *at;
}

static void await_request(struct client *c)
{
	struct ddps_sge sge = { c->request, sizeof c->request, ddps_mr_stag(c->in) };
	int err = ddps_post_recv(c->ep, 0, &sge, 1);

	if (err != DDPS_E_STATE) /* it may have left meanwhile: an event will say so */
		CHECK(err);
}

static void answer_client(struct client *c, uint32_t len)
{
	struct ddps_advert at = serve_request(c->request, len);
	struct ddps_sge sge = { c->answer, sizeof c->answer, ddps_mr_stag(c->out) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };
	int err;

	ddps_advert_encode(c->answer, &at);
	await_request(c); /* before the answer, which lets the client ask again */
	err = ddps_post_send(c->ep, &wr);
	if (err != DDPS_E_STATE)
		CHECK(err);
}

/* A client's session is over; its error is worth a line, but does not concern the others. */
static void forget_client(struct client *c, const struct ddps_error *error)
{
	if (error && error->code)
		fprintf(stderr, "kv_server: a client: %s\n", error->text);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	ddps_ep_free(c->ep);
	ddps_mr_dereg(c->in);
	ddps_mr_dereg(c->out);
	free(c);
}

static void accept_client(struct ddps_request *request)
{
	struct client *c = calloc(1, sizeof *c);
	struct ddps_ep_attr attr;
	int err;

	if (!c)
		exit(1);
	c->next = clients;
	c->at = &clients;
	if (c->next)
		c->next->at = &c->next;
	clients = c;
	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	attr.sq_depth = attr.rq_depth = 4;
	attr.user = c;
	CHECK(ddps_ep_new(ctx, &attr, &c->ep));
	CHECK(ddps_mr_reg(pd, c->request, sizeof c->request, DDPS_LOCAL_WRITE, NULL, &c->in));
	CHECK(ddps_mr_reg(pd, c->answer, sizeof c->answer, 0, NULL, &c->out));
	await_request(c);
	err = ddps_accept(request, c->ep, NULL);
	if (err == DDPS_E_CLOSED) /* it has left meanwhile */
		forget_client(c, NULL);
	else
		CHECK(err);
}

static void handle_event(const struct ddps_event *ev)
{
	switch (ev->type) {
	case DDPS_EV_CONNECT_REQUEST:
		accept_client(ev->request);
		break;
	case DDPS_EV_PEER_CLOSED: /* it sends nothing more, and has had its answers */
		CHECK(ddps_disconnect(ev->ep));
		break;
	case DDPS_EV_CLOSED:
	case DDPS_EV_FAILED:
		forget_client(ev->user, &ev->error);
		break;
	default:
		break;
	}
}

int main(int argc, char **argv)
{
	struct ddps_listener *listener;
	struct ddps_event ev;
	struct ddps_wc wc;
	char uri[256];

	CHECK(ddps_ctx_new(&ctx, NULL));
	CHECK(ddps_pd_new(ctx, &pd));
	CHECK(ddps_cq_new(ctx, 8192, &cq));
	CHECK(ddps_mr_reg(pd, heap, sizeof heap, DDPS_REMOTE_READ, NULL, &values));
	CHECK(ddps_listen(ctx, argc > 1 ? argv[1] : "tcp://127.0.0.1:0", NULL, &listener));
	CHECK(ddps_listener_uri(listener, uri, sizeof uri));
	printf("listening on %s\n", uri);
	fflush(stdout);
	while (!quit) {
		CHECK(ddps_progress(ctx, -1));
		while (ddps_cq_poll(cq, &wc, 1) == 1)
			if (wc.op == DDPS_OP_RECV && wc.status == DDPS_WC_SUCCESS)
				answer_client(wc.user, wc.len);
		while (ddps_event_get(ctx, &ev) == 1)
			handle_event(&ev);
	}
	CHECK(ddps_ctx_settle(ctx, 5000)); /* the last answer arrives before this program ends */
	while (clients)
		forget_client(clients, NULL);
	ddps_ctx_free(ctx);
	return 0;
}
