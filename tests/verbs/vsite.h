/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VSITE_H
#define DDPS_TEST_VSITE_H
/* Keys of a small site in a folder of its own, and a peer that uses the library without the drop-in. */
#include "verbs/vt.h"
#include <ddpsess/ddpsess.h>

/*
 * host.pem and host.key (127.0.0.1, localhost), node (node-a) and old (which has expired) are of ca.pem,
 * stranger of other-ca.pem; a.psk and b.psk have those identities, wrong.psk has a's with another key;
 * deny.txt and allow.txt are lists for localhost, open.key is readable by others.
 */
struct vsite {
	char dir[64];
};

void vsite_make(struct vsite *s);
void vsite_remove(const struct vsite *s);
/* @dir/@name has these lines; with NULL it is not there. */
void vsite_write(const struct vsite *s, const char *name, const char *lines);
/* The drop-in's wire and its settings, with these lines; to be said before its first use. */
void vsite_use(const struct vsite *s, const char *wire, const char *lines);

/* Standard error is heard from here on ... */
void vsite_hear(void);
/* ... until here, and this was said so often. */
void vsite_expect_said(const char *what, unsigned times);
/* The same, where either end may be the one that says it, or both. */
void vsite_expect_said_some(const char *what, unsigned least, unsigned most);

struct vpeer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_listener *listener;
};

/* With these settings; NULL: none.  It has a thread and says nothing. */
void vpeer_open(struct vpeer *p, const struct vsite *s, const char *lines);
/* At 127.0.0.1, at a port that goes to @v->addr. */
void vpeer_listen(struct vpeer *p, const char *wire, struct vt *v);
/* To where @v listens. */
void vpeer_dial(struct vpeer *p, const char *wire, const struct vt *v);
/* The next event, within VT_MS. */
struct ddps_event vpeer_event(struct vpeer *p);
void vpeer_close(struct vpeer *p);

#endif
