/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl connect: set a session up, show what was negotiated, close it. */
#include "sessctl/cmd.h"
#include "xfer/link.h"

int cmd_connect(const struct opts *o)
{
	struct link l;
	enum status s;

	link_init(&l, o, "connect");
	s = link_open(&l, o->arg[0], MSG_MAX);
	if (!s && o->wait)
		s = link_wait(&l);
	return (int)link_free(&l, link_close(&l, s));
}
