/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/cm/vd_callers.h"
#include <stdlib.h>

#define PLACES 16 /* for one queue pair ... */
#define OF_ONE 4  /* ... of one address */

bool vd_callers_add(struct vd_callers *list, struct ddps_request *request, uint32_t number,
		    struct in_addr addr)
{
	struct vd_caller *c;
	unsigned n = 0, of_one = 0;

	STAILQ_FOREACH(c, list, link) {
		n++;
		if (c->addr.s_addr != addr.s_addr)
			continue;
		of_one++;
		if (c->number == number)
			return false;
	}
	if (n == PLACES || of_one == OF_ONE)
		return false;
	c = malloc(sizeof *c);
	if (!c)
		return false;
	*c = (struct vd_caller){ .request = request, .number = number, .addr = addr };
	STAILQ_INSERT_TAIL(list, c, link);
	return true;
}

struct ddps_request *vd_callers_take(struct vd_callers *list)
{
	struct vd_caller *c = STAILQ_FIRST(list);
	struct ddps_request *request = c->request;

	STAILQ_REMOVE_HEAD(list, link);
	free(c);
	return request;
}

void vd_callers_forget(struct vd_callers *list, const struct ddps_request *request)
{
	struct vd_caller *c;

	STAILQ_FOREACH(c, list, link)
		if (c->request == request)
			break;
	if (!c)
		return;
	STAILQ_REMOVE(list, c, vd_caller, link);
	free(c);
}
