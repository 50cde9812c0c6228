/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_PORT_H
#define DDPSESS_IPOIB_PORT_H
/*
 * A port of a fabric, as an IPoIB interface or an agent needs it.  Below, the user of a port is
 * what is behind it: an interface (<ddpsess/ipoib_if.h>), an agent (<ddpsess/ipoib_agent.h>) or a
 * program.
 *
 * There are ports for a fabric in memory (<ddpsess/ipoib_sim.h>), for packets in UDP
 * (<ddpsess/ib_udp.h>) and for adapters (<ddpsess/ib_verbs.h>).  For another fabric, write the
 * functions of this header: embed struct ddps_ipoib_port in a struct of your own, and set its ops.
 *
 * Down: the user calls the functions of struct ddps_ipoib_port_ops.  None of them blocks, and none
 * calls the user.
 *
 * Up: the program that owns the port calls the functions of struct ddps_ipoib_up when something has
 * come in, and passes the time.  Times are nanoseconds of any clock that does not run backwards.
 * The user reads no clock.
 *
 * Frames start with the encapsulation header (RFC 4391 6).  A GRH in front of it is not passed up.
 * Everything a port passes up is hostile until the interface has checked it.  So a port has to
 * check only what it uses itself.
 *
 * Numbers are in host order.  GIDs, MGIDs and MADs are octets as on the wire.  Errors are DDPS_E_*.
 *
 * Threads: one thread at a time for a port and its user.
 *
 * Both tables begin with struct_size, their sizeof.  Later releases may add entries at the end:
 * entries that a later release adds are taken for absent where struct_size is smaller.
 */
#include <ddpsess/ib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to reach a GID.  The port finds that out; on InfiniBand it asks the subnet administration for
 * a path record (IBA 15.2.5.16). */
struct ddps_ipoib_path {
	/* A token by which the port finds the way, for CM messages and frames; not 0.  On a fabric
	 * that has LIDs its lowest 16 bits are the LID. */
	ddps_cm_addr addr;
	uint16_t slid, dlid; /* LIDs of this port and the other; 0: the fabric has none */
	/* Service level 0..15.  Traffic class and hop limit of the GRH; hop limit 0 or 1: on this
	 * subnet.  Rate as the code of IBA. */
	uint8_t sl, traffic_class, hop_limit, rate;
	uint32_t flow_label; /* of the GRH, 20 bits */
	uint8_t mtu;	     /* 1 = 256 ... 5 = 4096 octets */
	uint8_t life;	     /* packet lifetime, 0..31: 4.096 us * 2^life */
};

/* The far end of a connected-mode queue pair, and how to talk to it. */
struct ddps_ipoib_qp_to {
	uint32_t qpn;		 /* the far queue pair, from the REQ or REP */
	uint32_t tx_psn, rx_psn; /* of the first packet sent, and of the first one expected */
	uint32_t rx_mtu;	 /* the peer's Receive MTU in octets, 0 = not given */
	bool active;		 /* this end sent the REQ */
	/* The peer's interface; all zero if an agent answers the REQ. */
	struct ddps_ipoib_lladdr peer;
	/* The way to the peer.  If the peer sent the REQ it may have only addr, the rest is 0. */
	struct ddps_ipoib_path path;
	/* ack_timeout 0..31: 4.096 us * 2^ack_timeout.  The others 0..7; rnr_retry 7: without
	 * limit. */
	uint8_t ack_timeout, retry_count, rnr_retry;
};

struct ddps_ipoib_port;

/* What a port can do.  All entries are required.  Buffers are the caller's, and borrowed for the
 * call. */
struct ddps_ipoib_port_ops {
	size_t struct_size; /* sizeof(struct ddps_ipoib_port_ops) */
	/*
	 * Sends one datagram from the UD QP to @to, best effort.
	 *
	 * A group is @to with QPN 0xffffff and its MGID; @path is NULL.  The port joins a group by
	 * itself as far as sending needs it.
	 *
	 * Return: 0, or one of these errors, and the frame is lost:
	 * - DDPS_E_AGAIN: no room now
	 * - DDPS_E_TOO_LONG: above the MTU of the link
	 * - DDPS_E_ADDRESS: the port does not know @path any more; the interface asks for it anew
	 * - another reason
	 */
	int (*ud_send)(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
		       const struct ddps_ipoib_path *path, const void *frame, size_t len);

	/*
	 * Asks for full membership of a group.  The answer is ddps_ipoib_up.joined.  The user may
	 * ask again.  Before the answer, one answer is enough for all.  A member that asks is
	 * answered, too.
	 *
	 * Return: 0, or an error: no answer will come.
	 */
	int (*join)(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN]);
	/* Ends the membership of a group.  No answer comes. */
	void (*leave)(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN]);

	/*
	 * Looks for the way to a GID.  The answer is ddps_ipoib_up.path.
	 *
	 * Return: 0, or an error: no answer will come.
	 */
	int (*resolve)(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN]);

	/*
	 * Sends one CM message from QP 1 to @to, best effort.  CM sends again what matters.
	 *
	 * Return: 0, or an error: the message is lost.
	 */
	int (*mad_send)(struct ddps_ipoib_port *port, ddps_cm_addr to,
			const uint8_t mad[DDPS_CM_MAD_LEN]);

	/*
	 * Creates a connected-mode queue pair, with receives posted for messages of up to @rx_mtu
	 * octets.  @transport is DDPS_CM_RC or DDPS_CM_UC.  @qpn receives its number, which is not
	 * used again before qp_destroy.
	 *
	 * Return: 0, or
	 * - DDPS_E_UNSUPPORTED: the port does not have this transport
	 * - DDPS_E_LIMIT: no queue pair is left
	 * - DDPS_E_NOMEM
	 */
	int (*qp_create)(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			 uint32_t *qpn);
	/*
	 * Connects a queue pair: brings it to the states RTR and RTS (IBA 10.3.1).  From then on it
	 * can receive and send.
	 *
	 * Return: 0, or an error; then the queue pair can only be destroyed.
	 */
	int (*qp_ready)(struct ddps_ipoib_port *port, uint32_t qpn,
			const struct ddps_ipoib_qp_to *to);
	/*
	 * Sends one message on a queue pair.
	 *
	 * Return: 0, or
	 * - DDPS_E_AGAIN: no room now; the frame is lost, and the queue pair stays
	 * - another error: the queue pair has failed or is not connected, and the interface ends the
	 *   connection
	 */
	int (*qp_send)(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len);
	/* Stops a queue pair (state ERR): it sends and receives nothing any more.  Its number stays
	 * taken, for timewait. */
	void (*qp_stop)(struct ddps_ipoib_port *port, uint32_t qpn);
	/* Destroys a queue pair, stopped or not, and gives its number back. */
	void (*qp_destroy)(struct ddps_ipoib_port *port, uint32_t qpn);
};

/* A port; part of a larger struct of whoever implements it. */
struct ddps_ipoib_port {
	const struct ddps_ipoib_port_ops *ops;
};

/* Where a datagram came from. */
struct ddps_ipoib_ud_from {
	uint32_t qpn; /* the sender's UD QP */
	/* The sender's LID, 0 = not known.  If it is not the LID of the path to the sender, the
	 * interface asks for that path anew. */
	uint16_t slid;
	bool has_gid; /* a GRH came with it (RFC 4391 6) */
	/* The sender's, if has_gid.  A port whose wire has no GRH makes one of the LID: 0 but for
	 * the last two octets. */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	bool multicast; /* it was sent to a group */
};

/*
 * What a port reports to its user.  ddps_ipoib_if_up() has the functions of an interface, and
 * ddps_ipoib_agent_up() those of an agent.  All entries are required.
 *
 * The first argument is the user, @now the time in nanoseconds.  Buffers are the port's, and valid
 * during the call.  The user may call any of the port's operations from inside, even qp_destroy for
 * the queue pair at hand.
 */
struct ddps_ipoib_up {
	size_t struct_size; /* sizeof(struct ddps_ipoib_up) */
	/* A datagram of @len octets has come to the UD QP. */
	void (*ud)(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		   uint64_t now);
	/* A CM message of @len octets has come to QP 1.  An answer goes to @from. */
	void (*mad)(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now);
	/* A message of @len octets has come on a connected-mode queue pair. */
	void (*qp)(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now);
	/* A queue pair has failed, @err says why: DDPS_E_TIMEDOUT if the peer does not answer,
	 * DDPS_E_TOO_LONG if a message was too long, and so on. */
	void (*qp_error)(void *user, uint32_t qpn, int err, uint64_t now);
	/*
	 * The answer to resolve, or news.  @path is the way to @gid, or NULL = there is no way to
	 * @gid.
	 *
	 * A path that is another than before replaces it: connections of the old one are ended and,
	 * with traffic, made anew.
	 */
	void (*path)(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
		     const struct ddps_ipoib_path *path, uint64_t now);
	/* The answer to join, or news.  @err is 0: the port is a member of the group, whose MTU is
	 * @link_mtu octets, encapsulation header included.  Otherwise @err says why it is not a
	 * member, or why it is no longer one. */
	void (*joined)(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
		       uint32_t link_mtu, uint64_t now);
	/*
	 * The port can send (@up), or it cannot any more.  An interface that is up then ends its
	 * connections, and joins its groups anew when the port can send again.
	 *
	 * If @up is reported while the port is up already, the subnet has changed, and paths are
	 * asked for anew when they are used.
	 */
	void (*link)(void *user, bool up, uint64_t now);
};

#ifdef __cplusplus
}
#endif
#endif
