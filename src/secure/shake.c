/* SPDX-License-Identifier: BSD-2-Clause */
/* One handshake: what it is about, its octets, what came of it.  shaker.c has its steps taken. */
#include "secure/shaker_in.h"
#include "common/shares.h"
#include "secure/secure.h"
#include <stdlib.h>
#include <string.h>

void ddps_shake_drop_hs(struct ddps_shake *s)
{
	if (s->hs)
		s->ops->free(s->hs);
	s->hs = NULL;
}

void ddps_shake_destroy(struct ddps_shake *s)
{
	ddps_shake_drop_hs(s);
	if (s->witness)
		s->plugin->witness_free(s->witness);
	free(s->host);
	free(s->in);
	free(s);
}

static int explain_shake(struct ddps_error *why, int code, const char *text)
{
	*why = ddps_error_make(code, 0, "%s", text);
	return code;
}

/* @began: over datagrams, or NULL. */
static int make_shake(struct ddps_env *env, const struct ddps_creds_want *want,
		      const struct sockaddr *peer, const struct ddps_hs_began *began,
		      void (*stepped)(void *user), void *user, struct ddps_shake **out,
		      struct ddps_error *why)
{
	const struct ddps_tls_plugin *plugin;
	struct ddps_shaker *k;
	struct ddps_shake *s;

	if (!env->secure)
		return explain_shake(why, DDPS_E_NO_CERT,
				     "no certificate or pre-shared key was given to the context");
	plugin = env->secure->plugin;
	k = ddps_shaker_of(env);
	s = k ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return explain_shake(why, DDPS_E_NOMEM, "no memory or thread for a handshake");
	*s = (struct ddps_shake){ .by = k,
				  .plugin = plugin,
				  .ops = began ? &plugin->dtls : &plugin->tls,
				  .conf = { .want = *want },
				  .stepped = stepped,
				  .user = user,
				  .net = ddps_share_net_sa(peer),
				  .server = want->server };
	if (began)
		s->conf.began = *began;
	s->host = want->host ? strdup(want->host) : NULL;
	s->conf.want.host = s->host;
	if (want->host && !s->host) {
		ddps_shake_destroy(s);
		return explain_shake(why, DDPS_E_NOMEM, "no memory for a handshake");
	}
	*out = s;
	return 0;
}

int ddps_shake_new(struct ddps_env *env, const struct ddps_creds_want *want,
		   const struct sockaddr *peer, void (*stepped)(void *user), void *user,
		   struct ddps_shake **out, struct ddps_error *why)
{
	return make_shake(env, want, peer, NULL, stepped, user, out, why);
}

int ddps_shake_datagrams(struct ddps_env *env, const struct ddps_creds_want *want,
			 const struct sockaddr *peer, const struct ddps_hs_began *began,
			 void (*stepped)(void *user), void *user, struct ddps_shake **out,
			 struct ddps_error *why)
{
	return make_shake(env, want, peer, began, stepped, user, out, why);
}

void ddps_shake_free(struct ddps_shake *s)
{
	bool waited;

	if (!s)
		return;
	waited = s->pass.at == DDPS_GATE_WAITS;
	if (s->busy && !waited && !ddps_shaker_withdraw(s)) {
		s->orphan = true;
		return;
	}
	if (s->pass.at != DDPS_GATE_OUT) {
		ddps_gate_leave(&s->by->gate, &s->pass, false);
		ddps_shaker_let_in(s->by);
	}
	ddps_shake_destroy(s);
}

bool ddps_shake_busy(const struct ddps_shake *s)
{
	return s->busy;
}

bool ddps_shake_waits(const struct ddps_shake *s)
{
	return s->pass.at == DDPS_GATE_WAITS;
}

int ddps_shake_feed(struct ddps_shake *s, const uint8_t *in, size_t n)
{
	struct ddps_shaker *k = s->by;

	if (s->busy) /* given up meanwhile: @stepped will say so */
		return 0;
	free(s->in);
	s->in = n ? malloc(n) : NULL;
	if (n && !s->in)
		return DDPS_E_NOMEM;
	if (n)
		memcpy(s->in, in, n);
	s->nin = n;
	s->busy = true;
	s->pass.idle = 0;
	if (!s->server || s->begun) {
		ddps_shaker_enqueue(s);
		return 0;
	}
	s->begun = true;
	ddps_gate_wait(&k->gate, &s->pass, s->net);
	ddps_shaker_let_in(k);
	k->env->secured_held += s->pass.at == DDPS_GATE_WAITS;
	return 0;
}

enum ddps_hs_state ddps_shake_state(const struct ddps_shake *s)
{
	return s->state;
}

const uint8_t *ddps_shake_output(const struct ddps_shake *s, size_t *n)
{
	*n = 0;
	return s->hs ? s->ops->output(s->hs, n) : NULL;
}

void ddps_shake_sent(struct ddps_shake *s, size_t n)
{
	if (n)
		s->ops->sent(s->hs, n);
}

const struct ddps_verdict *ddps_shake_why(const struct ddps_shake *s)
{
	return s->hs ? s->ops->why(s->hs) : &s->why;
}

void ddps_shake_take(struct ddps_shake *s, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		     const uint8_t **rest, size_t *nrest)
{
	s->ops->take(s->hs, keys, id, rest, nrest);
	keys->aead = s->plugin->aead();
}

unsigned ddps_shake_timeout(const struct ddps_shake *s)
{
	return s->hs ? s->plugin->dtls_timeout(s->hs) : 0;
}

int ddps_shake_judge(struct ddps_env *env, struct ddps_witness *w, const struct sockaddr *peer,
		     void (*judged)(void *user), void *user, struct ddps_shake **out,
		     struct ddps_error *why)
{
	static const struct ddps_creds_want nobody;
	int err = make_shake(env, &nobody, peer, NULL, judged, user, out, why);

	if (err)
		return err;
	(*out)->witness = w;
	(void)ddps_shake_feed(*out, NULL, 0); /* without octets it cannot fail */
	return 0;
}

struct ddps_witness *ddps_shake_judged(struct ddps_shake *s)
{
	struct ddps_witness *w = s->witness;

	s->witness = NULL;
	return w;
}

struct ddps_witness *ddps_shake_witness(struct ddps_shake *s)
{
	return s->plugin->dtls_witness(s->hs);
}
