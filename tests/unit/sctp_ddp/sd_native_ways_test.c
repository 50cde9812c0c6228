/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of an endpoint of the native SCTP: which are ours on the way to a peer, and what is left of
 * the sockets for them. */
#include "sd_native_addr_fixture.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

TestSuite(sd_native_ways, .timeout = 60);

/* ---- lists ---- */

Test(sd_native_ways, a_list_as_text)
{
	struct ddps_sn_homes h = { .n = 3 };
	char text[200] = "";

	h.at[0] = addr("192.0.2.1");
	h.at[1] = addr("2001:db8::1");
	h.at[2] = addr("192.0.2.3");
	ddps_sn_homes_text(&h, PORT, text, sizeof text);
	cr_expect_str_eq(text, "192.0.2.1,[2001:db8::1],192.0.2.3:7174");
	h.n = DDPS_URI_ADDRS_MAX;
	for (unsigned i = 0; i < h.n; i++)
		h.at[i] = addr("192.0.2.1");
	ddps_sn_homes_text(&h, PORT, text, sizeof text);
	cr_expect_eq(strlen(text), 8 * 9 + 7 + 5);
}

Test(sd_native_ways, what_came_to_another_address_is_not_taken)
{
	struct ddps_sn_homes h = { .n = 2 };
	struct ddps_sn_sock any = { 0 }, s = { .homes = &h };
	struct ddps_sctp_addr a[4] = { addr("192.0.2.1"), addr("2001:db8::1"), addr("192.0.2.2"),
				       addr("2001:db8::2") };

	h.at[0] = a[0];
	h.at[1] = a[1];
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(ddps_sn_homes_take(&s, &a[i]), i < 2, "%d", i);
		cr_expect(ddps_sn_homes_take(&any, &a[i]));
	}
}

Test(sd_native_ways, one_of_ipv6_makes_a_socket_of_ipv6)
{
	static const char *const texts[2] = { "192.0.2.1", "2001:db8::1" };

	for (unsigned bits = 0; bits < 16; bits++) {
		struct ddps_uri_addrs a = { 0 }, b = { 0 };

		put_sd_native_addr(&a, texts[bits & 1], 0);
		put_sd_native_addr(&a, texts[bits >> 1 & 1], 0);
		put_sd_native_addr(&b, texts[bits >> 2 & 1], 0);
		put_sd_native_addr(&b, texts[bits >> 3 & 1], 0);
		cr_expect_eq(ddps_sn_homes_family(&a, &b), bits ? AF_INET6 : AF_INET);
		b.n = 0;
		b.at[0].ss_family = AF_INET6; /* not in it */
		cr_expect_eq(ddps_sn_homes_family(&a, &b), bits & 3 ? AF_INET6 : AF_INET);
	}
}

/* As the system would choose; else the first that can be a source at all. */
Test(sd_native_ways, the_source_of_a_packet)
{
	static const struct {
		const char *peer;
		unsigned n, is;
		bool no_way;
	} cases[] = {
		{ "127.0.0.1", 4, 2, false }, { "::1", 4, 3, false },
		{ "127.0.0.1", 2, 0, false }, { "::1", 2, 1, false },
		{ "127.0.0.1", 4, 0, true },  { "::1", 4, 1, true },
		{ "127.0.0.1", 0, 0, true },
	};
	const struct ddps_sctp_addr own[] = { addr("192.0.2.1"), addr("2001:db8::1"),
					      addr("127.0.0.1"), addr("::1") };
	const struct ddps_sctp_addr near = addr("127.0.0.1"), one = addr("::1");
	unsigned before = count_sd_native_addr_descriptors();

	cr_expect_eq(ddps_sn_homes_source(NULL, &near, &one, 1), 1, "none can be");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ddps_sctp_addr peer = addr(cases[i].peer);

		sys_fail(cases[i].no_way ? "connect" : NULL, 0, 1, ENETUNREACH);
		cr_expect_eq(ddps_sn_homes_source(NULL, &peer, own, cases[i].n), cases[i].is,
			     "case %zu", i);
	}
	cr_expect_eq(count_sd_native_addr_descriptors(), before);
}

Test(sd_native_ways, the_own_address_on_a_way)
{
	struct ddps_uri_addrs to = { 0 }, from = { 0 };
	struct sockaddr_storage local = { 0 };
	unsigned before = count_sd_native_addr_descriptors();

	put_sd_native_addr(&to, "127.0.0.1", PORT);
	put_sd_native_addr(&from, "127.0.0.9", 1); /* of its port nothing is said */
	put_sd_native_addr(&from, "192.0.2.77", 0);
	cr_expect_eq(ddps_sn_way(&from.at[0], &to.at[0], &local), 0);
	cr_expect(ddps_sn_same_addr(&local, &from.at[0]));
	cr_expect_eq(ddps_sn_way(&from.at[0], &to.at[0], &local), 0, "once more");
	cr_expect_eq(ddps_sn_way(&from.at[1], &to.at[0], &local), EADDRNOTAVAIL);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(ddps_sn_way(NULL, &to.at[0], &local), EMFILE);
	cr_expect_eq(count_sd_native_addr_descriptors(), before);
}

/* Ports of UDP are nobody's on the way to a peer: others may have them. */
Test(sd_native_ways, the_own_address_with_a_port_that_is_taken)
{
	static const uint16_t ports[] = { 1, PORT };
	struct ddps_uri_addrs to = { 0 }, from = { 0 };
	struct sockaddr_storage local = { 0 };
	int fd;

	put_sd_native_addr(&to, "127.0.0.1", PORT);
	for (unsigned i = 0; i < 2; i++) {
		put_sd_native_addr(&from, "127.0.0.9", ports[i]);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (bind(fd, (struct sockaddr *)&from.at[i], sizeof(struct sockaddr_in)) < 0)
			cr_expect_eq(errno, EACCES, "without the privilege");
	}
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(ddps_sn_way(&from.at[i], &to.at[0], &local), 0, "%u", ports[i]);
}

/* Where the program has closed its standard input. */
Test(sd_native_ways, the_first_descriptor_is_one_like_others)
{
	struct ddps_uri_addrs to = { 0 };
	struct sockaddr_storage local = { 0 };

	put_sd_native_addr(&to, "127.0.0.1", PORT);
	close(0);
	cr_expect_eq(ddps_sn_way(NULL, &to.at[0], &local), 0);
	cr_expect(ddps_sn_same_addr(&local, &to.at[0]));
}

/* ---- connecting ---- */

static bool homes_are(const struct side *s, const char *a, const char *b)
{
	const struct ddps_sn_homes *h = s->a->sock->homes;
	struct ddps_sctp_addr x = addr(a), y = addr(b);

	return h && h->n == 2 && ddps_sc_addr_eq(&h->at[0], &x) && ddps_sc_addr_eq(&h->at[1], &y);
}

/* To several addresses of the peer we have those that the system would use, each once. */
Test(sd_native_ways, who_connects_has_an_address_for_each_way)
{
	struct ddps_sctp_path_info path;
	struct ddps_sctp_addr one;
	struct ddps_sctp_info i;
	struct side s[4];

	node_init(&cn);
	to_these(&s[0], "127.0.0.1", "::1", 9);
	cr_expect(homes_are(&s[0], "127.0.0.1", "::1"));
	cr_expect_eq(s[0].a->sock->family, AF_INET6);
	ddps_sctp_info(s[0].a->sa, &i);
	cr_expect_eq(i.npaths, 2);
	cr_expect(i.by_us && s[0].a->by_us);
	cr_expect_eq(i.peer_port, PORT);
	cr_expect_eq(s[0].a->port, i.port);
	cr_expect(ddps_timer_runs(&s[0].a->deadline));
	for (unsigned k = 0; k < 2; k++) {
		cr_assert_eq(ddps_sctp_path_info(s[0].a->sa, k, &path), 0);
		one = addr(k ? "::1" : "127.0.0.1");
		cr_expect(ddps_sc_addr_eq(&path.peer, &one), "%u", k);
		cr_expect_eq(path.encap, 9);
	}
	to_these(&s[1], "127.0.0.1", "127.0.0.2", 9);
	cr_expect_null(s[1].a->sock->homes, "one of ours is on both ways");
	one = addr("127.0.0.1");
	cr_expect(ddps_sc_addr_eq(&s[1].a->local, &one));
	to_these(&s[2], "::1", NULL, 9);
	one = addr("::1");
	cr_expect(ddps_sc_addr_eq(&s[2].a->local, &one));
	/* the first of the peer's has no way: it is left out */
	sys_fail("connect", 0, 1, ENETUNREACH);
	to_these(&s[3], "127.0.0.5", "127.0.0.6", 9);
	ddps_sctp_info(s[3].a->sa, &i);
	cr_expect_eq(i.npaths, 1);
	cr_assert_eq(ddps_sctp_path_info(s[3].a->sa, 0, &path), 0);
	one = addr("127.0.0.6");
	cr_expect(ddps_sc_addr_eq(&path.peer, &one));
	one = addr("127.0.0.1");
	cr_expect(ddps_sc_addr_eq(&s[3].a->local, &one), "of the way that is there");
	node_fini(&cn, B);
}

/* ---- addresses of both hosts ---- */

/* There is a way to each address, and those that end in 7 are this host's. */
static int connect_everywhere(int fd, const struct sockaddr *a, socklen_t len)
{
	const bool v6 = a->sa_family == AF_INET6;
	const uint8_t *octets = (const uint8_t *)a;
	struct sockaddr_storage to;
	const int on = 1;

	if (octets[v6 ? offsetof(struct sockaddr_in6, sin6_addr) + 15
		      : offsetof(struct sockaddr_in, sin_addr) + 3] != 7)
		return sys_connect(fd, (struct sockaddr *)&to,
				   get_sd_backend_loopback(&to, a->sa_family, 9));
	memset(&to, 0, sizeof to);
	memcpy(&to, a, len);
	ddps_sd_set_port(&to, 0);
	cr_assert_eq(setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
				v6 ? IPV6_FREEBIND : IP_FREEBIND, &on, sizeof on),
		     0);
	return bind(fd, (struct sockaddr *)&to, len);
}

static ssize_t send_ways_nowhere(int fd, const struct msghdr *m, int flags)
{
	ssize_t len = 0;

	(void)fd;
	(void)flags;
	for (size_t i = 0; i < m->msg_iovlen; i++)
		len += (ssize_t)m->msg_iov[i].iov_len;
	return len;
}

static int send_all_ways_nowhere(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	for (unsigned i = 0; i < n; i++)
		m[i].msg_len = (unsigned)send_ways_nowhere(fd, &m[i].msg_hdr, flags);
	return (int)n;
}

Test(sd_native_ways, an_address_of_this_host_is_known)
{
	static const struct {
		const char *text;
		bool own;
	} t[] = {
		{ "127.0.0.3", true },	 { "::1", true },	 { "192.0.2.7", true },
		{ "2001:db8::7", true }, { "192.0.2.8", false }, { "2001:db8::8", false },
	};

	sys_instead.connect = connect_everywhere;
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
		const struct ddps_sctp_addr a = addr(t[i].text);

		cr_expect_eq(ddps_sn_homes_own(NULL, &a), t[i].own, "%s", t[i].text);
	}
}

static char told[200];

static void take_ways_line(void *user, enum ddps_log_level level, const char *facility,
			   const char *text)
{
	(void)user;
	(void)facility;
	if (level <= DDPS_LOG_INFO)
		snprintf(told, sizeof told, "%s", text);
}

/* The peer has such a network as well, as that of a bridge: who is there is not the peer. */
Test(sd_native_ways, of_the_peers_addresses_ours_are_left_out)
{
	static const struct {
		const char *a, *b, *left; /* NULL: both */
	} t[] = {
		{ "192.0.2.7", "192.0.2.8", "192.0.2.8" },
		{ "2001:db8::8", "2001:db8::7", "2001:db8::8" },
		{ "192.0.2.8", "192.0.2.9", NULL },
		{ "127.0.0.1", "192.0.2.7", NULL }, /* it is here */
	};
	struct ddps_sctp_path_info path;
	struct ddps_sctp_info i;
	struct side s;

	sys_instead.connect = connect_everywhere;
	sys_instead.sendmsg = send_ways_nowhere;
	sys_instead.sendmmsg = send_all_ways_nowhere;
	node_init(&cn);
	cn.env.log.fn = take_ways_line;
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++) {
		const struct ddps_sctp_addr first = addr(t[k].left ? t[k].left : t[k].a);

		told[0] = 0;
		to_these(&s, t[k].a, t[k].b, 9);
		ddps_sctp_info(s.a->sa, &i);
		cr_expect_eq(i.npaths, t[k].left ? 1 : 2, "row %u: %u", k, i.npaths);
		cr_assert_eq(ddps_sctp_path_info(s.a->sa, 0, &path), 0);
		cr_expect(ddps_sc_addr_eq(&path.peer, &first), "row %u", k);
		cr_expect_eq(!strstr(told, "this host has some"), !t[k].left, "row %u", k);
		cr_expect(!t[k].left || strstr(told, t[k].left), "row %u: %s", k, told);
	}
	node_fini(&cn, B);
}

/* There is nothing to choose: whose it is the system is not asked. */
Test(sd_native_ways, a_lone_address_of_the_peers_is_taken_as_it_is)
{
	struct side s;

	sys_instead.connect = connect_everywhere;
	node_init(&cn);
	sys_fail("connect", 0, 1, ENETUNREACH);
	to_these(&s, "192.0.2.8", NULL, 9);
	WAIT_FOR(s.gone, &cn);
	cr_expect_eq(s.end.sys_errno, ENETUNREACH, "the first that it is asked is the way");
	node_fini(&cn, B);
}

/* ---- the context's share ---- */

static size_t window_of(int rcvbuf)
{
	if (rcvbuf > 4 << 20)
		return 4 << 20;
	return rcvbuf < 256 << 10 ? 256 << 10 : (size_t)rcvbuf;
}

Test(sd_native_ways, the_window_is_what_a_socket_holds)
{
	struct ddps_assoc_stats st = { 0 };
	struct side s;

	node_init(&cn);
	to_these(&s, "127.0.0.1", NULL, 9);
	cr_assert_eq(B->assoc_stats(s.a, &st), 0);
	cr_expect_eq(st.rwnd, window_of(ddps_sd_sock_rcvbuf(s.a->sock->io.fd)));
	node_fini(&cn, B);
}

static uint8_t next_octet;

static ssize_t read_sd_native_ways_one_by_one(void *buf, size_t len, unsigned flags)
{
	cr_expect_eq(flags, 0);
	cr_assert(len);
	*(uint8_t *)buf = ++next_octet;
	return 1;
}

Test(sd_native_ways, random_octets_are_used_once)
{
	static struct ddps_sn_env ne;
	uint8_t b[300];

	sys_instead.getrandom = read_sd_native_ways_one_by_one;
	ddps_sn_random(NULL, b, 5);
	cr_expect_arr_eq(b, "\1\2\3\4\5", 5);
	next_octet = 0;
	ddps_sn_random(&ne, b, 4);
	cr_expect_eq(next_octet, 0, "as many as there are: 256");
	cr_expect_eq(ne.noise_left, sizeof ne.noise - 4);
	cr_expect_arr_eq(b, "\xfd\xfe\xff\0", 4);
	for (size_t i = 0; i < sizeof ne.noise; i++)
		cr_expect_eq(ne.noise[i], i < 252 ? i + 1 : 0);
	ddps_sn_random(&ne, b, 252);
	cr_expect_eq(ne.noise_left, 0, "to the last one");
	cr_expect_eq(next_octet, 0);
	ddps_sn_random(&ne, b, 4);
	cr_expect_eq(ne.noise_left, 252);
	ddps_sn_random(&ne, b, 256);
	cr_expect_eq(ne.noise_left, 0, "all of them at once, and those that were left");
	for (size_t i = 0; i < sizeof ne.noise; i++)
		cr_expect_eq(ne.noise[i], 0);
	sys_instead.getrandom = NULL;
}

/* Keys of nothing would be worse than none. */
Test(sd_native_ways, without_random_octets_nothing_goes_on)
{
	const struct rlimit none = { 0 };
	int status = 0;
	uint8_t b[4];
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		sys_fail("getrandom", 0, 1, ENOSYS);
		ddps_sn_random(NULL, b, sizeof b);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status));
	cr_expect_eq(WTERMSIG(status), SIGABRT);
}

/* ---- what is left ---- */

static void listen_for_sd_native_ways(const char *a, const char *b, int encap)
{
	struct ddps_uri uri = { .encap = encap };
	struct ddps_uri_addrs list = { 0 };
	struct ddps_sd_endpoint *ep;

	put_sd_native_addr(&list, a, 0);
	if (b) {
		put_sd_native_addr(&list, b, 0);
		uri.hosts = list;
	}
	cr_assert_eq(B->listen(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&list.at[0],
			       ddps_addr_len(&list.at[0]), FX_BACKLOG, &fx_listen_up, &srv, &ep),
		     0);
}

static void each_kind(void)
{
	struct side s[3];

	srv = (struct server){ 0 };
	node_init(&cn);
	listen_for_sd_native_ways("127.0.0.1", NULL, 0);
	listen_for_sd_native_ways("127.0.0.1", "::1", 0);
	to_these(&s[0], "127.0.0.1", "::1", 9);
	to_these(&s[1], "127.0.0.1", NULL, 9);
	if (!geteuid()) {
		listen_for_sd_native_ways("::", NULL, OFF);
		listen_for_sd_native_ways("127.0.0.1", "::1", OFF);
		to_these(&s[2], "127.0.0.1", NULL, OFF);
		cr_expect_eq(s[2].a->sock->ours[s[2].a->port], 1);
	}
	node_fini(&cn, B);
}

Test(sd_native_ways, nothing_is_left_of_a_context)
{
	unsigned fds = count_sd_native_addr_descriptors();
	long live = mem_live();

	each_kind();
	cr_expect_eq(count_sd_native_addr_descriptors(), fds);
	cr_expect_eq(mem_live(), live);
}

/* A failure on the way, at each allocation. */
Test(sd_native_ways, nothing_is_left_of_what_found_no_memory)
{
	unsigned fds = count_sd_native_addr_descriptors();
	long live = mem_live();
	bool poor = true;

	for (unsigned n = 1; poor; n++) {
		struct ddps_uri uri = { .encap = geteuid() ? 0 : OFF };
		struct ddps_uri_addrs list = { 0 };
		struct ddps_sd_endpoint *ep;
		int err;

		put_sd_native_addr(&list, "::", 0);
		node_init(&cn);
		mem_fail(n);
		err = B->listen(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&list.at[0],
				ddps_addr_len(&list.at[0]), FX_BACKLOG, &fx_listen_up, &srv, &ep);
		poor = mem_failed();
		mem_fail(0);
		cr_expect(!err == !poor, "allocation %u: %d", n, err);
		if (err)
			cr_expect_eq(err, DDPS_E_NOMEM);
		node_fini(&cn, B);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
		cr_expect_eq(count_sd_native_addr_descriptors(), fds, "allocation %u", n);
	}
}
