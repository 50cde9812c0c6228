/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librpma: a server offers memory, its client writes to it, flushes, reads it back and compares.
 * usage: rpma server|client PORT
 */
#include <inttypes.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS "127.0.0.1"
#define LEN	(1 << 20)
#define ROUNDS	16

static void must_rpma(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(err));
	exit(1);
}

static struct rpma_peer *peer_at(enum rpma_util_ibv_context_type type)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;

	must_rpma(rpma_utils_get_ibv_context(ADDRESS, type, &ctx), "context");
	must_rpma(rpma_peer_new(ctx, &peer), "peer");
	return peer;
}

static void await_rpma(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event ev;

	must_rpma(rpma_conn_next_event(conn, &ev), "event");
	if (ev == want)
		return;
	fprintf(stderr, "%s came, not %s\n", rpma_utils_conn_event_2str(ev),
		rpma_utils_conn_event_2str(want));
	exit(1);
}

static uint8_t *region(struct rpma_peer *peer, int usage, struct rpma_mr_local **mr)
{
	uint8_t *mem = aligned_alloc(4096, LEN);

	memset(mem, 0, LEN);
	must_rpma(rpma_mr_reg(peer, mem, LEN, usage, mr), "region");
	return mem;
}

static void serve_rpma(const char *port)
{
	struct rpma_peer *peer = peer_at(RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_conn_private_data data;
	struct rpma_mr_local *mr;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	uint8_t desc[256];
	size_t len;

	must_rpma(rpma_ep_listen(peer, ADDRESS, port, &ep), "listen");
	region(peer,
	       RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
		       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
	       &mr);
	must_rpma(rpma_mr_get_descriptor_size(mr, &len), "descriptor");
	must_rpma(rpma_mr_get_descriptor(mr, desc), "descriptor");
	data = (struct rpma_conn_private_data){ desc, (uint8_t)len };
	must_rpma(rpma_ep_next_conn_req(ep, NULL, &req), "request");
	must_rpma(rpma_conn_req_connect(&req, &data, &conn), "accept");
	await_rpma(conn, RPMA_CONN_ESTABLISHED);
	await_rpma(conn, RPMA_CONN_CLOSED);
	must_rpma(rpma_conn_disconnect(conn), "disconnect");
	must_rpma(rpma_conn_delete(&conn), "connection");
	must_rpma(rpma_mr_dereg(&mr), "region");
	must_rpma(rpma_ep_shutdown(&ep), "endpoint");
	must_rpma(rpma_peer_delete(&peer), "peer");
}

static void complete_rpma(struct rpma_conn *conn)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	must_rpma(rpma_conn_get_cq(conn, &cq), "queue");
	must_rpma(rpma_cq_wait(cq), "wait");
	must_rpma(rpma_cq_get_wc(cq, 1, &wc, NULL), "completion");
	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
	exit(1);
}

static void there_and_back(struct rpma_conn *conn, struct rpma_peer *peer,
			   struct rpma_mr_remote *far)
{
	const int flags = RPMA_F_COMPLETION_ALWAYS;
	struct rpma_mr_local *from, *to;
	uint8_t *a = region(peer, RPMA_MR_USAGE_WRITE_SRC, &from);
	uint8_t *b = region(peer, RPMA_MR_USAGE_READ_DST, &to);

	for (int i = 0; i < ROUNDS; i++) {
		for (size_t k = 0; k < LEN; k++)
			a[k] = (uint8_t)(k * 31 + (size_t)i);
		must_rpma(rpma_write(conn, far, 0, from, 0, LEN, RPMA_F_COMPLETION_ON_ERROR, NULL),
			  "write");
		must_rpma(rpma_flush(conn, far, 0, LEN, RPMA_FLUSH_TYPE_VISIBILITY, flags, NULL),
			  "flush");
		complete_rpma(conn);
		must_rpma(rpma_read(conn, to, 0, far, 0, LEN, flags, NULL), "read");
		complete_rpma(conn);
		if (memcmp(a, b, LEN)) {
			fprintf(stderr, "round %d: other octets came back\n", i);
			exit(1);
		}
	}
	must_rpma(rpma_mr_dereg(&from), "region");
	must_rpma(rpma_mr_dereg(&to), "region");
}

static void client(const char *port)
{
	struct rpma_peer *peer = peer_at(RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *far;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	must_rpma(rpma_conn_req_new(peer, ADDRESS, port, NULL, &req), "request");
	must_rpma(rpma_conn_req_connect(&req, NULL, &conn), "connect");
	await_rpma(conn, RPMA_CONN_ESTABLISHED);
	must_rpma(rpma_conn_get_private_data(conn, &data), "private data");
	must_rpma(rpma_mr_remote_from_descriptor(data.ptr, data.len, &far), "descriptor");
	there_and_back(conn, peer, far);
	must_rpma(rpma_mr_remote_delete(&far), "region");
	must_rpma(rpma_conn_disconnect(conn), "disconnect");
	await_rpma(conn, RPMA_CONN_CLOSED);
	must_rpma(rpma_conn_delete(&conn), "connection");
	must_rpma(rpma_peer_delete(&peer), "peer");
	printf("%d octets there and back, %d times\n", LEN, ROUNDS);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "server"))
		serve_rpma(argv[2]);
	else
		client(argv[2]);
	return 0;
}
