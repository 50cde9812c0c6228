/* SPDX-License-Identifier: BSD-2-Clause */
/* The librdmacm port, with a librdmacm of this file: connects that go well, and each step that fails. */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "ipoib_cm/ports/port_rdmacm.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"

#define LIBRARY "librdmacm.so.1"
#define EVENTS	8

static char why[300];
static uint8_t priv[DDPS_IPOIB_PRIV_LEN] = { 0, 0, 0x48, 9 };

static struct {
	const char *fails; /* the function of that name, with @err */
	int err;
	int pipe[2]; /* readable while there is an event */
	struct rdma_event_channel channel;
	struct rdma_cm_id id;
	int n_channels, n_ids, n_acked;
	struct sockaddr_ib to;
	struct rdma_conn_param param;
	uint8_t sent[DDPS_IPOIB_PRIV_LEN]; /* of the REQ */
	bool established;
	/* what each call brings: address, route, connection, end */
	enum rdma_cm_event_type event[4];
	int status; /* of all of them */
	const void *data;
	uint8_t data_len;
	struct rdma_cm_event ev;
	unsigned n_told;
	char told[EVENTS][40];
	int told_status;
} lib;

static int note_ipoib_rdmacm_conn_failed(const char *name)
{
	if (!lib.fails || strcmp(lib.fails, name) != 0)
		return 0;
	errno = lib.err;
	return -1;
}

/* -1: nothing comes. */
static void bring(unsigned step)
{
	if ((int)lib.event[step] < 0)
		return;
	lib.ev = (struct rdma_cm_event){ .id = &lib.id,
					 .event = lib.event[step],
					 .status = lib.status };
	lib.ev.param.conn = (struct rdma_conn_param){ .private_data = lib.data,
						      .private_data_len = lib.data_len,
						      .qp_num = 0x4711 };
	cr_assert_eq(write(lib.pipe[1], "", 1), 1);
}

static struct rdma_event_channel *my_channel(void)
{
	if (note_ipoib_rdmacm_conn_failed("rdma_create_event_channel"))
		return NULL;
	lib.n_channels++;
	lib.channel.fd = lib.pipe[0];
	return &lib.channel;
}

static void my_channel_end(struct rdma_event_channel *c)
{
	cr_expect_eq(c, &lib.channel);
	lib.n_channels--;
}

static int my_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *user,
		 enum rdma_port_space ps)
{
	cr_expect_eq(c, &lib.channel);
	cr_expect_null(user);
	cr_expect_eq(ps, RDMA_PS_IB);
	if (note_ipoib_rdmacm_conn_failed("rdma_create_id"))
		return -1;
	lib.n_ids++;
	*id = &lib.id;
	return 0;
}

static int my_id_end(struct rdma_cm_id *id)
{
	cr_expect_eq(id, &lib.id);
	cr_expect_eq(lib.n_channels, 1, "its channel is still there");
	lib.n_ids--;
	return 0;
}

static int fake_ipoib_rdmacm_conn_addr(struct rdma_cm_id *id, struct sockaddr *src,
				       struct sockaddr *dst, int timeout)
{
	cr_expect_eq(id, &lib.id);
	cr_expect_null(src);
	cr_expect_eq(dst->sa_family, AF_IB);
	cr_expect_geq(timeout, 0);
	memcpy(&lib.to, dst, sizeof(lib.to));
	if (note_ipoib_rdmacm_conn_failed("rdma_resolve_addr"))
		return -1;
	bring(0);
	return 0;
}

static int my_route(struct rdma_cm_id *id, int timeout)
{
	cr_expect_eq(id, &lib.id);
	cr_expect_geq(timeout, 0);
	if (note_ipoib_rdmacm_conn_failed("rdma_resolve_route"))
		return -1;
	bring(1);
	return 0;
}

static int my_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	cr_expect_eq(id, &lib.id);
	lib.param = *p;
	memcpy(lib.sent, p->private_data, sizeof(lib.sent));
	if (note_ipoib_rdmacm_conn_failed("rdma_connect"))
		return -1;
	bring(2);
	return 0;
}

static int my_establish(struct rdma_cm_id *id)
{
	cr_expect_eq(id, &lib.id);
	if (note_ipoib_rdmacm_conn_failed("rdma_establish"))
		return -1;
	lib.established = true;
	return 0;
}

static int my_disconnect(struct rdma_cm_id *id)
{
	cr_expect_eq(id, &lib.id);
	if (note_ipoib_rdmacm_conn_failed("rdma_disconnect"))
		return -1;
	bring(3);
	return 0;
}

static int my_get(struct rdma_event_channel *c, struct rdma_cm_event **ev)
{
	char octet;

	cr_expect_eq(c, &lib.channel);
	if (note_ipoib_rdmacm_conn_failed("rdma_get_cm_event"))
		return -1;
	cr_assert_eq(read(lib.pipe[0], &octet, 1), 1);
	*ev = &lib.ev;
	return 0;
}

static int my_ack(struct rdma_cm_event *ev)
{
	cr_expect_eq(ev, &lib.ev);
	lib.n_acked++;
	memset(ev, 0xff, sizeof(*ev)); /* it is librdmacm's again */
	return 0;
}

static const char *my_str(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_CONNECT_RESPONSE ? "a response"
	       : type == RDMA_CM_EVENT_REJECTED	      ? "a rejection"
						      : "an event";
}

static const struct dl_symbol symbols[] = {
	DL_SYMBOL("rdma_create_event_channel", my_channel),
	DL_SYMBOL("rdma_destroy_event_channel", my_channel_end),
	DL_SYMBOL("rdma_create_id", my_id),
	DL_SYMBOL("rdma_destroy_id", my_id_end),
	DL_SYMBOL("rdma_resolve_addr", fake_ipoib_rdmacm_conn_addr),
	DL_SYMBOL("rdma_resolve_route", my_route),
	DL_SYMBOL("rdma_connect", my_connect),
	DL_SYMBOL("rdma_establish", my_establish),
	DL_SYMBOL("rdma_disconnect", my_disconnect),
	DL_SYMBOL("rdma_get_cm_event", my_get),
	DL_SYMBOL("rdma_ack_cm_event", my_ack),
	DL_SYMBOL("rdma_event_str", my_str),
	{ NULL, NULL },
};

static void tell_ipoib_rdmacm_conn(void *user, const char *event, int status)
{
	cr_expect_eq(user, &lib);
	cr_assert_lt(lib.n_told, EVENTS);
	snprintf(lib.told[lib.n_told++], sizeof(lib.told[0]), "%s", event);
	lib.told_status = status;
}

static struct ddps_rdmacm *r;
static struct ddps_cm_req req;
static struct ddps_rdmacm_result res;

static void init(void)
{
	static const enum rdma_cm_event_type good[] = { RDMA_CM_EVENT_ADDR_RESOLVED,
							RDMA_CM_EVENT_ROUTE_RESOLVED,
							RDMA_CM_EVENT_CONNECT_RESPONSE,
							RDMA_CM_EVENT_DISCONNECTED };

	memset(&lib, 0, sizeof(lib));
	memcpy(lib.event, good, sizeof(good));
	lib.data = priv;
	lib.data_len = sizeof(priv);
	cr_assert_eq(pipe(lib.pipe), 0);
	dl_replace(LIBRARY, symbols);
	req = (struct ddps_cm_req){ .service_id = 0x1000000000000048,
				    .pkey = 0x8001,
				    .qpn = 0x123456,
				    .resp_resources = 4,
				    .init_depth = 3,
				    .flow_control = true,
				    .retry_count = 6,
				    .rnr_retry = 5,
				    .srq = true };
	req.primary.remote_gid[15] = 2;
	req.private_data[3] = 0x99;
}

static void open_rdmacm(void)
{
	init();
	cr_assert_eq(ddps_rdmacm_open(&r, tell_ipoib_rdmacm_conn, &lib, why, sizeof(why)), 0, "%s",
		     why);
}

static void fini(void)
{
	ddps_rdmacm_close(r);
	cr_expect_eq(lib.n_ids, 0);
	cr_expect_eq(lib.n_channels, 0);
	close(lib.pipe[0]);
	close(lib.pipe[1]);
}

/* ---- opening ---- */

static void expect_rdmacm_refused(int err, const char *what)
{
	struct ddps_rdmacm *out = (void *)&lib;

	why[0] = '\0';
	cr_expect_eq(ddps_rdmacm_open(&out, tell_ipoib_rdmacm_conn, &lib, why, sizeof(why)), err,
		     "%s", why);
	cr_expect(strstr(why, what), "'%s' says nothing of '%s'", why, what);
	cr_expect_eq((void *)out, (void *)&lib, "unchanged");
	cr_expect_eq(lib.n_ids + lib.n_channels, 0);
}

Test(ipoib_rdmacm_conn, each_refusal_says_why, .init = init, .fini = fini)
{
	lib.err = ENODEV;
	lib.fails = "rdma_create_event_channel";
	expect_rdmacm_refused(DDPS_E_UNSUPPORTED, "No such device");
	lib.fails = "rdma_create_id";
	expect_rdmacm_refused(DDPS_E_UNSUPPORTED, "No such device");
	dl_replace(LIBRARY, NULL);
	expect_rdmacm_refused(DDPS_E_UNSUPPORTED, "Debian package librdmacm1");
	dl_replace(LIBRARY, symbols);
	for (unsigned i = 0; symbols[i].name; i++) {
		dl_lacks(symbols[i].name);
		expect_rdmacm_refused(DDPS_E_UNSUPPORTED, "Debian package librdmacm1");
	}
	dl_lacks(NULL);
	mem_fail(1);
	expect_rdmacm_refused(DDPS_E_NOMEM, "memory");
	ddps_rdmacm_close(NULL);
}

/* ---- connects ---- */

Test(ipoib_rdmacm_conn, a_connect_takes_what_the_req_says, .init = open_rdmacm, .fini = fini)
{
	struct sockaddr_ib to;

	cr_assert_eq(ddps_rdmacm_connect(r, &req, 10000, &res, why, sizeof(why)), 0, "%s", why);
	ddps_rdmacm_address(&to, &req);
	cr_expect_eq(memcmp(&lib.to, &to, sizeof(to)), 0);
	cr_expect_eq(lib.param.qp_num, 0x123456);
	cr_expect_eq(lib.param.responder_resources, 4);
	cr_expect_eq(lib.param.initiator_depth, 3);
	cr_expect_eq(lib.param.flow_control, 1);
	cr_expect_eq(lib.param.retry_count, 6);
	cr_expect_eq(lib.param.rnr_retry_count, 5);
	cr_expect_eq(lib.param.srq, 1);
	cr_expect_eq(lib.param.private_data_len, sizeof(req.private_data));
	cr_expect_eq(lib.sent[3], 0x99);
	cr_expect(lib.established, "the RTU");
	cr_expect_eq(res.qpn, 0x4711);
	cr_expect_eq(res.reason, 0);
	cr_expect_arr_eq(res.priv, priv, sizeof(priv));
	cr_expect_eq(lib.n_told, 3);
	cr_expect_str_eq(lib.told[2], "a response");
	cr_expect_eq(lib.n_acked, 3);
	/* and its end, when nobody waits for a result */
	cr_expect_eq(ddps_rdmacm_disconnect(r, 10000), 0);
	cr_expect_eq(lib.n_told, 4);
	cr_expect_eq(lib.n_acked, 4);
}

Test(ipoib_rdmacm_conn, a_rejection_has_a_reason, .init = open_rdmacm, .fini = fini)
{
	lib.event[2] = RDMA_CM_EVENT_REJECTED;
	lib.status = 28;
	cr_expect_eq(ddps_rdmacm_connect(r, &req, 10000, &res, why, sizeof(why)), DDPS_E_REJECTED);
	cr_expect_eq(res.reason, 28);
	cr_expect_eq(res.qpn, 0);
	cr_expect_arr_eq(res.priv, priv, sizeof(priv));
	cr_expect_str_eq(lib.told[2], "a rejection");
	cr_expect_eq(lib.told_status, 28);
	cr_expect_not(lib.established);
	cr_expect(strstr(why, "connecting: "), "%s", why);
}

Test(ipoib_rdmacm_conn, private_data_that_is_too_short_is_none, .init = open_rdmacm, .fini = fini)
{
	const uint8_t none[DDPS_IPOIB_PRIV_LEN] = { 0 };

	lib.data_len = DDPS_IPOIB_PRIV_LEN - 1;
	cr_expect_eq(ddps_rdmacm_connect(r, &req, 10000, &res, why, sizeof(why)), 0);
	cr_expect_arr_eq(res.priv, none, sizeof(none));
	cr_expect_eq(res.qpn, 0x4711);
	lib.data_len = DDPS_IPOIB_PRIV_LEN;
	lib.data = NULL;
	cr_expect_eq(ddps_rdmacm_connect(r, &req, 10000, &res, why, sizeof(why)), 0);
	cr_expect_arr_eq(res.priv, none, sizeof(none));
}

/* What comes in place of what should: step, event, what becomes of it. */
Test(ipoib_rdmacm_conn, each_step_may_go_wrong, .init = open_rdmacm, .fini = fini)
{
	static const struct {
		unsigned step;
		int event, err;
		const char *what;
	} row[] = {
		{ 0, -1, DDPS_E_TIMEDOUT, "resolving the address: " },
		{ 0, RDMA_CM_EVENT_ADDR_ERROR, DDPS_E_SYSTEM, "resolving the address: " },
		{ 1, -1, DDPS_E_TIMEDOUT, "resolving the address: " },
		{ 1, RDMA_CM_EVENT_ROUTE_ERROR, DDPS_E_SYSTEM, "resolving the address: " },
		{ 2, -1, DDPS_E_TIMEDOUT, "connecting: " },
		{ 2, RDMA_CM_EVENT_UNREACHABLE, DDPS_E_TIMEDOUT, "connecting: " },
		{ 2, RDMA_CM_EVENT_DEVICE_REMOVAL, DDPS_E_SYSTEM, "connecting: " },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		enum rdma_cm_event_type good = lib.event[row[i].step];

		lib.n_told = 0;
		lib.event[row[i].step] = (enum rdma_cm_event_type)row[i].event;
		cr_expect_eq(ddps_rdmacm_connect(r, &req, row[i].event < 0 ? 1 : 10000, &res, why,
						 sizeof(why)),
			     row[i].err, "row %u", i);
		cr_expect_eq(strncmp(why, row[i].what, strlen(row[i].what)), 0, "%s", why);
		cr_expect(strstr(why, ddps_ipoib_strerror(row[i].err)), "no errno: %s", why);
		cr_expect_not(lib.established);
		lib.event[row[i].step] = good;
	}
	lib.event[3] = (enum rdma_cm_event_type) - 1;
	cr_expect_eq(ddps_rdmacm_disconnect(r, 1), DDPS_E_TIMEDOUT);
}

Test(ipoib_rdmacm_conn, each_call_may_fail, .init = open_rdmacm, .fini = fini)
{
	static const char *const call[] = { "rdma_resolve_addr", "rdma_resolve_route",
					    "rdma_connect", "rdma_establish" };

	lib.err = ENETUNREACH;
	for (unsigned i = 0; i < sizeof(call) / sizeof(*call); i++) {
		lib.n_told = 0;
		lib.fails = call[i];
		cr_expect_eq(ddps_rdmacm_connect(r, &req, 10000, &res, why, sizeof(why)),
			     DDPS_E_SYSTEM, "%s", call[i]);
		cr_expect(strstr(why, strerror(ENETUNREACH)), "%s: %s", call[i], why);
		cr_expect_not(lib.established);
	}
	lib.fails = "rdma_disconnect";
	cr_expect_eq(ddps_rdmacm_disconnect(r, 10000), DDPS_E_SYSTEM);
	lib.fails = "rdma_get_cm_event";
	cr_expect_eq(ddps_rdmacm_connect(r, &req, 10000, &res, why, sizeof(why)), DDPS_E_SYSTEM);
}

/* ---- the librdmacm port, as far as it goes without a device ---- */

Test(ipoib_rdmacm, address_octets)
{
	/* flow information zero; the service ID of Linux, and a mask of ones */
	static const uint8_t pkey[] = { 0x80, 0x01 };
	static const uint8_t rest[] = { 0xfe, 0x80, 0,	  0,	0,    0,    0,	  0,
					0,    2,    0xc9, 3,	0,    1,    0,	  2,
					0x10, 0,    0,	  0,	0,    0,    0,	  0x48,
					0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct ddps_cm_req asked = { .pkey = 0x8001 };
	struct sockaddr_ib a;

	cr_assert_eq(ddps_ipoib_service_id(&asked.service_id, DDPS_IPOIB_SID_LINUX, 0x48), 0);
	cr_assert_eq(ddps_ipoib_gid_parse(asked.primary.remote_gid, "fe80::2:c903:1:2"), 0);
	ddps_rdmacm_address(&a, &asked);
	cr_expect_eq(a.sib_family, AF_IB);
	cr_expect_arr_eq(&a.sib_pkey, pkey, sizeof(pkey));
	cr_expect_eq(a.sib_flowinfo, 0);
	cr_expect_arr_eq(&a.sib_addr, rest, sizeof(rest));
	cr_expect_eq(a.sib_scope_id, 0);
}

Test(ipoib_rdmacm, settable_fields_exist)
{
	const struct ddps_cm_field *f = ddps_cm_fields(DDPS_CM_REQ);
	unsigned n = 0;

	for (; f->name; f++)
		n += ddps_rdmacm_takes(f->name);
	cr_expect_eq(n, 11);
	cr_expect_not(ddps_rdmacm_takes("starting_psn"));
	cr_expect_not(ddps_rdmacm_takes(""));
}

static void tell_ipoib_rdmacm(void *user, const char *event, int status)
{
	(void)user;
	cr_expect_fail("event %s %d without a device", event, status);
}

Test(ipoib_rdmacm, refused_without_device)
{
	struct ddps_rdmacm *port = NULL;
	char said[300] = "";

	if (!access("/dev/infiniband/rdma_cm", F_OK))
		cr_skip_test("this machine has a device");
	cr_assert_eq(ddps_rdmacm_open(&port, tell_ipoib_rdmacm, NULL, said, sizeof(said)),
		     DDPS_E_UNSUPPORTED);
	cr_expect_null(port);
	cr_expect(strlen(said) > 20, "%s", said);
}
