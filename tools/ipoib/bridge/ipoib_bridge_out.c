/* SPDX-License-Identifier: BSD-2-Clause */
/* What sessctl ipoib bridge says: its start, its state, and what to try about an error. */
#include "ipoib/bridge/ipoib_bridge.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

const char *bridge_advice(int err)
{
	switch (err) {
	case EPERM:
	case EACCES:
		return "run it as root or with CAP_NET_ADMIN, in this network namespace";
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return "modprobe tun";
	case EBUSY:
		return "another name in --tun; 'sessctl ipoib bridge down' ends a bridge";
	case EINVAL:
		return "another name in --tun, if a device has this one";
	default:
		return ib_opts_advice(err);
	}
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static int int_of(const json_t *j, const char *key)
{
	return (int)json_integer_value(json_object_get(j, key));
}

/* "UDP port 4791", "mlx5_0:1" */
static const char *describe_port(char *text, size_t len, const json_t *j)
{
	if (json_object_get(j, "device"))
		snprintf(text, len, "%s:%d", text_of(j, "device"), int_of(j, "port_number"));
	else
		snprintf(text, len, "UDP port %d", int_of(j, "udp_port"));
	return text;
}

void bridge_out_start(struct bridge *b)
{
	char lladdr[DDPS_IPOIB_LLADDR_TEXT], where[100];
	json_t *j;

	ddps_ipoib_lladdr_print(lladdr, &b->cfg.me.addr);
	j = json_pack("{ss ss ss si}", "event", "bridging", "tun", b->o->tun, "lladdr", lladdr,
		      "lid", (int)ipoib_port_lid(&b->port));
	ipoib_port_describe(&b->port, j);
	if (b->out.json) {
		json_out_line(&b->out, j);
	} else {
		fprintf(b->out.f, "%s: %s, LID %u, %s\n", b->o->tun, lladdr,
			ipoib_port_lid(&b->port), describe_port(where, sizeof where, j));
		json_decref(j);
	}
	out_flush(&b->out);
}

static void say_dhcp(struct bridge *b, const char *why)
{
	if (b->out.json)
		json_out_line(&b->out, json_pack("{ss ss}", "event", "dhcp", "why", why));
	else
		fprintf(b->out.err, "%s: %s\n", b->o->tun, why);
	out_flush(&b->out);
}

void bridge_out_dhcp(struct bridge *b, unsigned faults)
{
	const uint8_t *guid = b->cfg.me.addr.gid + 8;
	char why[300];

	b->dhcp |= faults;
	if (faults & DHCP_NO_BROADCAST)
		say_dhcp(b, "a DHCP client of this host wants its answer at an address that it "
			    "does not "
			    "have yet, and nobody can find it there (RFC 4390); try: its broadcast "
			    "flag (udhcpc -B)");
	if (!(faults & DHCP_NO_IDENTIFIER))
		return;
	snprintf(
		why, sizeof why,
		"a DHCP client of this host names itself by a hardware address, which is zero on "
		"each "
		"such device, so a server takes all of them for one (RFC 4390); try: an identifier "
		"(udhcpc -x 0x3d:00%02x%02x%02x%02x%02x%02x%02x%02x)",
		guid[0], guid[1], guid[2], guid[3], guid[4], guid[5], guid[6], guid[7]);
	say_dhcp(b, why);
}

/* ---- the state as JSON ---- */

static json_t *list_neighbours(const struct bridge *b)
{
	struct ddps_ipoib_if_nbr_info n;
	json_t *all = json_array();
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_nbr_info(b->f, i, &n)) >= 0; i++) {
		char ip[INET6_ADDRSTRLEN] = "", lladdr[DDPS_IPOIB_LLADDR_TEXT] = "";

		if (!res)
			continue;
		inet_ntop(n.ip6 ? AF_INET6 : AF_INET, n.ip, ip, sizeof ip);
		if (n.has_lladdr)
			ddps_ipoib_lladdr_print(lladdr, &n.lladdr);
		json_array_append_new(all, json_pack("{ss ss ss ss si}", "ip", ip, "state", n.state,
						     "lladdr", lladdr, "mode", n.mode, "mtu",
						     (int)n.mtu));
	}
	return all;
}

static json_t *list_connections(const struct bridge *b)
{
	struct ddps_ipoib_if_conn_info c;
	json_t *all = json_array();
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_conn_info(b->f, i, &c)) >= 0; i++) {
		char gid[DDPS_IPOIB_GID_TEXT];

		if (!res)
			continue;
		ddps_ipoib_gid_print(gid, c.peer.gid);
		json_array_append_new(all,
				      json_pack("{ss ss sb sb si si}", "peer", gid, "mode",
						c.uc ? "uc" : "rc", "up", c.up, "active", c.active,
						"mtu", (int)c.mtu, "qpn", (int)c.qpn));
	}
	return all;
}

/* Groups that are not joined, and why. */
static json_t *refused_groups(const struct bridge *b)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < BRIDGE_FAILED; i++) {
		char mgid[DDPS_IPOIB_GID_TEXT];

		if (!b->failed[i].err)
			continue;
		ddps_ipoib_gid_print(mgid, b->failed[i].mgid);
		json_array_append_new(all,
				      json_pack("{ss ss}", "mgid", mgid, "why", b->failed[i].why));
	}
	return all;
}

#define COUNT(name, text) json_object_set_new(j, #name, json_integer((json_int_t)st->name));

static json_t *interface_counters(const struct ddps_ipoib_if_stats *st)
{
	json_t *j = json_object();

	DDPS_IPOIB_IF_STATS(COUNT)
	return j;
}

static json_t *cm_counters(const struct ddps_cm_stats *st)
{
	return json_pack("{sI sI sI sI sI sI}", "malformed", (json_int_t)st->malformed,
			 "unsupported", (json_int_t)st->unsupported, "unmatched",
			 (json_int_t)st->unmatched, "ignored", (json_int_t)st->ignored, "refused",
			 (json_int_t)st->refused, "over_share", (json_int_t)st->over_share);
}

json_t *bridge_status(const struct bridge *b, const char *event)
{
	static const char *const states[] = { [DDPS_IPOIB_IF_DOWN] = "down",
					      [DDPS_IPOIB_IF_JOINING] = "joining",
					      [DDPS_IPOIB_IF_UP] = "up" };
	char lladdr[DDPS_IPOIB_LLADDR_TEXT];
	json_t *j;

	ddps_ipoib_lladdr_print(lladdr, &b->cfg.me.addr);
	j = json_pack("{ss ss ss ss si si so so so so so so sI sI}", "event", event, "tun",
		      b->o->tun, "state", states[ddps_ipoib_if_state(b->f)], "lladdr", lladdr,
		      "lid", (int)ipoib_port_lid(&b->port), "mtu", (int)b->mtu, "neighbours",
		      list_neighbours(b), "connections", list_connections(b), "not_joined",
		      refused_groups(b), "interface", interface_counters(ddps_ipoib_if_stats(b->f)),
		      "port", ipoib_port_counters(&b->port), "cm",
		      cm_counters(ddps_ipoib_if_cm_stats(b->f)), "tun_full",
		      (json_int_t)b->tun_full, "tun_bad", (json_int_t)b->tun_bad);
	if (j)
		ipoib_port_describe(&b->port, j);
	if (j && b->wants_ip6 && b->narrow_mtu)
		json_object_set_new(j, "ipv6_refused", json_string(b->narrow));
	if (j && b->port_down)
		json_object_set_new(j, "link_down", json_string(ipoib_port_why(&b->port)));
	if (j)
		json_object_set_new(j, "conflicts", bridge_list_conflicts(b));
	if (j)
		json_object_set_new(j, "addresses", bridge_list_addresses(b));
	if (j)
		json_object_set_new(j, "rejected", bridge_list_rejected(b));
	if (j && b->port.notice[0])
		json_object_set_new(j, "notice", json_string(b->port.notice));
	return j;
}

/* ---- the same as text ---- */

/* What has happened at all; most counters stay zero. */
static void out_counters(FILE *f, json_t *status, const char *group)
{
	json_t *all = json_object_get(status, group);
	void *at = json_object_iter(all);

	for (; at; at = json_object_iter_next(all, at)) {
		json_int_t n = json_integer_value(json_object_iter_value(at));

		if (n)
			fprintf(f, "  %-11s %-18s %lld\n", group, json_object_iter_key(at),
				(long long)n);
	}
}

static void out_neighbour(FILE *f, const json_t *row)
{
	fprintf(f, "  neighbour   %-18s %s, %s, MTU %d %s\n", text_of(row, "ip"),
		text_of(row, "state"), text_of(row, "mode"), int_of(row, "mtu"),
		text_of(row, "lladdr"));
}

static void out_connection(FILE *f, const json_t *row)
{
	fprintf(f, "  connection  %-18s %s, %s, asked for by %s, MTU %d\n", text_of(row, "peer"),
		text_of(row, "mode"), json_is_true(json_object_get(row, "up")) ? "up" : "not up",
		json_is_true(json_object_get(row, "active")) ? "us" : "the peer",
		int_of(row, "mtu"));
}

static void out_refused(FILE *f, const json_t *row)
{
	fprintf(f, "  not joined  %s: %s\n", text_of(row, "mgid"), text_of(row, "why"));
}

static void out_address(FILE *f, const json_t *row)
{
	fprintf(f, "  address     %-18s %s\n", text_of(row, "ip"),
		json_is_true(json_object_get(row, "held"))
			? "in use"
			: "not in use yet: the link is asked whether another node has it");
}

static void out_conflict(FILE *f, const json_t *row)
{
	fprintf(f, "  conflict    %s\n", json_string_value(row));
}

static void out_rows(FILE *f, const json_t *list, void (*out)(FILE *f, const json_t *row))
{
	for (size_t i = 0; i < json_array_size(list); i++)
		out(f, json_array_get(list, i));
}

void bridge_out_status(FILE *f, json_t *status)
{
	char where[100];

	fprintf(f, "%s: %s, MTU %d, %s, LID %d, %s\n", text_of(status, "tun"),
		text_of(status, "state"), int_of(status, "mtu"), text_of(status, "lladdr"),
		int_of(status, "lid"), describe_port(where, sizeof where, status));
	if (json_object_get(status, "ipv6_refused"))
		fprintf(f, "  IPv6 is not served: %s\n", text_of(status, "ipv6_refused"));
	if (json_object_get(status, "link_down"))
		fprintf(f, "  the link is down: %s\n", text_of(status, "link_down"));
	if (json_object_get(status, "notice"))
		fprintf(f, "  last said   %s\n", text_of(status, "notice"));
	out_rows(f, json_object_get(status, "addresses"), out_address);
	out_rows(f, json_object_get(status, "neighbours"), out_neighbour);
	out_rows(f, json_object_get(status, "connections"), out_connection);
	out_rows(f, json_object_get(status, "not_joined"), out_refused);
	out_rows(f, json_object_get(status, "conflicts"), out_conflict);
	out_counters(f, status, "interface");
	out_counters(f, status, "port");
	out_counters(f, status, "cm");
	out_counters(f, status, "rejected");
}
