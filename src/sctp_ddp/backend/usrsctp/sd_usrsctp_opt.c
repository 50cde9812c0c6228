/* SPDX-License-Identifier: BSD-2-Clause */
/* usrsctp sockets with the options that the adaptation asks for (RFC 5043 7 to 10). */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>

#define SEND_BUF    (4 * 1024 * 1024)
#define WINDOW_MAX  (4 * 1024 * 1024)
#define WINDOW_MIN  (256 * 1024)
#define RTO_INITIAL 1000
#define RTO_MIN	    1000 /* usrsctp lets this timer run out in the midst of traffic */
#define RTO_MAX	    10000
/* An idle peer that vanished is found by these.  They are few: sessions share associations. */
#define HEARTBEAT 5000

static int set_all_peers(struct socket *so, struct sctp_paddrparams *pp, sctp_assoc_t which)
{
	struct sockaddr_conn all = ddps_us_sconn(NULL, 0);

	pp->spp_assoc_id = which;
	memcpy(&pp->spp_address, &all, sizeof all);
	return usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, pp, sizeof *pp);
}

int ddps_us_socket_payload(struct socket *so, uint32_t payload, sctp_assoc_t which)
{
	uint32_t least = payload < DDPS_US_PAYLOAD_LIB ? DDPS_US_PAYLOAD_LIB : payload;
	struct sctp_paddrparams pp = { .spp_flags = SPP_PMTUD_DISABLE,
				       .spp_pathmtu = least - 12u }; /* less the common header */

	return set_all_peers(so, &pp, which);
}

static int set_events(struct socket *so)
{
	static const uint16_t types[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION,
					  SCTP_SHUTDOWN_EVENT, SCTP_PARTIAL_DELIVERY_EVENT };
	int bad = 0;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct sctp_event ev = { .se_assoc_id = SCTP_FUTURE_ASSOC,
					 .se_type = types[i],
					 .se_on = 1 };

		bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	}
	return bad;
}

/* A window beyond what the carrier's socket can hold would make the peer overrun it. */
static int window(const struct ddps_us_carrier *c)
{
	int n = ddps_sd_sock_rcvbuf(c->io.fd);

	if (n > WINDOW_MAX)
		return WINDOW_MAX;
	return n < WINDOW_MIN ? WINDOW_MIN : n;
}

static int set_options(struct socket *so, const struct ddps_us_carrier *c, uint32_t payload)
{
	/* Equal counts both ways [5043-8-1]. */
	struct sctp_initmsg init = { .sinit_num_ostreams = DDPS_SCTP_STREAMS,
				     .sinit_max_instreams = DDPS_SCTP_STREAMS };
	/* [5043-5.1-1] [5043-5.1-d1] */
	struct sctp_setadaptation ad = { .ssb_adaptation_ind = DDPS_SCTP_ADAPTATION_DDP };
	struct sctp_rtoinfo rto = { .srto_initial = RTO_INITIAL,
				    .srto_min = RTO_MIN,
				    .srto_max = RTO_MAX };
	struct sctp_paddrparams beat = { .spp_flags = SPP_HB_ENABLE, .spp_hbinterval = HEARTBEAT };
	struct linger abort_on_close = { .l_onoff = 1 };
	int on = 1, sndbuf = SEND_BUF, rcvbuf = window(c), bad;

	bad = usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &ad, sizeof ad);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto);
	/* [5043-11.2-1] */
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
	bad |= usrsctp_setsockopt(so, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
	bad |= usrsctp_setsockopt(so, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof sndbuf);
	bad |= usrsctp_setsockopt(so, SOL_SOCKET, SO_LINGER, &abort_on_close,
				  sizeof abort_on_close);
	bad |= set_all_peers(so, &beat, SCTP_FUTURE_ASSOC);
	bad |= ddps_us_socket_payload(so, payload, SCTP_FUTURE_ASSOC);
	bad |= set_events(so);
	bad |= usrsctp_set_non_blocking(so, 1);
	return bad;
}

struct socket *ddps_us_socket_new(const struct ddps_us_port *p, uint32_t payload)
{
	struct sockaddr_conn any = ddps_us_sconn(NULL, p->num);
	struct socket *so;
	int keep;

	so = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!so)
		return NULL;
	if (set_options(so, p->carrier, payload) == 0 &&
	    usrsctp_bind(so, (struct sockaddr *)&any, sizeof any) == 0)
		return so;
	keep = errno;
	usrsctp_close(so);
	errno = keep;
	return NULL;
}
