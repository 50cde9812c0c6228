/* SPDX-License-Identifier: BSD-2-Clause */
/* What the port reports to the interface, passed on; groups that cannot be joined are said [4391-12-1]. */
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static struct ddps_ipoib_if *get_bridge_if(void *user)
{
	return ((struct bridge *)user)->f;
}

/* Once for each group and cause, as a failed join is tried again.  Return: NULL: it is no news. */
static const char *note_failure(struct bridge *b, const uint8_t *mgid, int err)
{
	struct bridge_failed *at = NULL;
	const char *why = ipoib_port_why(&b->port);

	for (unsigned i = 0; i < BRIDGE_FAILED; i++)
		if (b->failed[i].err && !memcmp(b->failed[i].mgid, mgid, DDPS_IPOIB_GID_LEN))
			at = &b->failed[i];
	if (!err) {
		if (at)
			at->err = 0;
		return NULL;
	}
	if (at && at->err == err)
		return NULL;
	if (!at)
		at = &b->failed[b->next_failed++ % BRIDGE_FAILED];
	at->err = err;
	memcpy(at->mgid, mgid, DDPS_IPOIB_GID_LEN);
	if (!*why && err == DDPS_E_TIMEDOUT)
		why = b->o->sa
			      ? "the subnet administration does not answer; try: start it, and see "
				"that --sa is its address"
			      : "the subnet administration does not answer; try: see that a subnet "
				"manager runs";
	snprintf(at->why, sizeof at->why, "%s", *why ? why : ddps_strerror(err));
	return at->why;
}

/* To whoever has IPv6 addresses; the kernel's own one is on each device. */
static void say_narrow(struct bridge *b)
{
	if (!b->wants_ip6 || b->narrow_said == b->narrow_mtu)
		return;
	b->narrow_said = b->narrow_mtu;
	if (!b->narrow_mtu)
		return;
	if (b->out.json)
		json_out_line(&b->out,
			      json_pack("{ss ss}", "event", "ipv6_refused", "why", b->narrow));
	else
		fprintf(b->out.err, "%s: IPv6 is not served: %s\n", b->o->tun, b->narrow);
	out_flush(&b->out);
}

void bridge_want_ip6(struct bridge *b)
{
	b->wants_ip6 = true;
	say_narrow(b);
}

/* A link that is too narrow for IPv6 [4755-5-1]: IPv4 goes on, if it is in use. */
static void note_narrow(struct bridge *b, const uint8_t *mgid, uint32_t link_mtu)
{
	const uint32_t mtu = ddps_ipoib_mtu_ud(link_mtu);

	/* the broadcast group's MTU is the link's */
	if (memcmp(mgid + 12, "\xff\xff\xff\xff", 4) != 0)
		return;
	b->narrow_mtu = mtu < DDPS_IPOIB_MTU_MIN_V6 ? mtu : 0;
	b->narrow[0] = 0;
	if (b->narrow_mtu)
		snprintf(b->narrow, sizeof b->narrow,
			 "a datagram of this link holds %u octets, and IPv6 needs %u%s; %s",
			 (unsigned)mtu, DDPS_IPOIB_MTU_MIN_V6,
			 b->cfg.has_ip4 ? "" : ", so the interface stays down",
			 b->port.verbs ? "give the partition an MTU of 2048 (mtu=4 in opensm's "
					 "partitions.conf)"
				       : "give the network below an MTU of 2200, then start the "
					 "administration again, with --link-mtu 2048: the link "
					 "keeps its MTU until then");
	say_narrow(b);
}

/* An address that nobody answers for would only swallow packets. */
void bridge_fit_addresses(struct bridge *b)
{
	const bool narrow = b->narrow_mtu;
	char why[300];

	if (narrow == b->narrow_done)
		return;
	b->narrow_done = narrow;
	for (unsigned i = 0; i < b->n_ip; i++) {
		if (b->ip[i].family != AF_INET6)
			continue;
		if (!narrow && tun_address(b->o->tun, AF_INET6, b->ip[i].addr, b->ip[i].prefix, why,
					   sizeof why))
			out_note(&b->out, NULL, "%s", why);
		if (narrow && tun_watch_drop(&b->watch, b->o->tun, AF_INET6, b->ip[i].addr))
			out_note(&b->out, NULL, "%s: taking the IPv6 addresses away: %s", b->o->tun,
				 strerror(errno));
	}
}

/* Where there are datagrams only, the device takes what one of this link holds.  The kernel takes IPv6
 * addresses away below 1280. */
static void fit_device(struct bridge *b, const uint8_t *mgid, uint32_t link_mtu)
{
	unsigned most = b->cfg.me.rx_mtu - DDPS_IPOIB_ENCAP_LEN;
	unsigned mtu = ddps_ipoib_mtu_ud(link_mtu);
	char why[300];

	if (mtu > most)
		mtu = most;
	if (b->cfg.me.addr.flags || memcmp(mgid + 12, "\xff\xff\xff\xff", 4) != 0 || mtu == b->mtu)
		return;
	if (tun_mtu(b->o->tun, mtu, why, sizeof why)) {
		out_note(&b->out, NULL, "%s; a datagram of this link holds %u octets", why, mtu);
		return;
	}
	b->mtu = mtu;
}

static void pass_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
			uint32_t link_mtu, uint64_t now)
{
	struct bridge *b = user;
	char text[DDPS_IPOIB_GID_TEXT];
	const char *why = note_failure(b, mgid, err);

	if (why) {
		ddps_ipoib_gid_print(text, mgid);
		if (b->out.json)
			json_out_line(&b->out, json_pack("{ss ss ss}", "event", "join_failed",
							 "mgid", text, "why", why));
		else
			fprintf(b->out.err, "%s: group %s cannot be joined: %s\n", b->o->tun, text,
				why);
	}
	if (!err) {
		note_narrow(b, mgid, link_mtu);
		fit_device(b, mgid, link_mtu);
	}
	ddps_ipoib_if_up()->joined(b->f, mgid, err, link_mtu, now);
}

static void pass_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
		    size_t len, uint64_t now)
{
	ddps_ipoib_if_up()->ud(get_bridge_if(user), from, frame, len, now);
}

static void pass_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	ddps_ipoib_if_up()->mad(get_bridge_if(user), from, mad, len, now);
}

static void pass_qp_message(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	ddps_ipoib_if_up()->qp(get_bridge_if(user), qpn, frame, len, now);
}

static void pass_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	ddps_ipoib_if_up()->qp_error(get_bridge_if(user), qpn, err, now);
}

static void pass_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
		      const struct ddps_ipoib_path *path, uint64_t now)
{
	ddps_ipoib_if_up()->path(get_bridge_if(user), gid, path, now);
}

static void pass_link(void *user, bool is_up, uint64_t now)
{
	struct bridge *b = user;
	const char *why = is_up ? "" : ipoib_port_why(&b->port);
	const bool again = is_up && !b->port_down; /* the subnet, not the port */

	b->port_down = !is_up;

	if (b->out.json)
		json_out_line(&b->out,
			      json_pack("{ss sb ss}", "event", again ? "subnet_changed" : "link",
					"up", is_up, "why", why));
	else if (again)
		fprintf(b->out.err, "%s: the subnet has changed\n", b->o->tun);
	else
		fprintf(b->out.err, "%s: the port is %s%s%s\n", b->o->tun, is_up ? "up" : "down",
			*why ? ": " : "", why);
	ddps_ipoib_if_up()->link(get_bridge_if(user), is_up, now);
}

const struct ddps_ipoib_up bridge_up = { .struct_size = sizeof(bridge_up),
					 .ud = pass_ud,
					 .mad = pass_mad,
					 .qp = pass_qp_message,
					 .qp_error = pass_qp_error,
					 .path = pass_path,
					 .joined = pass_joined,
					 .link = pass_link };
