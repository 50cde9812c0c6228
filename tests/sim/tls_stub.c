/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_stub.h. */
#include "sim/tls_stub.h"
#include "secure/secure.h"
#include "secure/shaker.h"
#include "support/aead_stub.h"
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO = 300, ANSWER = 2500, FINISHED = 100, MESSAGE_MAX = ANSWER };

/* ---- credentials ---- */

static int open_stub_creds(struct ddps_creds **out, const struct ddps_secure_attr *attr,
			   int64_t now, struct ddps_verdict *why)
{
	(void)attr;
	(void)now;
	*out = malloc(1);
	if (!*out)
		snprintf(why->text, sizeof why->text, "out of memory");
	return *out ? 0 : DDPS_E_NOMEM;
}

static struct ddps_creds *share_stub_creds(struct ddps_creds *c)
{
	(void)c;
	return malloc(1);
}

static void close_stub_creds(struct ddps_creds *c)
{
	free(c);
}

static int allow_stub(struct ddps_creds *c, bool server, bool datagrams, struct ddps_verdict *why)
{
	(void)c;
	(void)server;
	(void)datagrams;
	(void)why;
	return 0;
}

static struct ddps_creds_set *use_stub_creds(struct ddps_creds *c, uint64_t ms, int64_t now,
					     struct ddps_verdict *news)
{
	(void)c;
	(void)ms;
	(void)now;
	*news = (struct ddps_verdict){ .code = 0 };
	return NULL;
}

/* ---- a handshake ---- */

struct ddps_hs {
	bool server;
	size_t due; /* octets of the peer's next message */
	uint8_t in[MESSAGE_MAX + 16384];
	size_t nin;
	uint8_t out[MESSAGE_MAX];
	size_t nout, sent;
	struct ddps_verdict why;
};

static int make_stub_hs(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			struct ddps_verdict *why)
{
	*out = calloc(1, sizeof **out);
	if (!*out) {
		*why = (struct ddps_verdict){ .code = DDPS_E_NOMEM, .text = "out of memory" };
		return DDPS_E_NOMEM;
	}
	(*out)->server = conf->want.server;
	(*out)->due = conf->want.server ? HELLO : 0;
	return 0;
}

static void free_stub_hs(struct ddps_hs *h)
{
	free(h);
}

static void say_message(struct ddps_hs *h, size_t n, char what, size_t due)
{
	memset(h->out, what, n);
	h->nout = n;
	h->sent = 0;
	h->due = due;
}

static enum ddps_hs_state fail_stub(struct ddps_hs *h)
{
	h->why = (struct ddps_verdict){ .code = DDPS_E_TLS, .text = "no message of the stub's" };
	return DDPS_HS_FAILED;
}

static enum ddps_hs_state step_stub_hs(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now)
{
	const size_t due = h->due;
	const char expected = due == HELLO ? 'H' : due == ANSWER ? 'A' : 'F';

	(void)now;
	if (n > sizeof h->in - h->nin)
		return fail_stub(h);
	if (n)
		memcpy(h->in + h->nin, in, n);
	h->nin += n;
	if (h->nin && h->in[0] != (uint8_t)expected)
		return fail_stub(h);
	if (h->nin < due)
		return DDPS_HS_MORE;
	memmove(h->in, h->in + due, h->nin - due);
	h->nin -= due;
	if (!due)
		say_message(h, HELLO, 'H', ANSWER);
	else if (due == HELLO)
		say_message(h, ANSWER, 'A', FINISHED);
	else if (due == ANSWER)
		say_message(h, FINISHED, 'F', FINISHED);
	return due == ANSWER || due == FINISHED ? DDPS_HS_DONE : DDPS_HS_MORE;
}

static const uint8_t *get_stub_output(const struct ddps_hs *h, size_t *n)
{
	*n = h->nout - h->sent;
	return h->out + h->sent;
}

static void take_stub_sent(struct ddps_hs *h, size_t n)
{
	h->sent += n;
}

static const struct ddps_verdict *get_stub_why(const struct ddps_hs *h)
{
	return &h->why;
}

/* HKDF-Expand-Label of TLS 1.3 with SHA-256 and no context. */
static void make_label_key(const uint8_t *secret, const char *label, uint8_t n, uint8_t *out)
{
	uint8_t info[32] = { 0, n, (uint8_t)(6 + strlen(label)) };
	struct hmac_sha256_ctx mac;

	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, strlen(label));
	hmac_sha256_set_key(&mac, 32, secret);
	hkdf_expand(&mac, (nettle_hash_update_func *)hmac_sha256_update,
		    (nettle_hash_digest_func *)hmac_sha256_digest, 32, 10 + strlen(label), info, n,
		    out);
}

static void make_direction(struct ddps_rec_keys *k, char whose)
{
	memset(k, 0, sizeof *k);
	memset(k->secret, whose, 32);
	make_label_key(k->secret, "key", 16, k->key);
	make_label_key(k->secret, "iv", DDPS_AEAD_NONCE, k->iv);
}

static void take_stub_keys(struct ddps_hs *h, struct ddps_rec_config *keys, struct ddps_peer_id *id,
			   const uint8_t **rest, size_t *nrest)
{
	*keys = (struct ddps_rec_config){ .suite = DDPS_SUITE_AES_128_GCM, .client = !h->server };
	make_direction(&keys->tx, h->server ? 's' : 'c');
	make_direction(&keys->rx, h->server ? 'c' : 's');
	*id = (struct ddps_peer_id){ .struct_size = sizeof *id, .how = DDPS_PEER_PSK };
	snprintf(id->name, sizeof id->name, "psk:stub");
	*rest = h->in;
	*nrest = h->nin;
}

static const struct ddps_tls_plugin stub = {
	.abi = DDPS_TLS_ABI,
	.creds_open = open_stub_creds,
	.creds_share = share_stub_creds,
	.creds_close = close_stub_creds,
	.creds_use = use_stub_creds,
	.creds_may = allow_stub,
	.tls = { .make = make_stub_hs,
		 .free = free_stub_hs,
		 .step = step_stub_hs,
		 .output = get_stub_output,
		 .sent = take_stub_sent,
		 .why = get_stub_why,
		 .take = take_stub_keys },
	.dtls_greet = dtls_stub_greet,
	.witness_free = dtls_stub_witness_free,
	.aead = aead_stub,
};

const struct ddps_tls_plugin *ddps_tls_load(char *why, size_t why_len)
{
	(void)why;
	(void)why_len;
	return &stub;
}

struct ddps_secure *tls_stub_secure(void)
{
	struct ddps_secure_attr attr;
	struct ddps_secure *s = NULL;

	ddps_secure_attr_init(&attr);
	return ddps_secure_open(&s, &attr, NULL) ? NULL : s;
}

/* ---- in place of the thread ---- */

struct ddps_shake {
	struct ddps_env *env;
	const struct ddps_hs_ops *ops;
	struct ddps_hs *hs;
	struct ddps_witness *witness; /* to be judged, without a handshake */
	struct ddps_task task;
	void (*stepped)(void *user);
	void *user;
	bool busy;
	uint8_t *in;
	size_t nin;
	enum ddps_hs_state state;
};

static void take_stub_step(void *user)
{
	struct ddps_shake *s = user;

	if (!s->witness)
		s->state = s->ops->step(s->hs, s->in, s->nin, 0);
	s->busy = false;
	s->stepped(s->user);
}

static int make_stub_shake(struct ddps_env *env, const struct ddps_creds_want *want,
			   const struct ddps_hs_ops *ops, void (*stepped)(void *user), void *user,
			   struct ddps_shake **out, struct ddps_error *why)
{
	const struct ddps_hs_conf conf = { .want = *want };
	struct ddps_shake *s = calloc(1, sizeof *s);
	struct ddps_verdict v;

	if (!s || ops->make(&s->hs, &conf, &v)) {
		free(s);
		*why = (struct ddps_error){ .code = DDPS_E_NOMEM,
					    .text = "no memory for a handshake" };
		return DDPS_E_NOMEM;
	}
	s->env = env;
	s->ops = ops;
	s->stepped = stepped;
	s->user = user;
	s->task = (struct ddps_task){ .fn = take_stub_step, .user = s };
	*out = s;
	return 0;
}

int ddps_shake_new(struct ddps_env *env, const struct ddps_creds_want *want,
		   const struct sockaddr *peer, void (*stepped)(void *user), void *user,
		   struct ddps_shake **out, struct ddps_error *why)
{
	(void)peer;
	return make_stub_shake(env, want, &stub.tls, stepped, user, out, why);
}

int ddps_shake_datagrams(struct ddps_env *env, const struct ddps_creds_want *want,
			 const struct sockaddr *peer, const struct ddps_hs_began *began,
			 void (*stepped)(void *user), void *user, struct ddps_shake **out,
			 struct ddps_error *why)
{
	(void)peer;
	(void)began;
	return make_stub_shake(env, want, &dtls_stub, stepped, user, out, why);
}

void ddps_shake_free(struct ddps_shake *s)
{
	if (!s)
		return;
	ddps_task_cancel(s->env->loop, &s->task);
	s->ops->free(s->hs);
	dtls_stub_witness_free(s->witness);
	free(s->in);
	free(s);
}

bool ddps_shake_busy(const struct ddps_shake *s)
{
	return s->busy;
}

bool ddps_shake_waits(const struct ddps_shake *s)
{
	(void)s;
	return false;
}

int ddps_shake_feed(struct ddps_shake *s, const uint8_t *in, size_t n)
{
	free(s->in);
	s->in = n ? malloc(n) : NULL;
	if (n && !s->in)
		return DDPS_E_NOMEM;
	if (n)
		memcpy(s->in, in, n);
	s->nin = n;
	s->busy = true;
	ddps_task_post(s->env->loop, &s->task);
	return 0;
}

enum ddps_hs_state ddps_shake_state(const struct ddps_shake *s)
{
	return s->state;
}

const uint8_t *ddps_shake_output(const struct ddps_shake *s, size_t *n)
{
	return s->ops->output(s->hs, n);
}

void ddps_shake_sent(struct ddps_shake *s, size_t n)
{
	s->ops->sent(s->hs, n);
}

const struct ddps_verdict *ddps_shake_why(const struct ddps_shake *s)
{
	return s->ops->why(s->hs);
}

void ddps_shake_take(struct ddps_shake *s, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		     const uint8_t **rest, size_t *nrest)
{
	s->ops->take(s->hs, keys, id, rest, nrest);
	keys->aead = aead_stub();
}

unsigned ddps_shake_timeout(const struct ddps_shake *s)
{
	return s->ops == &dtls_stub ? dtls_stub_timeout(s->hs) : 0;
}

struct ddps_witness *ddps_shake_witness(struct ddps_shake *s)
{
	(void)s;
	return dtls_stub_witness();
}

int ddps_shake_judge(struct ddps_env *env, struct ddps_witness *w, const struct sockaddr *peer,
		     void (*judged)(void *user), void *user, struct ddps_shake **out,
		     struct ddps_error *why)
{
	static const struct ddps_creds_want nobody;
	int err = ddps_shake_datagrams(env, &nobody, peer, NULL, judged, user, out, why);

	if (err)
		return err;
	(*out)->witness = w;
	return ddps_shake_feed(*out, NULL, 0);
}

struct ddps_witness *ddps_shake_judged(struct ddps_shake *s)
{
	struct ddps_witness *w = s->witness;

	s->witness = NULL;
	return w;
}

void ddps_shaker_stop(struct ddps_env *env)
{
	(void)env;
}
