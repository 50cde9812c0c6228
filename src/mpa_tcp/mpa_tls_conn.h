/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_TLS_CONN_H
#define DDPS_MPA_TLS_CONN_H
/*
 * An MPA connection inside TLS, for mpa_tls*.c alone: mpa_tls.c is what MPA sees, mpa_tls_shake.c the
 * handshake, mpa_tls_in.c and mpa_tls_out.c the octets.
 */
#include "mpa_tcp/mpa_tls.h"
#include "common/error.h"
#include "common/who.h"
#include "secure/record/record.h"
#include "secure/shaker.h"
#include "secure/vault.h"

#define DDPS_MPA_TLS_SEALED (256u * 1024) /* octets that wait for TCP, of one connection */

struct ddps_tls_octets {
	uint8_t *p;
	size_t at, len, size; /* from @at to @len they are to be used */
};

struct ddps_mpa_tls {
	struct ddps_mpa_conn *c;
	struct ddps_shake *shake; /* until it is done */
	struct ddps_rec *rec;	  /* from then on */
	struct ddps_vault vault;  /* which it lies in */
	struct ddps_who *who;
	char *host;
	struct ddps_tls_octets in;    /* read, not opened */
	struct ddps_tls_octets plain; /* opened, not shown */
	struct ddps_tls_octets out;   /* sealed, not written */
	size_t surplus;		      /* octets behind the peer's close_notify */
	unsigned events;	      /* that MPA waits for */
	bool quiet;		      /* it waits for nothing, not even the end */
	bool eager;
	bool begun, done; /* the handshake */
	bool heard;	  /* the peer has sent something */
	bool closed;	  /* close_notify came */
	bool fin_due;	  /* FIN follows what waits */
	bool fin;	  /* it was sent */
	bool drop;	  /* close() resets */
	int lost;	  /* an errno: TCP takes nothing any more */
	size_t unsent;	  /* then: octets that it had not taken */
	size_t farewell; /* octets of the sealed close_notify, and of what stands before it for its sake */
	struct ddps_task task; /* what is here already is to be shown */
	struct ddps_kept_error why;
};

static inline size_t ddps_tls_waiting(const struct ddps_tls_octets *o)
{
	return o->len - o->at;
}

/* Why it is over, for MPA; the first wins. */
void ddps_mpa_tls_fail(struct ddps_mpa_tls *t, const struct ddps_error *why);
/* Wait for what there is to wait for now. */
void ddps_mpa_tls_rewatch(struct ddps_mpa_tls *t);

/* ---- mpa_tls_out.c ---- */

/* Append a copy; false: no memory. */
bool ddps_tls_keep(struct ddps_tls_octets *o, const uint8_t *p, size_t n);
/* Where nothing waits no memory is kept. */
void ddps_tls_release(struct ddps_tls_octets *o);
/* Give TCP what it takes, then the FIN that is due.  0, or the negative errno that @lost has then. */
int ddps_mpa_tls_flush(struct ddps_mpa_tls *t);
/* Seal an alert, behind which nothing is sealed. */
void ddps_mpa_tls_alert(struct ddps_mpa_tls *t, uint8_t alert);
/* Seal the answer to a KeyUpdate that asks for one. */
void ddps_mpa_tls_answer(struct ddps_mpa_tls *t);
ssize_t ddps_mpa_tls_send(struct ddps_mpa_conn *c, struct iovec *iov, int k);
void ddps_mpa_tls_fin(struct ddps_mpa_conn *c);
/* All that was sealed but the close_notify has arrived. */
bool ddps_mpa_tls_arrived(const struct ddps_mpa_tls *t);

/* ---- mpa_tls_in.c ---- */

ssize_t ddps_mpa_tls_recv(struct ddps_mpa_conn *c, struct iovec *iov, int k);
/* There is something for MPA which TCP does not show: octets, the end, or why it is over. */
bool ddps_mpa_tls_more(const struct ddps_mpa_tls *t);
/* TCP is gone with @err, perhaps with an alert that says why.  What MPA learns. */
int ddps_mpa_tls_look(struct ddps_mpa_tls *t, int err);

/* ---- mpa_tls_shake.c ---- */

/* DDPS_E_* if it cannot begin; @why has it then, and the task ends @c unless the caller does. */
int ddps_mpa_tls_begin(struct ddps_mpa_tls *t);
/* It is over: MPA learns it as it would of TCP. */
void ddps_mpa_tls_end_shake(struct ddps_mpa_tls *t);
/* TCP is ready, while the handshake is under way. */
void ddps_mpa_tls_shake_io(struct ddps_mpa_tls *t);

#endif
