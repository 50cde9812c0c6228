/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of the kernel's SCTP: their options, UDP encapsulation (RFC 6951), names. */
#include "common/own.h"
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include "sctp_ddp/sd_wire.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef SCTP_REMOTE_UDP_ENCAPS_PORT /* Linux 5.11 */
#define SCTP_REMOTE_UDP_ENCAPS_PORT 132
struct sctp_udpencaps {
	sctp_assoc_t sue_assoc_id;
	struct sockaddr_storage sue_address;
	uint16_t sue_port;
};
#endif

#ifndef SCTP_EXPOSE_POTENTIALLY_FAILED_STATE /* Linux 5.5 */
#define SCTP_EXPOSE_POTENTIALLY_FAILED_STATE 131
#endif

#define BUF_LEN	      (4 * 1024 * 1024)
#define UDP_PORT_FILE "/proc/sys/net/sctp/udp_port"

bool ddps_sk_available(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int set_sctp_option(int fd, int opt, const void *value, size_t len)
{
	return setsockopt(fd, IPPROTO_SCTP, opt, value, (socklen_t)len);
}

static int set_sctp_events(int fd)
{
	static const uint16_t types[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION,
					  SCTP_SHUTDOWN_EVENT, SCTP_PARTIAL_DELIVERY_EVENT,
					  SCTP_PEER_ADDR_CHANGE };
	int bad = 0;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct sctp_event ev = { .se_assoc_id = SCTP_FUTURE_ASSOC,
					 .se_type = types[i],
					 .se_on = 1 };

		bad |= set_sctp_option(fd, SCTP_EVENT, &ev, sizeof ev);
	}
	return bad;
}

static int set_sctp_options(int fd)
{
	/* Equal counts both ways [5043-8-1]. */
	struct sctp_initmsg init = { .sinit_num_ostreams = DDPS_SCTP_STREAMS,
				     .sinit_max_instreams = DDPS_SCTP_STREAMS };
	/* [5043-5.1-1] [5043-5.1-d1] */
	struct sctp_setadaptation ad = { .ssb_adaptation_ind = DDPS_SCTP_ADAPTATION_DDP };
	struct linger abort_on_close = { .l_onoff = 1 };
	struct sctp_assoc_value no_pr = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 0 };
	struct sctp_assoc_value show_pf = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1 };
	int on = 1, off = 0, size = BUF_LEN, bad;

	bad = set_sctp_option(fd, SCTP_INITMSG, &init, sizeof init);
	bad |= set_sctp_option(fd, SCTP_ADAPTATION_LAYER, &ad, sizeof ad);
	bad |= set_sctp_option(fd, SCTP_NODELAY, &on, sizeof on); /* [5043-11.2-1] */
	bad |= set_sctp_option(fd, SCTP_RECVRCVINFO, &on, sizeof on);
	/* A FORWARD-TSN (RFC 3758) would have us wait for ever for a message that was given up. */
	(void)set_sctp_option(fd, SCTP_PR_SUPPORTED, &no_pr, sizeof no_pr);
	(void)set_sctp_option(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, &show_pf, sizeof show_pf);
	(void)set_sctp_option(fd, SCTP_I_WANT_MAPPED_V4_ADDR, &off, sizeof off);
	bad |= set_sctp_events(fd);
	bad |= setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close, sizeof abort_on_close);
	/* As much of it as the system grants. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	return bad;
}

/* The kernel's own UDP port for SCTP; 0: it does not encapsulate. */
static uint16_t get_kernel_udp_port(void)
{
	FILE *f = fopen(UDP_PORT_FILE, "re");
	unsigned port = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%u", &port) != 1 || port > UINT16_MAX)
		port = 0;
	fclose(f);
	return (uint16_t)port;
}

static int set_encap(int fd, int family, uint16_t port)
{
	struct sctp_udpencaps e = { .sue_assoc_id = SCTP_FUTURE_ASSOC,
				    .sue_address.ss_family = (sa_family_t)family,
				    .sue_port = htons(port) };

	return set_sctp_option(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, &e, sizeof e);
}

int ddps_sk_socket(int family, int *err)
{
	int fd = ddps_own(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP));

	*err = DDPS_E_SYSTEM;
	if (fd < 0) {
		if (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT || errno == EAFNOSUPPORT)
			*err = DDPS_E_UNSUPPORTED;
		return -1;
	}
	if (set_sctp_options(fd)) {
		int keep = errno;

		ddps_own_close(fd);
		errno = keep;
		return -1;
	}
	return fd;
}

int ddps_sk_encap_to(int fd, int family, int port)
{
	if (port == DDPS_URI_ENCAP_DEFAULT)
		return 0;
	if (port == DDPS_URI_ENCAP_OFF) {
		/* Whatever net.sctp.encap_port says.  Who does not know the option has no UDP. */
		(void)set_encap(fd, family, 0);
		return 0;
	}
	if (port > 0 && get_kernel_udp_port() && set_encap(fd, family, (uint16_t)port) == 0)
		return 0;
	errno = EPROTONOSUPPORT;
	return DDPS_E_UNSUPPORTED;
}

/* The kernel listens on the UDP port of its sysctl and no other. */
int ddps_sk_encap_at(int wanted, uint16_t *encap)
{
	uint16_t port = get_kernel_udp_port();

	*encap = 0;
	if (wanted < 0)
		return 0;
	if (!port || (wanted && wanted != port)) {
		errno = EPROTONOSUPPORT;
		return DDPS_E_UNSUPPORTED;
	}
	*encap = port;
	return 0;
}

struct ddps_addr ddps_sk_name(int fd, char *buf, size_t len)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	getsockname(fd, (struct sockaddr *)&ss, &ss_len);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
	return ddps_addr_of((struct sockaddr *)&ss);
}

void ddps_sk_addresses(struct ddps_sd_assoc *a)
{
	struct sctp_udpencaps e = { .sue_assoc_id = SCTP_CURRENT_ASSOC };
	struct sockaddr_storage peer;
	socklen_t len = sizeof e;

	a->life.info.local_addr =
		ddps_sk_name(a->io.fd, a->life.info.local, sizeof a->life.info.local);
	if (ddps_sk_primary(a, &peer) < 0) /* the end of it waits to be read */
		return;
	ddps_addr_text((struct sockaddr *)&peer, a->life.info.peer, sizeof a->life.info.peer);
	a->life.info.peer_addr = ddps_addr_of((struct sockaddr *)&peer);
	memcpy(&e.sue_address, &peer, sizeof peer);
	if (getsockopt(a->io.fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &e, &len) == 0)
		a->life.info.encap = ntohs(e.sue_port);
}

void ddps_sk_abort_on_close(struct ddps_sd_assoc *a, bool on)
{
	struct linger l = { .l_onoff = on };

	if (a->io.fd >= 0)
		(void)setsockopt(a->io.fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
}

int ddps_sk_event(struct ddps_sd_assoc *a, uint16_t type, bool on)
{
	struct sctp_event ev = { .se_assoc_id = SCTP_CURRENT_ASSOC, .se_type = type, .se_on = on };

	return set_sctp_option(a->io.fd, SCTP_EVENT, &ev, sizeof ev);
}
