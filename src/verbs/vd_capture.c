/* SPDX-License-Identifier: BSD-2-Clause */
/* What the process sends and receives, into a file (DDPSESS_CAPTURE). */
#include "verbs/vd.h"
#include "common/system/say.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Programs start others and fork: the second process to come takes the name with its number. */
void vd_capture_open(struct vd_process *p, struct ddps_ctx_attr *attr)
{
	char name[VD_PATH + 16];
	int err;

	if (!*p->cfg.capture)
		return;
	snprintf(name, sizeof name, "%s", p->cfg.capture);
	err = ddps_capture_open(&p->capture, name);
	if (err == DDPS_E_BUSY) {
		snprintf(name, sizeof name, "%s.%d", p->cfg.capture, (int)getpid());
		err = ddps_capture_open(&p->capture, name);
	}
	if (err) {
		ddps_say("ddpsess: DDPSESS_CAPTURE=%s: %s; nothing is captured\n", name,
			 err == DDPS_E_SYSTEM ? strerror(errno) : ddps_strerror(err));
		return;
	}
	attr->capture = ddps_capture_add;
	attr->capture_user = p->capture;
}

void vd_capture_tell(const struct vd_process *p)
{
	int error = ddps_capture_error(p->capture);

	if (error)
		ddps_say("ddpsess: DDPSESS_CAPTURE=%s: %s; later packets are not in it\n",
			 p->cfg.capture, strerror(error));
}
