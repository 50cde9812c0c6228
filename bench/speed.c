/* SPDX-License-Identifier: BSD-2-Clause */
/* What the machine can do at all: memcpy and ISA-L's CRC32c, and the CRC as the stack does it. */
#include "peer.h"
#include "mpa_tcp/mpa_crc.h"
#include <isa-l/crc.h>

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "memcpy|isal|crc");
	uint8_t *from = peer_memory(a.size), *to = peer_memory(a.size);
	double begin, cpu;
	volatile uint32_t keep = 0;
	uint64_t ops = 0;

	peer_pin(1);
	begin = peer_now();
	cpu = peer_cpu();
	do {
		for (int i = 0; i < 8; i++, ops++) {
			if (!strcmp(a.mode, "memcpy")) {
				memcpy(to, from, a.size);
				__asm__ volatile("" ::"r"(to) : "memory");
			} else if (!strcmp(a.mode, "isal")) {
				keep = crc32_iscsi(from, (int)a.size, keep);
			} else {
				keep = ddps_mpa_crc(keep, from, a.size);
			}
		}
	} while (peer_now() - begin < a.seconds);
	peer_report(&a, ops, peer_now() - begin, peer_cpu() - cpu);
	return 0;
}
