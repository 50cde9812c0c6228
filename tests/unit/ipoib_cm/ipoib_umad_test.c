/* SPDX-License-Identifier: BSD-2-Clause */
/* The libibumad port, with a libibumad of this file: opening, messages, paths. */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "ipoib_cm/ports/port_sa.h"
#include "ipoib_cm/ports/port_umad_priv.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"

#define LIBRARY	 "libibumad.so.3"
#define FD	 77
#define AGENT_CM 5
#define AGENT_SA 6
#define QUEUE	 80

static const uint8_t there[16] = { 0xfe, 0x80, [15] = 2 };
static char why[300];

static struct {
	const char *fails; /* the function of that name */
	int fail_agent;	   /* registering that one fails */
	umad_port_t port;
	const char *device; /* that was asked for */
	int number;
	int n_ports, n_cas, n_fds; /* that are held */
	/* the last message sent */
	unsigned n_sent;
	int agent, timeout_ms;
	uint8_t mad[DDPS_CM_MAD_LEN];
	ib_mad_addr_t addr;
	/* what comes */
	unsigned n_queue, first;
	struct {
		int res, err; /* res below 0: of umad_recv(), err: errno with it */
		uint32_t status;
		uint8_t mad[DDPS_CM_MAD_LEN];
	} queue[QUEUE];
	bool answers; /* the administration does: with what follows */
	uint8_t answer_status;
} lib;

static int note_ipoib_umad_failed(const char *name)
{
	return lib.fails && !strcmp(lib.fails, name) ? -EIO : 0;
}

static int fake_ipoib_umad_init(void)
{
	return note_ipoib_umad_failed("umad_init");
}

static int my_get_port(const char *name, int port, umad_port_t *p)
{
	lib.device = name;
	lib.number = port;
	if (note_ipoib_umad_failed("umad_get_port"))
		return -EIO;
	*p = lib.port;
	lib.n_ports++;
	return 0;
}

static int my_release_port(umad_port_t *p)
{
	cr_expect_eq(p->portnum, lib.port.portnum);
	lib.n_ports--;
	return 0;
}

static int my_get_ca(const char *name, umad_ca_t *ca)
{
	cr_expect_str_eq(name, "mlx5_0");
	if (note_ipoib_umad_failed("umad_get_ca"))
		return -EIO;
	*ca = (umad_ca_t){ .node_guid = htobe64(0x1122334455667788) };
	lib.n_cas++;
	return 0;
}

static int my_release_ca(umad_ca_t *ca)
{
	(void)ca;
	lib.n_cas--;
	return 0;
}

static int my_open_port(const char *name, int port)
{
	cr_expect_str_eq(name, "mlx5_0");
	cr_expect_eq(port, 1);
	if (note_ipoib_umad_failed("umad_open_port"))
		return -EACCES;
	lib.n_fds++;
	return FD;
}

static int my_close_port(int fd)
{
	cr_expect_eq(fd, FD);
	lib.n_fds--;
	return 0;
}

static int fake_ipoib_umad_fd(int fd)
{
	return fd;
}

static int fake_ipoib_umad_register(int fd, int class, int version, uint8_t rmpp, long methods[])
{
	const int agent = class == DDPS_SA_CLASS ? AGENT_SA : AGENT_CM;

	cr_expect_eq(fd, FD);
	cr_expect_eq(version, 2);
	cr_expect_eq(rmpp, 0);
	cr_expect_eq(methods ? methods[0] : 0, agent == AGENT_CM ? 1 << 3 : 0, "Send alone");
	return lib.fail_agent == agent ? -EPERM : agent;
}

static size_t fake_ipoib_umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

static void *fake_ipoib_umad_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

static ib_mad_addr_t *fake_ipoib_umad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

static int fake_ipoib_umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

static int fake_ipoib_umad_set_addr(void *umad, int lid, int qp, int sl, int qkey)
{
	cr_expect_eq(qp, 1);
	cr_expect_eq((uint32_t)qkey, DDPS_CM_QKEY);
	fake_ipoib_umad_addr(umad)->lid = htobe16((uint16_t)lid);
	fake_ipoib_umad_addr(umad)->sl = (uint8_t)sl;
	return 0;
}

static int fake_ipoib_umad_set_pkey(void *umad, int index)
{
	fake_ipoib_umad_addr(umad)->pkey_index = (uint16_t)index;
	return 0;
}

static void queue_umad_message(int res, int err, const uint8_t *mad)
{
	const unsigned i = lib.n_queue++;

	cr_assert_lt(i, QUEUE);
	lib.queue[i].res = res;
	lib.queue[i].err = err;
	if (mad)
		memcpy(lib.queue[i].mad, mad, DDPS_CM_MAD_LEN);
}

/* The path of tests/unit/ipoib_cm/ipoib_addr_test.c, for the query that was sent. */
static void answer_ipoib_umad(void)
{
	static const uint8_t values[] = { 0,	7,    0,    3,	 0x01, 0x23, 0x45, 0x01, 9,
					  0x81, 0x80, 0x01, 0xa, 0xb5, 0x84, 0xc7, 0x92, 0 };
	uint8_t mad[DDPS_CM_MAD_LEN];

	memcpy(mad, lib.mad, sizeof(mad));
	mad[3] = 0x81;
	mad[4] = lib.answer_status;
	memcpy(mad + 96, values, sizeof(values));
	queue_umad_message(AGENT_SA, 0, mad);
}

static int fake_ipoib_umad_send(int fd, int agent, void *umad, int len, int timeout_ms, int retries)
{
	cr_expect_eq(fd, FD);
	cr_expect_eq(len, DDPS_CM_MAD_LEN);
	cr_expect_eq(retries, 0);
	lib.n_sent++;
	lib.agent = agent;
	lib.timeout_ms = timeout_ms;
	lib.addr = *fake_ipoib_umad_addr(umad);
	memcpy(lib.mad, fake_ipoib_umad_mad(umad), sizeof(lib.mad));
	if (agent == AGENT_SA && lib.answers)
		answer_ipoib_umad();
	return note_ipoib_umad_failed("umad_send");
}

static int fake_ipoib_umad_recv(int fd, void *umad, int *len, int timeout_ms)
{
	struct ib_user_mad *m = umad;
	unsigned i = lib.first;

	cr_expect_eq(fd, FD);
	cr_expect_eq(*len, DDPS_CM_MAD_LEN);
	cr_expect_geq(timeout_ms, 0);
	if (i == lib.n_queue)
		return -ETIMEDOUT;
	lib.first++;
	if (lib.queue[i].res < 0) {
		errno = lib.queue[i].err;
		return lib.queue[i].res;
	}
	m->status = lib.queue[i].status;
	m->addr.lid = htobe16(0x1234);
	m->addr.sl = 5;
	m->addr.path_bits = 3;
	m->addr.pkey_index = 9;
	memcpy(m->data, lib.queue[i].mad, DDPS_CM_MAD_LEN);
	return lib.queue[i].res;
}

static const struct dl_symbol symbols[] = {
	DL_SYMBOL("umad_init", fake_ipoib_umad_init),
	DL_SYMBOL("umad_get_ca", my_get_ca),
	DL_SYMBOL("umad_release_ca", my_release_ca),
	DL_SYMBOL("umad_get_port", my_get_port),
	DL_SYMBOL("umad_release_port", my_release_port),
	DL_SYMBOL("umad_open_port", my_open_port),
	DL_SYMBOL("umad_close_port", my_close_port),
	DL_SYMBOL("umad_get_fd", fake_ipoib_umad_fd),
	DL_SYMBOL("umad_register", fake_ipoib_umad_register),
	DL_SYMBOL("umad_size", fake_ipoib_umad_size),
	DL_SYMBOL("umad_get_mad", fake_ipoib_umad_mad),
	DL_SYMBOL("umad_get_mad_addr", fake_ipoib_umad_addr),
	DL_SYMBOL("umad_status", fake_ipoib_umad_status),
	DL_SYMBOL("umad_set_addr", fake_ipoib_umad_set_addr),
	DL_SYMBOL("umad_set_pkey", fake_ipoib_umad_set_pkey),
	DL_SYMBOL("umad_send", fake_ipoib_umad_send),
	DL_SYMBOL("umad_recv", fake_ipoib_umad_recv),
	{ NULL, NULL },
};

static uint16_t pkeys[] = { 0x8001, 0xffff };
static struct ddps_umad *u;

static void init(void)
{
	memset(&lib, 0, sizeof(lib));
	lib.port = (umad_port_t){ .ca_name = "mlx5_0",
				  .portnum = 1,
				  .base_lid = 0x21,
				  .sm_lid = 0x31,
				  .sm_sl = 2,
				  .state = 4,
				  .gid_prefix = htobe64(0xfe80000000000000),
				  .port_guid = htobe64(0x0002c90300010002),
				  .pkeys_size = 2,
				  .pkeys = pkeys };
	dl_replace(LIBRARY, symbols);
}

/* Nothing is held any more. */
static void fini(void)
{
	ddps_umad_close(u);
	cr_expect_eq(lib.n_ports, 0);
	cr_expect_eq(lib.n_cas, 0);
	cr_expect_eq(lib.n_fds, 0);
	cr_expect_eq(dl_open_now(), 0);
}

static void open_umad(void)
{
	init();
	cr_assert_eq(ddps_umad_open(&u, NULL, 0, why, sizeof(why)), 0, "%s", why);
}

/* ---- opening ---- */

Test(ipoib_umad, says_what_it_has_found, .init = init, .fini = fini)
{
	const struct ddps_umad_info *i;

	cr_assert_eq(ddps_umad_open(&u, "mlx5_0", 1, why, sizeof(why)), 0, "%s", why);
	cr_expect_str_eq(lib.device, "mlx5_0");
	cr_expect_eq(lib.number, 1);
	i = ddps_umad_info(u);
	cr_expect_str_eq(i->device, "mlx5_0");
	cr_expect_eq(i->port, 1);
	cr_expect_eq(i->lid, 0x21);
	cr_expect_eq(i->sm_lid, 0x31);
	cr_expect_eq(i->sm_sl, 2);
	cr_expect_eq(i->pkey, 0x8001);
	cr_expect_eq(i->ca_guid, 0x1122334455667788);
	cr_expect_arr_eq(i->gid,
			 ((uint8_t[16]){ 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 1, 0, 2 }),
			 16);
	cr_expect_eq(ddps_umad_stats(u)->undelivered + ddps_umad_stats(u)->overrun, 0);
	cr_expect_eq(lib.n_ports + lib.n_cas, 0, "held no longer than it was read");
}

Test(ipoib_umad, a_port_without_a_table_has_the_default_key, .init = init, .fini = fini)
{
	lib.port.pkeys_size = 0;
	cr_assert_eq(ddps_umad_open(&u, NULL, 0, why, sizeof(why)), 0, "%s", why);
	cr_expect_null(lib.device, "whichever is the first");
	cr_expect_eq(lib.number, 0);
	cr_expect_eq(ddps_umad_info(u)->pkey, 0xffff);
}

static void expect_umad_refused(const char *device, int err, const char *what)
{
	struct ddps_umad *out = (void *)&lib;

	why[0] = '\0';
	cr_expect_eq(ddps_umad_open(&out, device, 1, why, sizeof(why)), err, "%s", why);
	cr_expect(strstr(why, what), "'%s' says nothing of '%s'", why, what);
	cr_expect_eq((void *)out, (void *)&lib, "unchanged");
	cr_expect_eq(lib.n_ports + lib.n_cas + lib.n_fds + dl_open_now(), 0);
}

Test(ipoib_umad, each_refusal_says_why, .init = init, .fini = fini)
{
	static const struct {
		const char *call;
		int err;
		const char *what;
	} row[] = {
		{ "umad_init", DDPS_E_UNSUPPORTED, "ib_umad is not there" },
		{ "umad_get_port", DDPS_E_UNSUPPORTED, "port of device mlx5_0 on" },
		{ "umad_get_ca", DDPS_E_UNSUPPORTED, "no readable description" },
		{ "umad_open_port", DDPS_E_SYSTEM, "Permission denied" },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		lib.fails = row[i].call;
		expect_umad_refused("mlx5_0", row[i].err, row[i].what);
	}
	lib.fails = "umad_get_port";
	expect_umad_refused(NULL, DDPS_E_UNSUPPORTED, "no InfiniBand port on this machine");
	lib.fails = NULL;
	lib.fail_agent = AGENT_CM;
	expect_umad_refused(NULL, DDPS_E_BUSY, "the kernel's ib_cm has them");
	lib.fail_agent = AGENT_SA;
	expect_umad_refused(NULL, DDPS_E_SYSTEM, "refuses queries");
}

Test(ipoib_umad, a_port_that_is_not_ready, .init = init, .fini = fini)
{
	lib.port.state = 2;
	expect_umad_refused(NULL, DDPS_E_STATE, "state 2, LID 33, SM LID 49");
	lib.port.state = 4;
	lib.port.base_lid = 0;
	expect_umad_refused(NULL, DDPS_E_STATE, "state 4, LID 0, SM LID 49");
	lib.port.base_lid = 0x21;
	lib.port.sm_lid = 0;
	expect_umad_refused(NULL, DDPS_E_STATE, "state 4, LID 33, SM LID 0");
}

Test(ipoib_umad, no_library_or_an_odd_one, .init = init, .fini = fini)
{
	dl_replace(LIBRARY, NULL);
	expect_umad_refused(NULL, DDPS_E_UNSUPPORTED, "Debian package libibumad3");
	dl_replace(LIBRARY, symbols);
	for (unsigned i = 0; symbols[i].name; i++) {
		dl_lacks(symbols[i].name);
		expect_umad_refused(NULL, DDPS_E_UNSUPPORTED, "not what it should be");
	}
	dl_lacks(NULL);
}

Test(ipoib_umad, no_memory, .init = init, .fini = fini)
{
	long live = mem_live();

	for (unsigned n = 1; n <= 2; n++) {
		mem_fail(n);
		expect_umad_refused(NULL, DDPS_E_NOMEM, "memory");
		cr_expect(mem_failed());
		cr_expect_eq(mem_live(), live);
	}
	mem_fail(0);
	ddps_umad_close(NULL);
}

/* ---- messages ---- */

Test(ipoib_umad, an_address_is_a_lid_and_more, .init = open_umad, .fini = fini)
{
	const struct ddps_sa_path p = { .path = { .remote_lid = 0x4567, .sl = 11 } };
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7, [255] = 9 };
	ddps_cm_addr a = ddps_umad_addr(&p);

	cr_expect_eq(ddps_umad_lid(a), 0x4567);
	cr_expect_eq(ddps_umad_send(u, a, mad), 0);
	cr_expect_eq(lib.agent, AGENT_CM);
	cr_expect_eq(lib.timeout_ms, 0);
	cr_expect_eq(be16toh(lib.addr.lid), 0x4567);
	cr_expect_eq(lib.addr.sl, 11);
	cr_expect_eq(lib.addr.path_bits, 0);
	cr_expect_eq(lib.addr.pkey_index, 0);
	cr_expect_arr_eq(lib.mad, mad, sizeof(mad));
	lib.fails = "umad_send";
	cr_expect_eq(ddps_umad_send(u, a, mad), DDPS_E_SYSTEM);
}

Test(ipoib_umad, who_sent_it_can_be_answered, .init = open_umad, .fini = fini)
{
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7, [255] = 9 };
	uint8_t got[DDPS_CM_MAD_LEN];
	ddps_cm_addr from;

	queue_umad_message(AGENT_CM, 0, mad);
	cr_assert_eq(ddps_umad_recv(u, 10, got, &from), 1);
	cr_expect_arr_eq(got, mad, sizeof(mad));
	cr_expect_eq(ddps_umad_lid(from), 0x1234);
	cr_expect_eq(ddps_umad_send(u, from, mad), 0);
	cr_expect_eq(be16toh(lib.addr.lid), 0x1234);
	cr_expect_eq(lib.addr.sl, 5);
	cr_expect_eq(lib.addr.path_bits, 3);
	cr_expect_eq(lib.addr.pkey_index, 9);
}

/* Interrupted or in vain is nothing; whatever else fails is an error. */
Test(ipoib_umad, what_is_no_message, .init = open_umad, .fini = fini)
{
	static const struct {
		int res, err, expected;
	} row[] = {
		{ -ETIMEDOUT, 0, 0 },	    { -EAGAIN, 0, 0 },
		{ -EINTR, 0, 0 },	    { -EPERM, 0, 0 },
		{ -EIO, EINTR, 0 },	    { -EIO, EAGAIN, 0 },
		{ -EIO, 0, DDPS_E_SYSTEM }, { -EIO, ENODEV, DDPS_E_SYSTEM },
		{ AGENT_SA, 0, 0 }, /* an answer that comes late */
	};
	uint8_t got[DDPS_CM_MAD_LEN] = { 0xee };
	ddps_cm_addr from = 42;

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		queue_umad_message(row[i].res, row[i].err, NULL);
		cr_expect_eq(ddps_umad_recv(u, 0, got, &from), row[i].expected, "row %u", i);
		cr_expect_eq(got[0], 0xee);
		cr_expect_eq(from, 42);
	}
	queue_umad_message(AGENT_CM, 0, NULL);
	lib.queue[lib.n_queue - 1].status = ETIMEDOUT;
	cr_expect_eq(ddps_umad_recv(u, 0, got, &from), 0);
	cr_expect_eq(ddps_umad_stats(u)->undelivered, 1);
}

/* ---- paths ---- */

Test(ipoib_umad, a_path_is_asked_for, .init = open_umad, .fini = fini)
{
	struct ddps_sa_path p;

	lib.answers = true;
	cr_assert_eq(ddps_umad_path(u, there, 3, 10000, &p), 0);
	cr_expect_eq(p.path.remote_lid, 7);
	cr_expect_eq(p.pkey, 0x8001);
	cr_expect_eq(lib.n_sent, 1);
	cr_expect_eq(lib.agent, AGENT_SA);
	cr_expect_eq(lib.timeout_ms, 10000, "so long the kernel waits for the answer");
	cr_expect_eq(be16toh(lib.addr.lid), 0x31);
	cr_expect_eq(lib.addr.sl, 2);
	cr_expect_arr_eq(lib.mad + 64, there, 16);
	cr_expect_arr_eq(lib.mad + 80, ddps_umad_info(u)->gid, 16);
}

Test(ipoib_umad, a_path_that_is_not_there, .init = open_umad, .fini = fini)
{
	struct ddps_sa_path p;

	lib.answers = true;
	lib.answer_status = 3;
	cr_expect_eq(ddps_umad_path(u, there, 3, 10000, &p), DDPS_E_ADDRESS);
	cr_expect_eq(lib.n_sent, 1, "not asked for again");
	lib.answers = false;
	cr_expect_eq(ddps_umad_path(u, there, 3, 1, &p), DDPS_E_TIMEDOUT);
	cr_expect_eq(lib.n_sent, 4);
	cr_expect_eq(ddps_umad_path(u, there, 0, 1, &p), DDPS_E_TIMEDOUT, "asked for no time");
	cr_expect_eq(lib.n_sent, 4);
	lib.fails = "umad_send";
	cr_expect_eq(ddps_umad_path(u, there, 3, 1, &p), DDPS_E_SYSTEM);
	lib.fails = NULL;
	queue_umad_message(-EIO, ENODEV, NULL);
	cr_expect_eq(ddps_umad_path(u, there, 3, 10000, &p), DDPS_E_SYSTEM);
}

Test(ipoib_umad, answers_to_earlier_queries_are_passed_over, .init = open_umad, .fini = fini)
{
	struct ddps_sa_path p;

	cr_expect_eq(ddps_umad_path(u, there, 1, 1, &p), DDPS_E_TIMEDOUT);
	lib.answer_status = 3;
	answer_ipoib_umad(); /* to that one */
	lib.answer_status = 0;
	lib.answers = true;
	cr_expect_eq(ddps_umad_path(u, there, 1, 10000, &p), 0);
}

Test(ipoib_umad, messages_that_come_meanwhile_are_kept, .init = open_umad, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7 };
	struct ddps_sa_path p;
	ddps_cm_addr from;

	lib.answers = true;
	for (unsigned i = 0; i < 66; i++) {
		mad[255] = (uint8_t)i;
		queue_umad_message(AGENT_CM, 0, mad);
	}
	cr_assert_eq(ddps_umad_path(u, there, 1, 10000, &p), 0);
	cr_expect_eq(ddps_umad_stats(u)->overrun, 2);
	for (unsigned i = 0; i < 64; i++) {
		cr_assert_eq(ddps_umad_recv(u, 0, mad, &from), 1, "message %u", i);
		cr_expect_eq(mad[255], i);
		cr_expect_eq(ddps_umad_lid(from), 0x1234);
	}
	cr_expect_eq(ddps_umad_recv(u, 0, mad, &from), 0);
}
