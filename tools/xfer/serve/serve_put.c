/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking a file: the peer writes into the window, announces, and gets the slot back. */
#include "xfer/proto.h"
#include "cli/safe.h"
#include "xfer/serve/serve.h"
#include "cli/temp.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct piece {
	uint8_t slot;
	uint32_t len;
	uint64_t off;
};

struct job {
	char name[SAFE_NAME_MAX + 1];
	bool force;
	int dirfd; /* of the server */
	struct temp temp;
	uint64_t size, told; /* octets; those announced */
	uint64_t begin;	     /* ns */
	const uint8_t *mem;  /* the window */
	struct hasher *hasher;
	struct digest digest;
	struct piece piece[SLOTS_MAX]; /* a ring of those to be written */
	unsigned head, count;
	unsigned held;	  /* bit i: slot i is in it */
	uint64_t on_disk; /* of the peer's unfinished files */
	_Atomic uint64_t *refused;
	bool end; /* DONE came */
	uint8_t wanted[DIGEST_LEN], result[DIGEST_LEN];
	const char *why;	/* it failed */
	const atomic_bool *off; /* the session has ended: the file is not wanted any more */
};

/* ---- by the disk's thread ---- */

/* Why this file is not taken, NULL: it is, and its temporary file is open. */
static const char *target_fault(struct job *j)
{
	const char *why = safe_name_fault(j->name), *base;
	int dir;

	if (why)
		return why;
	dir = safe_open_parent(j->dirfd, j->name, &base);
	if (dir < 0)
		return safe_reason(errno);
	if (temp_open(&j->temp, dir, base, j->size, j->force, false))
		why = errno == EEXIST ? "the file exists; --force replaces it" : safe_reason(errno);
	close(dir);
	return why;
}

static void open_put_target(void *job)
{
	struct job *j = job;

	j->why = target_fault(j);
}

static void write_piece(void *job)
{
	struct job *j = job;
	const struct piece *p = &j->piece[j->head];
	const uint8_t *at = j->mem + (size_t)p->slot * file_slot_len(j->size);

	j->why = share_of_disk(j->temp.fd, j->on_disk, p->len);
	if (j->why)
		(*j->refused)++;
	else if (temp_write(&j->temp, at, p->len, p->off))
		j->why = safe_reason(errno);
	else
		hasher_add_file(j->hasher, &j->digest, at, p->len, j->temp.fd, p->off);
}

/* The file gets its name, if it is whole. */
static void commit(void *job)
{
	struct job *j = job;

	const bool hashed = !hasher_final(j->hasher, &j->digest, j->result);

	if (hashed && j->told != j->size)
		j->why = "the file is not whole";
	else if (hashed && memcmp(j->result, j->wanted, sizeof j->wanted) != 0)
		j->why = "the digest differs, nothing was kept";
	else if (!hashed || temp_commit(&j->temp, j->force, j->off))
		j->why = safe_reason(errno);
}

static void drop_put_file(void *job)
{
	struct job *j = job;

	hasher_wait(j->hasher, &j->digest, j->digest.added);
	temp_abort(&j->temp);
	free(j);
}

/* ---- by the loop ---- */

static void stop_put(struct session *s)
{
	s->on_disk = 0;
	session_disk(s, drop_put_file, NULL);
}

static void committed(struct session *s)
{
	struct job *j = s->job;
	struct msg ok = { .type = MSG_OK };
	struct out_transfer t = { .op = "put",
				  .name = j->name,
				  .bytes = j->size,
				  .digest_name = digest_name(j->digest.kind),
				  .digest = ok.digest,
				  .digest_len = digest_len(j->digest.kind) };

	if (j->why) {
		session_give_up(s, j->why);
		return;
	}
	memcpy(ok.digest, j->result, sizeof j->result);
	s->on_disk = 0;
	t.seconds = (double)(clock_ns() - j->begin) / (double)NS_PER_S;
	out_transfer(&s->sv->out, s->id, &t);
	session_send(s, &ok);
	session_done(s);
}

static void return_put_slot(struct session *s);

/* What is next, if the disk is not at work. */
static void proceed_put(struct session *s, struct job *j)
{
	if (s->disk_busy)
		return;
	if (j->count) {
		j->on_disk = share_on_disk(s);
		session_disk(s, write_piece, return_put_slot);
	} else if (j->end)
		session_disk(s, commit, committed);
}

static void return_put_slot(struct session *s)
{
	struct job *j = s->job;
	struct msg credit = { .type = MSG_CREDIT, .slot = j->piece[j->head].slot };

	if (j->why) {
		session_give_up(s, j->why);
		return;
	}
	j->head = (j->head + 1) % SLOTS_MAX;
	j->count--;
	j->held &= ~(1u << credit.slot);
	session_send(s, &credit);
	if (s->state == SESSION_SERVING) /* else @j is gone */
		proceed_put(s, j);
}

static void take_put_chunk(struct session *s, struct job *j, const struct msg *m)
{
	if (j->end || m->slot >= file_nslots(j->size) || j->held & 1u << m->slot || !m->len ||
	    m->len > file_slot_len(j->size) || m->off != j->told || m->len > j->size - j->told) {
		session_give_up(s, "a piece that does not fit");
		return;
	}
	j->piece[(j->head + j->count++) % SLOTS_MAX] =
		(struct piece){ .slot = m->slot, .len = m->len, .off = m->off };
	j->held |= 1u << m->slot;
	j->told += m->len;
	s->on_disk = j->told;
	proceed_put(s, j);
}

static void take_put_done(struct session *s, struct job *j, const struct msg *m)
{
	if (j->end) {
		session_give_up(s, "DONE came twice");
		return;
	}
	j->end = true;
	memcpy(j->wanted, m->digest, sizeof j->wanted);
	proceed_put(s, j);
}

static void take_put_message(struct session *s, const uint8_t *data, uint32_t len)
{
	const char *why;
	struct msg m;

	if (msg_decode(&m, data, len, &why))
		session_give_up(s, why);
	else if (m.type == MSG_CHUNK)
		take_put_chunk(s, s->job, &m);
	else if (m.type == MSG_DONE)
		take_put_done(s, s->job, &m);
	else
		session_give_up(s, "CHUNK or DONE was due");
}

static void start_put(struct session *s)
{
	struct job *j = s->job;
	struct msg go = { .type = MSG_GO,
			  .nslots = file_nslots(j->size),
			  .len = file_slot_len(j->size) };

	if (j->why) {
		session_give_up(s, j->why);
		return;
	}
	if (s->win.mr) {
		go.stag = ddps_mr_stag(s->win.mr);
		go.to = ddps_mr_to(s->win.mr);
	}
	session_limit(s, j->size);
	session_begin(s, s->service, j);
	session_send(s, &go);
}

void serve_put(struct session *s, const struct msg *m)
{
	static const struct service put = { .message = take_put_message, .stop = stop_put };
	struct job *j;

	if (s->sv->dirfd < 0) {
		session_give_up(s, "this listener serves no files (it has no --dir)");
		return;
	}
	if (s->sv->o->read_only) {
		session_give_up(s, "this listener takes no files (it has --read-only)");
		return;
	}
	if (strlen(m->text) > SAFE_NAME_MAX) {
		session_give_up(s, safe_name_fault(m->text));
		return;
	}
	if (m->size > s->sv->o->max_size) {
		s->sv->refused[REFUSED_SIZES]++;
		session_give_up(s, "the file is larger than the limit");
		return;
	}
	if (session_window(s, (size_t)file_nslots(m->size) * file_slot_len(m->size),
			   DDPS_REMOTE_WRITE))
		return;
	j = calloc(1, sizeof *j);
	if (!j) {
		session_give_up(s, ddps_strerror(DDPS_E_NOMEM));
		return;
	}
	*j = (struct job){ .hasher = session_hasher(s, (enum digest_kind)m->kind),
			   .force = m->force,
			   .off = &s->task.off,
			   .dirfd = s->sv->dirfd,
			   .size = m->size,
			   .temp = TEMP_NONE,
			   .mem = s->win.mem,
			   .refused = &s->sv->refused[REFUSED_DISK],
			   .begin = clock_ns() };
	snprintf(j->name, sizeof j->name, "%.*s", SAFE_NAME_MAX, m->text);
	digest_init(&j->digest, (enum digest_kind)m->kind);
	s->service = &put;
	s->job = j;
	session_disk(s, open_put_target, start_put);
}
