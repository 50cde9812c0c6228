/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A new handshake on the same addresses (RFC 6347 4.2.8), since DTLS 1.2 has no other way to new keys.  SCTP above
 * goes on.  Both keys call their epoch 1, so that a record is tried with each; what is sealed by the old one and
 * still under way is taken for a while.
 */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "secure/secure.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OLD_NS	 (120 * NSEC_PER_SEC) /* twice the longest life of a segment (RFC 6347 4.2.4) */
#define AGAIN_NS (30 * NSEC_PER_SEC)

void ddps_sn_keys_drop(struct ddps_sn_keys *k)
{
	if (k->rec)
		ddps_dtls_wipe(k->rec);
	k->rec = NULL;
	ddps_vault_free(&k->vault);
}

int ddps_sn_keys_take(struct ddps_sn_dtls *c, struct ddps_sn_keys *k, struct ddps_peer_id *id,
		      struct ddps_witness **witness)
{
	struct ddps_dtls_config conf = { .epoch = 1, .renew_at = c->ne->renew_at };
	struct ddps_rec_config keys;
	const uint8_t *rest;
	size_t n;
	int err;

	*witness = ddps_shake_witness(c->shake);
	ddps_shake_take(c->shake, &keys, id, &rest, &n);
	if (!c->renewing)
		c->most = keys.peer_limit;
	conf.aead = keys.aead;
	conf.suite = keys.suite;
	conf.tx.seq = keys.tx.seq;
	memcpy(conf.tx.key, keys.tx.key, sizeof conf.tx.key);
	memcpy(conf.tx.iv, keys.tx.iv, sizeof conf.tx.iv);
	memcpy(conf.rx.key, keys.rx.key, sizeof conf.rx.key);
	memcpy(conf.rx.iv, keys.rx.iv, sizeof conf.rx.iv);
	explicit_bzero(&keys, sizeof keys);
	err = *witness ? ddps_vault_in(c->ne->env->vaults, &k->vault, ddps_dtls_size(&conf))
		       : DDPS_E_NOMEM;
	if (!err && ddps_dtls_init(k->vault.p, &conf, &k->rec)) {
		ddps_vault_free(&k->vault);
		err = DDPS_E_NOMEM;
	}
	explicit_bzero(&conf, sizeof conf);
	return err;
}

static void end_renewal(struct ddps_sn_dtls *c)
{
	ddps_shake_free(c->shake);
	c->shake = NULL;
	c->renewing = false;
	c->deadline = 0;
	ddps_sn_framed_drop(&c->todo);
	ddps_timer_stop(c->ne->env->loop, &c->timer);
	ddps_sn_dtls_linger(c);
}

void ddps_sn_dtls_not_renewed(struct ddps_sn_dtls *c, const char *why)
{
	char peer[72];

	if (why) {
		ddps_sn_text(&c->peer, c->at.port, peer, sizeof peer);
		ddps_log(&c->ne->env->log, DDPS_LOG_WARN, "secure",
			 "%s: no new keys (%s), those there are go on", peer, why);
	}
	ddps_sn_keys_drop(&c->coming);
	c->renew_at = ddps_now() + AGAIN_NS;
	c->renewing = false; /* before it lingers */
	end_renewal(c);
}

void ddps_sn_dtls_renew(struct ddps_sn_dtls *c)
{
	const struct ddps_creds_want want = { .host = c->host };
	struct ddps_error why;

	if (ddps_now() < c->renew_at)
		return;
	c->renewing = true;
	if (ddps_sn_dtls_shake(c, &want, NULL, NULL, 0, &why))
		ddps_sn_dtls_not_renewed(c, why.text);
}

/* From now on what is sealed is by the new ones. */
static void begin_with_coming(struct ddps_sn_dtls *c)
{
	ddps_sn_keys_drop(&c->old);
	c->old = c->cur;
	c->cur = c->coming;
	c->coming = (struct ddps_sn_keys){ .rec = NULL };
	c->ne->env->secured.renewed++;
	c->old_until = ddps_now() + OLD_NS;
	ddps_log(&c->ne->env->log, DDPS_LOG_DEBUG, "secure", "new keys of DTLS");
	end_renewal(c);
}

void ddps_sn_dtls_renewed(struct ddps_sn_dtls *c)
{
	const struct ddps_secure *s = c->ne->env->secure;
	struct ddps_witness *w = NULL;
	uint8_t none[DDPS_DTLS_OVERHEAD];
	struct ddps_peer_id id;
	struct ddps_who *who = NULL;
	ssize_t n;
	int err = ddps_sn_keys_take(c, &c->coming, &id, &w);

	if (!err && !(who = ddps_who_keep(&id)))
		err = DDPS_E_NOMEM;
	if (!err && !ddps_sn_dtls_same_peer(who, c->who))
		err = DDPS_E_CERT_NAME;
	if (err) {
		free(who);
		if (w)
			s->plugin->witness_free(w);
		ddps_sn_dtls_not_renewed(c, err == DDPS_E_NOMEM ? "no memory"
								: "it shows another identity");
		return;
	}
	s->plugin->witness_free(c->witness);
	c->witness = w;
	free(c->who);
	c->who = who;
	if (c->server) { /* the peer shows that it has them by using them */
		c->deadline = ddps_now() + OLD_NS;
		ddps_timer_start(c->ne->env->loop, &c->timer, c->deadline);
		return;
	}
	begin_with_coming(c);
	n = ddps_dtls_seal(c->cur.rec, DDPS_DTLS_DATA, NULL, 0, none, sizeof none);
	if (n > 0)
		ddps_sn_dtls_send_raw(c->udp, &c->peer, c->at.port, &c->local, none, (size_t)n);
}

/* Of which key it is nothing says. */
static ssize_t try_keys(struct ddps_sn_dtls *c, const struct ddps_dtls_head *h, uint8_t *p,
			uint8_t **content)
{
	struct ddps_sn_keys *const all[] = { &c->coming, &c->cur, &c->old };
	uint8_t *copy = ddps_sn_dtls_room(c->ne);
	bool again = false;
	ssize_t len = -ENOMEM;

	if (!copy || h->len > DDPS_SN_FLAT)
		return len;
	copy += DDPS_SN_SEALED; /* what does not open is zeros */
	memcpy(copy, p, h->len);
	for (unsigned i = 0; i < 3; i++) {
		struct ddps_dtls *d = all[i]->rec;

		if (!d || h->len < ddps_dtls_overhead(d))
			continue;
		*content = p + ddps_dtls_content(d);
		len = ddps_dtls_open(d, h, copy, *content);
		if (len >= 0) {
			ddps_sn_dtls_pardon(c);
			if (i == 0)
				begin_with_coming(c);
			return len;
		}
		all[i]->in_vain = len == -EBADMSG;
		again |= len == -EALREADY;
	}
	return len == -EOVERFLOW ? len : again ? -EALREADY : -EBADMSG;
}

void ddps_sn_dtls_pardon(struct ddps_sn_dtls *c)
{
	struct ddps_sn_keys *const all[] = { &c->coming, &c->cur, &c->old };

	for (unsigned i = 0; i < 3; i++) {
		if (all[i]->rec && all[i]->in_vain)
			ddps_dtls_pardon(all[i]->rec);
		all[i]->in_vain = false;
	}
}

ssize_t ddps_sn_dtls_open(struct ddps_sn_dtls *c, const struct ddps_dtls_head *h, uint8_t *p,
			  uint8_t **content)
{
	ssize_t len;

	if (c->old.rec && ddps_now() >= c->old_until)
		ddps_sn_keys_drop(&c->old);
	c->coming.in_vain = c->cur.in_vain = c->old.in_vain = false;
	if (c->coming.rec || c->old.rec)
		return try_keys(c, h, p, content);
	if (h->len < ddps_dtls_overhead(c->cur.rec))
		return -EPROTO;
	*content = p + ddps_dtls_content(c->cur.rec);
	len = ddps_dtls_open(c->cur.rec, h, p, *content);
	c->cur.in_vain = len == -EBADMSG;
	return len;
}
