/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/say.h"
#include <stdarg.h>
#include <stdio.h>

void ddps_say(const char *fmt, ...)
{
	char line[1025];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof line)
		line[sizeof line - 2] = '\n';
	fputs(line, stderr);
}
