/* SPDX-License-Identifier: BSD-2-Clause */
/* Linked with sessctl's own objects: a sessctl whose sessions over SCTP are on usrsctp, so that
 * another one can put its cases to that.  See run-usrsctp.sh. */
#include "peer/usrsctp.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"

int __real_ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *attr);
int __wrap_ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *attr);

int __wrap_ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *attr)
{
	int err = __real_ddps_ctx_new(out, attr);

	if (err)
		return err;
	err = ddps_sd_use_backend(&(*out)->env, &peer_usrsctp, true, true);
	if (err)
		ddps_ctx_free(*out);
	return err;
}
