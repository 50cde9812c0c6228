/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_DTLS_H
#define DDPS_SD_DTLS_H
/*
 * SCTP inside DTLS 1.2 (RFC 8261).  A UDP socket that is secured carries connections, told apart by the peer's
 * address and port; to the engine each is a socket with a number of its own, so that what ends, restarts or has the
 * same ports on one has nothing to do with another.
 *   sd_dtls.c		connections: found, made, ended
 *   sd_dtls_shake.c	their handshakes, by the context's thread
 *   sd_dtls_in.c	datagrams in: records opened, and handed to the engine together
 *   sd_dtls_roam.c	datagrams from ports that nobody has: whose are they?
 *   sd_dtls_out.c	packets out: sealed in a row, sent in one call
 *   sd_dtls_renew.c	a new handshake on the same addresses, before the key has sealed all that it may
 *   sd_dtls_who.c	who the peer is, and whether it would be let in now
 */
#include "sctp_ddp/backend/native/sd_native.h"
#include "common/shares.h"
#include "common/who.h"
#include "secure/dtls/dtls.h"
#include "secure/hs/dhs.h"
#include "secure/shaker.h"
#include "secure/vault.h"

#define DDPS_SN_DTLS_MTU                                                                           \
	16368u /* most of a packet with IP and UDP: a record's content is 16347 for some peers */

enum ddps_sn_dtls_state {
	DDPS_SN_SHAKING,
	DDPS_SN_OPEN,
	DDPS_SN_OVER, /* nothing leaves any more */
};

/* Records, one behind the other, each behind its length in two octets. */
struct ddps_sn_framed {
	uint8_t *p;
	size_t len, size;
	unsigned n;
};

struct ddps_sn_keys {
	struct ddps_vault vault;
	struct ddps_dtls *rec; /* in it; NULL: none */
	bool in_vain;	       /* it has counted the last record as forged */
};

/* A UDP port of its peer's, by which a connection is found. */
struct ddps_sn_dtls_at {
	struct ddps_sn_dtls *c; /* NULL: it is not found by it */
	LIST_ENTRY(ddps_sn_dtls_at) of_chain;
	uint16_t port;
};

struct ddps_sn_dtls {
	struct ddps_sn_env *ne;
	struct ddps_sn_sock
		*as; /* what the engine knows it by; it has a reference of its own until OVER */
	struct ddps_sn_sock *udp; /* what carries it; one reference */
	struct ddps_sctp_addr peer, local;
	struct ddps_sn_dtls_at at, roam; /* roam: records came from there, and it is being asked */
	TAILQ_ENTRY(ddps_sn_dtls) of_near;
	bool server, took, unreachable;
	enum ddps_sn_dtls_state state;
	struct ddps_shake *shake;    /* NULL: it is not needed any more */
	struct ddps_timer timer;     /* SHAKING: its next step; OPEN: unused for so long */
	uint64_t deadline;	     /* of a peer's handshake, or for new keys; else 0 */
	uint64_t begun_at, heard_at; /* its handshake: when it began; last heard something */
	uint64_t failing_since; /* a dial's: 0, or what @refused says since then may be anybody's */
	uint8_t anew;		/* times that it began anew after silence */
	uint8_t random[32];	/* of the ClientHello that began it, a peer's */
	struct ddps_sn_framed todo;  /* of the handshake, while a step is under way */
	struct ddps_sn_framed early; /* of data, that came before the keys */
	/* What is sealed is by @cur.  A listener begins with @coming when it has opened something by it, for
	 * then the dialler has it too; what is under way by @old is taken for a while.  All are of epoch 1. */
	struct ddps_sn_keys cur, coming, old;
	uint64_t old_until, renew_at; /* time; not before */
	uint16_t most; /* octets of content that the peer takes in a record; 0: any */
	bool renewing; /* @shake is of a new handshake */
	char *host;    /* a dial: as in struct ddps_creds_want, for that */
	struct ddps_who *who;
	struct ddps_witness *witness;
	/* The witness is being judged again, and is that one's; when it was last, in s, and what came of it.
	 * Before it is OPEN: why its handshake failed last. */
	struct ddps_shake *judging;
	uint64_t judged_at;
	unsigned judgements; /* so many came of it */
	struct ddps_kept_error refused;
	/* a dial */
	struct ddps_sd_assoc *dials; /* that is begun when the handshake is done, or was */
	struct ddps_sctp_param param;
	uint16_t peer_port; /* SCTP's */
	/* an endpoint's */
	struct ddps_sd_endpoint *ep; /* NULL: it has gone */
	struct ddps_sctp_port *l;
	struct ddps_share share; /* while it is half open */
	LIST_ENTRY(ddps_sn_dtls) of_ep;
};

#define DDPS_SN_DTLS_CHAINS 256u

struct ddps_sn_dtls_chain {
	LIST_HEAD(, ddps_sn_dtls_at) at; /* by address and port */
	TAILQ_HEAD(, ddps_sn_dtls) near; /* by address, in the order in which they are tried next */
	struct ddps_sn_tries {
		uint64_t second;
		unsigned n; /* in that */
	} tries;
};

/* What a secured UDP socket has. */
struct ddps_sn_dtls_table {
	struct ddps_sd_endpoint *ep;	    /* NULL: nobody listens */
	uint8_t secret[2][DDPS_DHS_SECRET]; /* of cookies, the newer first */
	uint64_t secret_at;
	struct ddps_shares shaking;
	struct ddps_sn_tries tries;
	unsigned nchains;
	struct ddps_sn_dtls_chain chain[];
};

/* ---- sd_dtls.c ---- */

/* Of a UDP socket that is to be secured, for peers, or for one (@lone); 0 or DDPS_E_NOMEM. */
int ddps_sn_dtls_begin(struct ddps_sn_sock *udp, bool lone);
void ddps_sn_dtls_table_free(struct ddps_sn_sock *udp);
struct ddps_sn_dtls *ddps_sn_dtls_find(const struct ddps_sn_sock *udp,
				       const struct ddps_sctp_addr *peer, uint16_t port);
/* Those that have an address are in this one. */
struct ddps_sn_dtls_chain *ddps_sn_dtls_near(const struct ddps_sn_sock *udp,
					     const struct ddps_sctp_addr *peer);
/* It is found by @port and not by the one that @at had; not any more. */
void ddps_sn_dtls_place(struct ddps_sn_dtls *c, struct ddps_sn_dtls_at *at, uint16_t port);
void ddps_sn_dtls_unplace(struct ddps_sn_dtls_at *at);
/* A connection over @udp that has not begun; NULL: no memory, or number. */
struct ddps_sn_dtls *ddps_sn_dtls_new(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
				      uint16_t port, const struct ddps_sctp_addr *local);
/* It ends: whatever associations it has end for @why.  Code 0: they have ended. */
void ddps_sn_dtls_end(struct ddps_sn_dtls *c, const struct ddps_error *why);
/* Nothing refers to it. */
void ddps_sn_dtls_free(struct ddps_sn_dtls *c);
/* An association that used it has gone; @a is one whose handshake may be under way. */
void ddps_sn_dtls_left(struct ddps_sn_dtls *c, struct ddps_sd_assoc *a);
/* @e listens on its socket; not any more. */
void ddps_sn_dtls_listen(struct ddps_sd_endpoint *e);
void ddps_sn_dtls_unlisten(struct ddps_sd_endpoint *e);
/* The context goes: all of them, in order. */
void ddps_sn_dtls_end_all(struct ddps_sn_env *ne);
bool ddps_sn_framed_add(struct ddps_sn_framed *f, const uint8_t *p, size_t n);
void ddps_sn_framed_drop(struct ddps_sn_framed *f);
/* It has no association: how long it stays. */
void ddps_sn_dtls_linger(struct ddps_sn_dtls *c);

/* ---- sd_dtls_shake.c ---- */

/* Begin it; @began: the peer's first datagram @in, whose cookie was right, or NULL.  0 or DDPS_E_*. */
int ddps_sn_dtls_shake(struct ddps_sn_dtls *c, const struct ddps_creds_want *want,
		       const struct ddps_hs_began *began, const uint8_t *in, size_t n,
		       struct ddps_error *why);
/* A record of the handshake. */
void ddps_sn_dtls_shake_in(struct ddps_sn_dtls *c, const uint8_t *in, size_t n);
/* It took too long: why. */
struct ddps_error ddps_sn_dtls_late(const struct ddps_sn_dtls *c);
/* Timer. */
void ddps_sn_dtls_timer(void *user);

/* ---- sd_dtls_in.c ---- */

/* What was received on a secured socket: @seg octets each but the last. */
void ddps_sn_dtls_input(struct ddps_sn_sock *udp, const struct sockaddr_storage *from,
			const struct ddps_sctp_addr *local, uint8_t *p, size_t len, size_t seg);
/* The peer is plain, and this side is not; or the other way round.  Say so, now and then. */
void ddps_sn_dtls_misspoken(struct ddps_sn_env *ne, const struct sockaddr_storage *from,
			    bool plain);
/* The first datagram of DTLS: a ClientHello. */
bool ddps_sn_dtls_is_hello(const uint8_t *p, size_t len);
/* What came before the keys. */
void ddps_sn_dtls_input_early(struct ddps_sn_dtls *c);
/* So much was forged that its key is not safe any more. */
void ddps_sn_dtls_forged(struct ddps_sn_dtls *c);
/* An ICMP error about a datagram to there, which anybody can send: a reason to ask. */
void ddps_sn_dtls_hint(struct ddps_sn_sock *udp, const struct sockaddr_storage *to);

/* ---- sd_dtls_roam.c ---- */

/* Whose the sealed record @p is, which came from a port that no connection over @udp has: it is opened by the keys of
 * a few of those from @peer.  NULL: nobody's, or not tried; else as ddps_sn_dtls_open. */
struct ddps_sn_dtls *ddps_sn_dtls_whose(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
					const struct ddps_dtls_head *h, uint8_t *p,
					uint8_t **content, ssize_t *len);
/* A record that came from @port was opened.  True: none after it was before, so the peer may be there. */
bool ddps_sn_dtls_seen_at(struct ddps_sn_dtls *c, uint16_t port, const struct ddps_dtls_head *h);
/* The engine has asked, and was answered from there.  False: another one has that port meanwhile. */
bool ddps_sn_dtls_roamed(struct ddps_sn_dtls *c, uint16_t port);

/* ---- sd_dtls_out.c ---- */

/* Seal and send @o; returns as send_native_batch.  @large as there. */
void ddps_sn_dtls_send(struct ddps_sn_sock *as, const struct ddps_sctp_out *o, bool *large);
/* One datagram as it is. */
void ddps_sn_dtls_send_raw(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
			   uint16_t port, const struct ddps_sctp_addr *local, const uint8_t *p,
			   size_t n);
/* Room for what is sealed, and behind it for a packet; NULL: no memory. */
uint8_t *ddps_sn_dtls_room(struct ddps_sn_env *ne);
#define DDPS_SN_FLAT 65536u /* octets of that packet */
/* An alert under the keys, if there are some. */
void ddps_sn_dtls_alert(struct ddps_sn_dtls *c, enum ddps_alert alert);

/* ---- sd_dtls_renew.c ---- */

void ddps_sn_keys_drop(struct ddps_sn_keys *k);
/* What @c->shake has made; 0 or DDPS_E_NOMEM. */
int ddps_sn_keys_take(struct ddps_sn_dtls *c, struct ddps_sn_keys *k, struct ddps_peer_id *id,
		      struct ddps_witness **witness);
/* A dialler's key has sealed, or opened, a lot: begin. */
void ddps_sn_dtls_renew(struct ddps_sn_dtls *c);
/* The new handshake is done; failed, or is to be given up: what there was goes on. */
void ddps_sn_dtls_renewed(struct ddps_sn_dtls *c);
void ddps_sn_dtls_not_renewed(struct ddps_sn_dtls *c, const char *why);
/* Open a record by whatever key it is of; as ddps_dtls_open, and where its content is. */
ssize_t ddps_sn_dtls_open(struct ddps_sn_dtls *c, const struct ddps_dtls_head *h, uint8_t *p,
			  uint8_t **content);
/* That record was not forged: another connection's key has opened it. */
void ddps_sn_dtls_pardon(struct ddps_sn_dtls *c);

/* ---- sd_dtls_who.c ---- */

/* As in struct ddps_sd_backend. */
const struct ddps_who *ddps_sn_dtls_peer_id(const struct ddps_sd_assoc *a);
int ddps_sn_dtls_judge(struct ddps_sd_assoc *a, struct ddps_error *why);
/* Both are the same peer. */
bool ddps_sn_dtls_same_peer(const struct ddps_who *a, const struct ddps_who *b);
/* The handshake is done: keep who it is; 0 or DDPS_E_NOMEM. */
int ddps_sn_dtls_keep_who(struct ddps_sn_dtls *c, const struct ddps_peer_id *id);
/* A peer of a listener's is refused, which is said and counted.  @early: before anything was authentic.  Then it may
 * begin again and again, and is said once in ten seconds. */
void ddps_sn_dtls_refused(struct ddps_sn_env *ne, const struct ddps_sctp_addr *peer, uint16_t port,
			  int code, const char *why, bool early);
/* The sentence for an alert of the peer's. */
struct ddps_error ddps_sn_dtls_by_peer(const struct ddps_sn_dtls *c, uint8_t alert);

#endif
