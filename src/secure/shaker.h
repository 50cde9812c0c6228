/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_SHAKER_H
#define DDPS_SECURE_SHAKER_H
/*
 * Handshakes next to the loop: a thread of the context's takes their steps, which need up to a
 * millisecond each, and the loop moves their octets.  All functions are the loop's: with the context's
 * lock held, but for ddps_shaker_stop.
 */
#include "common/error.h"
#include "common/llp.h"
#include "secure/hs/hs.h"

struct ddps_shake;

/*
 * A handshake for @env->secure with @peer, whose network takes turns with others.  @stepped is called from the loop after each step that ddps_shake_feed has
 * begun; it may free @out.  Return 0 or DDPS_E_*, with a sentence in @why.
 */
int ddps_shake_new(struct ddps_env *env, const struct ddps_creds_want *want,
		   const struct sockaddr *peer, void (*stepped)(void *user), void *user,
		   struct ddps_shake **out, struct ddps_error *why);
/* The same over datagrams, as dhs.h has them.  @began: a listener's, or zeros. */
int ddps_shake_datagrams(struct ddps_env *env, const struct ddps_creds_want *want,
			 const struct sockaddr *peer, const struct ddps_hs_began *began,
			 void (*stepped)(void *user), void *user, struct ddps_shake **out,
			 struct ddps_error *why);
/* No call any more; NULL is nothing. */
void ddps_shake_free(struct ddps_shake *s);

/* A step is under way, and its octets belong to it. */
bool ddps_shake_busy(const struct ddps_shake *s);
/* It is a peer's, and waits before its first step: the peer has heard nothing of it yet. */
bool ddps_shake_waits(const struct ddps_shake *s);

/* Go on with these octets, none: begin.  Not while a step is under way.  A peer's may have to wait first, and
 * may lose its place: it has failed then.  0 or DDPS_E_NOMEM. */
int ddps_shake_feed(struct ddps_shake *s, const uint8_t *in, size_t n);

/* While it is not busy: where it stands, and as of hs.h. */
enum ddps_hs_state ddps_shake_state(const struct ddps_shake *s);
const uint8_t *ddps_shake_output(const struct ddps_shake *s, size_t *n);
void ddps_shake_sent(struct ddps_shake *s, size_t n);
const struct ddps_verdict *ddps_shake_why(const struct ddps_shake *s);
void ddps_shake_take(struct ddps_shake *s, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		     const uint8_t **rest, size_t *nrest);

/* As of dhs.h. */
unsigned ddps_shake_timeout(const struct ddps_shake *s);
struct ddps_witness *ddps_shake_witness(struct ddps_shake *s);

/*
 * Judge @w again, of a peer whose handshake is long done: also the thread's, since files may have to be read.
 * @judged is called from the loop; ddps_shake_why() says what came of it then, code 0: it would be let in.  @w is
 * @out's until ddps_shake_judged() gives it back.  0 or DDPS_E_NOMEM.
 */
int ddps_shake_judge(struct ddps_env *env, struct ddps_witness *w, const struct sockaddr *peer,
		     void (*judged)(void *user), void *user, struct ddps_shake **out,
		     struct ddps_error *why);
struct ddps_witness *ddps_shake_judged(struct ddps_shake *s);

/* The thread ends, before the loop goes; without the lock. */
void ddps_shaker_stop(struct ddps_env *env);

#endif
