/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a bridge in Prometheus' text format.  Their names are those of status, all fixed. */
#include "ipoib/bridge/ipoib_bridge.h"
#include <string.h>

void bridge_count_rejected(struct bridge *b, const void *mad)
{
	struct ddps_cm_mad m;

	if (ddps_cm_mad_decode(&m, mad, DDPS_CM_MAD_LEN) || m.hdr.attr_id != DDPS_CM_REJ)
		return;
	b->rejected[m.u.rej.reason < BRIDGE_REASONS ? m.u.rej.reason : 0]++;
}

json_t *bridge_list_rejected(const struct bridge *b)
{
	json_t *j = json_object();

	for (unsigned i = 0; i < BRIDGE_REASONS; i++)
		if (b->rejected[i])
			json_object_set_new(j, i ? ddps_cm_reason_name((uint16_t)i) : "another",
					    json_integer((json_int_t)b->rejected[i]));
	return j;
}

static void put_bridge_counters(FILE *f, const char *tun, json_t *status, const char *part)
{
	json_t *all = json_object_get(status, part);
	void *at = json_object_iter(all);

	for (; at; at = json_object_iter_next(all, at))
		fprintf(f, "ddpsess_ipoib_events_total{tun=\"%s\",part=\"%s\",event=\"%s\"} %lld\n",
			tun, part, json_object_iter_key(at),
			(long long)json_integer_value(json_object_iter_value(at)));
}

/* A name of a device that needs no escape. */
static void copy_tun_name(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%s", from ? from : "");
	for (; *to; to++)
		if (*to == '"' || *to == '\\' || *to < ' ')
			*to = '_';
}

void bridge_out_metrics(FILE *f, json_t *status)
{
	static const char *const part[] = { "interface", "port", "cm", "rejected" };
	const char *state = json_string_value(json_object_get(status, "state"));
	char tun[TUN_NAME_MAX];

	copy_tun_name(tun, sizeof tun, json_string_value(json_object_get(status, "tun")));
	fprintf(f,
		"# HELP ddpsess_ipoib_up Whether the interface has joined its link.\n"
		"# TYPE ddpsess_ipoib_up gauge\nddpsess_ipoib_up{tun=\"%s\"} %d\n",
		tun, state && !strcmp(state, "up"));
	fprintf(f,
		"# HELP ddpsess_ipoib_conflicts IP addresses that another node has or wants, too.\n"
		"# TYPE ddpsess_ipoib_conflicts gauge\nddpsess_ipoib_conflicts{tun=\"%s\"} %zu\n",
		tun, json_array_size(json_object_get(status, "conflicts")));
	fputs("# HELP ddpsess_ipoib_events_total What the counters of sessctl ipoib bridge status "
	      "say; part rejected: connections that were refused, by reason.\n"
	      "# TYPE ddpsess_ipoib_events_total counter\n",
	      f);
	for (unsigned i = 0; i < sizeof part / sizeof *part; i++)
		put_bridge_counters(f, tun, status, part[i]);
}
