/* SPDX-License-Identifier: BSD-2-Clause */
/* MULPDU from EMSS (RFC 5044 4.5). */
#include "mpa_tcp/mpa_mulpdu.h"
#include "mpa_tcp/mpa_fpdu.h"

size_t ddps_mpa_mulpdu(size_t emss, bool markers, size_t cap)
{
	size_t nmarkers = (emss + DDPS_MPA_MARKER_EVERY - 1) / DDPS_MPA_MARKER_EVERY;
	size_t overhead = 6 + emss % 4; /* [5044-4.5-2] */
	size_t m;

	if (markers)
		overhead += DDPS_MPA_MARKER_LEN * nmarkers; /* [5044-4.5-1] */
	m = emss > overhead ? emss - overhead : 0;
	if (cap && m > cap)
		m = cap;
	if (m > DDPS_MPA_ULPDU_MAX)
		m = DDPS_MPA_ULPDU_MAX;
	/* [5044-4.5-6]: below this the FPDU may span segments instead. */
	return m < DDPS_MPA_MULPDU_MIN ? DDPS_MPA_MULPDU_MIN : m;
}
