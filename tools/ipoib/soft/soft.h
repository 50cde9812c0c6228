/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_SOFT_H
#define DDPS_IPOIB_SOFT_H
/*
 * A port (ipoib_cm/port.h) without InfiniBand: datagrams, groups and CM messages go over UDP
 * to a static list of peers, each connected-mode queue pair is carried by a session of this
 * library.  It uses libddpsess and so is no part of libddpsess-ipoib.
 *
 * One thread.  The owner polls the descriptors and calls ddps_ipoib_soft_run().  A datagram
 * counts only if its GID is that of a listed peer and it came from that peer's UDP address;
 * that is no protection against someone who can forge addresses.
 */
#include <poll.h>
#include <sys/socket.h>
#include <ddpsess/ipoib_port.h>

#define DDPS_SOFT_PEERS 64
#define DDPS_SOFT_FDS	5

struct ddps_soft_peer {
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	struct sockaddr_storage udp;
	const char *uri; /* where it takes sessions; NULL: none, we cannot connect to it */
};

/* A datagram or a message of a queue pair that goes out (@tx) or was taken. */
struct ddps_soft_seen {
	bool tx, connected, uc;
	ddps_cm_addr peer; /* 0: sent to a group */
	uint32_t from_qpn, to_qpn;
	const uint8_t *from, *to; /* GIDs, @to may be a group's */
	const void *frame;
	size_t len;
};

struct ddps_soft_config {
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint32_t qpn;		     /* of the UD queue pair */
	uint32_t link_mtu;	     /* of a datagram, encapsulation included */
	struct sockaddr_storage udp; /* to bind to */
	/*
	 * An IP multicast address and port for the datagrams to groups, on the interface that has
	 * @udp; ss_family 0: none, they go to each peer.
	 */
	struct sockaddr_storage group;
	const char *listen; /* URI for sessions, or NULL: takes none */
	unsigned max_qps;   /* 0: 64 */
	uint32_t seed;	    /* random: first queue pair number */
	const struct ddps_ipoib_up *up;
	void *user; /* may be set later, by ddps_ipoib_soft_user() */
	/* For captures, or NULL; may not call the port. */
	void (*see)(void *see_user, const struct ddps_soft_seen *seen);
	void *see_user;
};

/* X(name, meaning) */
#define DDPS_SOFT_STATS(X)                                                                         \
	X(rx_bad, "datagrams that are malformed")                                                  \
	X(rx_stranger, "datagrams from no listed peer or not for us")                              \
	X(rx_group, "datagrams to a group we are no member of")                                    \
	X(tx_lost, "datagrams that UDP did not take")                                              \
	X(qp_full, "messages dropped because a session was not fast enough")                       \
	X(session_refused, "sessions that belong to no queue pair here")                           \
	X(session_up, "sessions that came up")                                                     \
	X(session_down, "sessions that ended or failed by themselves")

struct ddps_soft_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_SOFT_STATS(DDPS_X)
#undef DDPS_X
};

struct ddps_soft;

/*
 * Return: 0, DDPS_E_INVAL, DDPS_E_ADDRESS (URI), DDPS_E_NOMEM, DDPS_E_SYSTEM (errno), or what
 * ddps_listen() says; @why gets a sentence.
 */
int ddps_ipoib_soft_new(struct ddps_soft **out, const struct ddps_soft_config *cfg, char *why,
			size_t why_len);
/*
 * One more peer; @peer is copied, its URI is not.  Its token is its number in this order.
 * Return: 0, DDPS_E_LIMIT, or DDPS_E_INVAL: another family than ours, a GID that is taken.
 */
int ddps_ipoib_soft_add(struct ddps_soft *s, const struct ddps_soft_peer *peer);
void ddps_ipoib_soft_free(struct ddps_soft *s);
struct ddps_ipoib_port *ddps_ipoib_soft_port(struct ddps_soft *s);
void ddps_ipoib_soft_user(struct ddps_soft *s, void *user);

/* Fills @fds for poll(). */
void ddps_ipoib_soft_fds(struct ddps_soft *s, struct pollfd fds[DDPS_SOFT_FDS]);
/* Serves what is ready, bounded, never blocks.  Return: true = there is more to do at once. */
bool ddps_ipoib_soft_run(struct ddps_soft *s, uint64_t now);

const struct ddps_soft_stats *ddps_ipoib_soft_stats(const struct ddps_soft *s);
/* The UDP port and the session URI in use, as the system chose them. */
uint16_t ddps_ipoib_soft_udp_port(const struct ddps_soft *s);
int ddps_ipoib_soft_uri(const struct ddps_soft *s, char *buf, size_t len);

#endif
