/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine can do at all: memcpy and ISA-L's CRC32c, and the CRC as the stack does it; and
 * what code with SSE costs alone ("sse") and behind a CRC ("behind").
 */
#include "peer.h"
#include "mpa_tcp/mpa_crc.h"
#include <isa-l/crc.h>

/* sums up in 16 octets at a time, which is what compilers make of plain C for x86-64 */
static uint64_t sum_words(const uint8_t *p, size_t n)
{
	uint64_t sum[2] = { 0, 0 }, v[2];

	for (size_t i = 0; i + 16 <= n; i += 16) {
		memcpy(v, p + i, 16);
		sum[0] += v[0] ^ i;
		sum[1] += v[1] ^ i;
	}
	return sum[0] + sum[1];
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "memcpy|isal|crc|sse|behind");
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
			} else if (!strcmp(a.mode, "crc")) {
				keep = ddps_mpa_crc(keep, from, a.size);
			} else {
				if (!strcmp(a.mode, "behind"))
					keep = ddps_mpa_crc(keep, to, 256);
				keep = (uint32_t)sum_words(from, a.size);
			}
		}
	} while (peer_now() - begin < a.seconds);
	peer_report(&a, ops, peer_now() - begin, peer_cpu() - cpu);
	return 0;
}
