/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_PORT_H
#define DDPSESS_IPOIB_PORT_H
/*
 * What an IPoIB interface (<ddpsess/ipoib_if.h>) needs of a fabric, and what the fabric reports to
 * it.  <ddpsess/ipoib_sim.h> is one in memory; whoever has another writes these functions for it.
 *
 * A port embeds struct ddps_ipoib_port and fills @ops.  Down go the calls of @ops, none of which
 * blocks or calls up from inside.  Up goes ddps_ipoib_up: the owner of the port calls it with the
 * time at hand, and nothing else may read a clock.  Everything a port passes up is hostile until
 * the interface has checked it; frames start with the encapsulation header, a GRH has been taken
 * off.
 *
 * Numbers are in host order.  Errors are DDPS_E_*.  One thread at a time.  Both tables begin with
 * struct_size, their sizeof: entries that a later release adds are taken for absent where it is
 * smaller.
 */
#include <ddpsess/ib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to reach a GID; resolved by the port (on InfiniBand by the SA). */
struct ddps_ipoib_path {
	/* the token by which the port finds the way: CM messages, frames; on a fabric that has LIDs
	 * its lowest 16 bits are the LID */
	ddps_cm_addr addr;
	uint16_t slid, dlid;
	uint8_t sl, traffic_class, hop_limit, rate;
	uint32_t flow_label;
	uint8_t mtu;  /* 1 = 256 ... 5 = 4096 */
	uint8_t life; /* 5-bit packet lifetime */
};

/* The far end of a connected-mode queue pair. */
struct ddps_ipoib_qp_to {
	uint32_t qpn;		 /* from the REQ or REP */
	uint32_t tx_psn, rx_psn; /* of the first packet sent and expected */
	uint32_t rx_mtu;	 /* the peer's Receive MTU, 0 = not given */
	bool active;		 /* this end sent the REQ */
	struct ddps_ipoib_lladdr peer;
	struct ddps_ipoib_path path; /* on the passive side only @addr may be known */
	uint8_t ack_timeout, retry_count, rnr_retry;
};

struct ddps_ipoib_port;

struct ddps_ipoib_port_ops {
	size_t struct_size; /* sizeof(struct ddps_ipoib_port_ops) */
	/*
	 * One datagram from the UD QP.  A group has QPN 0xffffff, its MGID, and no path; the port
	 * joins groups to send to them by itself.  Best effort.
	 * Return: 0, DDPS_E_AGAIN (no room now), DDPS_E_TOO_LONG (above the link's MTU) or another
	 * reason; the frame is lost in each case but 0.
	 */
	int (*ud_send)(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
		       const struct ddps_ipoib_path *path, const void *frame, size_t len);

	/* Full membership of a group; the answer is ddps_ipoib_up.joined.  Return: 0 or error. */
	int (*join)(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN]);
	void (*leave)(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN]);

	/* Looks for the way to a GID; the answer is ddps_ipoib_up.path.  Return: 0 or error. */
	int (*resolve)(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN]);

	/* One CM message (a GMP from QP 1).  Best effort; CM repeats what matters. */
	int (*mad_send)(struct ddps_ipoib_port *port, ddps_cm_addr to,
			const uint8_t mad[DDPS_CM_MAD_LEN]);

	/*
	 * A connected-mode queue pair that can hold @rx_mtu octets per message, its receives
	 * posted.  @transport: DDPS_CM_RC or DDPS_CM_UC.  Return: 0 and @qpn; DDPS_E_LIMIT,
	 * DDPS_E_NOMEM or DDPS_E_UNSUPPORTED (transport).
	 */
	int (*qp_create)(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			 uint32_t *qpn);
	/* To RTR and RTS.  Return: 0 or error, after which it is only good for qp_destroy. */
	int (*qp_ready)(struct ddps_ipoib_port *port, uint32_t qpn,
			const struct ddps_ipoib_qp_to *to);
	/*
	 * One message.  Return: 0, DDPS_E_AGAIN (no room now, the frame is lost) or the error with
	 * which the queue pair has failed.
	 */
	int (*qp_send)(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len);
	/* To ERR: sends and receives nothing any more, its number stays taken (timewait). */
	void (*qp_stop)(struct ddps_ipoib_port *port, uint32_t qpn);
	/* Gives the number back; stops it if that has not happened. */
	void (*qp_destroy)(struct ddps_ipoib_port *port, uint32_t qpn);
};

struct ddps_ipoib_port {
	const struct ddps_ipoib_port_ops *ops;
};

/* Where a datagram came from. */
struct ddps_ipoib_ud_from {
	uint32_t qpn;
	uint16_t slid; /* 0 = not known; one that is not the path's has the path asked for anew */
	bool has_gid;  /* a GRH came with it [4391-6-6] */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	bool multicast; /* it was sent to a group */
};

/*
 * What a port reports to its user; ddps_ipoib_if_up() gives a set that does what RFC 4391 and 4755
 * ask for.  Buffers are the port's and valid during the call.  A user may call any of the
 * operations from inside, also qp_destroy for the queue pair at hand.
 */
struct ddps_ipoib_up {
	size_t struct_size; /* sizeof(struct ddps_ipoib_up) */
	void (*ud)(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		   uint64_t now);
	void (*mad)(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now);
	void (*qp)(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now);
	/* The queue pair has failed: retries exceeded, a message too long, ... */
	void (*qp_error)(void *user, uint32_t qpn, int err, uint64_t now);
	/*
	 * @path: NULL = there is no way to @gid.  One that is another than before takes its place:
	 * connections of the old one are ended and, with traffic, made anew.
	 */
	void (*path)(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
		     const struct ddps_ipoib_path *path, uint64_t now);
	/* @err: 0 = member, and @link_mtu is the group's; else why not, or why no longer. */
	void (*joined)(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
		       uint32_t link_mtu, uint64_t now);
	/*
	 * The port, hence every interface on it, can or can no longer send.  @up while it is up
	 * already: the subnet has changed, and paths are asked for anew when they are used.
	 */
	void (*link)(void *user, bool up, uint64_t now);
};

#ifdef __cplusplus
}
#endif
#endif
