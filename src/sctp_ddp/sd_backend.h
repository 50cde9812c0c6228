/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_BACKEND_H
#define DDPS_SD_BACKEND_H
/*
 * What the DDP adaptation needs from an SCTP: associations that carry unordered user messages.
 * Two implementations, each in a folder of backend/: native (the engine of src/sctp) and the
 * kernel's.
 *
 * Upcalls come from the loop only, never from inside a call from above.  From inside an upcall
 * every op may be called, free included; after free nothing is called for that object.
 */
#include "common/llp.h"

#define DDPS_SCTP_ADAPTATION_DDP 1u
/* Asked for, each way.  They cost an SCTP memory, and half of them serve the sessions that one side
 * opens; if those do not suffice another association is opened. */
#define DDPS_SCTP_STREAMS 256u

struct ddps_sd_assoc;	 /* one association, backend's */
struct ddps_sd_endpoint; /* one listening endpoint, backend's */

struct ddps_sd_assoc_info {
	uint16_t in_streams, out_streams;
	bool has_adaptation;
	uint32_t adaptation; /* peer's indication */
	char local[72], peer[72];
	struct ddps_addr local_addr, peer_addr; /* the same as numbers */
	uint16_t encap;				/* peer's UDP port, or 0 */
	size_t max_user_data; /* octets of one user message that SCTP need not fragment */
	bool by_us;	      /* this side sent the INIT */
	bool shut;	      /* the peer's window has no room for a few packets */
};

struct ddps_sd_assoc_up {
	/* The peer has answered: info() is complete, and what is sent from inside leaves with the end
	 * of the set-up.  comm_up() or gone() follows.  Not every backend says that.  May be
	 * NULL. */
	void (*answered)(void *user);
	/* Association is up; info() is complete (adaptation indication included). */
	void (*comm_up)(void *user);
	/* One whole user message (MSG_EOR seen). @ppid in host order, as on the wire. */
	void (*message)(void *user, uint16_t stream, uint32_t ppid, bool unordered,
			const uint8_t *data, size_t len);
	/* After send() returned DDPS_E_AGAIN: room again. */
	void (*writable)(void *user);
	/* All messages handed over so far are cumulatively acknowledged ("sender dry").  Given
	 * once after each ask_dry(). */
	void (*dry)(void *user);
	/* Messages up to number @n, counted from 1, are acknowledged for good.  Of a backend
	 * that has @acks only, which need not be asked. */
	void (*acked)(void *user, uint64_t n);
	/* The path takes other sizes of packets: see info().  One that has @acks says that before
	 * writable() and acked(). */
	void (*path)(void *user);
	/* Peer began SHUTDOWN: nothing more will come. */
	void (*peer_shutdown)(void *user);
	/* Peer restarted: every session is lost, the association goes on with new info(). */
	void (*restarted)(void *user);
	/* After judge() returned DDPS_E_AGAIN: as it does.  Of a backend that @secures. */
	void (*judged)(void *user, const struct ddps_error *why);
	/* The association is gone; last upcall.  code 0: orderly SHUTDOWN. */
	void (*gone)(void *user, const struct ddps_error *e);
};

struct ddps_sd_listen_up {
	/* A peer's association is up.  The callee calls op set_up() before it returns, or free(). */
	void (*accepted)(void *user, struct ddps_sd_assoc *a);
	void (*failed)(void *user, const struct ddps_error *e);
};

struct ddps_sd_backend {
	const char *name; /* "native", "kernel" */
	bool acks;	  /* says acked(), and never dry() */
	bool homes;	  /* knows lists of addresses, uri->hosts and uri->from */
	bool shares;	  /* knows uri->per_address */
	bool secures;	  /* knows sctps:// */
	/* Whether it works here, now. */
	bool (*available)(void);
	/* Start an association; comm_up() or gone() follows.  @p->connect_ms as deadline. */
	int (*connect)(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		       const struct sockaddr *sa, socklen_t sa_len, const struct ddps_llp_param *p,
		       const struct ddps_sd_assoc_up *up, void *user, struct ddps_sd_assoc **out);
	int (*listen)(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		      const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		      const struct ddps_sd_listen_up *up, void *user,
		      struct ddps_sd_endpoint **out);
	/* Bound "HOST,...:PORT" (brackets for IPv6) of at most DDPS_ADDRS_TEXT octets, and UDP
	 * encapsulation port or 0. */
	void (*endpoint_addr)(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap);
	void (*endpoint_free)(struct ddps_sd_endpoint *e); /* accepted associations live on */
	void (*set_up)(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user);
	void (*info)(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *info);
	/* Of one that @secures: the identity of the peer, NULL: it is not known; and whether it would be let in now: 0,
	 * DDPS_E_AGAIN: judged() will say, or another code and @why.  NULL: it does not. */
	const struct ddps_who *(*peer_id)(const struct ddps_sd_assoc *a);
	int (*judge)(struct ddps_sd_assoc *a, struct ddps_error *why);
	/* The association did not come up in time: say in @e why, if that is known.  NULL: it never is. */
	void (*late)(const struct ddps_sd_assoc *a, struct ddps_error *e);
	/* struct_size apart, and what the backend cannot know; NULL: it knows nothing.  0,
	 * DDPS_E_STATE, or DDPS_E_INVAL: no such path. */
	int (*assoc_stats)(struct ddps_sd_assoc *a, struct ddps_assoc_stats *st);
	int (*path_stats)(struct ddps_sd_assoc *a, uint32_t path, struct ddps_path_stats *st);
	int (*set_primary)(struct ddps_sd_assoc *a, uint32_t path);
	/* As ddps_llp_ops. */
	bool (*unanswered)(struct ddps_sd_assoc *a, uint64_t *most);
	/* Hand over one unordered message, whole or not at all.  0, DDPS_E_AGAIN (writable()
	 * follows) or another DDPS_E_* (gone() follows). */
	int (*send)(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid,
		    const struct iovec *iov, int niov);
	/* Where a message of @len octets may be filled in, which is handed over by placed(), or given back unless
	 * @filled, before any other call.  It returns NULL where send() would say why.  NULL: there is no such thing. */
	uint8_t *(*place)(struct ddps_sd_assoc *a, uint16_t stream, size_t len);
	void (*placed)(struct ddps_sd_assoc *a, uint8_t *at, uint16_t stream, uint32_t ppid,
		       size_t len, bool filled);
	/* Octets of the largest user message that still goes into the packet in which the last one will
	 * leave; 0: none does, or nothing waits.  NULL: not known. */
	size_t (*room)(const struct ddps_sd_assoc *a);
	/* All that was handed over may leave now, small messages together in packets; NULL: they do
	 * so one by one. */
	void (*flush)(struct ddps_sd_assoc *a);
	void (*ask_dry)(struct ddps_sd_assoc *a);
	/* From message(): acknowledge that one now, and not with what the program may send next: it may send
	 * nothing, and look no more.  NULL: the system acknowledges, whatever the program does. */
	void (*ack_now)(struct ddps_sd_assoc *a);
	/* Stop or resume taking messages from SCTP (its receive window then closes). */
	void (*pause)(struct ddps_sd_assoc *a, bool on);
	/* So many octets of what was delivered are kept now: the receive window is that smaller, and
	 * messages go on being delivered.  Whether it is shut.  NULL: it can only pause. */
	bool (*keep)(struct ddps_sd_assoc *a, size_t octets);
	void (*shutdown)(struct ddps_sd_assoc *a); /* SHUTDOWN after all is sent; gone() follows */
	void (*abort)(struct ddps_sd_assoc *a);	   /* ABORT; gone() follows */
	void (*free)(struct ddps_sd_assoc *a);	   /* ABORT if still up; no upcall any more */
	/* @ctx is what connect and listen left there for this env. */
	void (*fini)(struct ddps_env *env, void *ctx);
};

extern const struct ddps_sd_backend ddps_sd_native;
extern const struct ddps_sd_backend ddps_sd_kernel;

#endif
