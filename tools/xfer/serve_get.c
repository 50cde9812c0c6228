/* SPDX-License-Identifier: BSD-2-Clause */
/* Giving a file: slots of the window are filled and announced, the peer reads them. */
#include "xfer/file.h"
#include "cli/safe.h"
#include "xfer/serve.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	char name[SAFE_NAME_MAX + 1];
	int fd;
	uint64_t size, sent; /* octets */
	uint64_t begin;	     /* ns */
	unsigned lent;	     /* bit i: slot i is the peer's */
	bool end;	     /* DONE was sent */
	struct hasher *hasher;
	struct digest digest;
	uint64_t hashed[SLOTS_MAX]; /* the digest has this slot when it has so many pieces */
	uint8_t result[DIGEST_LEN];
};

/* Fill slot @i with the next piece and announce it. */
static void announce(struct session *s, struct job *j, uint8_t i)
{
	uint32_t slot_len = file_slot_len(j->size);
	uint64_t left = j->size - j->sent, at = (uint64_t)i * slot_len;
	struct msg m = { .type = MSG_READY,
			 .slot = i,
			 .len = left < slot_len ? (uint32_t)left : slot_len,
			 .off = j->sent,
			 .stag = ddps_mr_stag(s->win.mr),
			 .to = ddps_mr_to(s->win.mr) + at };
	ssize_t n;

	hasher_wait(j->hasher, &j->digest, j->hashed[i]);
	n = file_read(j->fd, s->win.mem + at, m.len, j->sent);
	if (n != (ssize_t)m.len) {
		session_give_up(s, n < 0 ? safe_reason(errno)
					 : "the file became shorter while it was read");
		return;
	}
	hasher_add(j->hasher, &j->digest, s->win.mem + at, m.len);
	j->hashed[i] = j->digest.added;
	j->sent += m.len;
	j->lent |= 1u << i;
	session_send(s, &m);
}

static void finish(struct session *s, struct job *j)
{
	struct msg m = { .type = MSG_DONE };

	(void)hasher_final(j->hasher, &j->digest, j->result); /* nothing is read again */
	memcpy(m.digest, j->result, sizeof j->result);
	j->end = true;
	session_send(s, &m);
}

/* Fill every slot that is ours. */
static void proceed(struct session *s, struct job *j)
{
	for (uint8_t i = 0; i < file_nslots(j->size) && j->sent < j->size; i++) {
		if (j->lent & 1u << i)
			continue;
		announce(s, j, i);
		if (s->state != SESSION_SERVING) /* given up, @j is gone */
			return;
	}
	if (j->sent == j->size && !j->end)
		finish(s, j);
}

static void credit(struct session *s, struct job *j, const struct msg *m)
{
	if (!(j->lent & 1u << m->slot)) {
		session_give_up(s, "a slot came back that was not lent");
		return;
	}
	j->lent &= ~(1u << m->slot);
	proceed(s, j);
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

static void message(struct session *s, const uint8_t *data, uint32_t len)
{
	const char *why;
	struct msg m;

	if (msg_decode(&m, data, len, &why))
		session_give_up(s, why);
	else if (m.type == MSG_CREDIT)
		credit(s, s->job, &m);
	else if (m.type == MSG_OK)
		ok(s, s->job, &m);
	else
		session_give_up(s, "CREDIT or OK was due");
}

static void stop(struct session *s)
{
	struct job *j = s->job;

	hasher_wait(j->hasher, &j->digest, j->digest.added);
	close(j->fd);
	free(j);
}

/* Why this file is not given, NULL: it is. */
static const char *open_source(struct session *s, const struct msg *m, struct job *j)
{
	const char *why = NULL;

	if (s->sv->dirfd < 0)
		return "this listener serves no files (it has no --dir)";
	if (s->info.ird == 0)
		return "the listener's IRD of this session is 0: no RDMA Read is possible";
	j->fd = safe_open_file(s->sv->dirfd, m->text, s->sv->o->max_size, &j->size, &why);
	return why;
}

void serve_get(struct session *s, const struct msg *m)
{
	static const struct service get = { .message = message, .stop = stop };
	struct job *j = calloc(1, sizeof *j);
	struct msg file = { .type = MSG_FILE };
	const char *why;

	if (!j) {
		session_give_up(s, ddps_strerror(DDPS_E_NOMEM));
		return;
	}
	why = open_source(s, m, j);
	if (why) {
		session_give_up(s, why);
		free(j);
		return;
	}
	if (session_window(s, (size_t)file_nslots(j->size) * file_slot_len(j->size),
			   DDPS_REMOTE_READ)) {
		close(j->fd);
		free(j);
		return;
	}
	snprintf(j->name, sizeof j->name, "%.*s", SAFE_NAME_MAX, m->text);
	j->begin = clock_ns();
	j->hasher = session_hasher(s, (enum digest_kind)m->kind);
	digest_init(&j->digest, (enum digest_kind)m->kind);
	file.size = j->size;
	session_limit(s, j->size);
	session_begin(s, &get, j);
	session_send(s, &file);
	if (s->state == SESSION_SERVING)
		proceed(s, j);
}
