/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of the device's port for the view (sessctl run): view_counters.h says where they are.  Nothing is
 * written before somebody asks, and then by the thread of the process, so sessions know nothing of it.
 */
#include "verbs/ud/vd_ud.h"
#include "verbs/vd.h"
#include "view/view_counters.h"
#include "common/system/say.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <inttypes.h>

#define NAMES_MAX 1000 /* of one process number */
#define BACKLOG	  8
#define NAME_LEN  40
#define SIZE	  (VIEW_NCOUNTERS * sizeof(uint64_t))

struct vd_count {
	int fd;	   /* whoever asks connects here */
	bool over; /* atomic: the process ends */
	char name[NAME_LEN];
	char live[];
};

static void sum_messages(const struct ddps_msg_stats *of, uint64_t *octets, uint64_t *segments)
{
	*octets = *segments = 0;
	for (int i = 0; i < DDPS_STAT_OPS; i++) {
		*octets += of[i].octets;
		*segments += of[i].segments;
	}
}

static uint64_t sum_sends(const struct ddps_msg_stats *of)
{
	return of[DDPS_STAT_SEND].messages + of[DDPS_STAT_SEND_INV].messages +
	       of[DDPS_STAT_SEND_SE].messages + of[DDPS_STAT_SEND_SE_INV].messages;
}

static bool count_all(struct vd_process *p, uint64_t v[VIEW_NCOUNTERS])
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	const struct ddps_msg_stats *out = st.total.sent, *in = st.total.received;
	struct vd_ud_count ud = vd_ud_count(p);
	uint64_t octets, segments;

	if (ddps_ctx_stats(p->ctx, &st))
		return false;
	sum_messages(out, &octets, &segments);
	v[VIEW_port_xmit_data] = (octets + ud.sent_octets) / 4;
	v[VIEW_port_xmit_packets] = segments + ud.sent;
	v[VIEW_unicast_xmit_packets] = segments;
	sum_messages(in, &octets, &segments);
	v[VIEW_port_rcv_data] = (octets + ud.received_octets) / 4;
	v[VIEW_port_rcv_packets] = segments + ud.received;
	v[VIEW_unicast_rcv_packets] = segments;
	v[VIEW_iwInRdmaReads] = in[DDPS_STAT_READ_REQUEST].messages;
	v[VIEW_iwInRdmaSends] = sum_sends(in);
	v[VIEW_iwInRdmaWrites] = in[DDPS_STAT_WRITE].messages;
	v[VIEW_iwOutRdmaReads] = out[DDPS_STAT_READ_REQUEST].messages;
	v[VIEW_iwOutRdmaSends] = sum_sends(out);
	v[VIEW_iwOutRdmaWrites] = out[DDPS_STAT_WRITE].messages;
	v[VIEW_out_of_buffer] = st.total.no_buffer;
	return true;
}

static void get_count_path(const struct vd_count *c, const char *end, char *to, size_t len)
{
	snprintf(to, len, "%s/%s%s", c->live, c->name, end);
}

static void write_counters(const struct vd_count *c, const uint64_t v[VIEW_NCOUNTERS])
{
	char path[PATH_MAX + NAME_LEN];
	int fd;

	get_count_path(c, VIEW_SUM, path, sizeof path);
	fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* What is no file, such as a pipe that nobody reads, does not stay in the way. */
	if (fd < 0 ? errno == ENXIO || errno == ELOOP : pwrite(fd, v, SIZE, 0) != (ssize_t)SIZE)
		unlink(path);
	if (fd >= 0)
		close(fd);
}

/* A name that nobody has: others may be of processes that were killed, or in another PID namespace. */
static bool name_count_socket(struct vd_count *c, const char *making)
{
	char path[PATH_MAX + NAME_LEN];

	for (int i = 1; i <= NAMES_MAX; i++) {
		snprintf(c->name, sizeof c->name, "%d.%d", (int)getpid(), i);
		get_count_path(c, "", path, sizeof path);
		if (!link(making, path))
			return true;
		if (errno != EEXIST)
			break;
	}
	return false;
}

/* It has its name when it listens: one that refuses is taken for left over. */
static bool listen_for_askers(struct vd_count *c)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char making[PATH_MAX + NAME_LEN];
	int dir = open(c->live, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	bool there = false;

	if (dir < 0)
		return false;
	snprintf(making, sizeof making, "%s/.%d", c->live, (int)getpid());
	snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/.%d", dir, (int)getpid());
	unlink(making);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd >= 0) {
		there = !fchmod(c->fd, S_IRUSR | S_IWUSR) &&
			!bind(c->fd, (struct sockaddr *)&at, sizeof at) &&
			!listen(c->fd, BACKLOG) && name_count_socket(c, making);
		unlink(making);
		if (!there)
			close(c->fd);
	}
	close(dir);
	return there;
}

void vd_count_open(struct vd_process *p)
{
	const char *root = secure_getenv("DDPSESS_VIEW");
	struct vd_count *c;
	size_t len;

	if (!root || *root != '/' || strlen(root) > PATH_MAX - sizeof "/" VIEW_LIVE)
		return;
	len = strlen(root) + sizeof "/" VIEW_LIVE;
	c = calloc(1, sizeof *c + len);
	if (!c)
		return;
	snprintf(c->live, len, "%s/" VIEW_LIVE, root);
	if (listen_for_askers(c))
		p->count = c;
	else
		free(c);
}

int vd_count_fd(const struct vd_process *p)
{
	return p->count ? p->count->fd : -1;
}

void vd_count_answer(struct vd_process *p)
{
	uint64_t v[VIEW_NCOUNTERS];
	int fd = accept4(p->count->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (!__atomic_load_n(&p->count->over, __ATOMIC_ACQUIRE) && count_all(p, v)) {
		write_counters(p->count, v);
		(void)!send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	close(fd);
}

/* They go into those of the processes that have ended.  false: somebody reads or changes these now. */
static bool add_to_ended(const struct vd_count *c, const uint64_t v[VIEW_NCOUNTERS])
{
	uint64_t all[VIEW_NCOUNTERS] = { 0 };
	char path[PATH_MAX + NAME_LEN];
	bool done = false;
	int fd;

	snprintf(path, sizeof path, "%s/" VIEW_ENDED, c->live);
	fd = open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	if (!flock(fd, LOCK_EX | LOCK_NB) && pread(fd, all, SIZE, 0) >= 0) {
		for (unsigned i = 0; i < VIEW_NCOUNTERS; i++)
			all[i] += v[i];
		done = pwrite(fd, all, SIZE, 0) == (ssize_t)SIZE;
	}
	if (done) {
		get_count_path(c, VIEW_SUM, path, sizeof path);
		unlink(path);
		get_count_path(c, "", path, sizeof path);
		unlink(path);
	}
	close(fd);
	return done;
}

/* Nobody is waited for: what is left in its file the next reader adds to those that have ended. */
void vd_count_end(struct vd_process *p)
{
	uint64_t v[VIEW_NCOUNTERS];

	__atomic_store_n(&p->count->over, true, __ATOMIC_RELEASE);
	if (count_all(p, v) && !add_to_ended(p->count, v))
		write_counters(p->count, v);
}

void vd_count_in_child(struct vd_process *p)
{
	if (p->count)
		vd_close(p, p->count->fd);
}

/* ---- the counters of the process, told once at its end (DDPSESS_STATS) ---- */

static void print_counter(const char *what, uint64_t n)
{
	ddps_say("ddpsess: %s: %" PRIu64 "\n", what, n);
}

void vd_stats_tell(struct ddps_ctx *ctx)
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	uint64_t sent = 0, received = 0;

	if (ddps_ctx_stats(ctx, &st))
		return;
	for (int i = 0; i < DDPS_STAT_OPS; i++) {
		sent += st.total.sent[i].messages;
		received += st.total.received[i].messages;
	}
	print_counter("messages sent", sent);
	print_counter("messages received", received);
	print_counter("Sends that waited for a receive", st.total.stalls);
	print_counter("Sends without a receive", st.total.no_buffer);
	print_counter("completions lost", st.total.cq_overflow);
	print_counter("receives refused, shared queue full", st.srq_full);
	print_counter("regions refused", st.regions_refused);
}
