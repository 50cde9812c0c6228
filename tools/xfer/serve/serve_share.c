/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No peer has more of anything than is left for all others: alone half of it, next to one that has half a
 * quarter, and so on.  So one that takes all it gets leaves room for whoever comes next.
 */
#include "xfer/serve/serve.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define DISK_SHARE 7u /* of eight parts: one file may be larger than all others together */

/* The limit of open files, raised to @want if it may be. */
static rlim_t files_max(rlim_t want)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return want;
	if (l.rlim_cur < want && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < want ? l.rlim_max : want;
		if (setrlimit(RLIMIT_NOFILE, &l) && getrlimit(RLIMIT_NOFILE, &l))
			return want;
	}
	return l.rlim_cur;
}

bool share_files(unsigned *sessions, unsigned *half_open)
{
	rlim_t left = SERVE_SESSIONS_MAX * SERVE_SESSION_FDS + *half_open;
	rlim_t max = files_max(SERVE_OWN_FDS + left);

	if (max < SERVE_OWN_FDS + SERVE_SESSION_FDS + 1)
		return false;
	if (left > max - SERVE_OWN_FDS)
		left = max - SERVE_OWN_FDS;
	if (*half_open > left / 4)
		*half_open = left < 4 ? 1 : (unsigned)left / 4;
	*sessions = (unsigned)(left - *half_open) / SERVE_SESSION_FDS;
	return true;
}

struct serve_net share_net(const struct ddps_conn_info *info)
{
	struct serve_net net = { .addr = info->peer_addr };

	net.addr.port = 0;
	if (net.addr.family == 6)
		memset(net.addr.ip + 8, 0, 8);
	if (info->transport == DDPS_TRANSPORT_SHM)
		net.uid = info->shm.uid;
	return net;
}

static bool is_same_net(const struct serve_net *a, const struct serve_net *b)
{
	return !memcmp(a, b, sizeof *a);
}

/* Of @max, of which @taken are, may one who has @held of them have @more? */
static bool leaves_as_much(uint64_t held, uint64_t more, uint64_t taken, uint64_t max)
{
	return held + more <= max - taken;
}

const char *share_of_sessions(const struct server *sv, const struct serve_net *net)
{
	const struct session *s;
	unsigned held = 0;

	if (sv->live >= sv->room)
		return "listener is full, try again later";
	LIST_FOREACH(s, &sv->sessions, of_all)
		held += is_same_net(&s->net, net);
	return leaves_as_much(held, 1, sv->live, sv->room)
		       ? NULL
		       : "your address has its share of the listener's sessions; end one first";
}

const char *share_of_windows(const struct session *s, size_t len)
{
	const struct server *sv = s->sv;
	const struct session *o;
	uint64_t held = 0;

	if (len > SERVE_WINDOWS_MAX - sv->windows)
		return "the listener is busy, try again later";
	LIST_FOREACH(o, &sv->sessions, of_all)
		held += is_same_net(&o->net, &s->net) ? o->win.len : 0;
	return leaves_as_much(held, len, sv->windows, SERVE_WINDOWS_MAX)
		       ? NULL
		       : "your address has its share of the listener's memory; end a session first";
}

uint64_t share_on_disk(const struct session *s)
{
	const struct session *o;
	uint64_t held = 0;

	LIST_FOREACH(o, &s->sv->sessions, of_all)
		held += is_same_net(&o->net, &s->net) ? o->on_disk : 0;
	return held;
}

const char *share_of_disk(int fd, uint64_t held, uint32_t len)
{
	struct statvfs fs;
	uint64_t left;

	if (fstatvfs(fd, &fs))
		return NULL; /* it is written, or not */
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (left < len || held <= (left - len) * DISK_SHARE)
		return NULL; /* without room the system says so */
	return "no space is left where the listener keeps its files; make room there (the last "
	       "eighth of it is for other addresses)";
}

int share_show(void *user, uint32_t n, char *to, size_t size)
{
	struct server *sv = user;

	return n ? 0
		 : snprintf(to, size,
			    "{\"refused_sessions\":%llu,\"refused_windows\":%llu,\"refused_sizes\":"
			    "%llu,\"refused_disk\":%llu}",
			    (unsigned long long)sv->refused[REFUSED_SESSIONS],
			    (unsigned long long)sv->refused[REFUSED_WINDOWS],
			    (unsigned long long)sv->refused[REFUSED_SIZES],
			    (unsigned long long)sv->refused[REFUSED_DISK]);
}
