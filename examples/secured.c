/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message to a peer that both sides have judged, over tls:// or sctps://.
 * usage: secured SETTINGS URI		listens, prints who sends what, and ends
 *	  secured SETTINGS URI MESSAGE	sends it
 *
 * SETTINGS: as of docs/guides/secure.md.  URI: tls:// or sctps://.  Exit status 0: done; 1: an error, or a usage that there is not.
 *
 * cc secured.c $(pkg-config --cflags --libs libddpsess)
 */
#include <ddpsess/ddpsess.h>
#include <ddpsess/secure.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WAIT_MS 10000

#define CHECK(call) check_secured_call((call), #call)

static struct ddps_ctx *ctx;

static void check_secured_call(int result, const char *call)
{
	if (result >= 0)
		return;
	fprintf(stderr, "secured: %s: %s\n", call, ddps_strerror(result));
	exit(1);
}

/* Of an event: an error has a sentence of its own, such as whose certificate is not trusted and why. */
static void await_secured_event(enum ddps_event_type type, int ms, struct ddps_event *ev)
{
	do {
		CHECK(ddps_event_wait(ctx, ev, ms));
		if (ev->error.code) {
			fprintf(stderr, "secured: %s: %s\n", ddps_event_name(ev->type),
				ev->error.text);
			exit(1);
		}
	} while (ev->type != type);
}

static struct ddps_ctx *open_secured_ctx(const char *settings)
{
	struct ddps_secure_attr files;
	struct ddps_ctx_attr attr;
	struct ddps_secure *who;
	struct ddps_error why;

	ddps_secure_attr_init(&files);
	files.settings = settings;
	if (ddps_secure_open(&who, &files, &why) < 0) {
		fprintf(stderr, "secured: %s\n", why.text); /* which file, and what to do */
		exit(1);
	}
	ddps_ctx_attr_init(&attr);
	attr.secure = who;
	CHECK(ddps_ctx_new(&ctx, &attr));
	ddps_secure_close(who); /* the context keeps it */
	return ctx;
}

/* Over another wire a context with credentials sends everything in plain: the URI alone says which wire it is. */
static bool is_secured_uri(const char *uri)
{
	return !strncasecmp(uri, "tls://", 6) || !strncasecmp(uri, "sctps://", 8);
}

int main(int argc, char **argv)
{
	static char text[256];
	const int listens = argc == 3;
	struct ddps_peer_id id = { .struct_size = sizeof id };
	struct ddps_ep_attr attr;
	struct ddps_listener *listener;
	struct ddps_event ev;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_mr *mr;
	struct ddps_ep *ep;
	struct ddps_sge sge;
	struct ddps_wc wc;
	char uri[128];

	if ((argc != 3 && argc != 4) || (!listens && strlen(argv[3]) >= sizeof text)) {
		fputs("usage: secured SETTINGS URI [MESSAGE]\n", stderr);
		return 1;
	}
	if (!is_secured_uri(argv[2])) {
		fprintf(stderr, "secured: %s is neither tls:// nor sctps://: it would be plain\n",
			argv[2]);
		return 1;
	}
	CHECK(ddps_pd_new(open_secured_ctx(argv[1]), &pd));
	CHECK(ddps_cq_new(ctx, 4, &cq));
	CHECK(ddps_mr_reg(pd, text, sizeof text, DDPS_LOCAL_WRITE, NULL, &mr));
	sge = (struct ddps_sge){ text, sizeof text - 1, ddps_mr_stag(mr) };
	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	CHECK(ddps_ep_new(ctx, &attr, &ep));
	if (listens) {
		CHECK(ddps_post_recv(ep, 0, &sge, 1)); /* before anything can arrive */
		CHECK(ddps_listen(ctx, argv[2], NULL, &listener));
		CHECK(ddps_listener_uri(listener, uri, sizeof uri));
		printf("listening on %s\n", uri);
		fflush(stdout);
		await_secured_event(DDPS_EV_CONNECT_REQUEST, -1, &ev);
		CHECK(ddps_request_peer_id(ev.request, &id)); /* the program may reject it */
		CHECK(ddps_accept(ev.request, ep, NULL));
	} else {
		CHECK(ddps_connect(ep, argv[2], NULL));
	}
	await_secured_event(DDPS_EV_ESTABLISHED, WAIT_MS, &ev);
	if (!listens) {
		CHECK(ddps_ep_peer_id(ep, &id));
		sge.len = (uint32_t)strlen(strcpy(text, argv[3]));
		CHECK(ddps_post_send(
			ep, &(struct ddps_send_wr){ .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 }));
	}
	CHECK(ddps_cq_wait(cq, &wc, 1, WAIT_MS));
	if (wc.status != DDPS_WC_SUCCESS) {
		await_secured_event(DDPS_EV_CLOSED, WAIT_MS,
				    &ev); /* has the reason, if there is one */
		return 1;
	}
	printf("%s %s over %s, %s: %.*s\n", listens ? "from" : "to", id.name, id.version, id.suite,
	       listens ? (int)wc.len : (int)sge.len, text);
	CHECK(ddps_disconnect(ep));
	CHECK(ddps_ctx_settle(ctx, WAIT_MS));
	ddps_ctx_free(ctx);
	return 0;
}
