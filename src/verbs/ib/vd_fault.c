/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region that the program unmapped while it was registered.  An adapter would have pinned its
 * pages; software cannot, so the next access faults.  The process ends by that signal as it would
 * without this file, but not silently: it says which region it was.
 */
#include "verbs/ib/vd_memory.h"
#include "common/system/say.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct vd_mr *region_at(const struct vd_process *p, uintptr_t at)
{
	const struct vd_mr *mr;

	/* Without the lock, whose owner may be who faulted: the process is about to end. */
	LIST_FOREACH(mr, &p->regions, link)
		if (mr->mr.addr && at - (uintptr_t)mr->mr.addr < mr->mr.length)
			break;
	return mr;
}

static void tell_region(const struct vd_mr *mr, uintptr_t at)
{
	char text[256];
	/* snprintf with integers alone allocates nothing. */
	int n = snprintf(
		text, sizeof text,
		"ddpsess: memory at %#zx faults, which is in region %#x (%zu octets at %#zx): "
		"it was unmapped or protected while registered; call ibv_dereg_mr first\n",
		(size_t)at, mr->mr.lkey, mr->mr.length, (size_t)(uintptr_t)mr->mr.addr);

	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
}

/* Octets go from the socket into their place, and the other way, by the system where they need not be
 * looked at: it fails then. */
void vd_fault_tell(const struct vd_process *p, const struct ddps_error *e)
{
	const struct vd_mr *mr;
	char what[120] = "a region";
	bool others;

	ddps_assert_held(&p->lock);
	if (e->sys_errno != EFAULT)
		return;
	mr = vd_find_unmapped(&p->regions, &others);
	if (mr) /* a file that has become shorter is still mapped */
		snprintf(what, sizeof what, "region %#x (%zu octets at %#zx)%s", mr->mr.lkey,
			 mr->mr.length, (size_t)(uintptr_t)mr->mr.addr,
			 others ? ", or of others that are not there," : "");
	ddps_say("ddpsess: a connection has ended, since memory of %s faults: it was unmapped or "
		 "protected while registered; call ibv_dereg_mr first\n",
		 what);
}

/* The handler that was there before goes on; without one the process ends. */
static void take_memory_fault(int sig, siginfo_t *info, void *where)
{
	struct vd_process *p = vd_fault_process();
	const bool sent = info->si_code <= 0; /* by raise, kill and the like: there is no address */
	const struct sigaction *old;
	const struct vd_mr *mr;

	if (!p) { /* it is just being made */
		signal(sig, SIG_DFL);
		if (sent)
			raise(sig);
		return;
	}
	old = sig == SIGBUS ? &p->old_bus : &p->old_segv;
	mr = sent ? NULL : region_at(p, (uintptr_t)info->si_addr);
	if (mr)
		tell_region(mr, (uintptr_t)info->si_addr);
	if (old->sa_flags & SA_SIGINFO && old->sa_sigaction) {
		old->sa_sigaction(sig, info, where);
		return;
	}
	/* Default or a plain handler: the access is tried again under it, and a signal that was
	 * sent comes again when this handler has returned. */
	sigaction(sig, old, NULL);
	if (sent)
		raise(sig);
}

void vd_fault_watch(struct vd_process *p)
{
	struct sigaction sa = { .sa_sigaction = take_memory_fault,
				.sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGSEGV, &sa, &p->old_segv);
	sigaction(SIGBUS, &sa, &p->old_bus);
	/* After a fork the handler is the parent's already: what it had found is kept. */
	if (p->old_segv.sa_flags & SA_SIGINFO && p->old_segv.sa_sigaction == take_memory_fault)
		vd_fault_inherit(p);
}
