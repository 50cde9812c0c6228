/* SPDX-License-Identifier: BSD-2-Clause */
/* What sessctl ipoib bridge says of its own accord. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib/bridge/ipoib_bridge.h"
#include "ipoib/ipoib.h"
#include "ipoib_cm/iface/iface_in.h"
#include "unit/ipoib_cm/ipoib_net_fixture.h"
#include "support/child.h"
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct net net;
static struct bridge b;

static unsigned lines(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* A join that fails is tried again and again; it is said once for each group and cause. */
Test(ipoib_bridge, failed_joins_are_said_once, .description = "4391-12-1")
{
	static const uint8_t group[2][16] = { { 0xff, 0x12, 0x40, 0x1b, [15] = 1 },
					      { 0xff, 0x12, 0x40, 0x1b, [15] = 2 } };
	const struct ipoib_opts o = { .tun = "ib0" };
	char *text = NULL;
	size_t size;

	net_init(&net, 2, 1, DDPS_IPOIB_RC);
	net_start_all(&net);
	b.o = &o;
	b.f = net.node[0].f;
	out_init(&b.out, "ipoib bridge", true);
	b.out.f = open_memstream(&text, &size);
	for (unsigned i = 0; i < 3; i++) {
		bridge_up.joined(&b, group[0], DDPS_E_REJECTED, 0, SEC);
		bridge_up.joined(&b, group[1], DDPS_E_REJECTED, 0, SEC);
	}
	fflush(b.out.f);
	cr_expect_eq(lines(text, "join_failed"), 2, "%s", text);
	cr_expect_eq(lines(text, "ff12:401b::1\""), 1, "%s", text);
	bridge_up.joined(&b, group[0], DDPS_E_TIMEDOUT, 0, SEC); /* another cause */
	bridge_up.joined(&b, group[1], 0, 2048, SEC);
	bridge_up.joined(&b, group[1], DDPS_E_REJECTED, 0, SEC); /* anew */
	fflush(b.out.f);
	cr_expect_eq(lines(text, "join_failed"), 4, "%s", text);
	fclose(b.out.f);
	free(text);
	net_fini(&net);
}

/* A GID is named only if the node has said it; of a datagram without one there is the LID. */
Test(ipoib_bridge, contact_37_a_conflict_names_who_is_known)
{
	static const struct {
		uint8_t gid[16];
		bool given_up;
		const char *says;
	} t[] = {
		{ { 0xfe, 0x80, [15] = 3 },
		  false,
		  "the node with the GID fe80::3 has or wants fd09::2, " },
		{ { 0xfe, 0x80, [15] = 3 },
		  true,
		  "the node with the GID fe80::3 had fd09::2 first, " },
		{ { [14] = 1, 3 }, false, "the node with the LID 259 has or wants fd09::2, " },
		{ { [15] = 3 }, true, "the node with the LID 3 had fd09::2 first, " },
	};
	static struct ddps_ipoib_if f;
	json_t *all;

	b.f = &f;
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
		f.dup[0] = (struct ddps_ipoib_dup){
			.used = true,
			.c = { .ip6 = true, .ip = { 0xfd, 9, [15] = 2 }, .given_up = t[i].given_up }
		};
		memcpy(f.dup[0].c.other.gid, t[i].gid, 16);
		all = bridge_list_conflicts(&b);
		cr_assert_eq(json_array_size(all), 1);
		cr_expect(strstr(json_string_value(json_array_get(all, 0)), t[i].says), "%s",
			  json_string_value(json_array_get(all, 0)));
		json_decref(all);
	}
}

/* GIDs of a captured datagram's GRH. */
static void expect_grh(const struct ddps_ib_seen *s, const uint8_t *from, const uint8_t *to)
{
	char *record = NULL;
	size_t size;

	b.capture = open_memstream(&record, &size);
	cr_assert_not_null(b.capture);
	bridge_see(&b, s);
	cr_assert_eq(fclose(b.capture), 0);
	cr_assert_gt(size, 32 + 8 + 40);
	cr_expect_arr_eq(record + 32 + 8 + 8, from, 16);
	cr_expect_arr_eq(record + 32 + 8 + 24, to, 16);
	free(record);
}

/* The packet's own GIDs; else the neighbour's with that queue pair; else one made of the LID. */
Test(ipoib_bridge, contact_35_senders_in_captures)
{
	static const uint8_t other[16] = { 0xfe, 0x80, [8] = 2, [15] = 9 };
	static const uint8_t made[16] = { 0xfe, 0x80, [14] = 1, 7 };
	const struct ipoib_opts o = { .tun = "ib0" };
	const uint8_t frame[24] = { 8 };
	struct ddps_ib_seen s = { .slid = 0x107, .dlid = 1, .frame = frame, .len = sizeof(frame) };
	const uint8_t *own, *peer;

	net_init(&net, 2, 1, 0);
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	b.o = &o;
	b.f = net.node[0].f;
	out_init(&b.out, "ipoib bridge", true);
	own = net.node[0].cfg.me.addr.gid;
	peer = net.node[1].cfg.me.addr.gid;
	s.to_gid = own;
	s.from_gid = other;
	s.from_qpn = net.node[1].cfg.me.addr.qpn;
	expect_grh(&s, other, own);
	s.from_gid = NULL;
	expect_grh(&s, peer, own);
	s.from_qpn = 0x777;
	expect_grh(&s, made, own);
	s.tx = true;
	s.from_gid = own;
	s.to_gid = peer;
	expect_grh(&s, own, peer);
	net_fini(&net);
}

/* ---- DHCP ---- */

#define DHCP_LEN (20 + 8 + 240)

/* A request without options: IP, UDP and BOOTP. */
static size_t dhcp(uint8_t *p, const void *options, size_t len)
{
	memset(p, 0, DHCP_LEN);
	p[0] = 0x45;
	p[9] = 17;
	p[21] = 68;
	p[23] = 67;
	p[28] = 1;
	memcpy(p + 28 + 236, (const uint8_t[]){ 0x63, 0x82, 0x53, 0x63 }, 4);
	memcpy(p + DHCP_LEN, options, len);
	return DHCP_LEN + len;
}

Test(ipoib_bridge, contact_37_requests_of_dhcp_clients)
{
	static const uint8_t ether[] = { 53, 1, 1, 0, 61, 7, 1, 0, 0, 0, 0, 0, 0, 255 };
	static const uint8_t named[] = { 53, 1, 1, 61, 4, 0, 0, 0, 9, 255 };
	const unsigned both = DHCP_NO_BROADCAST | DHCP_NO_IDENTIFIER;
	uint8_t p[DHCP_LEN + 20];
	size_t len = dhcp(p, ether, sizeof(ether));

	cr_expect_eq(dhcp_faults(p, len), both);
	for (size_t cut = 0; cut < len; cut++) { /* exact buffers for AddressSanitizer */
		uint8_t *copy = malloc(cut ? cut : 1);

		memcpy(copy, p, cut);
		cr_expect_eq(dhcp_faults(copy, cut), cut < DHCP_LEN ? 0 : both, "%zu", cut);
		free(copy);
	}
	p[28 + 10] = 0x80;
	cr_expect_eq(dhcp_faults(p, len), DHCP_NO_IDENTIFIER);
	len = dhcp(p, named, sizeof(named));
	cr_expect_eq(dhcp_faults(p, len), DHCP_NO_BROADCAST);
	p[28 + 12] = 10; /* it has an address, and renews it */
	cr_expect_eq(dhcp_faults(p, len), 0);
	len = dhcp(p, ether, sizeof(ether));
	for (unsigned i = 0; i < 6; i++) { /* not a client's, or not DHCP */
		static const unsigned at[] = { 0, 7, 9, 21, 23, 28 };

		p[at[i]] ^= 0x20;
		cr_expect_eq(dhcp_faults(p, len), 0, "octet %u", at[i]);
		p[at[i]] ^= 0x20;
	}
}

/* ---- who may ask ---- */

#define NO_SUCH	 77 /* no namespace of users can be made here */
#define OWN_NAME "house0"

/* A bridge in a namespace that maps nobody.  Whoever asks from outside has the number that it has, too. */
static void bridge_of_unmapped_user(int begun)
{
	const struct ipoib_opts o = { .tun = OWN_NAME };
	struct pollfd p = { .events = POLLIN };

	if (unshare(CLONE_NEWUSER))
		leave_child_fixture(NO_SUCH);
	b = (struct bridge){ .o = &o, .client = -1 };
	if (bridge_ctl_open(&b) || write(begun, "", 1) != 1)
		leave_child_fixture(2);
	p.fd = b.ctl;
	if (poll(&p, 1, 10000) != 1)
		leave_child_fixture(3);
	bridge_ctl_run(&b, 0);
	leave_child_fixture(b.client < 0 ? 0 : 4);
}

Test(ipoib_bridge, nobody_asks_where_users_are_not_mapped, .timeout = 60)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "\0ddpsess-bridge-" OWN_NAME };
	const socklen_t len =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(a.sun_path + 1) + 1);
	int begun[2], fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), status;
	pid_t pid;
	char c;

	cr_assert_eq(pipe(begun), 0);
	pid = fork();
	if (!pid)
		bridge_of_unmapped_user(begun[1]);
	close(begun[1]);
	if (read(begun[0], &c, 1) == 1)
		cr_assert_eq(connect(fd, (struct sockaddr *)&a, len), 0);
	status = await_child_status(pid);
	close(begun[0]);
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH)
		cr_skip_test("no namespace of users");
	cr_expect_eq(status, 0, "%x", (unsigned)status);
}
