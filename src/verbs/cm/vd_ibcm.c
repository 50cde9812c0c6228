/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager of InfiniBand, as programs see it through rdma_cm. */
#include "verbs/cm/vd_oob.h"
#include "verbs/cm/vd_event.h"
#include <string.h>

bool vd_is_ib(const struct vd_id *id)
{
	return id->id.verbs && vd_is_roce(id->id.verbs);
}

bool vd_ib_too_long(const struct vd_id *id, size_t len, unsigned room)
{
	return len > room && vd_is_ib(id);
}

void vd_ib_pad(const struct vd_id *id, struct rdma_conn_param *conn, unsigned room,
	       uint8_t pd[static 256])
{
	if (conn->private_data_len >= room || !vd_is_ib(id))
		return;
	memset(pd, 0, room);
	if (conn->private_data_len)
		memcpy(pd, conn->private_data, conn->private_data_len);
	conn->private_data = pd;
	conn->private_data_len = (uint8_t)room;
}

/* Both sides have to end a connection; then, and when the time is over, its queue pair is free again. */
static void tell_if_free(struct vd_id *id)
{
	if (!id->parted || !id->waited || id->told_free)
		return;
	id->told_free = true;
	vd_event_tell(id, &id->answer, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
}

void vd_ib_parted(struct vd_id *id)
{
	ddps_assert_held(&id->p->lock);
	id->parted = true;
	tell_if_free(id);
}

void vd_ib_waited(struct vd_id *id)
{
	ddps_assert_held(&id->p->lock);
	id->waited = true;
	tell_if_free(id);
}
