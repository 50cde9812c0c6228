/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessctl get: a file from the listener's directory.  The listener announces pieces in the
 * slots of a window of its own; they are fetched by RDMA Read and the slots given back.
 */
#include "xfer/advice.h"
#include "sessctl/cmd.h"
#include "xfer/proto.h"
#include "xfer/link.h"
#include "xfer/serve/disk.h"
#include "cli/about.h"
#include "cli/text.h"
#include "cli/safe.h"
#include "xfer/target.h"
#include "cli/pipe.h"
#include "cli/temp.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct get {
	struct link l;
	struct target t;
	const struct opts *o;
	const char *path, *name;      /* as given; its last component, or that of the URI */
	char base[SAFE_NAME_MAX + 1]; /* local name in @dirfd */
	int dirfd;
	struct temp temp;
	struct window win;
	uint64_t size, asked, done; /* octets */
	uint32_t len[SLOTS_MAX];    /* of the piece in each slot; 0: none */
	struct hasher *hasher;
	struct digest digest;
	struct disk *disk;
	struct disk_task task;
	uint32_t slot; /* of the piece that is written */
	int sys_errno; /* of the task */
	uint8_t ours[DIGEST_LEN], theirs[DIGEST_LEN];
	bool old, old_regular; /* something has the name; a file */
	bool to_pipe;	       /* to standard output, once it is whole */
	bool end;	       /* DONE came, with @theirs */
	bool kept;	       /* the file has its name */
};

static enum status do_for_get(struct get *g, void (*work)(void *arg))
{
	g->task.work = work;
	g->task.arg = g;
	return link_disk(&g->l, g->disk, &g->task);
}

/* The directory and the last component of where the file goes, and what is there. */
static void look_at_local(void *arg)
{
	struct get *g = arg;
	const char *slash = strrchr(g->path, '/');
	char dir[PATH_MAX];
	struct stat st;

	g->name = target_basename(g->path);
	snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - g->path + 1) : 1,
		 slash ? g->path : ".");
	if (!stat(g->path, &st) && S_ISDIR(st.st_mode)) {
		g->name = target_basename(g->t.name);
		snprintf(dir, sizeof dir, "%s", g->path);
	}
	g->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->sys_errno = g->dirfd < 0 ? errno : 0;
	g->old = !g->sys_errno && !fstatat(g->dirfd, g->name, &st, AT_SYMLINK_NOFOLLOW);
	g->old_regular = g->old && S_ISREG(st.st_mode);
}

static enum status split_local(struct get *g)
{
	enum status s;

	if (strlen(g->path) >= PATH_MAX)
		return link_fail(&g->l, ST_FAILED, NULL, "the path is too long");
	s = do_for_get(g, look_at_local);
	if (s)
		return s;
	if (g->sys_errno)
		return link_fail(&g->l, ST_FAILED, text_file_advice(g->sys_errno), "%s: %s",
				 g->path, strerror(g->sys_errno));
	if (strlen(g->name) > SAFE_NAME_MAX || !*g->name || !strcmp(g->name, ".") ||
	    !strcmp(g->name, ".."))
		return link_fail(&g->l, ST_USAGE, "a file name as second argument",
				 "'%s' cannot be the name of the local file", g->name);
	snprintf(g->base, sizeof g->base, "%s", g->name);
	return ST_DONE;
}

/* Everything that can be wrong before a connection is made. */
static enum status open_local(struct get *g)
{
	char why[800];
	enum status s;

	if (g->o->nargs > 1 && target_is_swapped(g->o->arg[1], g->o->arg[0]))
		return link_fail(&g->l, ST_USAGE, "sessctl get URI/NAME [FILE]",
				 "the URI comes first, and then the file: '%s' stands first",
				 g->o->arg[0]);
	if (target_parse(&g->t, g->o->arg[0], why, sizeof why))
		return link_fail(&g->l, ST_USAGE, "sessctl get --help", "%s", why);
	if (!g->t.name[0])
		return link_fail(&g->l, ST_USAGE,
				 "sessctl get URI/NAME [FILE], or shm:///PATH:NAME",
				 "%s names no file", g->o->arg[0]);
	if (g->to_pipe) {
		snprintf(g->base, sizeof g->base, "%.*s", SAFE_NAME_MAX,
			 target_basename(g->t.name));
		return ST_DONE;
	}
	g->path = g->o->nargs > 1 ? g->o->arg[1] : ".";
	s = split_local(g);
	if (s || !g->old)
		return s;
	if (!g->o->force)
		return link_fail(&g->l, ST_FAILED, "--force, or another name", "%s: exists already",
				 g->base);
	if (!g->old_regular)
		return link_fail(&g->l, ST_FAILED, "another name",
				 "%s: not a regular file, hence not replaced", g->base);
	return ST_DONE;
}

static void open_temp_file(void *arg)
{
	struct get *g = arg;

	g->sys_errno =
		(g->to_pipe ? temp_open_unnamed(&g->temp, g->size)
			    : temp_open(&g->temp, g->dirfd, g->base, g->size, g->o->force, false))
			? errno
			: 0;
}

static enum status ask_for_get(struct get *g)
{
	struct msg m = { .type = g->o->digest == DIGEST_SHA256 ? MSG_GET : MSG_GET_BY,
			 .kind = (uint8_t)g->o->digest };
	enum status s;
	int err;

	if (g->l.info.ord == 0)
		return link_fail(&g->l, ST_FAILED,
				 "--ord 1 or more here, and --ird 1 or more at the listener",
				 "negotiated ORD is 0: no RDMA Read is possible");
	snprintf(m.text, sizeof m.text, "%s", g->t.name);
	s = link_send(&g->l, &m);
	if (!s)
		s = link_expect(&g->l, MSG_FILE, &m);
	if (s)
		return s;
	g->size = m.size;
	if (g->size > g->o->max_size)
		return link_fail(&g->l, ST_FAILED, "--max-size, if it may be that large",
				 "the listener's file has %llu octets, the limit is %llu",
				 (unsigned long long)g->size, (unsigned long long)g->o->max_size);
	s = do_for_get(g, open_temp_file);
	if (s)
		return s;
	if (g->sys_errno)
		return link_fail(&g->l, ST_FAILED,
				 g->to_pipe ? "another directory in TMPDIR"
					    : text_file_advice(g->sys_errno),
				 "local file %s: %s", g->base, strerror(g->sys_errno));
	err = window_open(&g->win, g->l.pd, g->l.chan.ep,
			  (size_t)file_nslots(g->size) * file_slot_len(g->size), DDPS_LOCAL_WRITE);
	return err ? link_call_failed(&g->l, err, "registering memory") : ST_DONE;
}

/* A piece is ready: read it into the slot of the same number. */
static enum status fetch_piece(struct get *g, const struct msg *m)
{
	uint32_t slot_len = file_slot_len(g->size);
	uint64_t left = g->size - g->asked;
	struct ddps_sge sge = { .addr = g->win.mem + (size_t)m->slot * slot_len, .len = m->len };
	struct ddps_send_wr wr = { .wr_id = WR_ID(WR_READ, m->slot),
				   .op = DDPS_OP_READ,
				   .sge = &sge,
				   .nsge = 1,
				   .stag = m->stag,
				   .to = m->to };
	int err;

	if (g->end || m->slot >= file_nslots(g->size) || g->len[m->slot] || !m->len ||
	    m->len > slot_len || m->len > left || m->off != g->asked)
		return link_fail(&g->l, ST_FAILED, NULL,
				 "the peer announced a piece that does not fit");
	sge.lkey = ddps_mr_stag(g->win.mr);
	err = ddps_post_send(g->l.chan.ep, &wr);
	if (err)
		return link_call_failed(&g->l, err, "posting an RDMA Read");
	g->len[m->slot] = m->len;
	g->asked += m->len;
	return ST_DONE;
}

static void write_get_piece(void *arg)
{
	struct get *g = arg;
	const uint8_t *at = g->win.mem + (size_t)g->slot * file_slot_len(g->size);

	g->sys_errno = temp_write(&g->temp, at, g->len[g->slot], g->done) ? errno : 0;
	if (!g->sys_errno)
		hasher_add_file(g->hasher, &g->digest, at, g->len[g->slot], g->temp.fd, g->done);
}

/* What was written is read again, which may take as long. */
static void finish_digest(void *arg)
{
	struct get *g = arg;

	g->sys_errno = hasher_final(g->hasher, &g->digest, g->ours) ? errno : 0;
}

static void commit_file(void *arg)
{
	struct get *g = arg;

	g->sys_errno = temp_commit(&g->temp, g->o->force, &g->task.off) ? errno : 0;
	g->kept = !g->sys_errno;
}

/* A piece is here; Reads complete in order, so it is the next of the file. */
static enum status store_piece(struct get *g, uint32_t slot)
{
	struct msg m = { .type = MSG_CREDIT, .slot = (uint8_t)slot };
	enum status s;

	g->slot = slot;
	s = do_for_get(g, write_get_piece);
	if (s)
		return s;
	if (g->sys_errno)
		return link_fail(&g->l, ST_FAILED, text_file_advice(g->sys_errno), "writing %s: %s",
				 g->base, strerror(g->sys_errno));
	g->done += g->len[slot];
	g->len[slot] = 0;
	return link_send(&g->l, &m);
}

static enum status take_get_completion(struct get *g, const struct ddps_wc *wc)
{
	struct msg m;
	enum status s;

	if (WR_KIND(wc->wr_id) == WR_READ)
		return store_piece(g, WR_INDEX(wc->wr_id));
	s = link_message(&g->l, wc, MSG_ANY, &m);
	if (s)
		return s;
	if (m.type == MSG_READY)
		return fetch_piece(g, &m);
	if (m.type != MSG_DONE || g->end)
		return link_fail(&g->l, ST_FAILED, NULL, "the peer sent an unexpected %s",
				 msg_name(m.type));
	memcpy(g->theirs, m.digest, sizeof g->theirs);
	g->end = true;
	return ST_DONE;
}

static enum status receive_file(struct get *g)
{
	enum status s = ST_DONE;
	struct ddps_wc wc;

	while (!s && (g->done < g->size || !g->end)) {
		s = link_next(&g->l, &wc);
		if (!s)
			s = take_get_completion(g, &wc);
		out_progress(&g->l.out, g->base, g->done, g->size);
	}
	return s;
}

static enum status finish_get(struct get *g, uint64_t begin)
{
	struct msg ok = { .type = MSG_OK };
	struct out_transfer t = { .op = "get",
				  .name = g->t.name,
				  .bytes = g->size,
				  .digest_name = digest_name(g->digest.kind),
				  .digest = g->ours,
				  .digest_len = digest_len(g->digest.kind) };
	enum status s;

	s = do_for_get(g, finish_digest);
	if (s)
		return s;
	if (g->sys_errno)
		return link_fail(&g->l, ST_FAILED, text_file_advice(g->sys_errno),
				 "reading %s again: %s", g->base, strerror(g->sys_errno));
	if (memcmp(g->ours, g->theirs, sizeof g->theirs) != 0)
		return link_fail(&g->l, ST_FAILED, "again: data changed on the way",
				 "the peer's %s differs; nothing was kept", t.digest_name);
	memcpy(ok.digest, g->ours, sizeof g->ours);
	s = g->to_pipe ? ST_DONE : do_for_get(g, commit_file);
	if (s && g->kept)
		out_note(&g->l.out, NULL, "%s is on the disk, and whole", g->base);
	if (s)
		return s;
	if (g->sys_errno)
		return link_fail(&g->l, ST_FAILED, g->sys_errno == EEXIST ? "--force" : NULL,
				 "%s: %s", g->base, strerror(g->sys_errno));
	t.seconds = (double)(clock_ns() - begin) / (double)NS_PER_S;
	s = link_send(&g->l, &ok);
	out_transfer(&g->l.out, 0, &t);
	return s;
}

static void drain_file(void *arg)
{
	struct get *g = arg;

	g->sys_errno = pipe_drain(&g->temp, STDOUT_FILENO, g->size, &g->task.off) ? errno : 0;
}

/* Whoever reads standard output may take its time: the session is over by now. */
static enum status write_stdout(struct get *g)
{
	enum status s = do_for_get(g, drain_file);

	if (s || !g->sys_errno)
		return s;
	if (g->sys_errno == EPIPE)
		cmd_reader_left();
	return link_fail(&g->l, ST_FAILED, text_file_advice(g->sys_errno), "standard output: %s",
			 strerror(g->sys_errno));
}

int cmd_get(const struct opts *o)
{
	struct get g = { .o = o,
			 .dirfd = -1,
			 .temp = TEMP_NONE,
			 .to_pipe = o->nargs > 1 && target_is_pipe(o->arg[1]),
			 .hasher = hasher_new((enum digest_kind)o->digest),
			 .disk = disk_new() };
	uint64_t begin = 0;
	enum status s;

	link_init(&g.l, o, "get");
	if (g.to_pipe)
		out_to_stderr(&g.l.out);
	digest_init(&g.digest, (enum digest_kind)o->digest);
	s = g.disk ? open_local(&g)
		   : link_fail(&g.l, ST_FAILED, NULL, "preparing to write: %s", strerror(errno));
	if (!s)
		s = link_open(&g.l, g.t.uri, MSG_MAX);
	if (!s) {
		begin = clock_ns();
		s = ask_for_get(&g);
	}
	if (!s)
		s = receive_file(&g);
	if (!s)
		s = finish_get(&g, begin);
	s = link_close(&g.l, s);
	if (!s && g.to_pipe)
		s = write_stdout(&g);
	disk_free(g.disk);
	hasher_free(g.hasher);
	temp_abort(&g.temp);
	window_close(&g.win);
	if (g.dirfd >= 0)
		close(g.dirfd);
	return (int)link_free(&g.l, s);
}
