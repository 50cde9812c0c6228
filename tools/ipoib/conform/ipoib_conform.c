/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib conform: the cases for IPoIB, against a node of a subnet or this build's own. */
#include "cli/about.h"
#include "ipoib/conform/adapter.h"
#include "ipoib/conform/self.h"
#include "cli/hostport.h"
#include "cli/sessctl.h"
#include "ipoib/ipoib.h"
#include "report/conform_out.h"
#include <arpa/inet.h>
#include <ddpsess/ipoib_cm.h>
#include <errno.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#define COMMAND "sessctl ipoib conform"

static int list_ipoib_cases(const struct ipoib_opts *o)
{
	struct ddps_conform_case c;

	for (size_t i = 0; !ddps_conform_ipoib_case(i, &c); i++)
		if (!o->cases || !fnmatch(o->cases, c.name, 0))
			printf("%s\t%s\t%s\n", c.name, *c.ids ? c.ids : "-", c.rule);
	return cmd_finish();
}

/* ---- what the options say ---- */

static const char *read_wire(struct ddps_conform_ipoib_options *r, const struct ipoib_opts *o)
{
	struct sockaddr_storage ss;
	struct sockaddr_in a;
	uint8_t sa[4];

	if (!o->udp || hostport_parse(&ss, o->udp) || ss.ss_family != AF_INET)
		return "--udp is needed, an IPv4 address of this host with a port: 192.0.2.9:4791";
	memcpy(&a, &ss, sizeof a);
	if (!a.sin_port)
		return "--udp needs a port other than 0";
	memcpy(r->ip4, &a.sin_addr, 4);
	r->udp_port = ntohs(a.sin_port);
	if (!o->gid || ddps_ipoib_gid_parse(r->gid, o->gid))
		return "--gid is needed, written like an IPv6 address: fe80::9";
	if (!o->sa)
		return NULL;
	if (inet_pton(AF_INET, o->sa, sa) != 1 || memcmp(sa, r->ip4, 3) != 0 || !sa[3])
		return "--sa: no address in the same /24 as --udp";
	r->sa_lid = sa[3];
	return NULL;
}

static const char *read_conform_link(struct ddps_conform_ipoib_options *r,
				     const struct ipoib_opts *o)
{
	uint32_t mtu = o->link_mtu ? o->link_mtu : 2048;
	char host[64];

	if (inet_pton(AF_INET, o->arg[0], r->target) != 1)
		return "the target is an IPv4 address on the link";
	if (o->ip6 && inet_pton(AF_INET6, o->ip6, r->target6) != 1)
		return "--ip6: no IPv6 address";
	if (o->ip.n != 1)
		return "--ip is needed once: the first of the suite's own addresses on the link";
	snprintf(host, sizeof host, "%.*s", (int)strcspn(o->ip.at[0], "/"), o->ip.at[0]);
	if (inet_pton(AF_INET, host, r->link_ip4) != 1)
		return "--ip: no IPv4 address";
	for (r->mtu = 1; r->mtu <= 5 && 128u << r->mtu != mtu; r->mtu++)
		;
	if (r->mtu > 5)
		return "--link-mtu is 256, 512, 1024, 2048 or 4096";
	if (o->pkey != IPOIB_UNSET)
		r->pkey = (uint16_t)o->pkey;
	if (o->qkey != IPOIB_UNSET)
		r->qkey = (uint32_t)o->qkey;
	return NULL;
}

static const char *plan_ipoib_conform(struct ddps_conform_ipoib_options *r,
				      const struct ipoib_opts *o)
{
	const char *why = NULL;

	ddps_conform_ipoib_options_init(r);
	if (getrandom(&r->seed, sizeof r->seed, 0) != sizeof r->seed)
		return "no random numbers";
	if (!o->self && !o->nargs)
		return "missing TARGET: its IPv4 address on the link (or --self ours)";
	if (o->self && o->nargs)
		return "--self takes no TARGET";
	if (o->self && o->port)
		return "--self goes without --port";
	if (!o->self && !o->port)
		why = read_wire(r, o);
	if (!o->self && !why)
		why = read_conform_link(r, o);
	r->pattern = o->cases;
	r->profile = o->profile;
	r->thorough = o->every_bit;
	if (o->timeout_ms)
		r->wait_ms = o->timeout_ms;
	return why;
}

/* ---- the run ---- */

static int run_ipoib_suite(const void *what, const struct ddps_conform_calls *calls,
			   struct ddps_conform_sum *sum, char *why, size_t why_len)
{
	return ddps_conform_ipoib_run(what, calls, sum, why, why_len);
}

static enum status run_ipoib_conform(const struct ipoib_opts *o,
				     const struct ddps_conform_ipoib_options *opt)
{
	return conform_go(&(struct conform_job){
		.o = { .json = o->json,
		       .tap = o->tap,
		       .junit = o->junit,
		       .pcap = o->pcap,
		       .html = o->html,
		       .pcap_all = o->pcap_all },
		.command = COMMAND,
		.wire = "ib",
		.target = o->nargs ? o->arg[0] : "a node of this build",
		.advice = "is the target up, on this subnet, with that address?",
		.run = run_ipoib_suite,
		.what = opt });
}

static enum status run_self(const struct ipoib_opts *o, struct ddps_conform_ipoib_options *opt)
{
	int who = self_find(o->self);
	enum status status;
	char text[2000];
	pid_t pid;

	if (who < 0) {
		size_t n = 0;
		const char *name, *what;

		for (unsigned i = 0; (name = self_name(i, &what)) && n < sizeof text; i++)
			n += (size_t)snprintf(text + n, sizeof text - n, "\n    %-18s %s", name,
					      what);
		fprintf(stderr, COMMAND ": --self: '%s' is none of%s\n", o->self, text);
		return ST_USAGE;
	}
	self_plan(opt, opt->seed);
	pid = self_start(opt, who);
	if (pid < 0) {
		fprintf(stderr, COMMAND ": fork: %s\n", strerror(errno));
		return ST_FAILED;
	}
	status = run_ipoib_conform(o, opt);
	if (!self_stop(pid)) {
		fprintf(stderr, COMMAND ": the node under test ended by itself\n");
		return ST_FAILED;
	}
	return status;
}

static enum status run_adapter(const struct ipoib_opts *o,
			       const struct ddps_conform_ipoib_options *opt)
{
	struct adapter a = { .o = o };
	const struct ddps_conform_ipoib_fabric f = adapter_fabric(&a);
	struct ddps_conform_ipoib_options by_adapter;
	char why[300];

	if (adapter_configure(&a, opt->seed, why, sizeof why))
		return conform_usage(COMMAND, why);
	by_adapter = *opt;
	by_adapter.fabric = &f;
	return run_ipoib_conform(o, &by_adapter);
}

int ipoib_conform(const struct ipoib_opts *o)
{
	struct ddps_conform_ipoib_options opt;
	const char *why;

	if (o->list)
		return list_ipoib_cases(o);
	why = plan_ipoib_conform(&opt, o);
	if (why)
		return (int)conform_usage(COMMAND, why);
	if (o->port)
		return (int)run_adapter(o, &opt);
	return (int)(o->self ? run_self(o, &opt) : run_ipoib_conform(o, &opt));
}
