/* SPDX-License-Identifier: BSD-2-Clause */
/* The conformance cases that need no application suit any: here one that talks, and listens. */
#include <criterion/criterion.h>
#include <ddpsess/conform.h>
#include <ddpsess/ddpsess.h>
#include <pthread.h>
#include <string.h>

#define RECEIVES 16u
#define TICK_MS	 20

struct talker {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_mr *mr;
	char uri[128];
	pthread_t thread;
	volatile bool stop;
	uint8_t mem[64];
};

static void accept_talker(struct talker *t, struct ddps_request *req)
{
	struct ddps_sge sge = { t->mem, sizeof t->mem, ddps_mr_stag(t->mr) };
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = t->pd;
	attr.send_cq = attr.recv_cq = t->cq;
	cr_assert_eq(ddps_ep_new(t->ctx, &attr, &ep), 0);
	for (unsigned i = 0; i < RECEIVES; i++)
		cr_assert_eq(ddps_post_recv(ep, i, &sge, 1), 0);
	if (ddps_accept(req, ep, NULL) < 0)
		ddps_ep_free(ep);
}

/* As soon as it may it says something, in several ways. */
static void speak_several_ways(struct talker *t, struct ddps_ep *ep)
{
	struct ddps_sge sge = { t->mem, 8, ddps_mr_stag(t->mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	/* The session may be over already. */
	(void)ddps_post_send(ep, &wr);
	wr.op = DDPS_OP_WRITE;
	wr.nsge = 0;
	(void)ddps_post_send(ep, &wr);
}

static void *serve_talker(void *arg)
{
	struct talker *t = arg;
	struct ddps_event ev;
	struct ddps_wc wc;

	while (!t->stop) {
		while (ddps_cq_poll(t->cq, &wc, 1) == 1)
			;
		if (ddps_event_wait(t->ctx, &ev, TICK_MS))
			continue;
		switch (ev.type) {
		case DDPS_EV_CONNECT_REQUEST:
			accept_talker(t, ev.request);
			break;
		case DDPS_EV_ESTABLISHED:
			speak_several_ways(t, ev.ep);
			break;
		case DDPS_EV_PEER_CLOSED:
			ddps_disconnect(ev.ep);
			break;
		case DDPS_EV_CLOSED:
		case DDPS_EV_FAILED:
			ddps_ep_free(ev.ep);
			break;
		default:
			break;
		}
	}
	return NULL;
}

static void start_talker(struct talker *t, const char *uri)
{
	struct ddps_ctx_attr attr;
	struct ddps_listener *l;

	memset(t, 0, sizeof *t);
	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	cr_assert_eq(ddps_ctx_new(&t->ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(t->ctx, &t->pd), 0);
	cr_assert_eq(ddps_cq_new(t->ctx, 4096, &t->cq), 0);
	cr_assert_eq(ddps_mr_reg(t->pd, t->mem, sizeof t->mem, DDPS_LOCAL_WRITE, NULL, &t->mr), 0);
	cr_assert_eq(ddps_listen(t->ctx, uri, NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, t->uri, sizeof t->uri), 0);
	cr_assert_eq(pthread_create(&t->thread, NULL, serve_talker, t), 0);
}

static void expect_no_failure(void *user, const struct ddps_conform_result *r)
{
	unsigned *results = user;

	++*results;
	cr_expect_eq(r->number, *results);
	cr_expect_neq(r->verdict, DDPS_CONFORM_FAIL, "%s: %s", r->c.name, r->why);
}

static void all_cases(const char *uri)
{
	static struct talker t;
	unsigned results = 0;
	const struct ddps_conform_calls calls = { .struct_size = sizeof calls,
						  .user = &results,
						  .result = expect_no_failure };
	struct ddps_conform_options o;
	struct ddps_conform_sum sum;
	char why[300];

	start_talker(&t, uri);
	ddps_conform_options_init(&o);
	o.uri = t.uri;
	o.wire = 0;
	o.wait_ms = 10000;
	cr_assert_eq(ddps_conform_run(&o, &calls, &sum, why, sizeof why), 0, "%s", why);
	cr_expect_gt(sum.pass, 60);
	cr_expect_eq(sum.pass + sum.skip, results);
	t.stop = true;
	pthread_join(t.thread, NULL);
	ddps_ctx_free(t.ctx);
}

Test(conform, cases_suit_a_talking_responder_tcp)
{
	all_cases("tcp://127.0.0.1:0");
}

Test(conform, cases_suit_a_talking_responder_sctp)
{
	all_cases("sctp://127.0.0.1:0?backend=native&encap=0");
}

/* ---- the library's own interface ---- */

static int run_with(void (*change)(struct ddps_conform_options *o), struct ddps_conform_sum *sum,
		    char *why, size_t len)
{
	struct ddps_conform_options o;

	ddps_conform_options_init(&o);
	o.pattern = "mpa-crc-*";
	change(&o);
	return ddps_conform_run(&o, NULL, sum, why, len);
}

static void bad_uri(struct ddps_conform_options *o)
{
	o->uri = "ftp://x:1";
}

static void clear_uri_host(struct ddps_conform_options *o)
{
	o->uri = "tcp://:1";
}

static void clear_uri_port(struct ddps_conform_options *o)
{
	o->uri = "tcp://127.0.0.1:0";
}

static void nobody_there(struct ddps_conform_options *o)
{
	o->uri = "tcp://127.0.0.1:1";
}

static void no_wait(struct ddps_conform_options *o)
{
	o->wait_ms = 0;
}

static void no_wire(struct ddps_conform_options *o)
{
	o->wire = 0;
}

static void stray_command(struct ddps_conform_options *o)
{
	o->command = "true";
}

static void no_profile(struct ddps_conform_options *o)
{
	o->profile = "/none";
}

static void old_size(struct ddps_conform_options *o)
{
	o->struct_size -= 8;
}

static void never_set(struct ddps_conform_options *o)
{
	o->struct_size = SIZE_MAX;
}

static void long_wait(struct ddps_conform_options *o)
{
	o->wait_ms = (uint32_t)INT32_MAX + 1;
}

static void no_role(struct ddps_conform_options *o)
{
	o->target = DDPS_CONFORM_INITIATOR + 1;
}

static void command_for_a_responder(struct ddps_conform_options *o)
{
	nobody_there(o);
	o->command = "true";
}

/* A scheme is the same in capitals (RFC 3986 section 3.1). */
static void nobody_there_in_capitals(struct ddps_conform_options *o)
{
	o->uri = "TCP://127.0.0.1:1";
}

Test(conform, what_cannot_be_run_is_said)
{
	static const struct {
		void (*change)(struct ddps_conform_options *o);
		int err;
		const char *says;
	} row[] = {
		{ bad_uri, DDPS_E_ADDRESS, "tcp://" },
		{ clear_uri_host, DDPS_E_ADDRESS, "a host" },
		{ clear_uri_port, DDPS_E_ADDRESS, "a port other than 0" },
		{ nobody_there, DDPS_E_REFUSED, "Connection refused" },
		{ no_wait, DDPS_E_INVAL, "wait" },
		{ no_wire, DDPS_E_INVAL, "one wire" },
		{ stray_command, DDPS_E_INVAL, "initiators" },
		{ no_profile, DDPS_E_ADDRESS, "built in: siw" },
		{ old_size, DDPS_E_INVAL, "release" },
		{ never_set, DDPS_E_INVAL, "release" },
		{ long_wait, DDPS_E_INVAL, "a wait or a role" },
		{ no_role, DDPS_E_INVAL, "a wait or a role" },
		{ command_for_a_responder, DDPS_E_INVAL, "initiators" },
		{ nobody_there_in_capitals, DDPS_E_REFUSED, "Connection refused" },
	};
	struct ddps_conform_sum sum;
	char why[300];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_expect_eq(run_with(row[i].change, &sum, why, sizeof why), row[i].err, "%zu", i);
		cr_expect(strstr(why, row[i].says), "%zu: %s", i, why);
		cr_expect_eq(run_with(row[i].change, NULL, NULL, 0), row[i].err, "%zu", i);
	}
}

Test(conform, options_of_a_later_release)
{
	struct {
		struct ddps_conform_options o;
		uint64_t later;
	} p;
	struct ddps_conform_sum sum;

	ddps_conform_options_init_sized(&p.o, sizeof p);
	p.o.pattern = "mpa-crc-pad";
	cr_expect_eq(ddps_conform_run(&p.o, NULL, &sum, NULL, 0), 0);
	cr_expect_eq(sum.pass, 1);
	p.later = 1;
	cr_expect_eq(ddps_conform_run(&p.o, NULL, &sum, NULL, 0), DDPS_E_UNSUPPORTED);
}

Test(conform, calls_and_options_of_another_release)
{
	struct ddps_conform_calls calls = { .struct_size = sizeof calls - 8 };
	struct ddps_conform_options o;
	char why[100];

	ddps_conform_options_init(&o);
	cr_expect_eq(ddps_conform_run(&o, &calls, NULL, why, sizeof why), DDPS_E_INVAL);
	cr_expect_str_eq(why, "calls of another release than this library's");
	o.wire = 77;
	ddps_conform_options_init_sized(&o, sizeof o - 8); /* an older one's, known up to there */
	cr_expect_eq(o.struct_size, sizeof o - 8);
	cr_expect_eq(o.wire, DDPS_CONFORM_TCP);
	o.struct_size = 77;
	ddps_conform_options_init_sized(&o, 4); /* no room even for the size */
	cr_expect_eq(o.struct_size >> 32, 0);
	cr_expect_neq(o.struct_size, 4);
}

static bool twice(void *user)
{
	return (*(unsigned *)user)++ < 2;
}

Test(conform, a_run_can_be_ended)
{
	unsigned asked = 0;
	const struct ddps_conform_calls calls = { sizeof calls, &asked, twice, NULL };
	struct ddps_conform_options o;
	struct ddps_conform_sum sum;

	ddps_conform_options_init(&o);
	cr_expect_eq(ddps_conform_run(&o, &calls, &sum, NULL, 0), 0);
	cr_expect_eq(asked, 3);
	cr_expect_eq(sum.pass, 2);
}

Test(conform, every_case_has_a_name_of_its_own)
{
	static struct ddps_conform_case c[1000];
	size_t n = 0;

	while (!ddps_conform_case(n, &c[n]))
		n++;
	cr_expect_gt(n, 300);
	cr_expect_eq(ddps_conform_case(SIZE_MAX, &c[n]), DDPS_E_INVAL);
	for (size_t i = 0; i < n; i++) {
		cr_expect(*c[i].rule && *c[i].ids && c[i].wires, "%s", c[i].name);
		cr_expect(c[i].area && *c[i].area, "%s", c[i].name);
		for (size_t k = 0; k < i; k++)
			cr_expect_str_neq(c[i].name, c[k].name);
	}
}
