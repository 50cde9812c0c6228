/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_ORDER_H
#define DDPS_SD_ORDER_H
/*
 * The receive order of one stream pair: the DDP-SSN window (RFC 5043 6.1, 10) and the
 * messages that came ahead of their turn, kept whole until it comes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_SD_WINDOW 32768u /* distances below this are ahead */

struct ddps_sd_held {
	struct ddps_sd_held *next;
	uint32_t ppid;
	uint16_t ssn;
	size_t len;
	uint8_t data[];
};

/* All zeros is a valid start of a session. */
struct ddps_sd_order {
	uint16_t next;		    /* DDP-SSN whose turn it is */
	unsigned count;		    /* messages held */
	size_t octets;		    /* what they take, overhead included */
	struct ddps_sd_held **slot; /* hash by the low bits of the DDP-SSN */
	unsigned nslot;
};

enum ddps_sd_place {
	DDPS_SD_NEXT,
	DDPS_SD_AHEAD,
	DDPS_SD_OLD,	  /* distance 32768 and more: outside the window */
	DDPS_SD_DUPLICATE /* ahead, and here already */
};

/* Allocates nothing: to be asked before anything is [5043-10-5]. */
enum ddps_sd_place ddps_sd_order_check(const struct ddps_sd_order *o, uint16_t ssn);

/* What holding @len octets takes. */
size_t ddps_sd_order_cost(size_t len);

/* Keep a copy; @ssn was checked.  0 or DDPS_E_NOMEM. */
int ddps_sd_order_hold(struct ddps_sd_order *o, uint16_t ssn, uint32_t ppid, const uint8_t *data,
		       size_t len);

/* Take out the message whose turn it is and move on to the next number.  NULL: not here.
 * The caller frees it. */
struct ddps_sd_held *ddps_sd_order_take(struct ddps_sd_order *o);
/* Whether all is held from the one that is due up to @last. */
bool ddps_sd_order_has_upto(const struct ddps_sd_order *o, uint16_t last);

/* Give a large table back if it is empty. */
void ddps_sd_order_trim(struct ddps_sd_order *o);

/* Put back what was just taken: it has its turn again. */
void ddps_sd_order_untake(struct ddps_sd_order *o, struct ddps_sd_held *h);

/* Forget the payload of held DDP segments; their numbers stay. */
void ddps_sd_order_strip(struct ddps_sd_order *o);

/* Free everything and start over at 0. */
void ddps_sd_order_reset(struct ddps_sd_order *o);

#endif
