/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process is informed of at its beginning and at its end, and what it does about faults. */
#include "verbs/vchild.h"
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vud.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int exit_of(void (*live)(const void *arg), const void *arg, const char **told)
{
	int status = vchild_run(live, arg, told);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct ibv_context *open_verbs_process(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	return ctx;
}

/* ---- settings ---- */

struct setting {
	const char *name, *value, *told; /* what is reported, or NULL */
	bool opens;
};

static void live_with(const void *arg)
{
	const struct setting *s = arg;
	struct ibv_context *ctx;

	setenv(s->name, s->value, 1);
	errno = 0;
	ctx = open_verbs_process();
	if (!s->opens)
		_exit(ctx || errno != EINVAL);
	_exit(!ctx || ibv_close_device(ctx));
}

Test(verbs_process, settings)
{
	static char long_path[1025];
	const struct setting all[] = {
		{ "DDPSESS_PLACED", "all", NULL, true },
		{ "DDPSESS_PLACED", "WRITES", NULL, true },
		{ "DDPSESS_PLACED", "some", "'off', 'writes' or 'all'", false },
		{ "DDPSESS_RETRY_MS", "", NULL, true },
		{ "DDPSESS_RETRY_MS", "99999999999999999999999", "a number from 0 to", false },
		{ "DDPSESS_RETRY_MS", "7x", "a number from 0 to", false },
		{ "DDPSESS_SEED", "4294967295", NULL, true },
		{ "DDPSESS_SEED", "4294967296", "a number from 0 to 4294967295", false },
		{ "DDPSESS_DEVICE", "rdma_0.b-C", NULL, true },
		{ "DDPSESS_DEVICE", "a b", "up to 31 letters, digits, '_', '-' and '.'", false },
		{ "DDPSESS_WATCH", long_path, "it takes up to 1023 octets", false },
		{ "DDPSESS_WATCH", "/none/such", "ddpsess: DDPSESS_WATCH=/none/such: ", true },
		{ "DDPSESS_CAPTURE", "/none/such",
		  "ddpsess: DDPSESS_CAPTURE=/none/such: No such file or directory; nothing is "
		  "captured",
		  true },
		{ "DDPSESS_CONF", "", NULL, true },
		{ "DDPSESS_CONF", "/dev/null", NULL, true },
		{ "DDPSESS_CONF", "/", "ddpsess: /: Is a directory; it is not used", true },
		{ "DDPSESS_FAULTS", "/none/such",
		  "ddpsess: /none/such: No such file or directory; the device cannot be opened",
		  false },
		{ "DDPSESS_PROFILE", "/none/such",
		  "ddpsess: /none/such: No such file or directory; the device cannot be opened",
		  false },
		{ "DDPSESS_FAULTS", "/", "ddpsess: /: Is a directory; the device cannot be opened",
		  false },
	};
	const char *told;

	memset(long_path, 'x', sizeof long_path - 1);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cr_expect_eq(exit_of(live_with, &all[i], &told), 0, "%zu: %s", i, told);
		cr_expect(all[i].told ? !!strstr(told, all[i].told) : !strstr(told, "ddpsess:"),
			  "%zu: %s", i, told);
	}
}

/* A trace that cannot be written, rules and profiles that are larger than any. */
static void no_trace(const void *arg)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", vchild_file("on ibv_reg_mr: delay 1ms\n"));
	setenv("DDPSESS_FAULTS", path, 1);
	setenv("DDPSESS_TRACE", arg, 1);
	_exit(open_verbs_process() || errno != EINVAL);
}

static void large(const void *arg)
{
	int fd = vchild_file("");
	char path[64];

	cr_assert_eq(ftruncate(fd, 64 << 20), 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	setenv(arg, path, 1);
	_exit(open_verbs_process() || errno != EINVAL);
}

Test(verbs_process, files_of_the_edge)
{
	const char *told;

	cr_expect_eq(exit_of(no_trace, "/none/such", &told), 0);
	cr_expect_not_null(strstr(told, "ddpsess: /none/such: No such file or directory; the "
					"device cannot be opened\n"));
	cr_expect_eq(exit_of(large, "DDPSESS_FAULTS", &told), 0);
	cr_expect_not_null(strstr(told, ": Argument list too long; the device cannot be opened\n"));
	cr_expect_eq(exit_of(large, "DDPSESS_PROFILE", &told), 0);
	cr_expect_not_null(strstr(told, ": Argument list too long; the device cannot be opened\n"));
}

/* Without RFC 7306 neither atomics nor immediate data. */
static void without_7306(const void *arg)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_query_device_ex_input in = { 0 };
	struct ibv_device_attr_ex attr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qa;
	struct ibv_qp *qp;
	struct vt_dev s;

	setenv("DDPSESS_RFC7306", arg ? "on" : "off", 1);
	vt_dev_open(&s);
	ex.send_cq = ex.recv_cq = s.cq;
	ex.pd = s.pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	cr_assert_eq(ibv_query_device_ex(s.ctx, &in, &attr), 0);
	if (!!(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC) != !!arg)
		_exit(1);
	qp = ibv_create_qp_ex(s.ctx, &ex);
	if (!qp != !arg)
		_exit(2);
	if (qp && ibv_destroy_qp(qp))
		_exit(3);
	ex.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	ex.qp_type = IBV_QPT_UC;
	qp = ibv_create_qp_ex(s.ctx, &ex);
	if (!qp || ibv_destroy_qp(qp))
		_exit(4);
	ex.send_ops_flags = 1 << 12 | IBV_QP_EX_WITH_SEND; /* ATOMIC_WRITE */
	if (ibv_create_qp_ex(s.ctx, &ex) || errno != EOPNOTSUPP)
		_exit(9);
	ex.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ; /* UC has none */
	if (ibv_create_qp_ex(s.ctx, &ex) || errno != EOPNOTSUPP)
		_exit(5);
	init = vt_rc(&s);
	qp = ibv_create_qp(s.pd, &init);
	if (!qp || ibv_query_qp(qp, &qa, IBV_QP_ACCESS_FLAGS, &init))
		_exit(6);
	_exit(!!(qa.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) != !!arg ? 7 : 0);
}

Test(verbs_process, rfc_7306)
{
	const char *told;

	cr_expect_eq(exit_of(without_7306, NULL, &told), 0);
	cr_expect_eq(exit_of(without_7306, "", &told), 0);
}

/* A capture that another process writes is not spoilt: this one's is next to it. */
static void capture_verbs_process(const void *arg)
{
	char second[128];
	pid_t child;

	setenv("DDPSESS_CAPTURE", arg, 1);
	child = fork();
	if (!child) {
		if (!open_verbs_process())
			_exit(1);
		child = fork_at_rest();
		if (!child) {
			bool there;

			snprintf(second, sizeof second, "%s.%d", (const char *)arg, (int)getpid());
			there = open_verbs_process() && !access(second, F_OK);
			unlink(second);
			_exit(!there);
		}
		_exit(await_child_status(child) != 0);
	}
	_exit(await_child_status(child) != 0);
}

Test(verbs_process, two_captures)
{
	char path[] = "/tmp/ddpsess-captureXXXXXX";
	int fd = mkstemp(path);
	const char *told;

	cr_assert_geq(fd, 0);
	cr_expect_eq(exit_of(capture_verbs_process, path, &told), 0, "%s", told);
	cr_expect_null(strstr(told, "ddpsess:"), "%s", told);
	close(fd);
	unlink(path);
}

/* Payload and addresses of peers are for the user alone. */
static void write_private_files(const void *arg)
{
	static const char *const names[] = { "DDPSESS_CAPTURE", "DDPSESS_TRACE" };
	struct stat st;
	char path[128];
	int wrong = 0;

	umask(0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", (const char *)arg, names[i]);
		setenv(names[i], path, 1);
	}
	if (!open_verbs_process())
		_exit(100);
	for (int i = 0; i < 2; i++) {
		wrong += stat(getenv(names[i]), &st) || (st.st_mode & 0777) != 0600;
		unlink(getenv(names[i]));
	}
	_exit(wrong);
}

Test(verbs_process, captures_and_traces_are_private)
{
	char dir[] = "/tmp/ddpsess-privateXXXXXX";
	const char *told;

	cr_assert_not_null(mkdtemp(dir));
	cr_expect_eq(exit_of(write_private_files, dir, &told), 0, "%s", told);
	cr_expect_eq(rmdir(dir), 0);
}

/* ---- descriptors ---- */

struct limit {
	rlim_t now, most, then;
	enum vfail_call fails;
};

static void limited(const void *arg)
{
	const struct limit *l = arg;
	struct rlimit lim = { l->now, l->most };

	if (setrlimit(RLIMIT_NOFILE, &lim))
		_exit(77);
	vfail_nth(l->fails, l->fails ? 1 : 0);
	if (!open_verbs_process() || vfail_came() != (l->fails != VFAIL_NONE))
		_exit(1);
	_exit(getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur != l->then);
}

Test(verbs_process, number_of_descriptors)
{
	static const struct limit all[] = {
		{ 512, 4096, 4096, VFAIL_NONE },      { 512, 100000, 65536, VFAIL_NONE },
		{ 70000, 100000, 70000, VFAIL_NONE }, { 512, 4096, 512, VFAIL_GETRLIMIT },
		{ 512, 4096, 512, VFAIL_SETRLIMIT },
	};
	struct rlimit lim;
	const char *told;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].most <= lim.rlim_max)
			cr_expect_eq(exit_of(limited, &all[i], &told), 0, "%zu", i);
}

/* ---- the end ---- */

struct end {
	bool stats, datagrams;
	int failing; /* of the waits at the end, from 1 on */
	int as;
};

/* Whether the 3 messages are reported, once.  Nothing comes to the end that connects.  If it waits for 100 ms it sends one
 * more, without octets, which the other end may have taken or not. */
static bool are_three_told(const char *told, const char *what)
{
	const char *at = strstr(told, what);
	unsigned long n = at ? strtoul(at + strlen(what), NULL, 10) : 0;

	return vchild_times(told, what) == 1 && (n == 3 || n == 4);
}

static void end_verbs_process(const void *arg)
{
	const struct end *e = arg;
	static struct vud_qp q; /* left at the end, and yet known */
	static struct vud u;
	static struct vt v;

	setenv("DDPSESS_STATS", e->stats ? "on" : "off", 1);
	setenv("DDPSESS_P2P", "off", 1); /* whose first message counts */
	vt_init(&v);
	vt_up(&v);
	for (unsigned i = 1; i <= 3; i++) {
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 10, NULL), 0);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	}
	if (e->datagrams) {
		vud_open(&u);
		vud_up(&u, &q);
		vud_recv(&q, 4, 0, 100);
		vud_send(&q, 5, &q, 20, 0);
		cr_assert_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
		cr_assert_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
	}
	vfail_nth(VFAIL_SEM, (unsigned)e->failing);
	vfail_as(e->as);
}

VT_TEST(verbs_process, counters_at_the_end)
{
	static const char none[] = "ddpsess: no counters: exit() came in the midst of a call\n";
	static const struct end quiet = { 0 }, all = { true, true, 0, 0 }, few = { .stats = true };
	static const struct end late = { .stats = true, .failing = 2 };
	static const struct end again = { .stats = true, .failing = 2, .as = EINTR };
	const char *told;

	cr_expect_eq(exit_of(end_verbs_process, &quiet, &told), 0);
	cr_expect_null(strstr(told, "ddpsess:"), "%s", told);
	cr_expect_eq(exit_of(end_verbs_process, &few, &told), 0);
	cr_expect(are_three_told(told, "ddpsess: messages sent: "), "%s", told);
	cr_expect(are_three_told(told, "ddpsess: messages received: "), "%s", told);
	cr_expect_eq(vchild_times(told, "ddpsess: Sends without a receive: 0\n"), 1);
	cr_expect_null(strstr(told, "datagrams"));
	cr_expect_eq(exit_of(end_verbs_process, &all, &told), 0);
	cr_expect(are_three_told(told, "ddpsess: messages sent: "), "%s", told);
	cr_expect_eq(vchild_times(told, "ddpsess: datagrams sent: 1\n"), 1, "%s", told);
	cr_expect_eq(vchild_times(told, "ddpsess: datagrams received: 1\n"), 1);
	cr_expect_eq(exit_of(end_verbs_process, &late, &told), 0);
	cr_expect_not_null(strstr(told, none), "%s", told);
	cr_expect_eq(exit_of(end_verbs_process, &again, &told), 0);
	cr_expect(are_three_told(told, "ddpsess: messages sent: "), "%s", told);
	cr_expect_null(strstr(told, none));
}

/* The end of a child that has nothing of its own says nothing, and the parent goes on. */
static void end_of_a_child(const void *arg)
{
	const struct end few = { .stats = true };
	pid_t child;

	(void)arg;
	end_verbs_process(&few);
	child = fork_at_rest();
	if (!child)
		exit(0); /* ASan looks for leaks */
	if (await_child_status(child))
		_exit(1);
}

/* No thread is left for it: the directory of the process stays, and it ends. */
static void end_without_thread(const void *arg)
{
	(void)arg;
	if (!open_verbs_process())
		_exit(1);
	vfail_nth(VFAIL_THREAD, 1);
}

Test(verbs_process, ends)
{
	const char *told;

	cr_expect_eq(exit_of(end_of_a_child, NULL, &told), 0);
	cr_expect(are_three_told(told, "ddpsess: messages sent: "), "%s", told);
	cr_expect_eq(exit_of(end_without_thread, NULL, &told), 0);
	cr_expect_null(strstr(told, "ddpsess:"), "%s", told);
}
