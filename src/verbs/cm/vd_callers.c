/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/cm/vd_callers.h"
#include <stdlib.h>

#define PLACES 16 /* for one queue pair ... */
#define OF_ONE 4  /* ... of one address */

bool vd_callers_add(struct vd_caller **list, struct ddps_request *request, uint32_t number,
		    struct in_addr addr)
{
	struct vd_caller **end, *c;
	unsigned n = 0, of_one = 0;

	for (end = list; (c = *end); end = &c->next) {
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
	*end = c;
	return true;
}

struct ddps_request *vd_callers_take(struct vd_caller **list)
{
	struct vd_caller *c = *list;
	struct ddps_request *request = c->request;

	*list = c->next;
	free(c);
	return request;
}

void vd_callers_forget(struct vd_caller **list, const struct ddps_request *request)
{
	while (*list && (*list)->request != request)
		list = &(*list)->next;
	if (*list)
		(void)vd_callers_take(list);
}
