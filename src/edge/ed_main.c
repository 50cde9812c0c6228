/* SPDX-License-Identifier: BSD-2-Clause */
/* The edge's settings, its trace, and the question that every call asks. */
#include "edge/ed.h"
#include "common/system/file.h"
#include "common/system/say.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX (1 << 20) /* octets of rules */

/* The program's calls have no argument that could lead here. */
struct ed ed = { .lock = DDPS_MUTEX(DDPS_LOCK_ED),
		 .trace = -1,
		 .later = STAILQ_HEAD_INITIALIZER(ed.later) };

uint64_t ed_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- settings ---- */

/* Return: the file's text, to be freed; or NULL and errno. */
static char *read_rules_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	char *text = fd < 0 ? NULL : malloc(FILE_MAX + 1);
	ssize_t n = 1;

	if (!text) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	for (*len = 0; *len <= FILE_MAX && n > 0; *len += (size_t)(n > 0 ? n : 0))
		n = read(fd, text + *len, FILE_MAX + 1 - *len);
	if (n < 0 || *len > FILE_MAX)
		err = n < 0 ? errno : E2BIG;
	close(fd);
	if (!err)
		return text;
	free(text);
	errno = err;
	return NULL;
}

static int parse_rules(const char *text, size_t len, struct vf_error *e)
{
	return vf_parse(&ed.rules, text, len, e);
}

static int parse_profile(const char *text, size_t len, struct vf_error *e)
{
	int err = vp_parse(&ed.profile, ed_most, text, len, e);

	if (err)
		ed.profile.n = 0;
	else
		ed_profile_start();
	return err;
}

static int parse_file(const char *path,
		      int (*parse)(const char *text, size_t len, struct vf_error *e))
{
	struct vf_error e;
	size_t len = 0;
	char *text = read_rules_file(path, &len);
	int err;

	if (!text) {
		ddps_say("ddpsess: %s: %s; the device cannot be opened\n", path, strerror(errno));
		return -1;
	}
	err = parse(text, len, &e);
	free(text);
	if (!err)
		return 0;
	ddps_say("ddpsess: %s:%u:%u: %s; the device cannot be opened\n", path, e.line, e.column,
		 e.why);
	return -1;
}

static int open_trace(const char *path)
{
	/* Its lines have addresses of peers: they are for this user. */
	ed.trace = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | ddps_anew(path), 0600);
	if (ed.trace >= 0 && !fstat(ed.trace, &ed.trace_self))
		return 0;
	ddps_say("ddpsess: %s: %s; the device cannot be opened\n", path, strerror(errno));
	return -1;
}

/* A child must not find the lock held by a thread that it does not have. */
static void lock_edge_for_fork(void)
{
	ddps_lock(&ed.lock);
}

static void unlock_edge_after_fork(void)
{
	ddps_unlock(&ed.lock);
}

static void make_conds(void)
{
	pthread_condattr_t monotonic;

	pthread_cond_init(&ed.less, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&ed.wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/*
 * What the edge knew is the parent's.  It may be in use by threads that the child does not have, and
 * its numbers will be those of other queue pairs here.
 */
static void reset_edge_in_child(void)
{
	memset(ed.qps, 0, sizeof ed.qps);
	memset(ed.count, 0, sizeof ed.count);
	LIST_INIT(&ed.srqs);
	LIST_INIT(&ed.cqs);
	STAILQ_INIT(&ed.later);
	ed.telling = NULL;
	LIST_INIT(&ed.ids);
	ck_in_child();
	make_conds();
	ddps_unlock(&ed.lock);
}

static int start_edge(const struct vd_config *cfg)
{
	if (cfg->check && ck_start(cfg->suppress))
		return -1;
	if (!*cfg->faults && !cfg->check && !cfg->strict && !ed_depth_wanted())
		return 0;
	if (*cfg->faults && parse_file(cfg->faults, parse_rules))
		return -1;
	ed.rules.seed = cfg->seed;
	ed.begun = ed_ms();
	ed.on = true;
	return 0;
}

int vd_front_fill(struct vd_front *front, const struct vd_config *cfg)
{
	/* First: whatever is refused after it, nobody finds the lines of an earlier run there. */
	int err = *cfg->trace ? open_trace(cfg->trace) : 0;

	if (!err && *cfg->profile)
		err = parse_file(cfg->profile, parse_profile);
	if (!err && cfg->strict)
		ed_strict_start(cfg);
	err = err ? err : start_edge(cfg);
	make_conds();
	if (ed.on || ed.profile.n) {
		pthread_atfork(lock_edge_for_fork, unlock_edge_after_fork, reset_edge_in_child);
		front->dress = ed_dress;
		front->create_id_qp = ed_make_id_qp;
		front->create_cq = ed_make_cq;
		front->destroy_cq = ibv_destroy_cq;
		front->create_srq = ed_make_srq;
		front->destroy_srq = ibv_destroy_srq;
	}
	if (ed.profile.n)
		ed_profile_fill(front);
	if (ck_on())
		front->end = ck_end;
	__atomic_store_n(&ed.asked, true, __ATOMIC_RELEASE);
	return err;
}

/* ---- rules ---- */

/* A program may close what is not its own, and then the number is another file's. */
static bool trace_is_ours(void)
{
	struct stat st;

	return !fstat(ed.trace, &st) && st.st_dev == ed.trace_self.st_dev &&
	       st.st_ino == ed.trace_self.st_ino;
}

/* In one write, so that lines of several processes do not mix.  ed.lock is held. */
static void trace_event(const struct vf_event *e, const struct vf_rule *rule)
{
	char line[VF_TEXT + 1];
	struct iovec iov = { line, 0 };

	ddps_assert_held(&ed.lock);
	if (ed.trace < 0 || !trace_is_ours())
		return;
	vf_trace(line, ++ed.lines, e, rule);
	strcat(line, "\n");
	iov.iov_len = strlen(line);
	if (ddps_write_quietly(ed.trace, &iov, 1) < 0) { /* a full disk: said, once */
		ddps_say("ddpsess: the trace ends here: %s\n", strerror(errno));
		close(ed.trace);
		ed.trace = -1;
	}
}

const struct vf_rule *ed_ask(enum vf_point point, const struct ed_subject *s)
{
	struct vf_event e = { .point = point, .opcode = s->opcode, .ms = ed_ms() - ed.begun };
	const struct vf_rule *rule;
	char peer[sizeof s->qp->peer] = "";

	if (s->qp) {
		e.qp = s->qp->number;
		e.queue = s->queue;
		e.drawn = s->qp->drawn[s->queue];
		ed_peer_of(NULL, s->qp->qp, peer, sizeof peer);
	} else if (s->id) {
		ed_peer_of(s->id, NULL, peer, sizeof peer);
	}
	e.peer = peer;
	ddps_lock(&ed.lock);
	if (s->qp)
		e.bytes = s->qp->bytes;
	rule = vf_match(&ed.rules, &e);
	if (rule)
		trace_event(&e, rule);
	ddps_unlock(&ed.lock);
	return rule;
}

void ed_nap(uint64_t ms)
{
	struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	while (nanosleep(&left, &left)) /* a signal */
		;
}

/* What the program may still do with a device that has gone: leave. */
static bool needs_device(enum vf_point p)
{
	return p != VF_ibv_get_device_list && p != VF_ibv_dereg_mr && p != VF_rdma_disconnect &&
	       p != VF_rdma_get_cm_event && p != VF_ibv_get_cq_event && p != VF_rdma_reject &&
	       p != VF_rdma_create_event_channel && p != VF_rdma_getaddrinfo;
}

int ed_call(enum vf_point point, const struct ed_subject *s)
{
	if (ed_is_removed() && needs_device(point))
		return EIO;
	return ed_apply(ed_ask(point, s), s);
}

void ed_tell_time(const struct vf_rule *rule)
{
	const struct vf_event e = { .point = VF_TIME, .qp = rule->when.qp, .opcode = VF_NOT_SAID };

	ddps_lock(&ed.lock);
	trace_event(&e, rule);
	ddps_unlock(&ed.lock);
}
