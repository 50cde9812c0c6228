/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of an adapter: what it is not opened with, and what is missing when it is opened. */
#include "ib_verbs_fixture.h"
#include <unistd.h>
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"

static void expect_port_refused(const struct ddps_ib_verbs_config *c, int err, const char *what)
{
	struct ddps_ib_verbs *out = (void *)&peer;

	why[0] = '\0';
	cr_expect_eq(ddps_vport_new(&out, c, &fake_lib, why, sizeof(why)), err, "%s", why);
	cr_expect(strstr(why, what), "'%s' says nothing of '%s'", why, what);
	cr_expect_eq((void *)out, (void *)&peer, "unchanged");
	cr_expect_eq(fake[0].n_obj + fake[0].n_mr + fake[0].n_qp + fake[0].n_ah, 0);
}

static void expect_port_opens(const struct ddps_ib_verbs_config *c)
{
	cr_assert_eq(ddps_vport_new(&peer[0].v, c, &fake_lib, why, sizeof(why)), 0, "%s", why);
	cr_expect_str_eq(ddps_ib_verbs_why(peer[0].v), "");
}

/* ---- the configuration ---- */

static int library_wanted(const struct ddps_ib_verbs_config *c)
{
	struct ddps_ib_verbs *v;

	return ddps_ib_verbs_new(&v, c, why, sizeof(why));
}

/* Each limit: what is just inside gets as far as the library, which there is not here. */
Test(ib_verbs_refuse, limits_of_the_configuration)
{
	const size_t least = 4 * VP_MSG_LEN;
	const uint64_t most = 65536ull * VP_MSG_LEN;
	struct ddps_ib_verbs_config c, good;

	dl_replace("libibverbs.so.1", NULL);
	ddps_ib_verbs_config_init(&good);
	good.up = &up_calls;
	cr_expect_eq(library_wanted(&good), DDPS_E_UNSUPPORTED);
	cr_expect(strstr(why, "libibverbs1"), "%s", why);
#define LIMIT(member, inside, outside)                                                             \
	do {                                                                                       \
		c = good;                                                                          \
		c.member = inside;                                                                 \
		cr_expect_eq(library_wanted(&c), DDPS_E_UNSUPPORTED, #member " " #inside);         \
		c.member = outside;                                                                \
		cr_expect_eq(library_wanted(&c), DDPS_E_INVAL, #member " " #outside);              \
		cr_expect(strstr(why, "scope or limit"), "%s", why);                               \
	} while (0)
	LIMIT(scope, 15, 16);
	LIMIT(mtu, 5, 6);
	LIMIT(pkey, 1, 0x8000);
	LIMIT(max_qps, 1, 0);
	LIMIT(max_qps, 65536, 65537);
	LIMIT(tx_octets, least, least - 1);
	LIMIT(rx_octets, least, least - 1);
	if (SIZE_MAX > most) {
		LIMIT(tx_octets, (size_t)most, (size_t)most + 1);
		LIMIT(rx_octets, (size_t)most, (size_t)most + 1);
	}
	LIMIT(up, &up_calls, NULL);
}

/* ---- the libraries ---- */

static int return_nothing(void)
{
	return 0;
}

/* No device is in this list. */
static struct ibv_device **no_devices(int *n)
{
	*n = 0;
	return NULL;
}

#define X(name)	  DL_SYMBOL("ibv_" #name, return_nothing),
#define X_U(name) DL_SYMBOL(#name, return_nothing),
static const struct dl_symbol verbs[] = { DDPS_VERBS_FUNCTIONS(X){ NULL, NULL } },
			      umad[] = { DDPS_UMAD_FUNCTIONS(X_U){ NULL, NULL } };

static void expect_open_refused(const char *what)
{
	struct ddps_ib_verbs_config c;

	ddps_ib_verbs_config_init(&c);
	c.up = &up_calls;
	why[0] = '\0';
	cr_expect_eq(library_wanted(&c), DDPS_E_UNSUPPORTED, "%s", why);
	cr_expect(strstr(why, what), "'%s' says nothing of '%s'", why, what);
	cr_expect_eq(dl_open_now(), 0, "closed again");
}

Test(ib_verbs_refuse, libraries_that_are_not_what_they_should_be)
{
	static struct dl_symbol empty[sizeof(verbs) / sizeof(*verbs)];

	dl_replace("libibverbs.so.1", NULL);
	dl_replace("libibumad.so.3", umad);
	expect_open_refused("libibverbs1 and ibverbs-providers");
	dl_replace("libibverbs.so.1", verbs);
	for (unsigned i = 0; verbs[i].name; i++) {
		dl_lacks(verbs[i].name);
		expect_open_refused("libibverbs.so.1 is not what it should be");
	}
	dl_lacks(NULL);
	dl_replace("libibumad.so.3", NULL);
	expect_open_refused("libibumad3");
	dl_replace("libibumad.so.3", umad);
	memcpy(empty, verbs, sizeof(verbs));
	for (unsigned i = 0; empty[i].name; i++)
		if (!strcmp(empty[i].name, "ibv_get_device_list"))
			empty[i].at = (void (*)(void))no_devices;
	dl_replace("libibverbs.so.1", empty);
	expect_open_refused("no RDMA device on this machine");
}

/* A network device is in a group as long as the socket says so, which is made once. */
Test(ib_verbs_refuse, network_devices_that_join_no_group)
{
	static const uint8_t group[16] = { 0xff, 0x12, [15] = 9 };
	struct ddps_verbs_lib lib;
	int fd = -1, was;

	dl_replace("libibverbs.so.1", verbs);
	dl_replace("libibumad.so.3", umad);
	cr_assert_eq(ddps_verbs_lib_load(&lib, why, sizeof(why)), 0, "%s", why);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(lib.netdev_group(&fd, 1, group, true), EMFILE);
	cr_expect_eq(fd, -1);
	sys_fail("setsockopt", 0, 1, ENODEV);
	if (lib.netdev_group(&fd, 1, group, true) == EAFNOSUPPORT)
		cr_skip_test("no IPv6 here");
	cr_expect_eq(sys_failed(), 1);
	cr_expect_geq(fd, 0);
	was = fd;
	sys_fail("setsockopt", 0, 1, EADDRNOTAVAIL);
	cr_expect_eq(lib.netdev_group(&fd, 1, group, false), EADDRNOTAVAIL);
	cr_expect_eq(lib.netdev_group(&fd, 1, group, true), 0, "the loopback device takes it");
	cr_expect_eq(lib.netdev_group(&fd, 1, group, false), 0);
	cr_expect_eq(fd, was);
	close(fd);
	ddps_verbs_lib_unload(&lib);
	cr_expect_eq(dl_open_now(), 0);
}

/* ---- devices and ports ---- */

Test(ib_verbs_refuse, ports_are_chosen_by_what_they_are, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	fake_devices = 1;
	c.device = NULL;
	fake[0].port.link_layer = IBV_LINK_LAYER_UNSPECIFIED; /* as old libraries say InfiniBand */
	expect_port_opens(&c);
	cr_expect_not(ddps_ib_verbs_info(peer[0].v)->roce);
	ddps_ib_verbs_free(peer[0].v);
	peer[0].v = NULL;
	c = make_ib_verbs_config(0);
	fake[0].port.link_layer = 77; /* named or not */
	expect_port_refused(&c, DDPS_E_UNSUPPORTED, "no port with an InfiniBand");
	fake[0].port.link_layer = IBV_LINK_LAYER_ETHERNET;
	fake[0].ports = 255;
	c.device = NULL;
	expect_port_refused(&c, DDPS_E_UNSUPPORTED, "no port with an InfiniBand");
	fake[0].port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake[0].ports = 2;
	fake[0].port.state = IBV_PORT_INIT; /* neither is active: the first is named */
	expect_port_refused(&c, DDPS_E_STATE, "fake0:1 has a link");
	fake[0].fail = "query_device";
	fake[0].fail_errno = EIO;
	expect_port_refused(&c, DDPS_E_UNSUPPORTED, "no port with an InfiniBand");
	fake[0].fail = NULL;
}

Test(ib_verbs_refuse, devices_that_are_not_opened, .init = init, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	fake[0].fail = "open_device";
	fake[0].fail_errno = EPERM;
	expect_port_refused(&c, DDPS_E_SYSTEM, "root, or permission for /dev/infiniband/uverbs");
	cr_expect_eq(errno, EPERM);
	fake[0].fail_errno = 0; /* one that does not say why */
	expect_port_refused(&c, DDPS_E_SYSTEM, "Permission denied");
	cr_expect_eq(errno, EACCES);
	fake[0].fail = NULL;
}

Test(ib_verbs_refuse, states_that_are_useless, .init = init, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);
	const struct ibv_port_attr good = fake[0].port;

	fake[0].port.state = IBV_PORT_NOP;
	expect_port_refused(&c, DDPS_E_STATE, "does not say its state");
	fake[0].port = good;
	fake[0].port.lid = 0;
	expect_port_refused(&c, DDPS_E_STATE, "active without a LID");
	fake[0].port = good;
	fake[0].port.active_mtu = 0;
	expect_port_refused(&c, DDPS_E_STATE, "MTU that cannot be");
	fake[0].port.active_mtu = 6;
	expect_port_refused(&c, DDPS_E_STATE, "MTU that cannot be");
	fake[0].port = good;
	fake[0].port.lmc = 200;
	expect_port_opens(&c);
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->lmc, 7, "the largest there is");
}

Test(ib_verbs_refuse, tables_of_keys, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	fake[0].port.pkey_tbl_len = 0x8001; /* indices have 15 bits here */
	c.pkey = 0x0005;
	expect_port_refused(&c, DDPS_E_ADDRESS, "P_Key 0x0005");
	memcpy(fake[0].pkey, (uint16_t[]){ 0xffff, 0x0005, 0x0005, 0 }, sizeof(fake[0].pkey));
	fake[0].fail =
		"query_pkey"; /* the first one, for expect_port_refused(): no entry can be read */
	expect_port_refused(&c, DDPS_E_ADDRESS, "P_Key 0x0005");
	fake[0].fail = NULL;
	expect_port_opens(&c);
	cr_expect_eq(peer[0].v->pkey_index, 1, "the first of those that are alike");
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->pkey, 0x0005);
}

/* ---- MADs ---- */

Test(ib_verbs_refuse, mads_that_are_not_given_away, .init = init, .fini = fini)
{
	static const struct {
		const char *call;
		int err, is;
		const char *what; /* NULL: what the system calls it */
	} row[] = {
		{ "umad_init", 0, ENODEV, "no device for MADs" },
		{ "umad_open_port", ENODEV, ENODEV, "no device for MADs" },
		{ "umad_open_port", ENXIO, ENXIO, "no device for MADs" },
		{ "umad_open_port", EPERM, EPERM, "no permission for the MADs" },
		{ "umad_open_port", EMFILE, EMFILE, NULL },
		{ "umad_open_port", 0, EIO, NULL }, /* what it returned */
	};
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		fake[0].fail = row[i].call;
		fake[0].fail_errno = row[i].err;
		expect_port_refused(&c, DDPS_E_SYSTEM,
				    row[i].what ? row[i].what : strerror(row[i].is));
		cr_expect_eq(errno, row[i].is, "row %u: %d", i, errno);
	}
	fake[0].fail = NULL;
}

static int no_fd(int fd)
{
	(void)fd;
	return -1;
}

Test(ib_verbs_refuse, a_descriptor_that_is_none, .init = init, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);
	struct ddps_verbs_lib lib = fake_lib;

	lib.umad.umad_get_fd = no_fd;
	cr_expect_eq(ddps_vport_new(&peer[0].v, &c, &lib, why, sizeof(why)), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EBADF);
	cr_expect(strstr(why, "Bad file descriptor"), "%s", why);
	cr_expect_null(peer[0].v);
}

/* ---- memory ---- */

Test(ib_verbs_refuse, each_allocation_may_fail, .init = init, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);
	const long live = mem_live();
	unsigned n = 1;

	for (;; n++) {
		struct ddps_ib_verbs *v = NULL;
		int err;

		cr_assert_lt(n, 100);
		mem_fail(n);
		err = ddps_vport_new(&v, &c, &fake_lib, why, sizeof(why));
		if (!mem_failed()) {
			mem_fail(0);
			cr_assert_eq(err, 0, "%s", why);
			ddps_ib_verbs_free(v);
			break;
		}
		cr_expect(err == DDPS_E_NOMEM || err == DDPS_E_SYSTEM, "allocation %u: %d", n, err);
		cr_expect(strstr(why, "emory"), "allocation %u: %s", n, why);
		cr_expect_null(v);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
		cr_expect_eq(fake[0].n_obj + fake[0].n_mr + fake[0].n_qp, 0, "allocation %u", n);
	}
	cr_expect_gt(n, 10);
}

Test(ib_verbs_refuse, each_map_may_fail, .init = init, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	for (unsigned n = 0; n < VP_KINDS; n++) {
		sys_fail("mmap", n, 1, ENOMEM);
		expect_port_refused(&c, DDPS_E_NOMEM, "out of memory");
		cr_expect_eq(sys_failed(), 1, "map %u", n);
	}
	sys_fail(NULL, 0, 0, 0);
	fake[0].fail = "reg_mr";
	fake[0].fail_errno = EPERM;
	expect_port_refused(&c, DDPS_E_SYSTEM, "ulimit -l");
	cr_expect_eq(errno, EPERM);
	fake[0].fail = NULL;
}

/* An adapter may take fewer receives than there is memory for; one that does not say takes all. */
Test(ib_verbs_refuse, receives_are_as_many_as_the_adapter_takes, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	c.port = 1;
	fake[0].max_srq_wr = 8;
	expect_port_opens(&c);
	cr_expect_eq(fake[0].n_srq, 8);
	ddps_ib_verbs_free(peer[0].v);
	fake[0].max_srq_wr = FAKE_SRQ;
	expect_port_opens(&c);
	cr_expect_eq(fake[0].n_srq, 16, "a megabyte of them");
	ddps_ib_verbs_free(peer[0].v);
	fake[0].fail = "query_device";
	expect_port_opens(&c);
	cr_expect_eq(fake[0].n_srq, 16);
	fake[0].fail = NULL;
}

/* ---- RoCE ---- */

Test(ib_verbs_refuse, gids_that_are_not_link_local, .init = init_roce, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	fake[0].gid.raw[1] = 0xc0; /* fec0::, as sites had them once */
	expect_port_refused(&c, DDPS_E_ADDRESS, "link-local");
	memset(fake[0].gid.raw, 0, 16);
	expect_port_refused(&c, DDPS_E_ADDRESS, "link-local");
}
