/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of this host that another node of the link has, too: said, and given up if they are new here. */
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define AGAIN_NS (60 * NS_PER_S)

/* Who asks for an IPv6 address has said no GID of its own; where no GRH comes either, it is known by its LID. */
static void name_node(char *text, size_t len, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	static const uint8_t none[DDPS_IPOIB_GID_LEN - 2];
	char shown[DDPS_IPOIB_GID_TEXT];

	ddps_ipoib_gid_print(shown, gid);
	if (memcmp(gid, none, sizeof none) != 0)
		snprintf(text, len, "GID %s", shown);
	else
		snprintf(text, len, "LID %u",
			 (unsigned)gid[sizeof none] << 8 | gid[sizeof none + 1]);
}

static void describe_conflict(const struct bridge *b, const struct ddps_ipoib_if_conflict *c,
			      char *text, size_t len)
{
	char ip[INET6_ADDRSTRLEN], mine[DDPS_IPOIB_GID_TEXT], theirs[DDPS_IPOIB_GID_TEXT + 8];

	inet_ntop(c->ip6 ? AF_INET6 : AF_INET, c->ip, ip, sizeof ip);
	ddps_ipoib_gid_print(mine, b->cfg.me.addr.gid);
	name_node(theirs, sizeof theirs, c->other.gid);
	if (c->given_up)
		snprintf(text, len,
			 "the node with the %s had %s first, so this one (GID %s) does not use "
			 "it; "
			 "try: another address here, or 'ip addr add' once the other node is gone",
			 theirs, ip, mine);
	else
		snprintf(text, len,
			 "the node with the %s has or wants %s, which this one (GID %s) has; "
			 "try: another address for one of them",
			 theirs, ip, mine);
}

/* The host must not use it either: its packets would have answers that go to the other node. */
static void give_up_address(struct bridge *b, const struct ddps_ipoib_if_conflict *c)
{
	if (tun_watch_drop(&b->watch, b->o->tun, c->ip6 ? AF_INET6 : AF_INET, c->ip))
		out_note(&b->out, NULL, "%s: taking the address away: %s", b->o->tun,
			 strerror(errno));
}

void bridge_out_conflicts(struct bridge *b)
{
	struct ddps_ipoib_if_conflict c;
	char text[400];
	int res;

	if (ddps_ipoib_if_stats(b->f)->ip_conflict == b->conflicts)
		return;
	b->conflicts = ddps_ipoib_if_stats(b->f)->ip_conflict;
	for (unsigned i = 0; (res = ddps_ipoib_if_conflict(b->f, i, &c)) >= 0; i++) {
		struct bridge_said *said = &b->conflict_said[i];

		if (!res)
			continue;
		if (said->of != c.since) /* the slot has another conflict now */
			*said = (struct bridge_said){ .of = c.since };
		if (said->at && (!c.given_up || c.at <= said->at) && c.at < said->at + AGAIN_NS)
			continue;
		said->at = c.at;
		if (c.given_up)
			give_up_address(b, &c);
		describe_conflict(b, &c, text, sizeof text);
		if (b->out.json)
			json_out_line(&b->out, json_pack("{ss ss}", "event", "address_conflict",
							 "why", text));
		else
			fprintf(b->out.err, "%s: %s\n", b->o->tun, text);
		out_flush(&b->out);
	}
}

json_t *bridge_list_conflicts(const struct bridge *b)
{
	struct ddps_ipoib_if_conflict c;
	json_t *all = json_array();
	char text[400];
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_conflict(b->f, i, &c)) >= 0; i++) {
		if (!res)
			continue;
		describe_conflict(b, &c, text, sizeof text);
		json_array_append_new(all, json_string(text));
	}
	return all;
}

json_t *bridge_list_addresses(const struct bridge *b)
{
	struct ddps_ipoib_if_addr_info a;
	json_t *all = json_array();
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_addr_info(b->f, i, &a)) >= 0; i++) {
		char ip[INET6_ADDRSTRLEN];

		if (!res)
			continue;
		inet_ntop(a.ip6 ? AF_INET6 : AF_INET, a.ip, ip, sizeof ip);
		json_array_append_new(all, json_pack("{ss sb}", "ip", ip, "held", a.held));
	}
	return all;
}
