/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SCTP_PACKET_H
#define DDPS_CONFORM_SCTP_PACKET_H
/*
 * RFC 9260 as far as a peer of one case needs it: packets, the four-way set-up, DATA and SACK, and
 * the ends.  No congestion control beyond a small window, no measured RTO, one path.
 */
#include "conform/peer/sctp_net.h"

#define CF_PKT_MAX    65536
#define CF_RWND	      (1u << 20)
#define CF_CHUNK_DATA 1400 /* octets of user data in one chunk: fits 1500 with UDP and IPv6 */
#define CF_RTO_MIN_MS 500
#define CF_RTO_MAX_MS 4000

enum {
	CF_C_DATA,
	CF_C_INIT,
	CF_C_INIT_ACK,
	CF_C_SACK,
	CF_C_HEARTBEAT,
	CF_C_HEARTBEAT_ACK,
	CF_C_ABORT,
	CF_C_SHUTDOWN,
	CF_C_SHUTDOWN_ACK,
	CF_C_ERROR,
	CF_C_COOKIE_ECHO,
	CF_C_COOKIE_ACK,
	CF_C_SHUTDOWN_COMPLETE = 14
};

enum cf_link_state {
	CF_L_INIT_SENT,
	CF_L_INVITED, /* we sent an INIT ACK: nobody's association yet */
	CF_L_ECHOED,
	CF_L_UP,
	CF_L_SHUTDOWN_DUE, /* once all is acknowledged */
	CF_L_SHUTDOWN_SENT,
	CF_L_SHUTDOWN_ACK_SENT,
	CF_L_OVER
};

/* A DATA chunk that was not acknowledged yet, or that is out of order. */
struct cf_data {
	struct cf_data *next;
	uint32_t tsn, ppid;
	uint16_t stream;
	uint8_t flags;
	bool sent, acked; /* out */
	bool handed;	  /* in: its message went up */
	size_t len;
	uint8_t b[];
};

#define CF_COOKIE_MAX 4096

struct cf_link {
	struct cf_link *next;
	struct cf_assoc *as; /* NULL while INVITED */
	struct cf_net *net;
	int fd;
	bool own_fd;		    /* connected, to the target alone */
	struct cf_dtls *dtls;	    /* or to this, which leads there; or NULL */
	struct sockaddr_storage to; /* where its packets come from, or are to go */
	socklen_t to_len;
	uint16_t port, peer_port;
	uint32_t tag, peer_tag;
	enum cf_link_state state;
	uint64_t due; /* of the one timer; UINT64_MAX: it does not run */
	unsigned rto_ms;
	uint8_t cookie[CF_COOKIE_MAX];
	size_t cookie_len;
	bool ddp; /* its INIT ACK names it */
	/* out */
	struct cf_data *out, **out_end;
	uint32_t tsn, rwnd;
	unsigned nout, flying, window; /* chunks: queued, sent, most to be sent */
	size_t flying_octets;
	/* in */
	struct cf_data *in; /* out of order and parts, by TSN */
	size_t in_octets;
	uint32_t cum;  /* all up to this have come */
	uint32_t told; /* the window that the target knows of */
	bool sack_due;
};

/* The carrier's part of a net. */
struct cf_below {
	struct cf_link *links;
	int listen_fd;	       /* -1: none */
	struct cf_dtls *front; /* what targets connect to in its place; or NULL */
	int spare_fd;	       /* of a case that moves between two sockets */
	bool spare_own;	       /* it is there, and closed at the end */
	bool raw;
	uint16_t port; /* the SCTP port that we listen on */
	uint8_t in[CF_PKT_MAX];
};

/* sctp_packet.c */
struct cf_link *cf_link_new(struct cf_net *n, int fd, bool own_fd);
/* A link to where @at leads, of which nothing was sent yet.  Return: 0 or an errno. */
int cf_link_open(struct cf_assoc *as, const struct cf_at *at);
void cf_link_dial(struct cf_link *l);
/* One packet, whosever it is; @p is written to. */
void cf_pkt_in(struct cf_net *n, int fd, const struct sockaddr_storage *from, socklen_t from_len,
	       uint8_t *p, size_t len);
/* The timer ran out. */
void cf_link_expired(struct cf_link *l);
/* SHUTDOWN, if it is due and all has arrived. */
void cf_link_go_on(struct cf_link *l);
void cf_link_abort(struct cf_link *l);

/* Packets are built in one piece: begin, chunks, send. */
struct cf_pkt {
	size_t len;
	uint8_t b[CF_PKT_MAX];
};

void cf_pkt_begin(struct cf_pkt *p, const struct cf_link *l, uint32_t tag);
/* Room for a chunk with @len octets behind its header, padded. */
uint8_t *cf_pkt_chunk(struct cf_pkt *p, uint8_t type, uint8_t flags, size_t len);
void cf_pkt_send(struct cf_pkt *p, const struct cf_link *l);
/* The same with the checksum that is in it. */
void cf_pkt_send_as_is(const struct cf_pkt *p, const struct cf_link *l);
/* Its checksum as the field has it, which is 0 afterwards. */
uint32_t cf_pkt_sum(uint8_t *b, size_t len);

/* TSNs: whether @a comes before @b. */
static inline bool cf_tsn_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Starts the timer that runs until something is answered. */
void cf_link_timer(struct cf_link *l);

/* sctp_data.c */
bool cf_link_put(struct cf_link *l, uint16_t stream, uint32_t ppid, const uint8_t *p, size_t len);
void cf_link_flush(struct cf_link *l);
/* T3: what was sent is sent again. */
void cf_link_again(struct cf_link *l);
void cf_link_data(struct cf_link *l, uint8_t flags, const uint8_t *p, size_t len);
void cf_link_sack(struct cf_link *l, const uint8_t *p, size_t len);
void cf_link_acked(struct cf_link *l, uint32_t cum);
void cf_link_send_sack(struct cf_link *l);
/* The case has read, and there is room again: the target is informed. */
void cf_link_reopen(struct cf_link *l);
void cf_link_drop(struct cf_link *l); /* frees what is queued */

#endif
