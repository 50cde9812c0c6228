/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that an adapter could not pin is not registered. */
#include "verbs/ib/vd_memory.h"
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define LARGE  (1u << 20)
#define WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static uint8_t *map_verbs_mapped(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void take_checked_verbs_mapped(struct ibv_pd *pd, void *mem, size_t len, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, len, access);

	cr_assert_not_null(mr, "%m: %zu octets, access %#x", len, access);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

VT_TLS_TEST(verbs_mapped, contact_24_memory_that_cannot_be_registered)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *rw = map_verbs_mapped(4 * page, PROT_READ | PROT_WRITE),
		*ro = map_verbs_mapped(4 * page, PROT_READ);
	uint8_t *none = map_verbs_mapped(4 * page, PROT_NONE),
		*hole = map_verbs_mapped(4 * page, PROT_READ | PROT_WRITE);
	struct vt_dev d;
	struct ibv_mr *mr;

	vt_dev_open(&d);
	cr_assert_eq(munmap(hole + page, page), 0);
	take_checked_verbs_mapped(d.pd, rw, 4 * page, WRITES);
	take_checked_verbs_mapped(d.pd, rw + 1, 4 * page - 2, WRITES);
	take_checked_verbs_mapped(d.pd, ro, 4 * page, 0);
	take_checked_verbs_mapped(d.pd, ro, 4 * page, IBV_ACCESS_REMOTE_READ);
	take_checked_verbs_mapped(d.pd, hole, page, WRITES);
	take_checked_verbs_mapped(d.pd, hole + 2 * page, 2 * page, WRITES);
	take_checked_verbs_mapped(d.pd, ro, 0, WRITES);
	take_checked_verbs_mapped(d.pd, none, page, IBV_ACCESS_ON_DEMAND | WRITES);
	VT_NULL_AS(ibv_reg_mr(d.pd, ro, page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, none, page, 0), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, hole + page, 1, 0), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, hole, 2 * page, WRITES), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, hole + page - 1, 2, WRITES), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, (void *)0xffff800000000000u, page, WRITES), EFAULT);
	/* one that is there keeps what it has */
	mr = ibv_reg_mr(d.pd, ro, page, IBV_ACCESS_REMOTE_READ);
	cr_assert_not_null(mr);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITES),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EFAULT);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, none, page, 0),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EFAULT);
	cr_expect(mr->addr == ro && mr->length == page);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
				  NULL, rw, page, WRITES),
		     0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_dev_close(&d);
	munmap(rw, 4 * page);
	munmap(ro, 4 * page);
	munmap(none, 4 * page);
	munmap(hole, page);
	munmap(hole + 2 * page, 2 * page);
}

/* ---- what changes behind a region's back ---- */

enum change { UNMAPPED, READ_ONLY, TRUNCATED };

/* The peer writes to it, as the region permits. */
static void peer_writes(const void *arg)
{
	const enum change change = *(const enum change *)arg;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	static uint8_t from[LARGE]; /* so much that it is read into its place where it can be */
	struct ibv_sge sge;
	struct ibv_mr *mr, *own;
	struct vt v;
	uint8_t *mem;
	int fd = vchild_file("");

	signal(SIGSEGV, SIG_DFL); /* as in a program without a handler */
	signal(SIGBUS, SIG_DFL);
	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(ftruncate(fd, LARGE), 0);
	mem = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(mem, MAP_FAILED);
	mr = ibv_reg_mr(v.b.id->pd, mem, LARGE, WRITES);
	cr_assert_not_null(mr);
	own = ibv_reg_mr(v.a.id->pd, from, LARGE, 0);
	cr_assert_not_null(own);
	sge = (struct ibv_sge){ (uintptr_t)from, LARGE, own->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)mem;
	wr.wr.rdma.rkey = mr->rkey;
	if (change == UNMAPPED)
		cr_assert_eq(munmap(mem + LARGE / 2, LARGE / 2), 0);
	else if (change == READ_ONLY)
		cr_assert_eq(mprotect(mem + LARGE / 2, LARGE / 2, PROT_READ), 0);
	else
		cr_assert_eq(ftruncate(fd, LARGE / 2), 0);
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	_exit(64 + (int)vt_wc(&v.a).status);
}

/* @lives: the process, while the connection ends. */
static void over_all_changes(bool lives)
{
	static const char what[] = "it was unmapped or protected while registered";

	for (enum change change = UNMAPPED; change <= TRUNCATED; change++) {
		const char *told;
		int status = vchild_run(peer_writes, &change, &told);

		if (lives)
			cr_expect(WIFEXITED(status) &&
					  WEXITSTATUS(status) == 64 + IBV_WC_WR_FLUSH_ERR,
				  "%d: %#x %s", change, status, told);
		else
			cr_expect(WIFSIGNALED(status) &&
					  WTERMSIG(status) ==
						  (change == TRUNCATED ? SIGBUS : SIGSEGV),
				  "%d: %#x %s", change, status, told);
		cr_expect_eq(vchild_times(told, what), 1, "%d: %s", change, told);
	}
}

VT_TLS_TEST(verbs_mapped, contact_24_a_peer_writes_to_memory_that_is_gone)
{
	over_all_changes(false);
}

/* What need not be looked at the system reads into its place over TCP, and that finds the fault.  From
 * shared memory this process copies itself. */
VT_TLS_TEST(verbs_mapped, contact_24_without_checksums_the_system_finds_the_fault)
{
	setenv("DDPSESS_CRC", "off", 1);
	over_all_changes(!strcmp(getenv("DDPSESS_TRANSPORT"), "tcp") && !getenv("DDPSESS_SHM"));
}

/* Which of many are not there any more, in one look. */
Test(verbs_mapped, what_was_unmapped_is_found, .timeout = 60)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at =
		mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vd_regions all = LIST_HEAD_INITIALIZER(all);
	struct vd_mr mr[3] = { 0 };
	bool others;

	for (int i = 2; i >= 0; i--) {
		mr[i].mr.addr = at + (size_t)i * 2 * page;
		mr[i].mr.length = page;
		mr[i].access = i ? IBV_ACCESS_LOCAL_WRITE : 0;
		LIST_INSERT_HEAD(&all, &mr[i], link);
	}
	cr_expect_null(vd_find_unmapped(&all, &others));
	cr_assert_eq(mprotect(at, page, PROT_READ), 0);
	cr_expect_null(vd_find_unmapped(&all, &others), "it may be read, and is");
	cr_assert_eq(mprotect(at + 2 * page, page, PROT_READ), 0);
	cr_expect_eq(vd_find_unmapped(&all, &others), &mr[1]);
	cr_expect_not(others);
	cr_assert_eq(munmap(at + 4 * page, page), 0);
	cr_expect_eq(vd_find_unmapped(&all, &others), &mr[1]);
	cr_expect(others);
	munmap(at, 4 * page);
}

/* ---- signal ---- */

/* A fault in registered memory is explained; then it is the program's own, or the system's. */

#define PAGE 4096

struct fault {
	int sig;
	bool full;   /* the program's handler takes three arguments */
	bool inside; /* the address is in a region */
	bool sent;   /* the signal comes from raise */
};

static sigjmp_buf back;
static void *seen;

static void jump_out_of_signal(int sig)
{
	siglongjmp(back, sig);
}

static void full(int sig, siginfo_t *info, void *where)
{
	(void)where;
	seen = info->si_addr;
	siglongjmp(back, sig);
}

static void install_fault_handler(const struct fault *f)
{
	struct sigaction sa = { .sa_flags = f->full ? SA_SIGINFO : 0 };

	if (f->full)
		sa.sa_sigaction = full;
	else
		sa.sa_handler = jump_out_of_signal;
	cr_assert_eq(sigaction(f->sig, &sa, NULL), 0);
}

/* A page that faults so, once something is done to it. */
static char *page(const struct fault *f, int *fd)
{
	char *at;

	*fd = vchild_file("");
	cr_assert_eq(ftruncate(*fd, PAGE), 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	cr_assert_neq(at, MAP_FAILED);
	(void)f;
	return at;
}

static void spoil_mapping(const struct fault *f, char *at, int fd)
{
	if (f->sig == SIGBUS)
		cr_assert_eq(ftruncate(fd, 0), 0);
	else
		cr_assert_eq(mprotect(at, PAGE, PROT_NONE), 0);
}

static void run_fault_child(const void *arg)
{
	const struct fault *f = arg;
	struct ibv_mr *mr, *dm_mr;
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm;
	struct vt_dev s;
	volatile char *at;
	int fd;

	install_fault_handler(f);
	vt_dev_open(&s);
	at = page(f, &fd);
	mr = ibv_reg_mr(s.pd, f->inside ? (char *)at : (char *)&s, 64, IBV_ACCESS_LOCAL_WRITE);
	dm = ibv_alloc_dm(s.ctx, &attr);
	/* Of memory of the device's no address is known. */
	dm_mr = ibv_reg_dm_mr(s.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	cr_assert(mr && dm_mr);
	spoil_mapping(f, (char *)at, fd);
	if (sigsetjmp(back, 1)) {
		if (f->full && !f->sent && seen != at + 3)
			_exit(3);
		_exit(0);
	}
	if (f->sent)
		raise(f->sig);
	else
		at[3] = 1;
	_exit(2);
}

Test(verbs_signal, faults)
{
	const char *what = "ddpsess: memory at 0x", *told;

	for (unsigned i = 0; i < 16; i++) {
		const struct fault f = { i & 1 ? SIGBUS : SIGSEGV, i & 2, i & 4, i & 8 };
		int status = vchild_run(run_fault_child, &f, &told);

		cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%u: %#x %s", i, status, told);
		cr_expect_eq(vchild_times(told, what), f.inside && !f.sent, "%u: %s", i, told);
		cr_expect_eq(!!strstr(told, " (64 octets at 0x"), f.inside && !f.sent);
	}
}

static void die_by_fault(const void *arg)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };
	volatile char *volatile nowhere = (volatile char *)16;
	struct vt_dev s;

	(void)arg;
	sigaction(SIGSEGV, &sa, NULL); /* the default, though of that kind */
	vt_dev_open(&s);
	*nowhere = 1;
}

Test(verbs_signal, nobody_takes_it)
{
	const char *told;
	int status = vchild_run(die_by_fault, NULL, &told);

	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%#x", status);
	cr_expect_null(strstr(told, "ddpsess:"), "%s", told);
}

/* Sends the signal once that thread sleeps. */
struct sleeper {
	pthread_t thread;
	pid_t tid;
};

static void *wake_by_signal(void *arg)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const struct sleeper *s = arg;
	char path[64], state = 'R';

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)s->tid);
	for (int i = 0; state != 'S' && i < VT_MS; i++) {
		FILE *f = fopen(path, "r");

		cr_assert(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
		nanosleep(&pause, NULL);
	}
	pthread_kill(s->thread, SIGUSR1);
	return NULL;
}

enum call { CQ_EVENT, CM_EVENT, ASYNC_EVENT };

static void jumps(const void *arg)
{
	struct sigaction sa = { .sa_handler = jump_out_of_signal };
	struct sleeper me = { pthread_self(), (pid_t)syscall(SYS_gettid) };
	enum call call = *(const enum call *)arg;
	struct rdma_cm_event *cm;
	struct ibv_async_event async;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct vt_dev s;
	pthread_t helper;
	void *user;
	struct vt v;

	cr_assert_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	vt_init(&v);
	vt_up(&v);
	vt_dev_open(&s);
	ch = ibv_create_comp_channel(s.ctx);
	cq = ibv_create_cq(s.ctx, 4, NULL, ch, 0);
	cr_assert(ch && cq && !ibv_req_notify_cq(cq, 0));
	if (!sigsetjmp(back, 1)) {
		cr_assert_eq(pthread_create(&helper, NULL, wake_by_signal, &me), 0);
		if (call == CQ_EVENT)
			ibv_get_cq_event(ch, &cq, &user);
		else if (call == CM_EVENT)
			rdma_get_cm_event(v.a.ch, &cm);
		else
			ibv_get_async_event(s.ctx, &async);
		_exit(2);
	}
	/* Nothing is held that any of these would wait for. */
	pthread_join(helper, NULL);
	vt_down(&v);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
	vt_dev_close(&s);
	_exit(0);
}

Test(verbs_signal, contact_28_a_handler_may_jump_out_of_a_call_that_waits)
{
	for (enum call call = CQ_EVENT; call <= ASYNC_EVENT; call++) {
		const char *told;
		int status = vchild_run(jumps, &call, &told);

		cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%d: %#x %s", call, status,
			  told);
	}
}
