/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessctl put: a file to the listener's directory.  Pieces go by RDMA Write into slots of a
 * window that the listener offers, each announced by a message; a slot comes back when the
 * listener has written it to its disk.
 */
#include "cli/text.h"
#include "xfer/advice.h"
#include "sessctl/cmd.h"
#include "xfer/proto.h"
#include "xfer/link.h"
#include "xfer/target.h"
#include "cli/pipe.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct put {
	struct link l;
	struct target t;
	int fd;		     /* of the file, or of @spool */
	struct temp spool;   /* standard input, until its end */
	uint64_t size, sent; /* octets */
	struct msg go;
	struct window win;
	unsigned lent, writing; /* bit i: slot i is the peer's; our piece is the library's */
	struct hasher *hasher;
	struct digest digest;
	uint64_t hashed[SLOTS_MAX]; /* the digest has this slot when it has so many pieces */
	struct disk *disk;
	struct disk_task task;
	uint8_t slot; /* that it reads into */
	uint32_t len;
	ssize_t got;
	int sys_errno;
	const char *path;
	struct stat st;
};

static void open_source(void *arg)
{
	struct put *p = arg;

	p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	p->sys_errno = p->fd < 0 || fstat(p->fd, &p->st) ? errno : 0;
}

/* The size goes first, so a pipe is read to its end. */
static void open_stdin(void *arg)
{
	struct put *p = arg;
	bool whole = !fstat(STDIN_FILENO, &p->st) && S_ISREG(p->st.st_mode) &&
		     !lseek(STDIN_FILENO, 0, SEEK_CUR);

	if (!whole && (temp_open_unnamed(&p->spool, 0) ||
		       pipe_fill(&p->spool, STDIN_FILENO, &p->size, &p->task.off))) {
		p->sys_errno = errno;
		return;
	}
	p->fd = fcntl(whole ? STDIN_FILENO : p->spool.fd, F_DUPFD_CLOEXEC, 0);
	p->sys_errno = p->fd < 0 || fstat(p->fd, &p->st) ? errno : 0;
}

static enum status do_for_put(struct put *p, void (*work)(void *arg))
{
	p->task.work = work;
	p->task.arg = p;
	return link_disk(&p->l, p->disk, &p->task);
}

/* Everything that can be wrong before a connection is made. */
static enum status open_put_source(struct put *p, const struct opts *o)
{
	const char *base = target_basename(o->arg[0]);
	bool from_pipe = target_is_pipe(o->arg[0]);
	char why[800];
	enum status s;

	if (target_is_swapped(o->arg[0], o->arg[1]))
		return link_fail(&p->l, ST_USAGE, "sessctl put FILE URI[/NAME]",
				 "the file comes first, and then the URI: '%s' stands first",
				 o->arg[0]);
	if (target_parse(&p->t, o->arg[1], why, sizeof why))
		return link_fail(&p->l, ST_USAGE, "sessctl put --help", "%s", why);
	if (!p->t.name[0] && from_pipe)
		return link_fail(&p->l, ST_USAGE, "sessctl put - URI/NAME",
				 "%s names no file, and standard input has no name", o->arg[1]);
	if (!p->t.name[0]) {
		if (strlen(base) > TARGET_NAME_MAX)
			return link_fail(&p->l, ST_FAILED, "a shorter name after the URI",
					 "the file's name is too long");
		snprintf(p->t.name, sizeof p->t.name, "%s", base);
	}
	p->path = from_pipe ? "standard input" : o->arg[0];
	s = do_for_put(p, from_pipe ? open_stdin : open_source);
	if (s)
		return s;
	if (p->sys_errno)
		return link_fail(&p->l, ST_FAILED,
				 from_pipe ? "another directory in TMPDIR, if it is that one"
					   : text_file_advice(p->sys_errno),
				 "%s: %s", p->path, strerror(p->sys_errno));
	if (S_ISDIR(p->st.st_mode))
		return link_fail(&p->l, ST_FAILED,
				 "each file of it, or tar -c FOLDER | sessctl put - URI/NAME",
				 "%s: a folder, not a file", p->path);
	if (!S_ISREG(p->st.st_mode))
		return link_fail(&p->l, ST_FAILED, "a regular file: its size must be known",
				 "%s: not a regular file", p->path);
	p->size = (uint64_t)p->st.st_size;
	return ST_DONE;
}

/* Ask for a window.  A bad offer would only harm ourselves, but say so early. */
static enum status ask_for_put(struct put *p, const struct opts *o)
{
	struct msg m = { .type = o->digest == DIGEST_SHA256 ? MSG_PUT : MSG_PUT_BY,
			 .size = p->size,
			 .force = o->force,
			 .kind = (uint8_t)o->digest };
	enum status s;
	int err;

	snprintf(m.text, sizeof m.text, "%s", p->t.name);
	s = link_send(&p->l, &m);
	if (!s)
		s = link_expect(&p->l, MSG_GO, &p->go);
	if (s)
		return s;
	if (p->size && (!p->go.nslots || !p->go.len || p->go.len > SLOT_LEN_MAX))
		return link_fail(&p->l, ST_FAILED, NULL, "the peer offered a window of no use");
	err = window_open(&p->win, p->l.pd, p->l.chan.ep, (size_t)p->go.nslots * p->go.len, 0);
	return err ? link_call_failed(&p->l, err, "registering memory") : ST_DONE;
}

static uint8_t *slot_of_put(const struct put *p, uint8_t i)
{
	return p->win.mem + (size_t)i * p->go.len;
}

static void read_put_piece(void *arg)
{
	struct put *p = arg;

	hasher_wait(p->hasher, &p->digest, p->hashed[p->slot]);
	p->got = file_read(p->fd, slot_of_put(p, p->slot), p->len, p->sent);
	p->sys_errno = errno;
}

/* Read the next piece into slot @i, write it to the peer's and tell it. */
static enum status send_put_piece(struct put *p, uint8_t i)
{
	uint64_t left = p->size - p->sent, at = (uint64_t)i * p->go.len;
	uint32_t len = left < p->go.len ? (uint32_t)left : p->go.len;
	struct msg m = { .type = MSG_CHUNK, .slot = i, .len = len, .off = p->sent };
	struct ddps_sge sge = { .addr = slot_of_put(p, i),
				.len = len,
				.lkey = ddps_mr_stag(p->win.mr) };
	struct ddps_send_wr wr = { .wr_id = WR_ID(WR_WRITE, i),
				   .op = DDPS_OP_WRITE,
				   .sge = &sge,
				   .nsge = 1,
				   .stag = p->go.stag,
				   .to = p->go.to + at };
	enum status s;
	int err;

	p->slot = i;
	p->len = len;
	s = do_for_put(p, read_put_piece);
	if (s)
		return s;
	if (p->got != (ssize_t)len)
		return link_fail(&p->l, ST_FAILED, NULL, "reading the file: %s",
				 p->got < 0 ? strerror(p->sys_errno) : "it became shorter");
	hasher_add(p->hasher, &p->digest, sge.addr, len);
	p->hashed[i] = p->digest.added;
	err = ddps_post_send(p->l.chan.ep, &wr);
	if (err)
		return link_call_failed(&p->l, err, "posting an RDMA Write");
	p->lent |= 1u << i;
	p->writing |= 1u << i;
	p->sent += len;
	return link_send(&p->l, &m);
}

static enum status take_put_completion(struct put *p, const struct ddps_wc *wc)
{
	struct msg m;
	enum status s;

	if (WR_KIND(wc->wr_id) == WR_WRITE) {
		p->writing &= ~(1u << WR_INDEX(wc->wr_id));
		return ST_DONE;
	}
	s = link_message(&p->l, wc, MSG_CREDIT, &m);
	if (!s)
		p->lent &= ~(1u << m.slot);
	return s;
}

static enum status send_file(struct put *p)
{
	enum status s = ST_DONE;
	struct ddps_wc wc;

	while (!s && (p->sent < p->size || p->lent | p->writing)) {
		for (uint8_t i = 0; !s && i < p->go.nslots && p->sent < p->size; i++)
			if (!((p->lent | p->writing) & 1u << i))
				s = send_put_piece(p, i);
		out_progress(&p->l.out, p->t.name, p->sent, p->size);
		if (!s)
			s = link_next(&p->l, &wc);
		if (!s)
			s = take_put_completion(p, &wc);
	}
	return s;
}

static enum status finish_put(struct put *p, uint64_t begin)
{
	struct msg done = { .type = MSG_DONE }, ok = { .type = MSG_DONE };
	struct out_transfer t = { .op = "put",
				  .name = p->t.name,
				  .bytes = p->size,
				  .digest_name = digest_name(p->digest.kind),
				  .digest = done.digest,
				  .digest_len = digest_len(p->digest.kind) };
	enum status s;

	(void)hasher_final(p->hasher, &p->digest, done.digest); /* nothing is read again */
	s = link_send(&p->l, &done);
	if (!s)
		s = link_expect(&p->l, MSG_OK, &ok);
	if (s && ok.type != MSG_ERROR && ok.type != MSG_REFUSE)
		out_note(&p->l.out, NULL, "the listener may have kept %s", p->t.name);
	if (s)
		return s;
	if (memcmp(ok.digest, done.digest, sizeof ok.digest) != 0)
		return link_fail(&p->l, ST_FAILED, "again: data changed on the way",
				 "the peer's %s differs", t.digest_name);
	t.seconds = (double)(clock_ns() - begin) / (double)NS_PER_S;
	out_transfer(&p->l.out, 0, &t);
	return ST_DONE;
}

int cmd_put(const struct opts *o)
{
	struct put p = { .fd = -1,
			 .spool = TEMP_NONE,
			 .hasher = hasher_new((enum digest_kind)o->digest),
			 .disk = disk_new() };
	uint64_t begin = 0;
	enum status s;

	link_init(&p.l, o, "put");
	digest_init(&p.digest, (enum digest_kind)o->digest);
	s = p.disk ? open_put_source(&p, o)
		   : link_fail(&p.l, ST_FAILED, NULL, "preparing to read: %s", strerror(errno));
	if (!s)
		s = link_open(&p.l, p.t.uri, MSG_MAX);
	if (!s) {
		begin = clock_ns();
		s = ask_for_put(&p, o);
	}
	if (!s)
		s = send_file(&p);
	if (!s)
		s = finish_put(&p, begin);
	disk_free(p.disk);
	hasher_free(p.hasher);
	s = link_close(&p.l, s);
	window_close(&p.win);
	temp_abort(&p.spool);
	if (p.fd >= 0)
		close(p.fd);
	return (int)link_free(&p.l, s);
}
