/* SPDX-License-Identifier: BSD-2-Clause */
/* A fault in registered memory is explained; then it is the program's own, or the system's. */
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

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
