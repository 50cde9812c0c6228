/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite for IPoIB as programs see it: options, the list of cases, runs. */
#include "conform/run.h"
#include "conform/ipoib/peer.h"
#include <ddpsess/conform_ipoib.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS	 15000u
#define LOOPBACK 127u
#define BCAST_LO 0x7fffffffu

_Static_assert(offsetof(struct ddps_conform_ipoib_options, fabric) + sizeof(void *) ==
		       sizeof(struct ddps_conform_ipoib_options),
	       "ddps_conform_ipoib_options needs a reserve at its end");

void ddps_conform_ipoib_options_init_sized(struct ddps_conform_ipoib_options *o, size_t size)
{
	const struct ddps_conform_ipoib_options defaults = { .udp_port = 4791,
							     .n_link_ip4 = 64,
							     .pkey = 0xffff,
							     .qkey = 0x80000b1b,
							     .mtu = 4,
							     .life = 18,
							     .wait_ms = WAIT_MS };

	conform_put_sized(o, size, &defaults, sizeof defaults);
}

/* ---- cases ---- */

static const struct {
	const char *area;
	const struct ci_case *first;
} tables[] = {
	{ "the link and its groups (RFC 4391)", ci_cases_link },
	{ "ARP and neighbour discovery (RFC 4391)", ci_cases_arp },
	{ "datagram mode (RFC 4391)", ci_cases_ud },
	{ "connections, the target answers (RFC 4755)", ci_cases_passive },
	{ "connections, the target answers (RFC 4755)", ci_cases_stray },
	{ "connections, the target asks (RFC 4755)", ci_cases_active },
	{ "ends of connections (RFC 4755)", ci_cases_end },
	{ "connections from both sides (RFC 4755)", ci_cases_cross },
	{ "data over a connection (RFC 4755)", ci_cases_data },
	{ "messages that are cut short or altered", ci_cases_sweep },
	{ "what the target sent in all cases", ci_cases_whole },
};

/* Case number @i over all tables, as programs see it, in @as. */
static const struct ci_case *case_at(size_t i, struct ddps_conform_case *as)
{
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct ci_case *c = tables[t].first; c->name; c++)
			if (!i--) {
				*as = (struct ddps_conform_case){ .name = c->name,
								  .ids = c->ids,
								  .rule = c->rule,
								  .area = tables[t].area,
								  .wires = DDPS_CONFORM_IB };
				return c;
			}
	return NULL;
}

int ddps_conform_ipoib_case(size_t i, struct ddps_conform_case *c)
{
	return case_at(i, c) ? 0 : DDPS_E_INVAL;
}

/* ---- runs ---- */

struct run {
	struct ddps_conform_ipoib_options o;
	struct conform_caller caller;
	struct ci ci;
};

/* What is only for sockets does not count by a port of a fabric. */
static bool wire_can_be(const struct ddps_conform_ipoib_options *o)
{
	if (o->fabric)
		return o->fabric->struct_size >= sizeof *o->fabric && o->fabric->open &&
		       o->fabric->close && o->fabric->run && o->fabric->waiting && !o->sa_lid;
	return o->ip4[3] && o->ip4[3] != 0xff && o->gid[0] == 0xfe;
}

static int plan_ipoib_suite(struct run *r)
{
	const struct ddps_conform_ipoib_options *o = &r->o;
	static const uint8_t none[16];
	struct ci_plan *p = &r->ci.plan;

	*p = (struct ci_plan){ .wire_ip = cf_get32(o->ip4),
			       .broadcast = cf_get32(o->broadcast),
			       .port = o->udp_port,
			       .sa_lid = o->sa_lid ? o->sa_lid : o->ip4[3],
			       .ip = cf_get32(o->link_ip4),
			       .ips = o->n_link_ip4,
			       .target = cf_get32(o->target),
			       .has_target6 = memcmp(o->target6, none, 16) != 0,
			       .pkey = o->pkey,
			       .qkey = o->qkey,
			       .mtu = o->mtu,
			       .life = o->life,
			       .limit_ms = o->wait_ms,
			       .thorough = o->thorough };
	memcpy(p->gid, o->gid, CI_GID);
	memcpy(p->target6, o->target6, 16);
	if (!p->broadcast)
		p->broadcast = o->ip4[0] == LOOPBACK ? BCAST_LO : p->wire_ip | 0xff;
	if (o->fabric) {
		r->ci.fab.used = true;
		r->ci.fab.f = *o->fabric;
		STAILQ_INIT(&r->ci.fab.came);
		p->sa_lid = 0;
	}
	if (!wire_can_be(o) || !p->port || !p->target || !p->ip || p->ips < 3 || p->mtu < 1 ||
	    p->mtu > 5 || p->life > 31 || !(p->pkey & 0x7fff) || !p->limit_ms ||
	    p->limit_ms > INT32_MAX || o->thorough > 1 || o->reserved || p->target - p->ip < p->ips)
		return conform_caller_fault(
			&r->caller, DDPS_E_INVAL,
			"an address, key, MTU or time that there is not, or a target among "
			"the own addresses");
	return 0;
}

static void report_ipoib_case(struct run *r, struct ddps_conform_case c,
			      enum ddps_conform_verdict v, uint64_t ns)
{
	const struct ddps_conform_result out = {
		.c = c,
		.verdict = v,
		.why = r->ci.left.why,
		.grade = DDPS_CONFORM_FAILS,
		.ns = ns,
		.expected = v == DDPS_CONFORM_FAIL && r->ci.due[0] ? r->ci.due : NULL,
		.stop = v == DDPS_CONFORM_FAIL ? r->ci.stop : DDPS_CONFORM_STOP_NONE,
		.first = r->ci.trace ? cf_trace_first(r->ci.trace) : NULL,
	};

	conform_caller_tell(&r->caller, &out);
}

/* Everything of the case before is gone. */
static void reset_between_cases(struct ci *ci)
{
	ci_forget(ci);
	for (unsigned i = 0; i < CI_QPS; i++)
		ci->qp[i].used = false;
	ci->n_conns = ci->n_seen = 0;
	ci->never = 0;
	memcpy(ci->target.ip6, ci->plan.target6, 16); /* nd-link-local asks for another one */
	ci->accept = ci->no_arp = ci->again = ci->left.skipped = false;
	ci->left.why[0] = 0;
	ci_got(ci);
	ci->left.late = (struct cf_late){ 0 };
	ci->wait.until = 0;
	ci->stop = DDPS_CONFORM_STOP_NONE;
	ci->rx_mtu = CI_RX_MTU;
	ci->me.first_id = ci->next_id;
}

static enum ddps_conform_verdict execute_ipoib_case(struct ci *ci, const struct ci_case *c)
{
	volatile enum ddps_conform_verdict v = DDPS_CONFORM_SKIP;

	if ((c->needs & CI_NEEDS_SA) && !ci->sa) {
		snprintf(ci->left.why, sizeof ci->left.why, "the suite is not the administration");
		return v;
	}
	if ((c->needs & CI_NEEDS_PACKETS) && ci->fab.used) {
		snprintf(ci->left.why, sizeof ci->left.why,
			 "this port cannot: an adapter makes and checks packets itself");
		return v;
	}
	if ((c->needs & CI_NEEDS_IP6) && !ci->target.has_ip6) {
		snprintf(ci->left.why, sizeof ci->left.why, "needs an IPv6 address of the target");
		return v;
	}
	if (!setjmp(ci->left.to)) {
		c->run(ci);
		v = DDPS_CONFORM_PASS;
	} else {
		v = cf_left_verdict(&ci->left);
	}
	return v;
}

static void end_of_case(struct ci *ci)
{
	char why[sizeof ci->left.why], due[sizeof ci->due];

	memcpy(why, ci->left.why, sizeof why);
	memcpy(due, ci->due, sizeof due);
	ci->again = ci->accept = false;
	if (!setjmp(ci->left.to))
		ci_sweep(ci);
	else
		ci_silent(ci);
	memcpy(ci->left.why, why, sizeof why);
	memcpy(ci->due, due, sizeof due);
}

static void run_ipoib_case(struct run *r, const struct ci_case *c, struct ddps_conform_case as)
{
	enum ddps_conform_verdict v = DDPS_CONFORM_UNDECIDED;
	uint64_t begin = cf_now();

	/* What this host was too late for gets a second try, as another neighbour. */
	for (unsigned tries = 0; tries < 2 && v == DDPS_CONFORM_UNDECIDED; tries++) {
		reset_between_cases(&r->ci);
		cf_trace_free(r->ci.trace);
		r->ci.c = c;
		r->ci.trace = cf_trace_new();
		v = execute_ipoib_case(&r->ci, c);
		if (v == DDPS_CONFORM_FAIL)
			ci_silent(&r->ci);
		/* nothing is to be ended at a target that is not there */
		if (v != DDPS_CONFORM_SKIP && r->ci.patience.silent[CI_PART_LINK] < 2)
			end_of_case(&r->ci);
	}
	report_ipoib_case(r, as, v, cf_now() - begin);
	cf_trace_free(r->ci.trace);
	r->ci.trace = NULL;
}

/* The form of service ID that it takes: RFC 4755 3.5, or that of Linux. */
static void find_form(struct ci *ci)
{
	static const uint8_t form[] = { 0x01, 0x10 };

	for (unsigned i = 0; i < sizeof form && !ci->sid_form; i++) {
		struct ci_conn *c = ci_req(ci);
		const uint8_t *m;

		c->req[REQ_SID] = form[i];
		ci_cm_send(ci, c->req);
		m = ci_came(ci, 0, ci_limit(ci, CI_PART_REP));
		CI_CHECK(ci, m,
			 "the target answers ARP requests, but no request for a connection (RFC "
			 "4755)");
		if (ci_attr(m) != CI_REP)
			continue;
		ci->sid_form = form[i];
		ci_rep_in(ci, c, m);
		ci_rtu(ci, c, false);
	}
}

/* The link is there, and the target on it. */
static int find_ipoib_target(struct run *r)
{
	struct ci *ci = &r->ci;
	uint64_t until;

	reset_between_cases(ci);
	if (setjmp(ci->left.to)) {
		(void)cf_late_doubt(&ci->left.late, ci->left.why, sizeof ci->left.why);
		return conform_caller_fault(&r->caller, DDPS_E_REFUSED, "%s", ci->left.why);
	}
	if (ci->sa)
		ci_sa_start(ci);
	else if (ci->fab.used)
		ci_fab_open(ci);
	else
		ci_sa_join(ci);
	for (until = ci_limit(ci, CI_PART_LINK); ci->sa && !ci->n_nodes; ci_pump(ci, until))
		if (cf_now() >= until)
			ci_fail(ci,
				"nobody joins the link: is the target up, and is its subnet "
				"administration LID %u?",
				ci->lid);
	ci->target.ip = ci->plan.target;
	ci->target.has_ip6 = ci->plan.has_target6;
	ci_meet(ci, 0);
	if (ci->fab.used)
		ci_fab_path(ci);
	else if (!ci->sa)
		ci_sa_path(ci, ci->target.lla + 4);
	for (unsigned i = 0; i < ci->n_nodes; i++)
		if (!memcmp(ci->node[i].gid, ci->target.lla + 4, CI_GID))
			ci->target.lid = ci->node[i].lid;
	CI_CHECK(ci, ci->target.lid, "the node that answers the ARP request has not joined: %s",
		 cf_hex(ci->target.lla, CI_LLA));
	ci->target.known = true;
	find_form(ci);
	end_of_case(ci);
	return 0;
}

static int run_ipoib_cases(struct run *r)
{
	const struct ci_case *c;
	struct ddps_conform_case as;
	bool met = false;
	int err = 0;

	for (size_t i = 0; (c = case_at(i, &as)); i++) {
		if (r->o.pattern && fnmatch(r->o.pattern, c->name, 0))
			continue;
		if (!met)
			err = find_ipoib_target(r);
		met = true;
		if (err || (r->caller.calls.go_on && !r->caller.calls.go_on(r->caller.calls.user)))
			break;
		run_ipoib_case(r, c, as);
	}
	return err;
}

static int prepare_ipoib_run(struct run *r, const struct ddps_conform_ipoib_options *o,
			     const struct ddps_conform_calls *calls)
{
	int err = conform_take_sized(&r->o, sizeof r->o, o);

	if (err)
		return conform_caller_fault(&r->caller, err,
					    "options of another release than this library's");
	err = plan_ipoib_suite(r);
	if (!err)
		err = conform_caller_take(&r->caller, calls, r->o.profile);
	if (err)
		return err;
	TAILQ_INIT(&r->ci.ev);
	r->ci.random = r->o.seed * 2654435761u + 12345;
	r->ci.next_id = r->ci.random << 8 | 1;
	r->ci.next_tid = (uint64_t)r->ci.random << 32 | 1;
	r->ci.next_qpn = r->ci.random >> 7;
	return 0;
}

int ddps_conform_ipoib_run(const struct ddps_conform_ipoib_options *o,
			   const struct ddps_conform_calls *calls, struct ddps_conform_sum *sum,
			   char *why, size_t why_len)
{
	struct run *r = calloc(1, sizeof *r);
	char bad[300];
	int err;

	if (!r)
		return DDPS_E_NOMEM;
	r->caller.why = why;
	r->caller.why_len = why_len;
	r->ci.unicast = r->ci.multicast = -1;
	err = prepare_ipoib_run(r, o, calls);
	if (!err) {
		if (ci_open(&r->ci, bad, sizeof bad))
			err = conform_caller_fault(&r->caller, DDPS_E_SYSTEM, "%s", bad);
		if (!err)
			err = run_ipoib_cases(r);
		ci_close(&r->ci);
		cf_profile_free(&r->caller.known);
	}
	if (sum)
		*sum = r->caller.sum;
	free(r);
	return err;
}
