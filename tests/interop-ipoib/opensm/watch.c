/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be loaded in front of a subnet manager on ibsim.  Ports can be asked to register again, but those of ibsim
 * say that they cannot, and do not keep the bit of a PortInfo that asks it.  So here a port says that it can, and
 * where one is asked $FABRIC_DIR/reregister is touched.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API	     __attribute__((visibility("default")))
#define SET	     2
#define GET_RESP     0x81
#define PORT_INFO    0x15
#define OFF_CAPS     (64 + 20)
#define CAN_REGISTER 0x02
#define OFF_ASK	     (64 + 51)
#define ASK_REGISTER 0x80

static bool is_port_info(const uint8_t *mad, uint8_t method)
{
	return (mad[1] == 0x81 || mad[1] == 1) && mad[3] == method && mad[16] == 0 &&
	       mad[17] == PORT_INFO;
}

API int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	void *at = dlsym(RTLD_NEXT, "umad_send");
	const uint8_t *mad = umad_get_mad(umad);
	int (*next)(int, int, void *, int, int, int);
	char path[200];
	int err, fd;

	memcpy(&next, &at, sizeof(at));
	err = next(portid, agentid, umad, length, timeout_ms, retries);
	if (err || !is_port_info(mad, SET) || !(mad[OFF_ASK] & ASK_REGISTER))
		return err;
	snprintf(path, sizeof(path), "%s/reregister", getenv("FABRIC_DIR"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0) {
		(void)futimens(fd, NULL);
		close(fd);
	}
	return err;
}

API int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	void *at = dlsym(RTLD_NEXT, "umad_recv");
	int (*next)(int, void *, int *, int);
	uint8_t *mad;
	int agent;

	memcpy(&next, &at, sizeof(at));
	agent = next(portid, umad, length, timeout_ms);
	mad = umad_get_mad(umad);
	if (agent >= 0 && is_port_info(mad, GET_RESP))
		mad[OFF_CAPS] |= CAN_REGISTER;
	return agent;
}
