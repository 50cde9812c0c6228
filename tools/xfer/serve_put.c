/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking a file: the peer writes into the window, announces, and gets the slot back. */
#include "xfer/file.h"
#include "cli/safe.h"
#include "xfer/serve.h"
#include "cli/temp.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	char name[SAFE_NAME_MAX + 1];
	bool force;
	struct temp temp;
	uint64_t size, done; /* octets */
	uint64_t begin;	     /* ns */
	struct hasher *hasher;
	struct digest digest;
};

/* Why this file is not taken, NULL: it is, and its temporary file is open. */
static const char *open_target(struct session *s, struct job *j)
{
	const char *why = safe_name_fault(j->name), *base;
	int dir;

	if (why)
		return why;
	if (j->size > s->sv->o->max_size)
		return "the file is larger than the limit";
	dir = safe_open_parent(s->sv->dirfd, j->name, &base);
	if (dir < 0)
		return safe_reason(errno);
	if (temp_open(&j->temp, dir, base, j->size, j->force, false))
		why = errno == EEXIST ? "the file exists; --force replaces it" : safe_reason(errno);
	close(dir);
	return why;
}

static void chunk(struct session *s, struct job *j, const struct msg *m)
{
	uint32_t slot_len = file_slot_len(j->size);
	const uint8_t *at = s->win.mem + (size_t)m->slot * slot_len;
	struct msg credit = { .type = MSG_CREDIT, .slot = m->slot };

	if (m->slot >= file_nslots(j->size) || !m->len || m->len > slot_len || m->off != j->done ||
	    m->len > j->size - j->done) {
		session_give_up(s, "a piece that does not fit");
		return;
	}
	if (temp_write(&j->temp, at, m->len, m->off)) {
		session_give_up(s, safe_reason(errno));
		return;
	}
	hasher_add_file(j->hasher, &j->digest, at, m->len, j->temp.fd, m->off);
	j->done += m->len;
	session_send(s, &credit);
}

/* The file gets its name, if it is whole.  Why not, or NULL; its digest. */
static const char *commit(struct job *j, const struct msg *m, uint8_t *digest)
{
	if (hasher_final(j->hasher, &j->digest, digest))
		return safe_reason(errno);
	if (j->done != j->size)
		return "the file is not whole";
	if (memcmp(digest, m->digest, sizeof m->digest) != 0)
		return "the digest differs, nothing was kept";
	return temp_commit(&j->temp, j->force) ? safe_reason(errno) : NULL;
}

static void done(struct session *s, struct job *j, const struct msg *m)
{
	struct msg ok = { .type = MSG_OK };
	struct out_transfer t = { .op = "put",
				  .name = j->name,
				  .bytes = j->size,
				  .digest_name = digest_name(j->digest.kind),
				  .digest = ok.digest,
				  .digest_len = digest_len(j->digest.kind) };

	const char *why = commit(j, m, ok.digest);

	if (why) {
		session_give_up(s, why);
		return;
	}
	t.seconds = (double)(clock_ns() - j->begin) / (double)NS_PER_S;
	out_transfer(&s->sv->out, s->id, &t);
	session_send(s, &ok);
	session_done(s);
}

static void message(struct session *s, const uint8_t *data, uint32_t len)
{
	const char *why;
	struct msg m;

	if (msg_decode(&m, data, len, &why))
		session_give_up(s, why);
	else if (m.type == MSG_CHUNK)
		chunk(s, s->job, &m);
	else if (m.type == MSG_DONE)
		done(s, s->job, &m);
	else
		session_give_up(s, "CHUNK or DONE was due");
}

static void stop(struct session *s)
{
	struct job *j = s->job;

	hasher_wait(j->hasher, &j->digest, j->digest.added);
	temp_abort(&j->temp);
	free(j);
}

void serve_put(struct session *s, const struct msg *m)
{
	static const struct service put = { .message = message, .stop = stop };
	struct msg go = { .type = MSG_GO,
			  .nslots = file_nslots(m->size),
			  .len = file_slot_len(m->size) };
	struct job *j;
	const char *why;

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
	if (session_window(s, (size_t)go.nslots * go.len, DDPS_REMOTE_WRITE))
		return;
	j = calloc(1, sizeof *j);
	if (!j) {
		session_give_up(s, ddps_strerror(DDPS_E_NOMEM));
		return;
	}
	*j = (struct job){ .hasher = session_hasher(s, (enum digest_kind)m->kind),
			   .force = m->force,
			   .size = m->size,
			   .temp = TEMP_NONE,
			   .begin = clock_ns() };
	snprintf(j->name, sizeof j->name, "%.*s", SAFE_NAME_MAX, m->text);
	digest_init(&j->digest, (enum digest_kind)m->kind);
	why = open_target(s, j);
	if (why) {
		session_give_up(s, why);
		free(j);
		return;
	}
	if (s->win.mr) {
		go.stag = ddps_mr_stag(s->win.mr);
		go.to = ddps_mr_to(s->win.mr);
	}
	session_limit(s, j->size);
	session_begin(s, &put, j);
	session_send(s, &go);
}
