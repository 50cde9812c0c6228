/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages about connections that there are not, and MADs that are none (IBA volume 1, 12.9.8, 13.4). */
#include "conform/ipoib/peer.h"
#include <string.h>

static void check_stray_unknown(struct ci *ci)
{
	static const uint16_t attr[] = { CI_REP, CI_RTU, CI_MRA, CI_REJ, CI_DREP };
	uint8_t m[CI_MAD];

	ci_meet(ci, 0);
	for (unsigned i = 0; i < sizeof attr / sizeof *attr; i++)
		for (unsigned k = 0; k < 4; k++) {
			ci_mad(m, 7, 3, attr[i], ci->next_tid++);
			cf_put32(m + CM_LOCAL, ci->next_id++);
			cf_put32(m + CM_REMOTE, ci->random * (k + 3));
			m[REJ_MSG] = (uint8_t)(k << 6);
			if (attr[i] == CI_REJ)
				cf_put16(m + REJ_REASON, CI_REJ_CONSUMER);
			ci_cm_send(ci, m);
		}
	ci_quiet(ci);
}

/* Headers of MADs that are not communication management's. */
static void headers(struct ci *ci)
{
	static const uint8_t bad[][2] = { { M_BASE, 2 },    { M_VERSION, 1 },
					  { M_VERSION, 3 }, { M_METHOD, 0x83 },
					  { M_METHOD, 7 },  { M_ATTR + 1, 0x30 },
					  { M_ATTR, 0x80 } };
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint8_t m[CI_MAD];

		memcpy(m, c->req, CI_MAD);
		m[bad[i][0]] = bad[i][1];
		ci_cm_send(ci, m);
	}
	ci_quiet(ci);
}

/* To QP 1 with another Q_Key, or to another queue pair. */
static void mad_qkey(struct ci *ci)
{
	struct ci_conn *c;
	struct ci_pkt p;

	ci_meet(ci, 0);
	c = ci_req(ci);
	p = ci_ud(ci, c->req, CI_MAD);
	p.src_qpn = 1;
	p.qpn = 1; /* with the link's Q_Key */
	ci_packet(ci, ci->target.lid, &p);
	p.qpn = ci->target.qpn;
	p.qkey = 0x80010000;
	ci_packet(ci, ci->target.lid, &p);
	ci_quiet(ci);
}

const struct ci_case ci_cases_stray[] = {
	{ "cm-unknown", "", "messages about no connection are dropped (IBA 12.9.8.3)", 0,
	  check_stray_unknown },
	{ "cm-headers", "", "MADs of other versions, methods, attributes are dropped (IBA 13.4.2)",
	  0, headers },
	{ "cm-qkey", "", "so are those with another Q_Key or for another queue pair (IBA 13.5.3)",
	  CI_NEEDS_PACKETS, mad_qkey },
	{ 0 },
};
