/* SPDX-License-Identifier: BSD-2-Clause */
/* Wires with TLS: the files, and what is refused. */
#include "verbs/vd_secure.h"
#include "verbs/vd.h"
#include "verbs/vd_config.h"
#include "common/system/say.h"
#include <errno.h>

/* Codes of secured wires are the lowest, those of the handshake and after it the last of them. */
#define DDPS_X(name, value, text) (value) >= DDPS_E_ALERT &&
_Static_assert(DDPS_ERRORS(DDPS_X) true, "vd_is_insecure() and vd_secure_errno() know all of them");
#undef DDPS_X

int vd_secure_open(const struct vd_config *cfg, struct ddps_secure **out)
{
	struct ddps_secure_attr attr;
	struct ddps_error why;
	int err;

	*out = NULL;
	if (!cfg->secured)
		return 0;
	ddps_secure_attr_init(&attr);
	for (unsigned i = 0; i < VD_TLS_WORDS; i++)
		if (*cfg->tls[i])
			*(const char **)((char *)&attr + vd_tls_words[i].at) = cfg->tls[i];
	err = ddps_secure_open(out, &attr, &why);
	if (err)
		ddps_say("ddpsess: DDPSESS_TRANSPORT=%s: %s; the device cannot be opened\n",
			 cfg->transport, why.text);
	return vd_errno(err);
}

int vd_secure_refuse(enum vd_unsecured what)
{
	static const char *const said[] = {
		[VD_UNSECURED_OOB] = "a queue pair that the program connects itself is refused, "
				     "since no handshake has judged its peer: let the program use "
				     "rdma_cm (perftest: -R)",
		[VD_UNSECURED_UD] =
			"datagrams (queue pairs of type UD, RDMA_PS_UDP) are refused, since "
			"nothing secures them: let the program use connections of rdma_cm",
	};
	static bool known[2]; /* atomic */
	const struct vd_config *cfg = vd_config();

	if (!cfg->secured)
		return 0;
	if (!__atomic_exchange_n(&known[what], true, __ATOMIC_RELAXED))
		ddps_say("ddpsess: DDPSESS_TRANSPORT=%s: %s, or choose '%s' where every host that "
			 "can reach this one is trusted\n",
			 cfg->transport, said[what], vd_over_sctp(cfg) ? "sctp" : "tcp");
	return EOPNOTSUPP;
}

int vd_secure_errno(int code)
{
	return code <= DDPS_E_TLS ? EPROTO : EACCES;
}
