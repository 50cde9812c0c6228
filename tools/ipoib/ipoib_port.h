/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_PORT_H
#define SESSCTL_IPOIB_PORT_H
/* What carries IPoIB for a command: a subnet whose packets travel in UDP, or an adapter. */
#include "cli/out/out_json.h"
#include <ddpsess/ib_verbs.h>
#include "ipoib/ipoib.h"
#include <ddpsess/ib_udp.h>

/* The options of sessctl ipoib that a port of an InfiniBand subnet in UDP needs. */

/*
 * --udp, --sa, --link-mtu, --qkey, --lifetime, --pkey, --partition; the rest of @c keeps its
 * defaults, and GID, queue pair and seed are the caller's to set.  Return: 0, or -1 with a sentence
 * in @why.
 */
int ib_opts_configure(struct ddps_ib_udp_config *c, const struct ipoib_opts *o, char *why,
		      size_t why_len);

#define IPOIB_DEVICE_LEN 32

/* KIND, KIND:DEVICE or KIND:DEVICE:PORT; "" and 0: any.  Return: 0 or -1. */
int ib_opts_device(const char *text, const char *kind, char device[IPOIB_DEVICE_LEN], int *port);

/* What to try if the port cannot be opened for that errno; NULL: no idea. */
const char *ib_opts_advice(int err);

#define IPOIB_PORT_FDS DDPS_IB_VERBS_FDS

struct ipoib_port {
	bool verbs; /* of --port */
	struct ddps_ib_udp_config udp_cfg;
	struct ddps_ib_verbs_config verbs_cfg;
	char device[IPOIB_DEVICE_LEN];
	struct ddps_ib_udp *udp;
	struct ddps_ib_verbs *v;
	struct out *out;  /* for what the port and the administration have to say */
	char notice[300]; /* the latest of that; "": none */
	/* set when it is open, by those in UDP from the beginning */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint32_t qpn;
	uint16_t pkey;
	uint64_t guid;
};

/* Of the options; @qpn: of the UD queue pair, where one can choose.  Return: 0, or -1 and @why. */
int ipoib_port_configure(struct ipoib_port *p, const struct ipoib_opts *o, uint32_t qpn,
			 uint32_t seed, char *why, size_t why_len);
/* @see: NULL, or gets every frame.  Return: an enum status, after saying what is wrong. */
int ipoib_port_open(struct ipoib_port *p, const struct ddps_ipoib_up *up,
		    void (*see)(void *user, const struct ddps_ib_seen *s), void *see_user,
		    struct out *out);
/* What a port says of itself, with what to try. */
void ipoib_port_error(struct out *out, const char *what, const char *why);
void ipoib_port_close(struct ipoib_port *p);

struct ddps_ipoib_port *ipoib_port_port(const struct ipoib_port *p);
void ipoib_port_user(const struct ipoib_port *p, void *user);
/* Return: whether there is more to do without waiting. */
bool ipoib_port_run(struct ipoib_port *p, uint64_t now);
void ipoib_port_fds(const struct ipoib_port *p, struct pollfd fds[IPOIB_PORT_FDS]);
/* Whether what is sent to some connection now may soon be dropped. */
bool ipoib_port_busy(const struct ipoib_port *p);
uint64_t ipoib_port_deadline(const struct ipoib_port *p);
uint16_t ipoib_port_lid(const struct ipoib_port *p);
/* What last went wrong below; "" if nothing is known. */
const char *ipoib_port_why(const struct ipoib_port *p);
json_t *ipoib_port_counters(const struct ipoib_port *p);
/* Where it is: "udp_port", or "device" and "port". */
void ipoib_port_describe(const struct ipoib_port *p, json_t *j);

#endif
