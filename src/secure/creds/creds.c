/* SPDX-License-Identifier: BSD-2-Clause */
/* Credentials that a program opened: the set of today, and when it is read again. */
#include "secure/creds/set.h"
#include "common/system/lock.h"
#include <ddpsess/err_codes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 1000  /* files are looked at so often at most */
#define TELL_MS 60000 /* and what is wrong with them is said so often */

/* Which files there were, to see whether they are others now. */
struct stamps {
	struct ddps_stamp settings, file[DDPS_SET_FILES];
};

struct ddps_creds {
	atomic_uint refs;
	struct ddps_settings given;
	atomic_int pid; /* the process that the locks are of; negative: that makes them */
	struct ddps_mutex reading; /* of what follows; it is held while files are read */
	bool looked;
	uint64_t looked_ms;
	bool failed; /* the last reading */
	bool lapsed; /* and what else it read is in force: only the own certificate or key is not */
	uint64_t told_ms;
	bool told_keylog, told_no_keylog;
	struct stamps tried;
	struct ddps_mutex lock; /* of @set, which is written with both; it is held for a moment */
	struct ddps_creds_set *set;
};

static struct stamps get_stamps(const struct ddps_settings *s)
{
	struct stamps now;

	memset(&now, 0, sizeof now);
	if (s->file)
		now.settings = ddps_stamp_of(s->file);
	for (int i = 0; i < DDPS_SET_FILES; i++)
		if (s->value[i])
			now.file[i] = ddps_stamp_of(s->value[i]);
	return now;
}

static bool is_as(const struct stamps *now, const struct ddps_stamp *settings,
		  const struct ddps_stamp *file)
{
	bool same = ddps_stamp_same(&now->settings, settings);

	for (int i = 0; i < DDPS_SET_FILES; i++)
		same &= ddps_stamp_same(&now->file[i], &file[i]);
	return same;
}

/* @old: NULL, or then there may be a new set although something is wrong. */
static int load_new_set(struct ddps_creds_set **set, const struct ddps_settings *given,
			const struct ddps_creds_set *old, int64_t now, struct ddps_verdict *why)
{
	struct ddps_report r = { .old = old };
	const int err = ddps_set_load(set, given, now, &r);

	*why = err ? r.first : r.lapse;
	if (err)
		why->code = err;
	return why->code;
}

int ddps_creds_open(struct ddps_creds **out, const struct ddps_secure_attr *attr, int64_t now,
		    struct ddps_verdict *why)
{
	struct ddps_creds *c = calloc(1, sizeof *c);
	int err;

	if (!c)
		return ddps_verdict_set(why, DDPS_E_NOMEM, 0, "out of memory");
	atomic_init(&c->refs, 1);
	atomic_init(&c->pid, (int)getpid());
	ddps_mutex_init(&c->reading, DDPS_LOCK_FILES);
	ddps_mutex_init(&c->lock, DDPS_LOCK_CREDS);
	err = ddps_settings_take(&c->given, attr);
	if (err)
		ddps_verdict_set(why, err, 0, "%s",
				 err == DDPS_E_NOMEM ? "out of memory"
						     : "a flag that this release does not know");
	else
		err = load_new_set(&c->set, &c->given, NULL, now, why);
	if (err) {
		ddps_creds_close(c);
		return err;
	}
	*out = c;
	return 0;
}

/* A child of fork may have the locks as a thread of its parent held them, and that thread is not in the child: there
 * they are made anew, by whoever comes first. */
static void own_creds_locks(struct ddps_creds *c)
{
	const int me = (int)getpid();
	int was = atomic_load(&c->pid);

	while (was != me) {
		if (was != -me && atomic_compare_exchange_weak(&c->pid, &was, -me)) {
			ddps_mutex_init(&c->reading, DDPS_LOCK_FILES);
			ddps_mutex_init(&c->lock, DDPS_LOCK_CREDS);
			atomic_store(&c->pid, me);
		}
		was = atomic_load(&c->pid);
	}
}

static void lock_reading(struct ddps_creds *c)
{
	own_creds_locks(c);
	ddps_lock(&c->reading);
}

struct ddps_creds *ddps_creds_share(struct ddps_creds *c)
{
	atomic_fetch_add(&c->refs, 1);
	return c;
}

void ddps_creds_close(struct ddps_creds *c)
{
	if (atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	if (c->set)
		ddps_creds_release(c->set);
	ddps_settings_free(&c->given);
	free(c);
}

void ddps_creds_release(struct ddps_creds_set *set)
{
	if (atomic_fetch_sub(&set->refs, 1) == 1)
		ddps_set_free(set);
}

/* Handshakes under way keep the old set.  @replaced: there is a new one, whatever is wrong. */
static int replace_set(struct ddps_creds *c, int64_t now, struct ddps_verdict *why, bool *replaced)
{
	struct ddps_creds_set *set, *old;
	const int err = load_new_set(&set, &c->given, c->set, now, why);

	c->failed = err;
	c->lapsed = err && set;
	*replaced = set;
	if (!set)
		return err;
	ddps_lock(&c->lock);
	old = c->set;
	c->set = set; /* first: a fork may come in between */
	ddps_unlock(&c->lock);
	ddps_creds_release(old);
	if (err) {
		const struct ddps_verdict lapse = *why;

		ddps_verdict_set(why, err, 0, "in force, but %.180s", lapse.text);
	}
	return err;
}

int ddps_creds_reload(struct ddps_creds *c, int64_t now, struct ddps_verdict *why)
{
	bool replaced;
	int err;

	lock_reading(c);
	err = replace_set(c, now, why, &replaced);
	ddps_unlock(&c->reading);
	return err;
}

/* Where there is a key log it is where it was: others take such files away, and look at them. */
static bool logs_keys(const struct ddps_creds_set *set)
{
	const char *const file = set->settings.value[DDPS_SET_KEYLOG];
	char why[200];
	int fd;

	if (!file || set->keylog >= 0)
		return !file || ddps_file_is_at(set->keylog, file);
	if (ddps_file_append(&fd, file, false, why, sizeof why))
		return true; /* it cannot: that was said */
	close(fd);
	return false;
}

/* Of two files that belong together one may have been renamed into place and the other not yet: what
 * failed is tried again each time, and reported for what is there, now and then: a rule that somebody
 * has added is not in force.  If only the own certificate is not, that waits for other files, or until it is reported
 * again: time may have made it valid. */
static void look_at_files(struct ddps_creds *c, uint64_t ms, int64_t now, struct ddps_verdict *news)
{
	const struct stamps found = get_stamps(&c->set->settings);
	const bool again = c->failed && is_as(&found, &c->tried.settings, c->tried.file),
		   intact = ddps_set_intact(c->set);
	const bool told = again && ms - c->told_ms < TELL_MS;
	struct ddps_verdict why;
	bool replaced;

	if (intact && logs_keys(c->set)) {
		const bool same = is_as(&found, &c->set->settings_stamp, c->set->stamp);

		c->failed &= !same;
		if (same || (told && c->lapsed))
			return;
	}
	if (!replace_set(c, now, &why, &replaced)) {
		ddps_verdict_set(news, 0, 0, "the files of secured wires were read again%s",
				 intact ? "" : ": a child of fork has no keys of its parent");
		return;
	}
	c->tried = found;
	if (told)
		return;
	c->told_ms = ms;
	ddps_verdict_set(
		news, why.code, 0,
		replaced ? "%s"
		: intact ? "not in force, what was read before stays in use: %.150s"
			 : "a child of fork has no keys of its parent, and cannot read them "
			   "anew: %.110s",
		why.text);
}

/* Once, until it is otherwise. */
static void tell_keylog(struct ddps_creds *c, struct ddps_verdict *news)
{
	const char *const file = c->set->settings.value[DDPS_SET_KEYLOG];
	const bool writes = c->set->keylog >= 0;

	if (!file || (writes ? c->told_keylog : c->told_no_keylog))
		return;
	c->told_keylog = writes;
	c->told_no_keylog = !writes;
	ddps_verdict_set(
		news, 0, 0,
		writes ? "secrets of connections are written to %.80s: whoever reads it "
			 "can read all that is sent"
		       : "secrets of connections are not written any more: %.80s cannot be "
			 "opened, or others can read it",
		file);
	news->loud = true;
}

struct ddps_creds_set *ddps_creds_use(struct ddps_creds *c, uint64_t ms, int64_t now,
				      struct ddps_verdict *news)
{
	struct ddps_creds_set *set;

	*news = (struct ddps_verdict){ .code = 0 };
	lock_reading(c);
	if (!c->looked || ms - c->looked_ms >= LOOK_MS || !ddps_set_intact(c->set)) {
		/* what was just opened is not looked at again */
		if (c->looked || !ddps_set_intact(c->set))
			look_at_files(c, ms, now, news);
		c->looked = true;
		c->looked_ms = ms;
	}
	set = c->set;
	if (!news->code)
		tell_keylog(c, news);
	atomic_fetch_add(&set->refs, 1);
	ddps_unlock(&c->reading);
	return set;
}

int ddps_creds_may(struct ddps_creds *c, bool server, bool datagrams, struct ddps_verdict *why)
{
	int err;

	*why = (struct ddps_verdict){ .code = 0 };
	own_creds_locks(c);
	ddps_lock(&c->lock);
	err = ddps_set_may(c->set, server, datagrams, why);
	ddps_unlock(&c->lock);
	return err;
}

int ddps_creds_check(const struct ddps_secure_attr *attr, int64_t now, ddps_secure_finding_fn *each,
		     void *user)
{
	struct ddps_report r = { .each = each, .user = user };
	struct ddps_settings given;
	struct ddps_creds_set *set;
	int err = ddps_settings_take(&given, attr);

	if (!err && !ddps_set_load(&set, &given, now, &r))
		ddps_creds_release(set);
	ddps_settings_free(&given);
	return err ? err : (int)r.faults;
}
