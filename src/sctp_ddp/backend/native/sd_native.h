/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_NATIVE_H
#define DDPS_SD_NATIVE_H
/*
 * Inside the backend "native", the engine of src/sctp over sockets of ours:
 *   sd_native_io.c	its sockets, UDP (RFC 6951) or raw IP: packets in
 *   sd_native_out.c	packets out, and the engine's clock
 *   sd_native_env.c	a context's share: the engine, the sockets by number
 *   sd_native_homes.c	several addresses of an endpoint
 *   sd_native_up.c	what comes up from an association
 *   sd_native_stats.c	what there is to see of them
 *   sd_native_listen.c	endpoints that listen
 *   sd_native.c	the backend's operations
 *   sd_dtls.h	SCTP inside DTLS, below the engine
 *
 * All of it belongs to one context and is used under its lock.  Nothing is shared between contexts.
 */
#include "common/error.h"
#include "sctp/sctp.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "sctp_ddp/sd_backend.h"
#include <netinet/in.h>
#include <sys/queue.h>

#define DDPS_SN_SLOT_LEN 65536u
#define DDPS_SN_BATCH	 (DDPS_SCRATCH_LEN / DDPS_SN_SLOT_LEN)
#define DDPS_SN_OUTS	 8u   /* sends in one system call */
#define DDPS_SN_IOV	 256u /* parts of each */
#define DDPS_SN_HEAD	 8192u
#define DDPS_SN_SEGS	 64u	/* UDP_MAX_SEGMENTS of the first kernels with it */
#define DDPS_SN_SEALED	 65536u /* octets of sealed packets that are sent together */
#define DDPS_SN_INSIDE	 62000u /* of these, packets */
#define DDPS_SN_OCTETS	 65000u /* of one send: less than a datagram holds, over either IP */

struct ddps_sn_env;
struct ddps_sn_dtls;
struct ddps_sn_dtls_table;

/* Addresses that an endpoint has, two or more. */
struct ddps_sn_homes {
	unsigned n;
	struct ddps_sctp_addr at[DDPS_URI_ADDRS_MAX];
};

/* Where packets go, and the same for the system. */
struct ddps_sn_dest {
	struct ddps_sctp_addr peer, local;
	uint16_t encap;
	socklen_t len;		/* of .to; 0: nothing is in here yet */
	size_t ctrl_len;	/* of .ctrl */
	struct sockaddr_in6 to; /* or an IPv4 one in its place */
	union ddps_sd_cmsg ctrl;
};

/* A socket; the engine knows it by its number.  A raw one has the packets of one IP only: where both
 * are wanted that of IPv6 has a twin for IPv4, with the same number. */
struct ddps_sn_sock {
	struct ddps_sn_env *ne;
	struct ddps_sn_sock *twin, *of; /* its twin; whose twin it is */
	struct ddps_io io;
	int family;
	bool only; /* no IPv4 in addition to IPv6 */
	bool raw, gso, full;
	bool waited;	 /* nothing was there when it was read last */
	bool empty;	 /* there was no more than what was read last */
	bool errors;	 /* a call has said that ICMP errors wait: epoll may not be asked */
	uint8_t tos;	 /* of all that leaves, see ddps_uri */
	uint8_t put_off; /* so many turns, for what is to be read before them */
	bool shared;	 /* of what this context opens */
	uint16_t via;	 /* number */
	uint16_t port;	 /* own UDP port, 0: raw */
	unsigned refs;	 /* endpoints and associations */
	unsigned heavy;	 /* messages and packets of a datagram, of late at most */
	uint16_t *ours;	 /* raw: how many of ours use each SCTP port; the twin's, too */
	struct ddps_sn_dest dest;	  /* of what left last */
	bool secured;			  /* what it carries is DTLS: */
	struct ddps_sn_dtls_table *table; /* its connections; NULL: it is not secured */
	struct ddps_sn_dtls
		*dtls; /* it is one of these, and has no descriptor; NULL: it is a socket */
	struct ddps_sn_homes *homes; /* bound to any address, for these; NULL: as it is bound */
};

#define DDPS_SN_REFUSED 16u

/* From where a datagram came, as the system said it last, and what that is for the engine.  Each socket has the
 * place of its number, as long as no other one takes it. */
#define DDPS_SN_SOURCES 8u
struct ddps_sn_source {
	const struct ddps_sn_sock *sock; /* NULL: nothing is in here */
	struct sockaddr_storage from;
	union ddps_sd_cmsg ctrl;
	socklen_t from_len;
	size_t ctrl_len;
	struct ddps_sctp_route route;
	size_t seg_size;
};

/* Where datagrams go that one call reads: their payload to the scratch buffer. */
struct ddps_sn_inbox {
	struct sockaddr_storage from[DDPS_SN_BATCH];
	union ddps_sd_cmsg ctrl[DDPS_SN_BATCH];
	struct iovec iov[DDPS_SN_BATCH];
	struct mmsghdr m[DDPS_SN_BATCH];
};

/* One context's use of the backend. */
struct ddps_sn_env {
	struct ddps_env *env;
	struct ddps_sctp *e;
	struct ddps_timer timer;
	struct ddps_task flush;
	struct ddps_sn_sock **socks; /* by number; NULL: free */
	unsigned nsocks;
	unsigned nfull; /* sockets, twins among them, whose kernel has no room */
	bool unused;	/* one of them is to be closed */
	TAILQ_HEAD(, ddps_sd_assoc) assocs;
	LIST_HEAD(, ddps_sd_endpoint) endpoints;
	struct ddps_sd_assoc *accepting; /* shown to an endpoint's owner just now */
	uint32_t host_mtu;		 /* of the loopback interface, 0: not known */
	uint8_t noise[256]; /* random octets, of which the first @noise_left are unused */
	size_t noise_left;
	size_t fresh;	  /* octets handed over since the last flush */
	uint64_t held_at; /* since then a post waits for the next poll; 0: none does */
	bool left;	  /* one has left by itself since the last poll */
	unsigned wary;	  /* so many posts do not */
	unsigned work;	  /* messages and packets of this batch */
	uint64_t now;	  /* the clock, as it was read last */
	uint64_t due;	  /* when the engine wants to be asked, as of the last flush */
	unsigned ndtls;	  /* DTLS connections */
	uint64_t
		renew_at; /* records of a DTLS key until a new handshake; 0: as it should be.  Tests set it */
	uint8_t *sealed; /* scratch of sd_dtls_out.c, or NULL */
	/* Who was refused at last before it had shown anything, why and when. */
	struct ddps_sn_refused {
		struct ddps_sctp_addr peer;
		uint16_t port;
		int code;
		uint64_t at;
	} refused[DDPS_SN_REFUSED];
	unsigned nrefused; /* modulo their number */
	struct ddps_sn_source source[DDPS_SN_SOURCES];
	struct ddps_sn_inbox inbox;
	struct ddps_sctp_out out[DDPS_SN_OUTS];
	struct iovec iov[DDPS_SN_OUTS][DDPS_SN_IOV];
	uint8_t head[DDPS_SN_OUTS][DDPS_SN_HEAD];
};

struct ddps_sd_endpoint {
	struct ddps_sn_env *ne;
	struct ddps_sn_sock *sock;
	struct ddps_sctp_port *l;	 /* NULL: each of its DTLS connections has one */
	struct ddps_sctp_param param;	 /* of those */
	LIST_HEAD(, ddps_sn_dtls) conns; /* these */
	uint16_t port;
	const struct ddps_sd_listen_up *up;
	void *user;
	LIST_ENTRY(ddps_sd_endpoint) of_env;
};

struct ddps_sd_assoc {
	struct ddps_sn_env *ne;
	struct ddps_sn_sock *sock;
	struct ddps_sctp_assoc *sa; /* NULL: ended */
	const struct ddps_sd_assoc_up *up;
	void *user;
	size_t kept; /* octets taken off the window */
	bool by_us, is_up, gone;
	uint16_t port;		     /* own SCTP port */
	unsigned judged;	     /* the last judgement of its DTLS peer that it knows of */
	uint32_t told;		     /* max_user_data */
	struct ddps_sctp_addr local; /* connect: as the system would choose */
	struct ddps_timer deadline;
	struct ddps_task end_task; /* reports an end that the engine does not know of */
	struct ddps_kept_error end;
	TAILQ_ENTRY(ddps_sd_assoc) of_env;
};

/* ---- sd_native_env.c ---- */

/* The context's share, made on first use; 0 or DDPS_E_NOMEM, DDPS_E_SYSTEM. */
int ddps_sn_env_get(struct ddps_env *env, void **ctx, struct ddps_sn_env **out);
void ddps_sn_env_free(struct ddps_sn_env *ne);
/* Fills @len octets that nobody can foresee; @user: a context's share, or NULL. */
void ddps_sn_random(void *user, void *buf, size_t len);
/* A socket for what this context opens to peers of @family (AF_INET6: of both). */
int ddps_sn_sock_client(struct ddps_sn_env *ne, int family, bool raw, uint8_t tos,
			struct ddps_sn_sock **out);
#define DDPS_SN_OWN	0x1 /* not another one's */
#define DDPS_SN_ONLY	0x2 /* an IPv6 one takes no IPv4 */
#define DDPS_SN_BOTH	0x4 /* an IPv6 one takes IPv4, directly on IP also */
#define DDPS_SN_SECURED 0x8 /* for DTLS: never another one's that is not, or that has a listener */
/* A socket to listen on; @encap as in ddps_uri, but not the default; @how: of DDPS_SN_*. */
int ddps_sn_sock_bind(struct ddps_sn_env *ne, const struct sockaddr *sa, socklen_t len, int encap,
		      unsigned how, uint8_t tos, struct ddps_sn_sock **out);
/* A number for a DTLS connection over @udp, which has none: @c->as is set.  0 or DDPS_E_*. */
int ddps_sn_sock_number(struct ddps_sn_sock *udp, struct ddps_sn_dtls *c);
/* It is closed when all that was to leave through it has. */
void ddps_sn_sock_put(struct ddps_sn_sock *s);
void ddps_sn_close_unused(struct ddps_sn_env *ne);
/* The one that a packet to there leaves by, or NULL. */
struct ddps_sn_sock *ddps_sn_sock_to(const struct ddps_sn_env *ne, const struct ddps_sctp_route *r);
/* A raw socket sees all packets of the host: from now on those to @port concern us; no longer. */
void ddps_sn_sock_port(struct ddps_sn_sock *s, uint16_t port, bool on);

/* ---- sd_native_homes.c ---- */

/* What the system says of a way to @to, from @from unless that is NULL: 0, and in @local the address
 * that is used, or an errno, and @local is as it was. */
int ddps_sn_way(const struct sockaddr_storage *from, const struct sockaddr_storage *to,
		struct sockaddr_storage *local);
/* A socket of @family for the own addresses @list; @encap as above. */
int ddps_sn_homes_sock(struct ddps_sn_env *ne, const struct ddps_uri_addrs *list, int family,
		       int encap, uint8_t tos, struct ddps_sn_sock **out);
/* Of a socket for all of @a and @b. */
int ddps_sn_homes_family(const struct ddps_uri_addrs *a, const struct ddps_uri_addrs *b);
/* Whether what came to @local is for @s. */
bool ddps_sn_homes_take(const struct ddps_sn_sock *s, const struct ddps_sctp_addr *local);
/* As the engine's config wants it; @user is not looked at. */
unsigned ddps_sn_homes_source(void *user, const struct ddps_sctp_addr *peer,
			      const struct ddps_sctp_addr *local, unsigned n);
/* As the engine's config wants it: a way to it leads from it.  Of loopback all is. */
bool ddps_sn_homes_own(void *user, const struct ddps_sctp_addr *a);
/* "192.0.2.1,[2001:db8::1]:7174" */
void ddps_sn_homes_text(const struct ddps_sn_homes *h, uint16_t port, char *buf, size_t len);

/* ---- sd_native_io.c ---- */

void ddps_sn_readable(void *user, uint32_t events);
void ddps_sn_inbox_init(struct ddps_sn_inbox *b, uint8_t *scratch);
struct ddps_sctp_addr ddps_sn_addr(const struct sockaddr_storage *ss);
/* Whatever the ports are; mapped IPv4 is the same as IPv4. */
bool ddps_sn_same_addr(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* As @family's sockets want it, IPv4 mapped on those of IPv6.  Returns its length. */
socklen_t ddps_sn_sockaddr(const struct ddps_sctp_addr *a, uint16_t port, int family,
			   struct sockaddr_storage *ss);

/* ---- sd_native_out.c ---- */

/* The parts of the packet that begins with part @first. */
unsigned ddps_sn_parts_of(const struct ddps_sctp_out *o, unsigned first);
/* Whether @m left; else errno, and @s->full if there is no room. */
bool ddps_sn_send_packet(struct ddps_sn_sock *s, const struct msghdr *m);
/* A run that the kernel cuts: what it does not know it refuses by one of these. */
bool ddps_sn_no_gso(int err);
/* Send what there is, and ask for the next deadline. */
void ddps_sn_flush(struct ddps_sn_env *ne);
/* From the loop: also tell senders whose queue has room again, and send what they add.  By ne->now:
 * timers that come due meanwhile have their turn soon enough. */
void ddps_sn_turn(struct ddps_sn_env *ne);
/* Nothing is to be done now; reads the clock. */
bool ddps_sn_is_idle(struct ddps_sn_env *ne);
/* The same where nothing can have been added since the last ddps_sn_flush(). */
void ddps_sn_serve_due(struct ddps_sn_env *ne);
/* Read the clock: for all that the engine learns, so that it is never ahead of ne->now. */
static inline uint64_t ddps_sn_now(struct ddps_sn_env *ne)
{
	ne->now = ddps_now();
	return ne->now;
}
/* ddps_sn_flush(), now or at the end of this round of the loop. */
void ddps_sn_poke(struct ddps_sn_env *ne);
/* The same for a message that was posted on @a: it may wait for more of them. */
void ddps_sn_posted(struct ddps_sn_env *ne, const struct ddps_sctp_assoc *a);
/* Timer: let the engine's timers fire. */
void ddps_sn_tick(void *user);

/* ---- sd_native_listen.c: the last three as in struct ddps_sd_backend ---- */
/* The port of UDP that a URI means, or DDPS_URI_ENCAP_OFF. */
int ddps_sn_encap(const struct ddps_uri *uri);
/* What every association of @s is made with, its addresses among it. */
struct ddps_sctp_param ddps_sn_param(const struct ddps_sn_sock *s, uint32_t mtu);
int ddps_sn_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		   const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		   const struct ddps_sd_listen_up *up, void *user, struct ddps_sd_endpoint **out);
void ddps_sn_endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap);
void ddps_sn_endpoint_free(struct ddps_sd_endpoint *e);

/* ---- sd_native_up.c ---- */

extern const struct ddps_sctp_up ddps_sn_up;
void ddps_sn_accept(void *user, struct ddps_sctp_assoc *sa);
struct ddps_sd_assoc *ddps_sn_assoc_new(struct ddps_sn_env *ne, struct ddps_sn_sock *s);
/* Out of the engine, with an ABORT if it is still up; then free. */
void ddps_sn_assoc_release(struct ddps_sd_assoc *a);
/* It is over for a reason that the engine does not know: gone() from the loop. */
void ddps_sn_end_soon(struct ddps_sd_assoc *a, struct ddps_error e);
void ddps_sn_late(const struct ddps_sd_assoc *a, struct ddps_error *e);
void ddps_sn_info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *info);
/* "192.0.2.1:7174" */
struct ddps_addr ddps_sn_text(const struct ddps_sctp_addr *addr, uint16_t port, char *buf,
			      size_t len);

/* ---- sd_native_stats.c: as in struct ddps_sd_backend ---- */

bool ddps_sn_unanswered(struct ddps_sd_assoc *a, uint64_t *most);
int ddps_sn_assoc_stats(struct ddps_sd_assoc *a, struct ddps_assoc_stats *st);
int ddps_sn_path_stats(struct ddps_sd_assoc *a, uint32_t path, struct ddps_path_stats *st);
int ddps_sn_set_primary(struct ddps_sd_assoc *a, uint32_t path);
/* The engine's, where somebody captures packets; @user is the struct ddps_sn_env. */
void ddps_sn_tap(void *user, uint64_t now, bool sent, const struct ddps_sctp_route *r,
		 const struct iovec *iov, int niov);

#endif
