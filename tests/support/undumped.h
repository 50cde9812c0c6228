/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_UNDUMPED_H
#define DDPS_TEST_UNDUMPED_H
/* Pages that no core file has: those with keys, which are in no heap.  Tests and measurements count them. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Octets of them in memory. */
static inline size_t undumped_octets(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long kib = 0, all = 0;
	char line[512];

	while (f && fgets(line, sizeof line, f)) {
		(void)sscanf(line, "Rss: %lu", &kib);
		if (!strncmp(line, "VmFlags:", 8) && strstr(line, " dd"))
			all += kib;
	}
	if (f)
		fclose(f);
	return all * 1024;
}

#endif
