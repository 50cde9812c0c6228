/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_MADTEXT_H
#define SESSCTL_MADTEXT_H
/*
 * CM messages for people and as JSON.  Both walk the library's tables of fields, so every
 * field has the name that it has there.  JSON: {"message": name, "header": {...}, "fields":
 * {...}}; numbers above 32 bits are strings ("0x..."), octet strings hexadecimal, GIDs as
 * IPv6 addresses.
 */
#include <ddpsess/ipoib_cm.h>
#include <jansson.h>
#include <stdio.h>

#define MADTEXT_VALUE 480 /* characters of any value */

/* The value of a field, in the form that madtext_set() takes. */
void madtext_value(char dst[MADTEXT_VALUE], const struct ddps_cm_mad *mad,
		   const struct ddps_cm_field *f);

/*
 * Set the field called @name among @rows.  Octet strings may be shorter than their field, the
 * rest is zero.  Return: 0, or -1 with one sentence in @why.
 */
int madtext_set(struct ddps_cm_mad *mad, const struct ddps_cm_field *rows, const char *name,
		const char *value, char *why, size_t why_len);

/* Several rows: all fields, with what is known about their values. */
void madtext_print(FILE *f, const struct ddps_cm_mad *mad);

/* One line: the message with the fields that tell connections apart. */
void madtext_brief(char *dst, size_t size, const struct ddps_cm_mad *mad);

/* Members of @j: message, header and fields. */
void madtext_to_json(json_t *j, const struct ddps_cm_mad *mad);

/*
 * The inverse.  What is missing has its usual value; unknown members are errors, except those
 * that sessctl itself puts next to a message.  Return: 0, or -1 with one sentence in @why.
 */
int madtext_from_json(struct ddps_cm_mad *mad, const json_t *j, char *why, size_t why_len);

#endif
