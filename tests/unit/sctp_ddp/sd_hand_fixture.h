/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_HAND_FIXTURE_H
#define SD_HAND_FIXTURE_H
/* An SCTP peer made by hand, in UDP on loopback, before an endpoint of the native backend. */
#include "common/bytes.h"
#include "sd_backend_fixture.h"
#include <stdio.h>
#include <unistd.h>

#define PKT_MAX	      65536
#define C_DATA	      0
#define C_INIT	      1
#define C_INIT_ACK    2
#define C_SACK	      3
#define C_HEARTBEAT   4
#define C_ABORT	      6
#define C_SHUTDOWN    7
#define C_COOKIE_ECHO 10
#define C_COOKIE_ACK  11
#define P_COOKIE      7
#define P_ADAPTATION  0xC006
#define P_FORWARD_TSN 0xC000
#define P_EXTENSIONS  0x8008
#define HIGH	      199 /* a stream that a restart has no more */
#define F_FIRST	      2	  /* B */
#define F_LAST	      1	  /* E */
#define F_UNORDERED   4

#define B (&ddps_sd_native)

static struct node sn;
static struct server srv;

/* The hand-made peer. */
struct wire {
	int fd;
	uint16_t sport, dport, streams_out, streams_in;
	uint32_t my_tag, peer_tag, tsn;
	uint8_t out[PKT_MAX], in[PKT_MAX];
	struct ddps_wbuf w;
	size_t in_len;
	uint8_t cookie[2048];
	size_t cookie_len;
};

/* RFC 9260 appendix A, bit by bit. */
static inline uint32_t crc32c(const uint8_t *p, size_t len)
{
	uint32_t r = ~0u;

	for (size_t i = 0; i < len; i++) {
		r ^= p[i];
		for (int b = 0; b < 8; b++)
			r = r >> 1 ^ (r & 1 ? 0x82F63B78u : 0);
	}
	return ~r;
}

static inline void put_sd_hand_sum(uint8_t *pkt, size_t len)
{
	uint32_t sum;

	memset(pkt + 8, 0, 4);
	sum = crc32c(pkt, len);
	for (int i = 0; i < 4; i++)
		pkt[8 + i] = (uint8_t)(sum >> 8 * i);
}

static inline void begin_sd_hand(struct wire *x, uint32_t tag)
{
	x->w = ddps_wbuf_init(x->out, sizeof x->out);
	ddps_wbuf_u16(&x->w, x->sport);
	ddps_wbuf_u16(&x->w, x->dport);
	ddps_wbuf_u32(&x->w, tag);
	ddps_wbuf_u32(&x->w, 0);
}

static inline void put_sd_hand_chunk(struct wire *x, uint8_t type, uint8_t flags, const void *body,
				     size_t len)
{
	static const uint8_t zero[4];

	ddps_wbuf_u8(&x->w, type);
	ddps_wbuf_u8(&x->w, flags);
	ddps_wbuf_u16(&x->w, (uint16_t)(len + 4));
	ddps_wbuf_bytes(&x->w, body, len);
	ddps_wbuf_bytes(&x->w, zero, -len & 3);
	cr_assert(!x->w.failed);
}

static inline void finish_sd_hand(struct wire *x)
{
	size_t len = (size_t)(x->w.p - x->out);

	put_sd_hand_sum(x->out, len);
	cr_assert_eq(send(x->fd, x->out, len, 0), (ssize_t)len);
}

static inline void send_sd_hand_data_chunk(struct wire *x, uint8_t flags, uint16_t sid,
					   uint32_t ppid, const void *data, size_t len)
{
	uint8_t *body = malloc(12 + len);
	struct ddps_wbuf w = ddps_wbuf_init(body, 12 + len);

	ddps_wbuf_u32(&w, x->tsn++);
	ddps_wbuf_u16(&w, sid);
	ddps_wbuf_u16(&w, 0);
	ddps_wbuf_u32(&w, ppid);
	ddps_wbuf_bytes(&w, data, len);
	put_sd_hand_chunk(x, C_DATA, flags, body, 12 + len);
	free(body);
}

static inline void send_sd_hand_init(struct wire *x, const uint8_t *params, size_t len)
{
	uint8_t body[64];
	struct ddps_wbuf w = ddps_wbuf_init(body, sizeof body);

	ddps_wbuf_u32(&w, x->my_tag);
	ddps_wbuf_u32(&w, 1 << 20); /* window */
	ddps_wbuf_u16(&w, x->streams_out);
	ddps_wbuf_u16(&w, x->streams_in);
	ddps_wbuf_u32(&w, x->tsn);
	ddps_wbuf_bytes(&w, params, len);
	begin_sd_hand(x, 0);
	put_sd_hand_chunk(x, C_INIT, 0, body, (size_t)(w.p - body));
	finish_sd_hand(x);
}

static inline bool receive_sd_hand(struct wire *x)
{
	ssize_t n = recv(x->fd, x->in, sizeof x->in, MSG_DONTWAIT);

	x->in_len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* The next packet whose first chunk is of this type. */
static inline void expect_sd_hand(struct wire *x, uint8_t type)
{
	do {
		WAIT_FOR(receive_sd_hand(x), &sn);
		cr_assert_geq(x->in_len, 16);
	} while (x->in[12] != type);
}

/* A parameter of the INIT or INIT ACK in x->in, or NULL. */
static inline const uint8_t *find_sd_hand_param(const struct wire *x, uint16_t type, size_t *len)
{
	struct ddps_rbuf r = ddps_rbuf_init(x->in + 32, x->in_len - 32);

	while (ddps_rbuf_left(&r) >= 4) {
		uint16_t t = ddps_rbuf_u16(&r);
		size_t n = (size_t)ddps_rbuf_u16(&r) - 4;
		const uint8_t *at = ddps_rbuf_take(&r, n);

		cr_assert(at);
		ddps_rbuf_take(&r, ddps_rbuf_left(&r) < (-n & 3) ? 0 : -n & 3);
		*len = n;
		if (t == type)
			return at;
	}
	return NULL;
}

static inline void read_init_ack(struct wire *x)
{
	struct ddps_rbuf r = ddps_rbuf_init(x->in + 16, 4);
	const uint8_t *cookie;

	x->peer_tag = ddps_rbuf_u32(&r);
	cookie = find_sd_hand_param(x, P_COOKIE, &x->cookie_len);
	cr_assert(cookie && x->cookie_len <= sizeof x->cookie);
	memcpy(x->cookie, cookie, x->cookie_len);
}

static inline void wire_init(struct wire *x, uint16_t sport)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, srv.encap);

	memset(x, 0, sizeof *x);
	x->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(x->fd, (struct sockaddr *)&sa, len), 0);
	x->sport = sport;
	x->dport = ntohs(((struct sockaddr_in *)&srv.sa)->sin_port);
	x->streams_out = 10;
	x->streams_in = 20;
	x->my_tag = 0x11223344;
	x->tsn = 1000;
}

static inline void begin_cookie(struct wire *x)
{
	begin_sd_hand(x, x->peer_tag);
	put_sd_hand_chunk(x, C_COOKIE_ECHO, 0, x->cookie, x->cookie_len);
}

static inline void start_sd_hand(void)
{
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, B, AF_INET, 0, 0), 0);
}

static inline void stop_sd_hand(struct wire *x)
{
	if (x) {
		close(x->fd);
		free(x);
	}
	for (int i = 0; i < MAX_PEERS; i++)
		free(srv.peers[i].last);
	node_fini(&sn, B);
}

static const uint8_t ddp[] = { 0xc0, 0x06, 0, 8, 0, 0, 0, 1 };

/* An association by hand, with these parameters in the INIT. */
static inline struct wire *wire_up(const uint8_t *params, size_t len)
{
	struct wire *x = malloc(sizeof *x);

	wire_init(x, 4000);
	send_sd_hand_init(x, params, len);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
	WAIT_FOR(srv.accepted == 1, &sn);
	cr_assert_eq(srv.peers[0].gone, 0);
	return x;
}

/* Our side sends. */
static inline void give_to_hand_peer(uint16_t stream, uint32_t ppid, const void *data, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };

	cr_assert_eq(B->send(srv.peers[0].a, stream, ppid, &iov, 1), 0);
	B->flush(srv.peers[0].a);
}

/* ---- restarts ---- */

static inline void run_hand_node(void)
{
	spin((struct node *[]){ &sn }, 1);
}

/* As a process that was started again: new tag, new TSN, one stream. */
static inline void reborn(struct wire *x)
{
	x->my_tag ^= 0x5a5a0000;
	x->tsn += 7777;
	x->streams_out = x->streams_in = 1;
}

static inline void send_hand_data(struct wire *x, uint16_t stream, size_t len)
{
	uint8_t msg[1000];

	fill_sd_backend(msg, len, stream);
	begin_sd_hand(x, x->peer_tag);
	send_sd_hand_data_chunk(x, F_UNORDERED | F_FIRST | F_LAST, stream, 16, msg, len);
	finish_sd_hand(x);
}

static inline struct wire *many_streams(void)
{
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	wire_init(x, 4000);
	x->streams_out = x->streams_in = HIGH + 1;
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
	WAIT_FOR(srv.accepted == 1, &sn);
	return x;
}

#endif
