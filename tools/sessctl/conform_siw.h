/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_SIW_H
#define SESSCTL_CONFORM_SIW_H
/* Where Linux's soft-iWARP (siw, kernel 6.1) deviates, as a profile. */

static const char conform_siw[] = "# nothing yet\n";

#endif
