/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of secured wires that need no session. */
#include "secure/secure.h"
#include "common/error.h"
#include "common/sized.h"
#include "common/system/lock.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct ddps_secure_attr ddps_secure_attr_defaults(void)
{
	return (struct ddps_secure_attr){ .struct_size = sizeof(struct ddps_secure_attr) };
}

DDPS_SIZED_NO_TAIL(ddps_secure_attr, reserved);
DDPS_SIZED_NO_TAIL(ddps_peer_id, alpn);
DDPS_SIZED_NO_TAIL(ddps_secure_make, not_after);

static const size_t peer_id_sizes[] = { sizeof(struct ddps_peer_id) };
static const size_t make_sizes[] = { sizeof(struct ddps_secure_make) };
static const size_t attr_sizes[] = { sizeof(struct ddps_secure_attr) };
static const struct ddps_sized attr_sized = { sizeof(struct ddps_secure_attr), attr_sizes, 1 };

void ddps_secure_attr_init_sized(struct ddps_secure_attr *attr, size_t size)
{
	const struct ddps_secure_attr defaults = ddps_secure_attr_defaults();

	ddps_sized_init(attr, size, &defaults, &attr_sized);
}

static int take_secure_attr(struct ddps_secure_attr *to, const struct ddps_secure_attr *from)
{
	*to = ddps_secure_attr_defaults();
	return from ? ddps_sized_take(to, from, &attr_sized) : DDPS_E_INVAL;
}

int ddps_peer_id_give(struct ddps_peer_id *to, const struct ddps_peer_id *from)
{
	const struct ddps_sized s = { sizeof *to, peer_id_sizes, 1 };
	const int err = ddps_sized_check(to, &s);

	if (!err)
		ddps_sized_give(to, from, &s);
	return err;
}

/* ---- what went wrong ---- */

static int give_error(struct ddps_error *why, int code, const char *text)
{
	if (why)
		*why = ddps_error_make(code, 0, "%s", text);
	return code;
}

static int give_verdict(struct ddps_error *why, int code, const struct ddps_verdict *v)
{
	return code ? give_error(why, code, v->text) : 0;
}

static const struct ddps_tls_plugin *get_plugin(struct ddps_error *why)
{
	char text[sizeof why->text] = "";
	const struct ddps_tls_plugin *p = ddps_tls_load(text, sizeof text);

	if (!p)
		give_error(why, DDPS_E_NO_TLS, text);
	return p;
}

static int take_attr(struct ddps_secure_attr *to, const struct ddps_secure_attr *from,
		     struct ddps_error *why)
{
	const int err = take_secure_attr(to, from);

	return err ? give_error(why, err, "struct ddps_secure_attr is not of a known release") : 0;
}

/* ---- credentials ---- */

int ddps_secure_open(struct ddps_secure **out, const struct ddps_secure_attr *attr,
		     struct ddps_error *why)
{
	struct ddps_secure_attr own;
	struct ddps_verdict v = { .code = 0 };
	struct ddps_secure *s;
	int err = take_attr(&own, attr, why);

	if (err)
		return err;
	s = calloc(1, sizeof *s);
	if (!s)
		return give_error(why, DDPS_E_NOMEM, "out of memory");
	ddps_uncancellable(); /* until the files are closed */
	s->plugin = get_plugin(why);
	err = s->plugin ? give_verdict(why, s->plugin->creds_open(&s->creds, &own, time(NULL), &v),
				       &v)
			: DDPS_E_NO_TLS;
	if (err)
		free(s);
	else
		*out = s;
	ddps_uncancellable_end();
	return err;
}

int ddps_secure_reload(struct ddps_secure *s, struct ddps_error *why)
{
	struct ddps_verdict v = { .code = 0 };
	int err;

	ddps_uncancellable();
	err = give_verdict(why, s->plugin->creds_reload(s->creds, time(NULL), &v), &v);
	ddps_uncancellable_end();
	return err;
}

int ddps_secure_may(const struct ddps_secure *s, bool server, bool datagrams,
		    struct ddps_error *why)
{
	struct ddps_verdict v;

	if (!s)
		return give_error(why, DDPS_E_NO_CERT,
				  "no certificate or pre-shared key was given to the context");
	return give_verdict(why, s->plugin->creds_may(s->creds, server, datagrams, &v), &v);
}

struct ddps_secure *ddps_secure_hold(const struct ddps_secure *s)
{
	struct ddps_secure *copy = calloc(1, sizeof *copy);

	if (!copy)
		return NULL;
	*copy = (struct ddps_secure){ .plugin = s->plugin,
				      .creds = s->plugin->creds_share(s->creds) };
	return copy;
}

void ddps_secure_close(struct ddps_secure *s)
{
	if (!s)
		return;
	ddps_uncancellable();
	s->plugin->creds_close(s->creds);
	free(s);
	ddps_uncancellable_end();
}

/* ---- tools ---- */

int ddps_secure_check(const struct ddps_secure_attr *attr, int64_t now,
		      ddps_secure_finding_fn *each, void *user)
{
	struct ddps_secure_finding f = { .code = DDPS_E_NO_TLS, .what = "library", .file = "" };
	struct ddps_secure_attr own;
	char text[200] = "";
	const struct ddps_tls_plugin *p;
	int err = take_secure_attr(&own, attr);

	if (err || !each)
		return err ? err : DDPS_E_INVAL;
	ddps_uncancellable_by_others();
	p = ddps_tls_load(text, sizeof text);
	if (p) {
		err = p->check(&own, now, each, user);
	} else {
		f.text = text;
		each(user, &f);
		err = 1;
	}
	ddps_uncancellable_end();
	return err;
}

int ddps_secure_make(const struct ddps_secure_make *m, char *cert, size_t cert_size, char *key,
		     size_t key_size, struct ddps_error *why)
{
	const struct ddps_sized s = { sizeof *m, make_sizes, 1 };
	struct ddps_secure_make own = { .struct_size = sizeof own };
	struct ddps_verdict v = { .code = 0 };
	const struct ddps_tls_plugin *p;
	int err = m && cert && key ? ddps_sized_take(&own, m, &s) : DDPS_E_INVAL;

	if (err)
		return give_error(why, err, "struct ddps_secure_make is not of a known release");
	ddps_uncancellable();
	p = get_plugin(why);
	err = p ? give_verdict(why, p->make(&own, cert, cert_size, key, key_size, &v), &v)
		: DDPS_E_NO_TLS;
	ddps_uncancellable_end();
	return err;
}
