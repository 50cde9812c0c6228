/* SPDX-License-Identifier: BSD-2-Clause */
/* Giving a file: slots of the window are filled and announced, the peer reads them. */
#include "xfer/proto.h"
#include "cli/safe.h"
#include "xfer/serve/serve.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	char name[SAFE_NAME_MAX + 1];
	int fd;
	int dirfd;	     /* of the server */
	uint64_t size, sent; /* octets */
	uint64_t begin;	     /* ns */
	uint8_t *mem;	     /* the window */
	uint8_t slot;	     /* the one that is being filled */
	unsigned lent;	     /* bit i: slot i is the peer's */
	bool end;	     /* DONE was sent */
	struct hasher *hasher;
	struct digest digest;
	uint64_t hashed[SLOTS_MAX]; /* the digest has this slot when it has so many pieces */
	uint8_t result[DIGEST_LEN];
	const char *why; /* it failed */
};

static uint32_t piece_len(const struct job *j)
{
	uint64_t left = j->size - j->sent;
	uint32_t slot_len = file_slot_len(j->size);

	return left < slot_len ? (uint32_t)left : slot_len;
}

/* ---- by the disk's thread ---- */

static void open_get_source(void *job)
{
	struct job *j = job;

	j->fd = safe_open_file(j->dirfd, j->name, UINT64_MAX, &j->size, &j->why);
}

/* The next piece into its slot. */
static void fill_get_slot(void *job)
{
	struct job *j = job;
	uint8_t *at = j->mem + (size_t)j->slot * file_slot_len(j->size);
	uint32_t len = piece_len(j);
	ssize_t n;

	hasher_wait(j->hasher, &j->digest, j->hashed[j->slot]);
	n = file_read(j->fd, at, len, j->sent);
	if (n != (ssize_t)len) {
		j->why = n < 0 ? safe_reason(errno) : "the file became shorter while it was read";
		return;
	}
	hasher_add(j->hasher, &j->digest, at, len);
	j->hashed[j->slot] = j->digest.added;
}

static void finish_get_digest(void *job)
{
	struct job *j = job;

	(void)hasher_final(j->hasher, &j->digest, j->result); /* nothing is read again */
}

static void drop_get_file(void *job)
{
	struct job *j = job;

	hasher_wait(j->hasher, &j->digest, j->digest.added);
	if (j->fd >= 0)
		close(j->fd);
	free(j);
}

/* ---- by the loop ---- */

static void stop_get(struct session *s)
{
	session_disk(s, drop_get_file, NULL);
}

static void send_get_done(struct session *s)
{
	struct job *j = s->job;
	struct msg m = { .type = MSG_DONE };

	memcpy(m.digest, j->result, sizeof j->result);
	j->end = true;
	session_send(s, &m);
}

static void announce_get_slot(struct session *s);

/* Have a slot filled that is ours, if the disk is not at work. */
static void proceed_get(struct session *s, struct job *j)
{
	if (s->disk_busy || j->end)
		return;
	if (j->sent == j->size) {
		session_disk(s, finish_get_digest, send_get_done);
		return;
	}
	for (uint8_t i = 0; i < file_nslots(j->size); i++) {
		if (j->lent & 1u << i)
			continue;
		j->slot = i;
		session_disk(s, fill_get_slot, announce_get_slot);
		return;
	}
}

/* Announce it. */
static void announce_get_slot(struct session *s)
{
	struct job *j = s->job;
	struct msg m = { .type = MSG_READY,
			 .slot = j->slot,
			 .len = piece_len(j),
			 .off = j->sent,
			 .stag = ddps_mr_stag(s->win.mr),
			 .to = ddps_mr_to(s->win.mr) + (uint64_t)j->slot * file_slot_len(j->size) };

	if (j->why) {
		session_give_up(s, j->why);
		return;
	}
	j->sent += m.len;
	j->lent |= 1u << j->slot;
	session_send(s, &m);
	if (s->state == SESSION_SERVING) /* else @j is gone */
		proceed_get(s, j);
}

static void take_get_credit(struct session *s, struct job *j, const struct msg *m)
{
	if (!(j->lent & 1u << m->slot)) {
		session_give_up(s, "a slot came back that was not lent");
		return;
	}
	j->lent &= ~(1u << m->slot);
	proceed_get(s, j);
}

static void ok(struct session *s, struct job *j, const struct msg *m)
{
	struct out_transfer t = { .op = "get",
				  .name = j->name,
				  .bytes = j->size,
				  .digest_name = digest_name(j->digest.kind),
				  .digest = j->result,
				  .digest_len = digest_len(j->digest.kind) };

	if (!j->end || memcmp(m->digest, j->result, sizeof j->result) != 0) {
		session_give_up(s, "the digest differs");
		return;
	}
	t.seconds = (double)(clock_ns() - j->begin) / (double)NS_PER_S;
	out_transfer(&s->sv->out, s->id, &t);
	session_done(s);
}

static void take_get_message(struct session *s, const uint8_t *data, uint32_t len)
{
	const char *why;
	struct msg m;

	if (msg_decode(&m, data, len, &why))
		session_give_up(s, why);
	else if (m.type == MSG_CREDIT)
		take_get_credit(s, s->job, &m);
	else if (m.type == MSG_OK)
		ok(s, s->job, &m);
	else
		session_give_up(s, "CREDIT or OK was due");
}

static void start_get(struct session *s)
{
	struct job *j = s->job;
	struct msg file = { .type = MSG_FILE, .size = j->size };

	if (j->why) {
		session_give_up(s, j->why);
		return;
	}
	if (j->size > s->sv->o->max_size) {
		s->sv->refused[REFUSED_SIZES]++;
		session_give_up(s, "the file is larger than the limit");
		return;
	}
	if (session_window(s, (size_t)file_nslots(j->size) * file_slot_len(j->size),
			   DDPS_REMOTE_READ))
		return;
	j->mem = s->win.mem;
	session_limit(s, j->size);
	session_begin(s, s->service, j);
	session_send(s, &file);
	if (s->state == SESSION_SERVING)
		proceed_get(s, j);
}

void serve_get(struct session *s, const struct msg *m)
{
	static const struct service get = { .message = take_get_message, .stop = stop_get };
	struct job *j;

	if (s->sv->dirfd < 0) {
		session_give_up(s, "this listener serves no files (it has no --dir)");
		return;
	}
	if (s->info.ird == 0) {
		session_give_up(
			s, "the listener's IRD of this session is 0: no RDMA Read is possible");
		return;
	}
	if (strlen(m->text) > SAFE_NAME_MAX) {
		session_give_up(s, safe_name_fault(m->text));
		return;
	}
	j = calloc(1, sizeof *j);
	if (!j) {
		session_give_up(s, ddps_strerror(DDPS_E_NOMEM));
		return;
	}
	*j = (struct job){ .fd = -1,
			   .dirfd = s->sv->dirfd,
			   .begin = clock_ns(),
			   .hasher = session_hasher(s, (enum digest_kind)m->kind) };
	snprintf(j->name, sizeof j->name, "%.*s", SAFE_NAME_MAX, m->text);
	digest_init(&j->digest, (enum digest_kind)m->kind);
	s->service = &get;
	s->job = j;
	session_disk(s, open_get_source, start_get);
}
