/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_USRSCTP_H
#define DDPS_SD_USRSCTP_H
/*
 * Inside the usrsctp backend:
 *   sd_usrsctp_lib.c     the process-global library: lock, clock, ports, handles by id
 *   sd_usrsctp_udp.c     carriers: the UDP (or raw IP) sockets below it
 *   sd_usrsctp_out.c     packets on their way out, in batches
 *   sd_usrsctp_icmp.c    ICMP about packets that we sent
 *   sd_usrsctp_guard.c   what of an association's set-up reaches the library
 *   ../sd_sock.c         their options, control messages and address forms
 *   sd_usrsctp_opt.c     SCTP sockets and their options
 *   sd_usrsctp_env.c     a context's share: the tick, and who is ready
 *   sd_usrsctp_rx.c      what comes out of an association
 *   ../sd_life.c         what follows from that
 *   sd_usrsctp.c         the backend's operations
 *
 * usrsctp runs in AF_CONN mode: it knows a peer only by an opaque handle, here a number and no
 * pointer, so that a packet it sends late cannot meet freed memory.  The number is a keyed hash
 * of the peer's address, so it need not be remembered from INIT to COOKIE ECHO: a datagram of
 * an unknown peer borrows its carrier's one spare handle, which stays with the peer only if an
 * association came of it.  A flood of forged packets costs no memory.
 *
 * One lock guards the library and everything here that an upcall or another context's
 * timers can reach.  "Locked" below: the caller holds it.
 */
#include "common/siphash.h"
#include "sctp_ddp/backend/sd_life.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp_out.h"
#include <netinet/in.h>
#include <utlist.h>
#include <usrsctp.h>
#include <uthash.h>

#define DDPS_US_HDR 28u /* SCTP common header and DATA chunk header */
/*
 * A path narrower than this, which IPv4 allows, is sent to in fragments of IP, as is one of less
 * than DDPS_US_PAYLOAD_LIB, the least that usrsctp knows.
 */
#define DDPS_US_PAYLOAD_MIN 128u
#define DDPS_US_PAYLOAD_LIB 524u

struct ddps_us_env;
struct ddps_us_carrier;

/* The key of a peer: all octets count, unused ones are 0. */
struct ddps_us_addr {
	uint8_t ip[16];
	uint32_t scope;
	uint16_t port, family;
};

/* A remote address on one carrier. */
struct ddps_us_handle {
	uintptr_t id;
	struct ddps_us_addr addr;
	struct sockaddr_storage to;
	socklen_t to_len;
	struct sockaddr_storage local; /* ours, port 0; ss_family 0: not known */
	struct ddps_us_carrier *carrier;
	unsigned refs; /* associations */
	struct ddps_sd_assoc *assocs;
	uint64_t cookie_seal; /* of the cookie that is fed now */
	uint32_t payload;     /* largest packet the path takes whole; 0: not probed yet */
	bool mtu_stale;	      /* a packet was too long for the path */
	uint8_t sent[8];      /* ports and tag of the last packet to it */
	UT_hash_handle hh;
};

/* An SCTP port.  usrsctp knows the same ones for the whole process; ours say which carrier
 * each belongs to, so that a packet cannot reach another carrier's endpoint. */
struct ddps_us_port {
	uint16_t num;
	struct ddps_us_carrier *carrier;
	struct ddps_sd_endpoint *ep; /* listening, or NULL */
	unsigned refs;
	UT_hash_handle hh;
};

struct ddps_us_carrier {
	struct ddps_us_env *ue;
	struct ddps_io io;
	int family;
	bool raw, connected;
	bool gso;      /* the kernel takes runs of packets as one, as far as is known */
	unsigned refs; /* endpoints and associations */
	uint64_t serial;
	struct ddps_us_handle *peer;  /* connected: the only one */
	struct ddps_us_handle *stray; /* else: spare, for a peer without association */
	struct ddps_us_carrier *prev, *next;
};

/* One context's use of the backend. */
struct ddps_us_env {
	struct ddps_env *env;
	struct ddps_io wake; /* eventfd: another thread made something ready */
	struct ddps_task drain;
	struct ddps_timer tick;
	bool ticking;
	uint64_t busy; /* when a packet last came or a message last went */
	uint64_t drops;
	uint64_t runs; /* sends of more than one packet as one */
	struct ddps_us_out out;
	struct ddps_task flush;
	uint8_t *rx_buf, *tx_buf; /* DDPS_SD_MSG_MAX octets each */
	struct ddps_sd_assoc *assocs, *ready;
	struct ddps_sd_endpoint *endpoints;
	struct ddps_us_carrier *carriers;
};

struct ddps_sd_endpoint {
	struct ddps_sd_owner owner;
	struct ddps_us_env *ue;
	struct socket *so;
	struct ddps_us_port *port;
	struct ddps_sd_endpoint *prev, *next;
};

struct ddps_sd_assoc {
	struct ddps_sd_life life;
	struct ddps_us_env *ue;
	struct socket *so; /* NULL: ended */
	struct ddps_us_handle *h;
	struct ddps_us_port *port;
	uint16_t peer_port;
	uint32_t payload;	     /* as told to usrsctp */
	uint32_t peer_tag, init_tag; /* Verification Tag of what we send, our own; 0: none yet */
	bool unreachable;	     /* ICMP: nobody there */
	bool path_changed;	     /* to be told */
	bool queued;		     /* on ue->ready */
	uint64_t cookie_seal;	     /* accepted: of the cookie that it came of */
	struct ddps_sd_assoc *prev, *next, *ready_prev, *ready_next, *h_prev, *h_next;
};

/* ---- sd_usrsctp_lib.c ---- */

int ddps_us_lib_get(void); /* 0 or DDPS_E_SYSTEM */
void ddps_us_lib_put(void);
void ddps_us_lock(struct ddps_us_env *ue);
/* What was sent meanwhile leaves now ... */
void ddps_us_unlock(void);
/* ... or at the end of this round of the loop, with what else may come. */
void ddps_us_unlock_later(void);

/* Locked: let the library's clock catch up. */
void ddps_us_advance(void);
/* Locked: @ue begins or stops to call ddps_us_advance() regularly. */
void ddps_us_set_ticking(struct ddps_us_env *ue, bool on);
/* Locked: have @a looked at from its owner's loop. */
void ddps_us_mark(struct ddps_sd_assoc *a);
/* Locked: a number for each carrier, never given twice. */
uint64_t ddps_us_serial(void);
const struct ddps_siphash_key *ddps_us_seal_key(void);
/* Locked: the id of a peer on a carrier. */
uintptr_t ddps_us_handle_id(const struct ddps_us_carrier *c, const struct ddps_us_addr *addr);
/* Locked: from now on usrsctp can send to @h by its id (0 or DDPS_E_NOMEM); no longer. */
int ddps_us_handle_enter(struct ddps_us_handle *h);
void ddps_us_handle_leave(struct ddps_us_handle *h);
struct ddps_us_handle *ddps_us_handle_find(uintptr_t id);
struct sockaddr_conn ddps_us_sconn(const struct ddps_us_handle *h, uint16_t port);
/* Locked: a port of the process, 0 for any; DDPS_E_SYSTEM with EADDRINUSE. */
int ddps_us_port_get(struct ddps_us_carrier *c, uint16_t num, struct ddps_us_port **out);
void ddps_us_port_put(struct ddps_us_port *p);
struct ddps_us_port *ddps_us_port_find(uint16_t num);

/* ---- sd_usrsctp_udp.c ---- */

/* A carrier to listen on; @encap a UDP port, 0 for any, DDPS_URI_ENCAP_OFF for raw IP. */
int ddps_us_carrier_bind(struct ddps_us_env *ue, const struct sockaddr *sa, socklen_t len,
			 int encap, struct ddps_us_carrier **out);
/* A carrier to one peer.  @net_errno: what connect() said, or 0. */
int ddps_us_carrier_connect(struct ddps_us_env *ue, const struct sockaddr_storage *from,
			    const struct sockaddr *sa, socklen_t len, int encap,
			    struct ddps_us_carrier **out, int *net_errno);
void ddps_us_carrier_put(struct ddps_us_carrier *c); /* locked */
void ddps_us_addr_key(struct ddps_us_addr *key, const struct sockaddr_storage *ss, bool raw);
/* Locked, once per association: have usrsctp find it by the handle's id; no longer. */
void ddps_us_handle_get(struct ddps_us_handle *h);
void ddps_us_handle_put(struct ddps_us_handle *h);
/* Locked: the path's size, as far as the local link tells. */
void ddps_us_handle_probe(struct ddps_us_handle *h);
/* Locked: a router said that its next link takes @mtu octets; verified. */
void ddps_us_handle_narrow(struct ddps_us_handle *h, uint32_t mtu);
uint32_t ddps_us_max_payload(int family, bool raw);
/* The carrier's own address with another port. */
void ddps_us_local_text(const struct ddps_us_carrier *c, const struct sockaddr_storage *ip,
			uint16_t port, char *buf, size_t len);
uint16_t ddps_us_carrier_port(const struct ddps_us_carrier *c);

/* ---- sd_usrsctp_out.c ---- */

/* Locked: one SCTP packet; the checksum is put in here.  @collect: a flush will follow. */
void ddps_us_transmit(struct ddps_us_handle *h, uint8_t *pkt, size_t len, bool collect);
/* Locked: an answer that is not usrsctp's.  It leaves now. */
void ddps_us_reply(struct ddps_us_handle *h, uint8_t *pkt, size_t len);
/* SCTP's checksum, in wire order, of a packet whose checksum field is 0. */
uint32_t ddps_us_checksum(const uint8_t *pkt, size_t len);

/* ---- sd_usrsctp_icmp.c ---- */

/* Locked: @pkt is being sent; with what tag, in case that it comes back in an ICMP message. */
void ddps_us_note_tags(struct ddps_us_handle *h, const uint8_t *pkt, size_t len);
/* Locked: @a is new; packets may have been sent for it before it was. */
void ddps_us_inherit_tags(struct ddps_sd_assoc *a);

/* ---- sd_usrsctp_guard.c ---- */

/* Locked: whether a packet from @h may be fed to usrsctp; its cookie's seal is taken off.  @len: at
 * least 16. */
bool ddps_us_guard(struct ddps_us_handle *h, uint8_t *pkt, size_t *len);
/* Locked: the INIT ACK @pkt with its cookie sealed, in @out; its length, or 0: not to be sent. */
size_t ddps_us_seal(struct ddps_us_handle *h, const uint8_t *pkt, size_t len, uint8_t *out,
		    size_t room);

/* ---- sd_usrsctp_opt.c ---- */

/* Locked: a socket bound to an SCTP port, for paths of this size; NULL and errno. */
struct socket *ddps_us_socket_new(const struct ddps_us_port *p, uint32_t payload);
/* Locked: the path's size for one association, or for those to come. */
int ddps_us_socket_payload(struct socket *so, uint32_t payload, sctp_assoc_t which);

/* ---- sd_usrsctp_env.c ---- */

/* The context's share, made on first use; 0 or DDPS_E_NOMEM, DDPS_E_SYSTEM. */
int ddps_us_env_get(struct ddps_env *env, void **ctx, struct ddps_us_env **out);
void ddps_us_env_free(struct ddps_us_env *ue);
/* Locked: there is an association to tick for. */
void ddps_us_start_ticking(struct ddps_us_env *ue);

/* ---- sd_usrsctp_rx.c ---- */

extern const struct ddps_sd_life_ops ddps_us_life;
/* Deliver what @a has.  Called from the owner's loop, not locked. */
void ddps_us_serve(struct ddps_sd_assoc *a);

/* ---- sd_usrsctp.c ---- */

/* Locked: associations that came up on a listening port. */
void ddps_us_accept(struct ddps_us_port *p);
/* Locked: the path's size, for the association that may come of the next packet. */
void ddps_us_endpoint_payload(struct ddps_sd_endpoint *e, uint32_t payload);
/* Locked: the path's size of an association changed. */
void ddps_us_assoc_payload(struct ddps_sd_assoc *a, uint32_t payload);
/* Locked: out of usrsctp at once, with an ABORT if it is still up. */
void ddps_us_close(struct ddps_sd_assoc *a);
/* The end is near: gone() from the loop. */
void ddps_us_doom(struct ddps_sd_assoc *a, struct ddps_error e);
void ddps_us_doom_locked(struct ddps_sd_assoc *a, struct ddps_error e);
void ddps_us_release(struct ddps_sd_assoc *a);

#endif
