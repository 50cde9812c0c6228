/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshake messages that come after the handshake: tickets are skipped, a KeyUpdate is followed. */
#include "record_in.h"
#include <string.h>

#define MSG_HEADER 4
/* lifetime, age_add, nonce, ticket, extensions, each at its shortest and at its longest */
#define TICKET_LEAST (4 + 4 + 1 + 2 + 1 + 2)
#define TICKET_MOST  (4 + 4 + 1 + 255 + 2 + 65535 + 2 + 65534)

bool ddps_rec_within_message(const struct ddps_rec *r)
{
	return r->head_len;
}

/* The header of a message is whole: may it come, and so long? */
static bool begin_message(struct ddps_rec *r)
{
	uint32_t len = (uint32_t)r->head[1] << 16 | (uint32_t)r->head[2] << 8 | r->head[3];
	uint8_t type = r->head[0];
	bool fits = len == 1;

	if (type == DDPS_REC_MSG_TICKET && r->client)
		fits = len >= TICKET_LEAST && len <= TICKET_MOST;
	else if (type != DDPS_REC_MSG_UPDATE) /* [8446-4.6.2-1], [8446-4-1] */
		return ddps_rec_fail(r, DDPS_REC_F_MESSAGE, type, DDPS_ALERT_UNEXPECTED_MESSAGE);
	if (!fits) /* [8446-6-4] */
		return ddps_rec_fail(r, DDPS_REC_F_LENGTH, type, DDPS_ALERT_DECODE_ERROR);
	r->body = len;
	return true;
}

/* A KeyUpdate is whole, @left octets are behind it in its record. */
static bool follow_update(struct ddps_rec *r, size_t left)
{
	int rc;

	if (r->request > 1) /* [8446-4.6.3-2] */
		return ddps_rec_fail(r, DDPS_REC_F_REQUEST, r->request,
				     DDPS_ALERT_ILLEGAL_PARAMETER);
	if (left) /* [8446-5.1-2] */
		return ddps_rec_fail(r, DDPS_REC_F_BEHIND, 0, DDPS_ALERT_UNEXPECTED_MESSAGE);
	rc = ddps_rec_next_keys(r, &r->rx);
	if (rc)
		return ddps_rec_fail(r, DDPS_REC_F_LIBRARY, (uint32_t)-rc,
				     DDPS_ALERT_INTERNAL_ERROR);
	r->answer |= r->request; /* [8446-4.6.3-3], [8446-4.6.3-4] */
	r->asked = false;
	r->stats.updates_got++;
	return true;
}

bool ddps_rec_messages(struct ddps_rec *r, const uint8_t *p, size_t n)
{
	while (n) {
		size_t take = MSG_HEADER - r->head_len;

		if (take) {
			take = take < n ? take : n;
			memcpy(r->head + r->head_len, p, take);
			r->head_len = (uint8_t)(r->head_len + take);
			p += take;
			n -= take;
			if (r->head_len < MSG_HEADER)
				return true;
			if (!begin_message(r))
				return false;
		}
		take = r->body < n ? r->body : n;
		if (take)
			r->request = *p;
		p += take;
		n -= take;
		r->body -= (uint32_t)take;
		if (r->body)
			return true;
		r->head_len = 0;
		if (r->head[0] == DDPS_REC_MSG_TICKET)
			r->stats.tickets++;
		else if (!follow_update(r, n))
			return false;
	}
	return true;
}
