/* SPDX-License-Identifier: BSD-2-Clause */
/* What an attack from outside found in the drop-in, by its numbers: settings, signals, names. */
#include "support/child.h"
#include "verbs/vt.h"
#include <dlfcn.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- 19: functions that the drop-in lacked ---- */

Test(verbs_attack, attack_19_what_is_not_served_says_so)
{
	struct ibv_ece ece = { 0 };
	struct ibv_ah_attr ah = { 0 };
	struct ibv_qp_init_attr init;
	struct rdma_cm_id *id;
	struct ibv_wc wc = { 0 };
	struct vt_dev d;
	struct ibv_qp *qp;
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	vt_dev_open(&d);
	init = vt_rc(&d);
	qp = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp);
	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_expect_eq(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	cr_expect_eq(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	VT_MINUS_AS(rdma_set_local_ece(id, &ece), EOPNOTSUPP);
	VT_MINUS_AS(rdma_get_remote_ece(id, &ece), EOPNOTSUPP);
	VT_NULL_AS(ibv_import_device(0), EOPNOTSUPP);
	VT_NULL_AS(ibv_import_pd(d.ctx, 0), EINVAL);
	VT_NULL_AS(ibv_import_mr(d.pd, 0), EINVAL);
	VT_NULL_AS(ibv_import_dm(d.ctx, 0), EINVAL);
	VT_MINUS_AS(ibv_init_ah_from_wc(d.ctx, 1, &wc, NULL, &ah), EINVAL); /* no GRH */
	VT_MINUS_AS(ibv_resolve_eth_l2_from_gid(d.ctx, &ah, mac, &vid), EOPNOTSUPP);
	VT_MINUS_AS(rdma_reject_ece(id, NULL, 0), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&d);
}

/* ---- 24: names ---- */

static void *real(const char *library, const char *name)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *f = lib ? dlsym(lib, name) : NULL;

	cr_assert_not_null(f, "%s: %s", library, dlerror());
	return f;
}

static void same_names(const char *library, const char *name, const char *(*ours)(int), int max)
{
	const char *(*theirs)(int) = (const char *(*)(int))real(library, name);

	for (int i = -1; i < max; i++)
		cr_expect_str_eq(ours(i), theirs(i), "%s(%d)", name, i);
}

static void same_numbers(const char *name, int (*ours)(int), int max)
{
	int (*theirs)(int) = (int (*)(int))real("libibverbs.so.1", name);

	for (int i = -1; i < max; i++)
		cr_expect_eq(ours(i), theirs(i), "%s(%d): %d instead of %d", name, i, ours(i),
			     theirs(i));
}

#define NAMES(library, f, max) same_names(library, #f, (const char *(*)(int))(void *)(f), max)
#define NUMBERS(f, max)	       same_numbers(#f, (int (*)(int))(void *)(f), max)

Test(verbs_attack, attack_24_names_are_those_that_programs_know)
{
	NAMES("libibverbs.so.1", ibv_wc_status_str, 40);
	NAMES("libibverbs.so.1", ibv_event_type_str, 40);
	NAMES("libibverbs.so.1", ibv_node_type_str, 20);
	NAMES("libibverbs.so.1", ibv_port_state_str, 20);
	NAMES("librdmacm.so.1", rdma_event_str, 40);
	NUMBERS(ibv_rate_to_mult, 40);
	NUMBERS(ibv_rate_to_mbps, 40);
	NUMBERS(mult_to_ibv_rate, 500);
	NUMBERS(mbps_to_ibv_rate, 1300000);
}

int ibv_query_gid_type(struct ibv_context *, uint8_t, unsigned, int *); /* private of rdma-core */

Test(verbs_attack, attack_24_attributes_agree)
{
	int type = -1;
	struct ibv_device_attr_ex ex;
	struct ibv_gid_entry entry;
	char ifname[IF_NAMESIZE];
	union ibv_gid gid;
	struct vt_dev d;

	vt_dev_open(&d);
	cr_assert_eq(ibv_query_device_ex(d.ctx, NULL, &ex), 0);
	cr_expect_eq(ex.phys_port_cnt_ex, ex.orig_attr.phys_port_cnt);
	/* those that have no place in the older attributes are above */
	cr_expect_eq(ex.device_cap_flags_ex & UINT32_MAX, ex.orig_attr.device_cap_flags);
	/* The flag would promise regions that are registered by a request, too. */
	cr_expect_eq(ex.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS, 0);
	cr_assert_eq(ibv_query_gid_ex(d.ctx, 1, 0, &entry, 0), 0);
	cr_assert_eq(ibv_query_gid_type(d.ctx, 1, 0, &type), 0);
	cr_expect_eq(entry.gid_type, IBV_GID_TYPE_IB);
	cr_expect_eq(type, 0, "IB or RoCE v1");
	cr_assert_eq(ibv_query_gid(d.ctx, 1, 0, &gid), 0);
	cr_expect_arr_eq(&gid, &entry.gid, sizeof gid);
	cr_expect_not_null(if_indextoname(entry.ndev_ifindex, ifname));
	cr_expect_eq(ibv_query_gid_table(d.ctx, &entry, 1, 0), 1);
	cr_expect_eq(ibv_query_gid_table(d.ctx, &entry, 0, 0), -EINVAL);
	vt_dev_close(&d);
}

/* ---- what a child says and how it ends ---- */

struct end {
	char text[4096];
	int status;
};

static struct end run_attack_child(void (*run)(void))
{
	struct end e;
	size_t n = 0;
	ssize_t k;
	int out[2];
	pid_t pid;

	cr_assert_eq(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		run();
		_exit(0);
	}
	close(out[1]);
	while (n < sizeof e.text - 1 && (k = read(out[0], e.text + n, sizeof e.text - 1 - n)) > 0)
		n += (size_t)k;
	e.text[n] = 0;
	close(out[0]);
	waitpid(pid, &e.status, 0);
	return e;
}

/* ---- 22: settings ---- */

static const char *setting, *value;

static void open_verbs_attack_with(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct rdma_cm_id *id;

	setenv(setting, value, 1);
	list = ibv_get_device_list(NULL);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (ctx && !ibv_close_device(ctx))
		_exit(0);
	if (errno != EINVAL || rdma_create_event_channel() ||
	    !rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || errno != EINVAL)
		_exit(1);
	_exit(2);
}

static void expect_setting(const char *name, const char *v, bool taken, const char *takes)
{
	struct end e;
	char *at;

	setting = name;
	value = v;
	e = run_attack_child(open_verbs_attack_with);
	cr_expect(WIFEXITED(e.status) && WEXITSTATUS(e.status) == (taken ? 0 : 2),
		  "%s=%s: status %#x, %s", name, v, (unsigned)e.status, e.text);
	at = strstr(e.text, name);
	cr_expect_eq(taken, !at, "%s", e.text);
	cr_expect(taken || strstr(e.text, takes), "%s=%s: %s", name, v, e.text);
	cr_expect(!at || !strstr(at + 1, name), "told once: %s", e.text);
}

Test(verbs_attack, attack_22_an_unknown_value_is_an_error, .timeout = 60)
{
	static const char *const switches[] = { "DDPSESS_CRC", "DDPSESS_P2P", "DDPSESS_RFC7306" };

	for (int i = 0; i < 3; i++) {
		expect_setting(switches[i], "true", true, NULL);
		expect_setting(switches[i], "On", true, NULL);
		expect_setting(switches[i], "", true, NULL);
		expect_setting(switches[i], "maybe", false, "'off' or 'on'");
	}
	expect_setting("DDPSESS_STATS", "2", false, "'off' or 'on'");
	expect_setting("DDPSESS_TRANSPORT", "TCP", true, NULL);
	expect_setting("DDPSESS_TRANSPORT", "stcp", false, "'tcp', 'sctp', 'tls' or 'sctps'");
	expect_setting("DDPSESS_NO_RECV", "stal", false, "'stall' or 'strict'");
	expect_setting("DDPSESS_SHM", "Auto", true, NULL);
	expect_setting("DDPSESS_SHM", "on", false, "'off' or 'auto'");
	expect_setting("DDPSESS_RETRY_MS", "0", true, NULL);
	expect_setting("DDPSESS_RETRY_MS", "1s", false, "a number from 0 to 3600000");
	expect_setting("DDPSESS_RETRY_MS", "-1", false, "a number");
	expect_setting("DDPSESS_RETRY_MS", "3600001", false, "a number");
	expect_setting("DDPSESS_DEVICE", "ib/0", false, "letters");
	expect_setting("DDPSESS_DEVICE", "an_adapter_whose_name_is_too_long", false, "31");
}

static void with_file(void)
{
	char path[] = "/tmp/ddpsess-test.XXXXXX";
	int fd = mkstemp(path);
	struct ibv_device_attr a;
	struct vt_dev d;

	dprintf(fd, "DDPSESS_RFC7306 = off\nDDPSESS_STATS = on\nDDPSESS_DEVICE = named\n");
	close(fd);
	setenv("DDPSESS_CONF", path, 1);
	vt_dev_open(&d);
	unlink(path);
	if (ibv_query_device(d.ctx, &a) || a.atomic_cap != IBV_ATOMIC_NONE ||
	    strcmp(ibv_get_device_name(d.ctx->device), "named"))
		_exit(1);
	exit(0);
}

Test(verbs_attack, attack_22_the_file_takes_all_settings, .timeout = 30)
{
	struct end e = run_attack_child(with_file);

	cr_expect(WIFEXITED(e.status) && !WEXITSTATUS(e.status), "%s", e.text);
	cr_expect_null(strstr(e.text, "no setting"), "%s", e.text);
	cr_expect_not_null(strstr(e.text, "messages sent: 0"), "%s", e.text);
}

/* ---- 23, 24b: signals ---- */

static int sig;

static void raise_verbs_attack_signal(void)
{
	struct vt_dev d;

	signal(sig, SIG_DFL);
	vt_dev_open(&d);
	raise(sig);
}

static void exit_on_signal(int s)
{
	_exit(s == SIGSEGV ? 7 : 1);
}

static void raise_with_handler(void)
{
	struct vt_dev d;

	signal(SIGSEGV, exit_on_signal);
	vt_dev_open(&d);
	raise(SIGSEGV);
}

Test(verbs_attack, attack_23_a_signal_that_is_sent_ends_the_process, .timeout = 30)
{
	struct end e;

	sig = SIGSEGV;
	e = run_attack_child(raise_verbs_attack_signal);
	cr_expect(WIFSIGNALED(e.status) && WTERMSIG(e.status) == SIGSEGV, "%#x", e.status);
	sig = SIGBUS;
	e = run_attack_child(raise_verbs_attack_signal);
	cr_expect(WIFSIGNALED(e.status) && WTERMSIG(e.status) == SIGBUS, "%#x", e.status);
	e = run_attack_child(raise_with_handler);
	cr_expect(WIFEXITED(e.status) && WEXITSTATUS(e.status) == 7, "%#x", e.status);
}

static void take_verbs_attack_alarm(int s)
{
	exit(s == SIGALRM ? 0 : 1);
}

/* Most of its time is spent with the library's lock held, and none in malloc, which LeakSanitizer
 * could not bear. */
static void exit_in_handler(void)
{
	struct itimerval soon = { .it_value.tv_usec = 2000 };
	struct vt_dev d;
	struct ibv_wc wc;

	setenv("DDPSESS_STATS", "on", 1);
	vt_dev_open(&d);
	signal(SIGALRM, take_verbs_attack_alarm);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		ibv_poll_cq(d.cq, 1, &wc);
}

Test(verbs_attack, attack_24b_exit_in_a_signal_handler_ends, .timeout = 60)
{
	for (int i = 0; i < 8; i++) {
		struct end e = run_attack_child(exit_in_handler);

		cr_expect(WIFEXITED(e.status) && !WEXITSTATUS(e.status), "%#x", e.status);
		cr_expect(strstr(e.text, "messages sent: 0") || strstr(e.text, "no counters"), "%s",
			  e.text);
	}
}

/* What a program prints by strerror(errno), as perftest does, is why. */
#define REFUSED(call, why)                                                                         \
	do {                                                                                       \
		errno = 0;                                                                         \
		cr_expect_eq(call, why, "%s", #call);                                              \
		cr_expect_eq(errno, why, "%s: %m", #call);                                         \
	} while (0)

Test(verbs_attack, attack_23_a_call_that_returns_why_sets_errno_too)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_srq_attr large = { .max_wr = 100 };
	struct ibv_comp_channel *ch;
	struct ibv_qp_init_attr init;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct vt_dev d;

	vt_dev_open(&d);
	ch = ibv_create_comp_channel(d.ctx);
	cq = ibv_create_cq(d.ctx, 4, NULL, ch, 0);
	srq = ibv_create_srq(d.pd, &sa);
	cr_assert(ch && cq && srq);
	init = vt_rc(&d);
	init.recv_cq = cq;
	init.srq = srq;
	qp = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp);
	REFUSED(ibv_dealloc_pd(d.pd), EBUSY);
	REFUSED(ibv_destroy_cq(cq), EBUSY);
	REFUSED(ibv_destroy_comp_channel(ch), EBUSY);
	REFUSED(ibv_destroy_srq(srq), EBUSY);
	REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_CAP), EOPNOTSUPP);
	REFUSED(ibv_modify_srq(srq, &large, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	REFUSED(ibv_resize_cq(cq, 0), EINVAL);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
	vt_dev_close(&d);
}

/* ---- 24: the rest ---- */

/* As by ^Z and fg: each thread asks for its descriptors anew. */
static void stop_and_go_on(void)
{
	const pid_t self = getpid();
	const pid_t other = fork_at_rest();

	if (!other) {
		char path[32], state = 0;

		snprintf(path, sizeof path, "/proc/%d/stat", (int)self);
		kill(self, SIGSTOP);
		while (state != 'T') {
			FILE *f = fopen(path, "r");

			if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
				_exit(1);
			fclose(f);
		}
		kill(self, SIGCONT);
		_exit(0);
	}
	waitpid(other, NULL, 0);
}

static bool takes_numbers; /* files of the program's own get the numbers that were closed */

#define OWN_FILES 64
static const char own_text[] = "as the program has written it, and at its beginning";

static void expect_own_file(int fd)
{
	char text[sizeof own_text + 1];

	if (lseek(fd, 0, SEEK_CUR) || pread(fd, text, sizeof text, 0) != sizeof own_text ||
	    memcmp(text, own_text, sizeof own_text))
		fprintf(stderr, "file %d was read or written\n", fd);
}

static void close_all(void)
{
	struct timespec t = { .tv_nsec = 300000000 };
	struct rusage before, after;
	struct vt_dev d;
	int own[OWN_FILES];
	long us;

	vt_dev_open(&d);
	getrusage(RUSAGE_SELF, &before);
	closefrom(3);
	for (int i = 0; takes_numbers && i < OWN_FILES; i++) {
		own[i] = memfd_create("own", 0);
		/* A thread may have one open for a moment, so they need not follow each other. */
		if (own[i] < 0 || own[i] > 2 * OWN_FILES ||
		    pwrite(own[i], own_text, sizeof own_text, 0) < 0)
			_exit(1);
	}
	stop_and_go_on();
	nanosleep(&t, NULL); /* time for threads to burn */
	getrusage(RUSAGE_SELF, &after);
	us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
	      before.ru_stime.tv_sec) *
		     1000000 +
	     after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
	     before.ru_stime.tv_usec;
	if (us > 60000)
		fprintf(stderr, "%ld us\n", us);
	for (int i = 0; takes_numbers && i < OWN_FILES; i++)
		expect_own_file(own[i]);
	_exit(us > 60000);
}

Test(verbs_attack, attack_24_threads_end_when_their_descriptors_are_closed, .timeout = 30)
{
	struct end e = run_attack_child(close_all);

	cr_expect(WIFEXITED(e.status) && !WEXITSTATUS(e.status), "%#x %s", e.status, e.text);
}

Test(verbs_attack, attack_26_files_in_the_place_of_closed_descriptors_are_let_alone, .timeout = 30)
{
	struct end e;

	takes_numbers = true;
	e = run_attack_child(close_all);
	cr_expect(WIFEXITED(e.status) && !WEXITSTATUS(e.status), "%#x %s", e.status, e.text);
	cr_expect_str_empty(e.text);
}

VT_TLS_TEST(verbs_attack, attack_24_the_last_wqe_of_a_shared_queue_is_reported)
{
	struct ibv_async_event e;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_cm_id *own;
	struct vt v;

	vt_init(&v);
	cr_assert_eq(rdma_create_id(NULL, &own, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_create_srq(own, NULL, &attr), 0);
	v.srq = own->srq;
	own->srq = NULL;
	vt_up(&v);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	e = vt_async(v.b.id->verbs, IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(e.element.qp, v.b.id->qp);
	ibv_ack_async_event(&e);
	cr_expect(!vt_readable(v.b.id->verbs->async_fd, 0),
		  "it comes once, and to that side alone");
	vt_down(&v);
	cr_assert_eq(rdma_destroy_id(own), 0);
}

VT_TLS_TEST(verbs_attack, attack_24_a_vanished_client_is_an_error_of_the_connection)
{
	struct rdma_cm_event *e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	rdma_destroy_qp(v.a.id);
	if (rdma_accept(v.b.id, &v.accept)) {
		cr_expect_eq(errno, ECONNRESET, "%m");
	} else {
		cr_assert(vt_readable(v.b.ch->fd, VT_MS));
		cr_assert_eq(rdma_get_cm_event(v.b.ch, &e), 0);
		/* established, where it has spoken before it went */
		cr_expect(e->event == RDMA_CM_EVENT_CONNECT_ERROR ||
				  e->event == RDMA_CM_EVENT_ESTABLISHED,
			  "%s", rdma_event_str(e->event));
		rdma_ack_cm_event(e);
	}
	vt_down(&v);
}
