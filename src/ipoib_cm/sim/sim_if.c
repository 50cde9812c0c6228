/* SPDX-License-Identifier: BSD-2-Clause */
/* An interface behind a port of the fabric in memory. */
#include "ipoib_cm/sim/sim_port.h"
#include <ddpsess/ipoib_sim.h>

static uint64_t get_if_deadline(void *user)
{
	return ddps_ipoib_if_deadline(user);
}

static void tick_if(void *user, uint64_t now)
{
	ddps_ipoib_if_tick(user, now);
}

int ddps_ipoib_sim_if_start(struct ddps_ipoib_if **f, struct ddps_ipoib_sim *s, unsigned node,
			    const struct ddps_ipoib_if_config *cfg,
			    const struct ddps_ipoib_if_calls *calls)
{
	struct ddps_ipoib_sim_user u = { .struct_size = sizeof(u),
					 .up = ddps_ipoib_if_up(),
					 .deadline = get_if_deadline,
					 .tick = tick_if,
					 .addr = cfg->me.addr };
	struct ddps_ipoib_if *was = *f;
	int err = ddps_ipoib_if_new(f, cfg, ddps_ipoib_sim_port(s, node), calls);

	if (err)
		return err;
	u.user = *f;
	err = ddps_ipoib_sim_attach(s, node, &u);
	if (err) {
		ddps_ipoib_if_free(*f);
		*f = was;
		return err;
	}
	return ddps_ipoib_if_start(*f, ddps_ipoib_sim_now(s));
}

void ddps_ipoib_sim_if_kill(struct ddps_ipoib_if *f, struct ddps_ipoib_sim *s, unsigned node)
{
	ddps_ipoib_sim_detach(s, node);
	ddps_ipoib_if_free(f);
}
