/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP-SSN window and messages held ahead of their turn. */
#include "sctp_ddp/sd_order.h"
#include "sctp_ddp/sd_wire.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 16u
#define KEEP_SLOTS  1024u /* a larger table is given back as soon as it is empty */

static struct ddps_sd_held **find_held(const struct ddps_sd_order *o, uint16_t ssn)
{
	struct ddps_sd_held **at;

	if (!o->nslot)
		return NULL;
	for (at = &o->slot[ssn & (o->nslot - 1)]; *at; at = &(*at)->next)
		if ((*at)->ssn == ssn)
			return at;
	return NULL;
}

enum ddps_sd_place ddps_sd_order_check(const struct ddps_sd_order *o, uint16_t ssn)
{
	uint16_t d = (uint16_t)(ssn - o->next);

	if (d >= DDPS_SD_WINDOW)
		return DDPS_SD_OLD;
	if (find_held(o, ssn))
		return DDPS_SD_DUPLICATE;
	return d ? DDPS_SD_AHEAD : DDPS_SD_NEXT;
}

size_t ddps_sd_order_cost(size_t len)
{
	return len + sizeof(struct ddps_sd_held);
}

/* The table follows the number of messages held, never the distance a peer claims. */
static int grow_window(struct ddps_sd_order *o)
{
	unsigned size = o->nslot ? 2 * o->nslot : FIRST_SLOTS;
	struct ddps_sd_held **slot = calloc(size, sizeof *slot);

	if (!slot)
		return DDPS_E_NOMEM;
	for (unsigned i = 0; i < o->nslot; i++) {
		struct ddps_sd_held *h = o->slot[i], *next;

		for (; h; h = next) {
			next = h->next;
			h->next = slot[h->ssn & (size - 1)];
			slot[h->ssn & (size - 1)] = h;
		}
	}
	free(o->slot);
	o->slot = slot;
	o->nslot = size;
	return 0;
}

static void insert_held(struct ddps_sd_order *o, struct ddps_sd_held *h)
{
	h->next = o->slot[h->ssn & (o->nslot - 1)];
	o->slot[h->ssn & (o->nslot - 1)] = h;
	o->count++;
	o->octets += ddps_sd_order_cost(h->len);
}

int ddps_sd_order_hold(struct ddps_sd_order *o, uint16_t ssn, uint32_t ppid, const uint8_t *data,
		       size_t len)
{
	struct ddps_sd_held *h;

	if (o->count >= o->nslot && grow_window(o) < 0)
		return DDPS_E_NOMEM;
	h = malloc(sizeof *h + len);
	if (!h)
		return DDPS_E_NOMEM;
	h->ppid = ppid;
	h->ssn = ssn;
	h->len = len;
	if (len)
		memcpy(h->data, data, len);
	insert_held(o, h);
	return 0;
}

void ddps_sd_order_untake(struct ddps_sd_order *o, struct ddps_sd_held *h)
{
	o->next--;
	insert_held(o, h);
}

struct ddps_sd_held *ddps_sd_order_take(struct ddps_sd_order *o)
{
	struct ddps_sd_held **at = o->count ? find_held(o, o->next) : NULL;
	struct ddps_sd_held *h;

	if (!at)
		return NULL;
	h = *at;
	*at = h->next;
	o->next++;
	o->count--;
	o->octets -= ddps_sd_order_cost(h->len);
	return h;
}

bool ddps_sd_order_has_upto(const struct ddps_sd_order *o, uint16_t last)
{
	unsigned n = (uint16_t)(last - o->next) + 1u;

	if (o->count < n)
		return false;
	while (n && find_held(o, (uint16_t)(last - n + 1)))
		n--;
	return !n;
}

void ddps_sd_order_trim(struct ddps_sd_order *o)
{
	if (o->count || o->nslot <= KEEP_SLOTS)
		return;
	free(o->slot);
	o->slot = NULL;
	o->nslot = 0;
}

void ddps_sd_order_strip(struct ddps_sd_order *o)
{
	for (unsigned i = 0; i < o->nslot; i++) {
		struct ddps_sd_held **at;

		for (at = &o->slot[i]; *at; at = &(*at)->next) {
			struct ddps_sd_held *h = *at;

			if (h->ppid != DDPS_SD_PPID_SEGMENT || h->len <= DDPS_SD_SSN_LEN)
				continue;
			o->octets -= h->len - DDPS_SD_SSN_LEN;
			h->len = DDPS_SD_SSN_LEN;
			h = realloc(h, sizeof *h + h->len);
			if (h) /* if not, the old block stays as it is */
				*at = h;
		}
	}
}

void ddps_sd_order_reset(struct ddps_sd_order *o)
{
	for (unsigned i = 0; i < o->nslot; i++) {
		struct ddps_sd_held *h = o->slot[i], *next;

		for (; h; h = next) {
			next = h->next;
			free(h);
		}
	}
	free(o->slot);
	*o = (struct ddps_sd_order){ 0 };
}
