/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's end of examples/rdma_peer.c, on verbs and the kernel's soft-iWARP.
 *
 *	siw_peer -s ADDRESS [-b OCTETS] [-n CLIENTS] [-r] PORT
 *	siw_peer -c ADDRESS [-b OCTETS] [-i IRD] [-o ORD] [-w FILE] PORT
 *
 * -w: when connected it says so, and goes on when there is no such file.
 *
 * The protocol is described there.  Exit status 0: all was right; 3: rejected.
 */
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK	  65521u
#define ADVERT	  16
#define HELLO	  "hello from the initiator"
#define REJECTION "not today"

struct options {
	char *address, *port, *wait;
	bool server, reject;
	unsigned long octets, clients;
	uint8_t ird, ord;
};

static int fail_siw_peer_guest(const char *what)
{
	fprintf(stderr, "siw_peer: %s: %s\n", what, strerror(errno));
	return 1;
}

static uint64_t digest(const uint8_t *p, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

static uint32_t draw_siw_peer_guest_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static struct rdma_cm_id *make_siw_peer_guest(const struct options *o)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
				       .ai_flags = o->server ? RAI_PASSIVE : 0 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id = NULL;

	attr.cap.max_send_wr = attr.cap.max_recv_wr = 8;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	if (rdma_getaddrinfo(o->address, o->port, &hints, &info) ||
	    rdma_create_ep(&id, info, NULL, &attr))
		id = NULL;
	return id;
}

static int take_siw_peer_guest_completed(int got, const struct ibv_wc *wc, const char *what)
{
	if (got == 1 && wc->status == IBV_WC_SUCCESS)
		return 0;
	fprintf(stderr, "siw_peer: %s: %s\n", what,
		got == 1 ? ibv_wc_status_str(wc->status) : strerror(errno));
	return 1;
}

/* ---- server ---- */

static int serve_one_siw_peer_guest(struct rdma_cm_id *id, const struct options *o, uint8_t *region)
{
	struct ibv_mr *mr, *small;
	struct rdma_conn_param param = { .responder_resources = o->ird, .initiator_depth = o->ord };
	uint8_t advert[ADVERT], byte[2] = { 0, 1 };
	uint64_t to = htobe64((uintptr_t)region);
	uint32_t rkey, size = htobe32((uint32_t)o->octets);
	struct ibv_wc wc;

	mr = ibv_reg_mr(id->pd, region, o->octets,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	small = rdma_reg_msgs(id, byte, sizeof byte);
	/* the second receive is there to be flushed at the end */
	if (!mr || !small || rdma_post_recv(id, NULL, byte, 1, small) ||
	    rdma_post_recv(id, NULL, byte, 1, small))
		return fail_siw_peer_guest("memory");
	rkey = htobe32(mr->rkey);
	memcpy(advert, &to, 8);
	memcpy(advert + 8, &rkey, 4);
	memcpy(advert + 12, &size, 4);
	param.private_data = advert;
	param.private_data_len = sizeof advert;
	if (rdma_accept(id, &param))
		return fail_siw_peer_guest("accept");
	if (take_siw_peer_guest_completed(rdma_get_recv_comp(id, &wc), &wc, "receive") ||
	    rdma_post_send(id, NULL, byte + 1, 1, small, 0) ||
	    take_siw_peer_guest_completed(rdma_get_send_comp(id, &wc), &wc, "send"))
		return 1;
	rdma_get_recv_comp(id, &wc);
	printf("digest %016llx\n", (unsigned long long)digest(region, o->octets));
	return 0;
}

static int serve_siw_peer_guest(const struct options *o)
{
	struct rdma_cm_id *listener = make_siw_peer_guest(o), *id;
	uint8_t *region = calloc(1, o->octets);
	const char *hello;
	int bad = 0;

	if (!listener || !region || rdma_listen(listener, 64))
		return fail_siw_peer_guest("listen");
	for (unsigned long n = 0; n < o->clients && !bad; n++) {
		if (rdma_get_request(listener, &id))
			return fail_siw_peer_guest("request");
		hello = id->event->param.conn.private_data;
		if (id->event->param.conn.private_data_len < sizeof HELLO ||
		    memcmp(hello, HELLO, sizeof HELLO)) {
			fprintf(stderr, "siw_peer: private data is not what was sent\n");
			return 1;
		}
		if (o->reject)
			bad = rdma_reject(id, REJECTION, sizeof REJECTION);
		else
			bad = serve_one_siw_peer_guest(id, o, region);
		rdma_destroy_ep(id);
	}
	return bad ? 1 : 0;
}

/* ---- client ---- */

struct remote {
	uint64_t to;
	uint32_t rkey, size;
};

/* Every chunk once, in random order; Writes from @source, or Reads that are compared with it. */
static int move_siw_peer_guest(struct rdma_cm_id *id, const struct remote *at, uint8_t *source,
			       struct ibv_mr *mr, uint8_t *sink, struct ibv_mr *sink_mr)
{
	uint32_t n = (at->size + CHUNK - 1) / CHUNK, *order = malloc(n * sizeof *order), j, len;
	uint64_t random = sink ? 2 : 1;
	struct ibv_wc wc;
	size_t off;
	int err;

	for (uint32_t i = 0; i < n; i++) {
		j = draw_siw_peer_guest_random(&random) % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		off = (size_t)order[i] * CHUNK;
		len = at->size - off < CHUNK ? (uint32_t)(at->size - off) : CHUNK;
		err = sink ? rdma_post_read(id, NULL, sink, len, sink_mr, 0, at->to + off, at->rkey)
			   : rdma_post_write(id, NULL, source + off, len, mr, 0, at->to + off,
					     at->rkey);
		if (err || take_siw_peer_guest_completed(rdma_get_send_comp(id, &wc), &wc,
							 sink ? "read" : "write"))
			return 1;
		if (sink && memcmp(sink, source + off, len)) {
			fprintf(stderr, "siw_peer: read at %zu is wrong\n", off);
			return 1;
		}
	}
	free(order);
	return 0;
}

static int talk_siw_peer_guest(struct rdma_cm_id *id, const struct remote *at)
{
	static uint8_t sink[CHUNK], byte[2];
	uint8_t *source = malloc(at->size);
	struct ibv_mr *mr = rdma_reg_msgs(id, source, at->size), *small, *sink_mr;
	uint64_t random = 3;
	struct ibv_wc wc;

	small = rdma_reg_msgs(id, byte, sizeof byte);
	sink_mr = ibv_reg_mr(id->pd, sink, sizeof sink,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr || !small || !sink_mr || rdma_post_recv(id, NULL, byte, 1, small))
		return fail_siw_peer_guest("memory");
	for (uint32_t i = 0; i < at->size; i++)
		source[i] = (uint8_t)draw_siw_peer_guest_random(&random);
	if (move_siw_peer_guest(id, at, source, mr, NULL, NULL) ||
	    move_siw_peer_guest(id, at, source, mr, sink, sink_mr) ||
	    rdma_post_send(id, NULL, byte + 1, 1, small, 0) ||
	    take_siw_peer_guest_completed(rdma_get_send_comp(id, &wc), &wc, "send") ||
	    take_siw_peer_guest_completed(rdma_get_recv_comp(id, &wc), &wc, "receive"))
		return 1;
	printf("digest %016llx\n", (unsigned long long)digest(source, at->size));
	return rdma_disconnect(id) ? fail_siw_peer_guest("disconnect") : 0;
}

static int call_siw_peer_guest(const struct options *o)
{
	struct rdma_conn_param param = { .private_data = HELLO,
					 .private_data_len = sizeof HELLO,
					 .responder_resources = o->ird,
					 .initiator_depth = o->ord };
	struct rdma_cm_id *id = make_siw_peer_guest(o);
	const struct rdma_conn_param *got;
	struct remote at;

	if (!id)
		return fail_siw_peer_guest("address");
	if (rdma_connect(id, &param)) {
		if (errno != ECONNREFUSED || !id->event)
			return fail_siw_peer_guest("connect");
		got = &id->event->param.conn;
		printf("rejected: %.*s\n", (int)got->private_data_len,
		       (const char *)got->private_data);
		return 3;
	}
	got = &id->event->param.conn;
	if (got->private_data_len < ADVERT) {
		fprintf(stderr, "siw_peer: no advert in the reply\n");
		return 1;
	}
	memcpy(&at.to, got->private_data, 8);
	memcpy(&at.rkey, (const uint8_t *)got->private_data + 8, 4);
	memcpy(&at.size, (const uint8_t *)got->private_data + 12, 4);
	at = (struct remote){ be64toh(at.to), be32toh(at.rkey), be32toh(at.size) };
	if (o->wait) {
		puts("connected");
		while (!access(o->wait, F_OK))
			usleep(10000);
	}
	return talk_siw_peer_guest(id, &at);
}

int main(int argc, char **argv)
{
	struct options o = { .octets = 1 << 20, .clients = 1, .ird = 1, .ord = 1 };
	int c;

	while ((c = getopt(argc, argv, "s:c:b:n:i:o:w:r")) != -1)
		switch (c) {
		case 's':
		case 'c':
			o.server = c == 's';
			o.address = optarg;
			break;
		case 'b':
			o.octets = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			o.clients = strtoul(optarg, NULL, 0);
			break;
		case 'i':
			o.ird = (uint8_t)strtoul(optarg, NULL, 0);
			break;
		case 'o':
			o.ord = (uint8_t)strtoul(optarg, NULL, 0);
			break;
		case 'w':
			o.wait = optarg;
			break;
		case 'r':
			o.reject = true;
			break;
		default:
			return 2;
		}
	if (!o.address || optind + 1 != argc || !o.octets)
		return 2;
	o.port = argv[optind];
	setvbuf(stdout, NULL, _IOLBF, 0);
	return o.server ? serve_siw_peer_guest(&o) : call_siw_peer_guest(&o);
}
