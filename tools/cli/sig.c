/* SPDX-License-Identifier: BSD-2-Clause */
/* SIGINT and SIGTERM. */
#include "cli/sig.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LEAVE_S 2 /* at most, for removing files */

static volatile sig_atomic_t pending;
static int wake_fd = -1;
static struct sig_file *files;
static atomic_flag files_lock = ATOMIC_FLAG_INIT;

/*
 * Whoever holds it cannot be interrupted by the handler, so the handler, too, waits for another thread only,
 * and for a moment.
 */
static void lock_files(void)
{
	while (atomic_flag_test_and_set_explicit(&files_lock, memory_order_acquire))
		;
}

void sig_leave(int status)
{
	lock_files(); /* for good */
	/* a disk that hangs does not hold this up, too */
	signal(SIGALRM, SIG_DFL);
	alarm(LEAVE_S);
	for (struct sig_file *f = files; f; f = f->next)
		unlinkat(f->dirfd, f->name, 0);
	_exit(status);
}

static void on_signal(int sig)
{
	static const char again[] = "sessctl: interrupted again: nothing is waited for\n";
	static const uint64_t one = 1;
	int keep = errno;

	if (pending) {
		if (write(STDERR_FILENO, again, sizeof again - 1) < 0)
			errno = keep; /* nobody reads it */
		sig_leave(ST_FAILED);
	}
	pending = sig;
	if (write(wake_fd, &one, sizeof one) < 0)
		pending = sig; /* cannot fill up: nobody else writes */
	errno = keep;
}

static void fill_end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

int sig_init(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	fill_end_signals(&sa.sa_mask);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0 || sigaction(SIGINT, &sa, NULL) || sigaction(SIGTERM, &sa, NULL))
		return -1;
	/* a closed standard output, and a file above the limit, are reported when writing fails */
	if (sigaction(SIGPIPE, &ignore, NULL))
		return -1;
	return sigaction(SIGXFSZ, &ignore, NULL);
}

int sig_fd(void)
{
	return wake_fd;
}

int sig_pending(void)
{
	return pending;
}

/* The list changes only while the handler cannot run in this thread. */
static void change_sig_file(struct sig_file *f, bool add)
{
	sigset_t set, old;

	fill_end_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	lock_files();
	if (add) {
		f->next = files;
		files = f;
	} else {
		struct sig_file **at = &files;

		while (*at && *at != f)
			at = &(*at)->next;
		if (*at)
			*at = f->next;
	}
	atomic_flag_clear_explicit(&files_lock, memory_order_release);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void sig_file_add(struct sig_file *f)
{
	change_sig_file(f, true);
}

void sig_file_remove(struct sig_file *f)
{
	change_sig_file(f, false);
}
