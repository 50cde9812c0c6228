/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of kv_server: it puts a value, or gets one and prints it.
 * usage: kv_client URI put KEY VALUE | kv_client URI get KEY
 *
 * Exit status 0: done; 1: no such key, or no room for it; 2: an error, or a usage that there is not.
 *
 * cc kv_client.c $(pkg-config --cflags --libs libddpsess)
 */
#include "kv.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 10000

#define CHECK(call) check_client_call((call), #call)

static struct ddps_ctx *ctx;
static struct ddps_cq *cq;

static void check_client_call(int result, const char *call)
{
	if (result >= 0)
		return;
	fprintf(stderr, "kv_client: %s: %s\n", call, ddps_strerror(result));
	exit(2);
}

/* Wait for that event; any end of the session before is the program's end. */
static void await_kv_event(enum ddps_event_type type)
{
	struct ddps_event ev;

	do {
		CHECK(ddps_event_wait(ctx, &ev, WAIT_MS));
		if (ev.error.code) {
			fprintf(stderr, "kv_client: %s: %s%s%s\n", ddps_event_name(ev.type),
				ev.error.peer, *ev.error.peer ? ": " : "", ev.error.text);
			exit(2);
		}
	} while (ev.type != type);
}

/* Wait for the completion of that operation, and pass by others. */
static uint32_t await_completion(enum ddps_op op)
{
	struct ddps_wc wc;

	do {
		CHECK(ddps_cq_wait(cq, &wc, 1, WAIT_MS));
		if (wc.status != DDPS_WC_SUCCESS) {
			fprintf(stderr, "kv_client: %s: %s\n", ddps_op_name(wc.op),
				ddps_wc_status_name(wc.status));
			await_kv_event(DDPS_EV_CLOSED); /* has the reason, if there is one */
			exit(2);
		}
	} while (wc.op != op);
	return wc.len;
}

/* A request in @to.  Return: its octets, or 0: a usage that there is not. */
static uint32_t make_request(uint8_t to[KV_REQUEST_MAX], char **argv, int argc)
{
	const char *value = argc == 5 && !strcmp(argv[2], "put") ? argv[4] : "";
	size_t key = argc > 3 ? strlen(argv[3]) : 0, size = strlen(value);

	if (!(argc == 5 && *value) && !(argc == 4 && !strcmp(argv[2], "get")))
		return 0;
	if (!key || key > KV_KEY_MAX || 2 + key + size > KV_REQUEST_MAX)
		return 0;
	to[0] = *value ? 'P' : 'G';
	to[1] = (uint8_t)key;
	memcpy(to + 2, argv[3], key);
	/* octets, no string: NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(to + 2 + key, value, size);
	return (uint32_t)(2 + key + size);
}

int main(int argc, char **argv)
{
	static uint8_t request[KV_REQUEST_MAX], answer[DDPS_ADVERT_LEN], value[KV_REQUEST_MAX];
	uint32_t len = make_request(request, argv, argc);
	struct ddps_mr *request_mr, *answer_mr, *value_mr;
	struct ddps_sge sge = { answer, sizeof answer, 0 };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };
	struct ddps_ep_attr attr;
	struct ddps_advert at;
	struct ddps_pd *pd;
	struct ddps_ep *ep;

	if (!len) {
		fputs("usage: kv_client URI put KEY VALUE | kv_client URI get KEY\n", stderr);
		return 2;
	}
	CHECK(ddps_ctx_new(&ctx, NULL));
	CHECK(ddps_pd_new(ctx, &pd));
	CHECK(ddps_cq_new(ctx, 16, &cq));
	CHECK(ddps_mr_reg(pd, request, sizeof request, 0, NULL, &request_mr));
	CHECK(ddps_mr_reg(pd, answer, sizeof answer, DDPS_LOCAL_WRITE, NULL, &answer_mr));
	CHECK(ddps_mr_reg(pd, value, sizeof value, DDPS_LOCAL_WRITE, NULL, &value_mr));
	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	CHECK(ddps_ep_new(ctx, &attr, &ep));

	sge.lkey = ddps_mr_stag(answer_mr);
	CHECK(ddps_post_recv(ep, 0, &sge, 1));	/* before anything can arrive */
	CHECK(ddps_connect(ep, argv[1], NULL)); /* the same for tcp:// and sctp:// */
	await_kv_event(DDPS_EV_ESTABLISHED);

	sge = (struct ddps_sge){ request, len, ddps_mr_stag(request_mr) };
	CHECK(ddps_post_send(ep, &wr));
	len = await_completion(DDPS_OP_RECV);
	CHECK(ddps_advert_decode(&at, answer, len));
	if (at.length && request[0] == 'G') {
		if (at.length > sizeof value)
			CHECK(DDPS_E_PROTOCOL);
		sge = (struct ddps_sge){ value, (uint32_t)at.length, ddps_mr_stag(value_mr) };
		wr = (struct ddps_send_wr){
			.op = DDPS_OP_READ, .sge = &sge, .nsge = 1, .stag = at.stag, .to = at.to
		};
		CHECK(ddps_post_send(ep, &wr));
		printf("%.*s\n", (int)await_completion(DDPS_OP_READ), (const char *)value);
	}
	if (!at.length)
		fprintf(stderr, "kv_client: the server has no %s\n",
			request[0] == 'G' ? "such key" : "room for it");
	CHECK(ddps_disconnect(ep));
	await_kv_event(DDPS_EV_CLOSED);
	CHECK(ddps_ctx_settle(ctx, WAIT_MS));
	ddps_ctx_free(ctx);
	return at.length ? 0 : 1;
}
