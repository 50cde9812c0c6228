/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_BRIDGE_H
#define SESSCTL_IPOIB_BRIDGE_H
/*
 * sessctl ipoib bridge: ipoib_bridge.c runs it, ipoib_bridge_opts.c reads its options,
 * ipoib_bridge_out.c says what it does, ipoib_bridge_dup.c of addresses that others have, ipoib_bridge_capture.c writes it to a file,
 * ipoib_bridge_ctl.c answers "status" and "down", ipoib_bridge_up.c passes on what comes from the
 * port.
 */
#include "ipoib/bridge/tun.h"
#include "ipoib/bridge/dhcp.h"
#include "ipoib/bridge/offload.h"
#include "ipoib/ipoib_port.h"
#include <ddpsess/ipoib_if.h>

#define BRIDGE_IP_MAX (1 + DDPS_IPOIB_IF_IP6_MAX)

struct bridge_ip {
	int family;
	uint8_t addr[16];
	unsigned prefix;
};

#define BRIDGE_FAILED 16 /* groups of which it is remembered why they could not be joined */

#define BRIDGE_REASONS 40 /* of a REJ, and more */

struct bridge {
	const struct ipoib_opts *o;
	struct out out;
	struct ddps_ipoib_if_config cfg;
	struct ipoib_port port;
	struct bridge_ip ip[BRIDGE_IP_MAX];
	unsigned n_ip;
	struct ddps_ipoib_if *f;
	FILE *capture;
	int tun;		/* the device, or -1 */
	struct tun_watch watch; /* news of its addresses */
	unsigned mtu;		/* of the device */
	int ctl, client;	/* socket for questions, and who is asking one; or -1 */
	uint64_t client_until;	/* then it has been silent for too long */
	bool down;		/* "bridge down" has asked for the end */
	bool port_down;		/* as it has said last */
	bool more;		/* the port has not come to its end */
	uint64_t tun_full;	/* packets that the device did not take */
	uint64_t tun_bad;	/* packets of the device that do not go with their headers */
	uint64_t paused_at;	/* the device is left alone since then; 0: it is not */
	uint64_t now;
	struct bridge_failed {
		int err; /* 0: none */
		uint8_t mgid[DDPS_IPOIB_GID_LEN];
		char why[400];
	} failed[BRIDGE_FAILED];
	unsigned next_failed;
	unsigned dhcp;	    /* faults of DHCP clients of this host that were said */
	uint64_t conflicts; /* of addresses, that were looked at */
	struct bridge_said {
		uint64_t of, at; /* which conflict: when it began; when it was said */
	} conflict_said[DDPS_IPOIB_IF_CONFLICTS];
	uint64_t woke_at;   /* the end of the last wait */
	uint64_t overslept; /* beyond it: the process was stopped, or the machine slept */
	bool wants_ip6;	    /* it has an IPv6 address that somebody chose */
	unsigned narrow_mtu, narrow_said; /* of a link too narrow for IPv6; 0: it is not */
	bool narrow_done;		  /* what follows from that was done */
	char narrow[400];		  /* why IPv6 is not served; or "" */
	uint64_t
		rejected[BRIDGE_REASONS]; /* connections that were refused, by reason; 0: another */
	struct offload_in in;
	uint8_t packet[OFFLOAD_HDR + 65536];
};

/* Everything that the options say, before anything is opened.  Return: 0 or -1, @why. */
int bridge_configure(struct bridge *b, char *why, size_t why_len);
/* What the interface is to be has the addresses of the port, which is open. */
void bridge_identify(struct bridge *b);

/* ---- what is said ---- */

/* What to try about that errno; NULL: no idea. */
const char *bridge_advice(int err);
void bridge_out_start(struct bridge *b);
/* Of DHCP clients of this host; each fault once. */
void bridge_out_dhcp(struct bridge *b, unsigned faults);
/* Its state as one object, named @event. */
json_t *bridge_status(const struct bridge *b, const char *event);
/* The same for people. */
void bridge_out_status(FILE *f, json_t *status);

/* ipoib_bridge_metrics.c: @mad was sent; what was refused by reason; and all counters for Prometheus. */
void bridge_count_rejected(struct bridge *b, const void *mad);
json_t *bridge_list_rejected(const struct bridge *b);
void bridge_out_metrics(FILE *f, json_t *status);

/* Addresses of this host that another node has, too: what is new is said. */
void bridge_out_conflicts(struct bridge *b);
json_t *bridge_list_conflicts(const struct bridge *b);
json_t *bridge_list_addresses(const struct bridge *b);
/* Somebody gives the device an IPv6 address: if the link does not carry it, that is said. */
void bridge_want_ip6(struct bridge *b);
/* The device has the IPv6 addresses of the options as long as the link carries IPv6. */
void bridge_fit_addresses(struct bridge *b);

/* ---- the capture, if --capture is given; open and close: 0, or -1 after saying why ---- */

int bridge_capture_open(struct bridge *b);
int bridge_capture_close(struct bridge *b);
/* Calls of the interface and of the port. */
void bridge_trace(void *user, bool tx, ddps_cm_addr addr, const void *mad, size_t len,
		  uint64_t now);
void bridge_see(void *user, const struct ddps_ib_seen *s);

/* What the port calls, with the bridge as user. */
extern const struct ddps_ipoib_up bridge_up;

/* ---- questions of other processes ---- */

/* Return: 0, or -1 with errno; EADDRINUSE: a bridge of that name runs. */
int bridge_ctl_open(struct bridge *b);
/* Serves what is ready; never blocks. */
void bridge_ctl_run(struct bridge *b, uint64_t now);
void bridge_ctl_close(struct bridge *b);
/* The other side: "sessctl ipoib bridge status" and "down".  Return: an enum status. */
int bridge_ask(const struct ipoib_opts *o, const char *what);

#endif
