/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib bridge: a TUN device, an interface of ours, and a port. */
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include "ipoib/bridge/tun.h"
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PACKETS	    32	     /* from the device in one turn */
#define PAUSE_NS    2000000  /* for which it waits for connections that are behind */
#define PART_NS	    NS_PER_S /* for DREQs to be answered at the end */
#define KEPT_MEMORY (32 << 20)
#define FD_TUN	    IPOIB_PORT_FDS
#define FD_SIG	    (FD_TUN + 1)
#define FD_CTL	    (FD_TUN + 2)
#define FD_ASKER    (FD_TUN + 3)
#define FD_ADDR	    (FD_TUN + 4)
#define FDS	    (FD_TUN + 5)

static void to_tun(void *arg, const uint8_t hdr[OFFLOAD_HDR], const void *packet, size_t len,
		   const void *rest, size_t rest_len)
{
	struct bridge *b = arg;
	struct iovec iov[] = { { (void *)(uintptr_t)hdr, OFFLOAD_HDR },
			       { (void *)(uintptr_t)packet, len },
			       { (void *)(uintptr_t)rest, rest_len } };

	b->tun_full += writev(b->tun, iov, rest_len ? 3 : 2) < 0;
}

static void deliver_to_tun(void *user, const void *packet, size_t len)
{
	struct bridge *b = user;

	offload_in(&b->in, packet, len);
}

static int fail_bridge(struct bridge *b, int err, const char *why)
{
	out_error(&b->out, 0, bridge_advice(err), "%s", why);
	return ST_FAILED;
}

static int open_bridge_tun(struct bridge *b)
{
	const char *name = b->o->tun;
	char why[300];

	b->mtu = b->cfg.me.rx_mtu - DDPS_IPOIB_ENCAP_LEN;
	b->tun = tun_open(name, b->mtu, why, sizeof why);
	if (b->tun < 0)
		return fail_bridge(b, errno, why);
	for (unsigned i = 0; i < b->n_ip; i++)
		if (tun_address(name, b->ip[i].family, b->ip[i].addr, b->ip[i].prefix, why,
				sizeof why))
			return fail_bridge(b, errno, why);
	if (tun_up(name, why, sizeof why))
		return fail_bridge(b, errno, why);
	if (tun_watch_open(&b->watch))
		out_note(&b->out, NULL,
			 "addresses that are added later are not noticed: netlink: %s",
			 strerror(errno));
	return ST_DONE;
}

static int open_interface(struct bridge *b)
{
	const struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_tun, bridge_trace, b };
	int err;

	bridge_identify(b);
	err = ddps_ipoib_if_new(&b->f, &b->cfg, ipoib_port_port(&b->port), &calls);

	if (err) {
		out_error(&b->out, 0, "addresses in --ip and --gid that a host can have",
			  "the interface: %s", ddps_strerror(err));
		return err == DDPS_E_INVAL ? ST_USAGE : ST_FAILED;
	}
	ipoib_port_user(&b->port, b);
	return ST_DONE;
}

static int open_bridge(struct bridge *b)
{
	char why[1000];
	int res;

	if (bridge_configure(b, why, sizeof why)) {
		out_error(&b->out, 0, "sessctl ipoib bridge --help", "%s", why);
		return ST_USAGE;
	}
	if (bridge_ctl_open(b)) {
		int busy = errno == EADDRINUSE ? EBUSY : errno;

		snprintf(why, sizeof why, "%s: a bridge of that name: %s", b->o->tun,
			 strerror(busy));
		return fail_bridge(b, busy, why);
	}
	if (bridge_capture_open(b))
		return ST_FAILED;
	res = ipoib_port_open(&b->port, &bridge_up, b->capture ? bridge_see : NULL, b, &b->out);
	if (!res)
		res = open_interface(b);
	if (!res)
		res = open_bridge_tun(b);
	if (!res)
		b->more = ipoib_port_run(&b->port, clock_ns());
	return res || !ddps_ipoib_if_start(b->f, clock_ns()) ? res : ST_FAILED;
}

static void from_tun(void *arg, uint8_t *packet, size_t len)
{
	struct bridge *b = arg;
	const unsigned faults = dhcp_faults(packet, len) & ~b->dhcp;

	if (faults)
		bridge_out_dhcp(b, faults);
	(void)ddps_ipoib_if_send_frame(b->f, packet - DDPS_IPOIB_ENCAP_LEN, len, b->now);
}

/*
 * While a connection is far behind, the device's queue holds its packets: TCP notices that, and
 * nothing is dropped.  Not for long, as other connections have to wait, too.
 */
static bool paused(struct bridge *b, uint64_t now)
{
	if (!ipoib_port_busy(&b->port))
		b->paused_at = 0;
	else if (!b->paused_at)
		b->paused_at = now;
	return b->paused_at && now - b->paused_at < PAUSE_NS;
}

/* Return: 0, or -1 with errno: the device is gone. */
static int read_tun(struct bridge *b, uint64_t now)
{
	b->now = now;
	for (unsigned i = 0; i < PACKETS && !paused(b, now); i++) {
		ssize_t n = read(b->tun, b->packet, sizeof b->packet);

		if (n <= 0)
			return !n || errno == EAGAIN || errno == EINTR ? 0 : -1;
		b->paused_at = 0; /* one, then the next pause */
		b->tun_bad += offload_out(b->packet, (size_t)n, from_tun, b) < 0;
	}
	return 0;
}

/* Goes on while the machine sleeps, too. */
static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Sleeps until @due at most, or there is something to do: @fds says what. */
static void wait_for(struct bridge *b, uint64_t due, bool open, struct pollfd fds[FDS])
{
	uint64_t now = clock_ns(), timer = ddps_ipoib_if_deadline(b->f);
	uint64_t port = ipoib_port_deadline(&b->port);
	int tun = open ? b->tun : -1;
	struct timespec ts;

	due = timer < due ? timer : due;
	due = port < due ? port : due;
	if (paused(b, now)) {
		due = b->paused_at + PAUSE_NS < due ? b->paused_at + PAUSE_NS : due;
		tun = -1;
	}
	due = due > now ? due - now : 0;
	if (due > NS_PER_S)
		due = NS_PER_S;
	ts = (struct timespec){ (time_t)(due / NS_PER_S), (long)(due % NS_PER_S) };
	ipoib_port_fds(&b->port, fds);
	fds[FD_TUN] = (struct pollfd){ .fd = tun, .events = POLLIN };
	fds[FD_SIG] = (struct pollfd){ .fd = open ? sig_fd() : -1, .events = POLLIN };
	fds[FD_CTL] =
		(struct pollfd){ .fd = open && b->client < 0 ? b->ctl : -1, .events = POLLIN };
	fds[FD_ADDR] = (struct pollfd){ .fd = open ? b->watch.fd : -1, .events = POLLIN };
	fds[FD_ASKER] = (struct pollfd){ .fd = open ? b->client : -1, .events = POLLIN };
	(void)ppoll(fds, FDS, &ts, NULL);
	now = boot_ns();
	b->overslept = b->woke_at && now - b->woke_at > due ? now - b->woke_at - due : 0;
	b->woke_at = now;
}

static void address_told(void *arg, int family, const uint8_t *addr, unsigned prefix, bool has)
{
	struct bridge *b = arg;
	char text[INET6_ADDRSTRLEN];

	if (has && family == AF_INET6 && (addr[0] != 0xfe || (addr[1] & 0xc0) != 0x80))
		bridge_want_ip6(b);
	if (!ddps_ipoib_if_address(b->f, family == AF_INET6, addr, prefix, has, clock_ns()))
		return;
	inet_ntop(family, addr, text, sizeof text);
	out_error(&b->out, 0, "fewer addresses on one bridge",
		  "%s: nobody is told of the address %s: too many", b->o->tun, text);
}

/* @open: packets and questions are taken; else only what is under way comes to its end. */
static int turn_bridge(struct bridge *b, uint64_t due, bool open)
{
	struct pollfd fds[FDS];
	uint64_t now;

	wait_for(b, b->more ? 0 : due, open, fds);
	now = clock_ns(); /* the port first: what it is asked to do has the time that it was given */
	b->more = ipoib_port_run(&b->port, now);
	offload_in_flush(&b->in);
	if (b->overslept >= NS_PER_S)
		ddps_ipoib_if_missed(b->f, b->overslept, now);
	if (ddps_ipoib_if_deadline(b->f) <= now)
		ddps_ipoib_if_tick(b->f, now);
	offload_in_flush(&b->in);
	if (!open)
		return 0;
	if (fds[FD_CTL].revents || b->client >= 0)
		bridge_ctl_run(b, now);
	if (fds[FD_ADDR].revents)
		tun_watch_read(&b->watch, b->o->tun, address_told, b);
	if (b->watch.fd < 0 || !b->watch.listing) { /* what is taken away is known */
		bridge_out_conflicts(b);
		bridge_fit_addresses(b);
	}
	return read_tun(b, now);
}

static bool is_bridge_connected(const struct bridge *b)
{
	struct ddps_ipoib_if_conn_info info;
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_conn_info(b->f, i, &info)) >= 0; i++)
		if (res && info.up)
			return true;
	return false;
}

static int serve_bridge(struct bridge *b)
{
	int status = ST_DONE;
	uint64_t end;

	bridge_out_start(b);
	while (!status && !b->down && !sig_pending())
		if (turn_bridge(b, DDPS_CM_NEVER, true)) {
			out_error(&b->out, 0, "leave the device to the bridge while it runs",
				  "%s: the device is gone: %s", b->o->tun, strerror(errno));
			status = ST_FAILED;
		}
	ddps_ipoib_if_stop(b->f, clock_ns());
	for (end = clock_ns() + PART_NS; is_bridge_connected(b) && clock_ns() < end;)
		(void)turn_bridge(b, end, false);
	if (b->out.json)
		json_out_line(&b->out, bridge_status(b, "ended"));
	return status;
}

static int close_bridge(struct bridge *b, int status)
{
	ddps_ipoib_if_free(b->f);
	ipoib_port_close(&b->port);
	if (b->tun >= 0)
		close(b->tun);
	if (b->watch.fd >= 0)
		close(b->watch.fd);
	if (bridge_capture_close(b))
		status = ST_FAILED;
	bridge_ctl_close(b); /* last: whoever asked for the end sees it now */
	return out_finish(&b->out) ? ST_FAILED : status;
}

/* A message takes up to 64 KiB, for as long as it is under way.  Given back to the system and taken again each time,
 * its pages would cost as much as a copy. */
static void keep_freed_memory(void)
{
#ifdef M_TRIM_THRESHOLD
	mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
#endif
}

static int run_bridge(const struct ipoib_opts *o)
{
	struct bridge *b = calloc(1, sizeof *b);
	int status;

	if (!b) {
		perror("sessctl ipoib bridge");
		return ST_FAILED;
	}
	keep_freed_memory();
	b->tun = b->watch.fd = b->ctl = b->client = -1;
	b->in.in = to_tun;
	b->in.arg = b;
	b->o = o;
	out_init(&b->out, "ipoib bridge", o->json);
	status = open_bridge(b);
	if (!status)
		status = serve_bridge(b);
	status = close_bridge(b, status);
	free(b);
	return status;
}

int ipoib_bridge(const struct ipoib_opts *o)
{
	const char *what = o->nargs ? o->arg[0] : "up";
	struct out out;

	if (!strcmp(what, "up") && !o->metrics)
		return run_bridge(o);
	out_init(&out, "ipoib bridge", o->json);
	if (strcmp(what, "up") != 0 && strcmp(what, "status") != 0 && strcmp(what, "down") != 0)
		out_error(&out, 0, "up, status or down", "'%s' is nothing that a bridge does",
			  what);
	else if (o->metrics && (o->json || strcmp(what, "status") != 0))
		out_error(&out, 0, "sessctl ipoib bridge status --metrics",
			  "--metrics is for status, and excludes --json");
	else if (!o->tun)
		out_error(&out, 0, "sessctl ipoib bridge --help", "--tun is needed");
	else
		return bridge_ask(o, what);
	return ST_USAGE;
}
