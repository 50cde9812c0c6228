/* SPDX-License-Identifier: BSD-2-Clause */
/* CM messages as JSON and back. */
#include "ipoib/show/madtext.h"
#include <inttypes.h>
#include <string.h>

static json_t *value_to_json(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f)
{
	char value[MADTEXT_VALUE];

	if (f->size && f->width <= 32)
		return json_integer((json_int_t)ddps_cm_field_get(mad, f));
	madtext_value(value, mad, f);
	return json_string(value);
}

static json_t *rows_to_json(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f)
{
	json_t *j = json_object();

	for (; f->name; f++)
		if (*f->name)
			json_object_set_new(j, f->name, value_to_json(mad, f));
	return j;
}

void madtext_to_json(json_t *j, const struct ddps_cm_mad *mad)
{
	json_object_set_new(j, "message", json_string(ddps_cm_attr_name(mad->hdr.attr_id)));
	json_object_set_new(j, "header", rows_to_json(mad, ddps_cm_hdr_fields()));
	json_object_set_new(j, "fields", rows_to_json(mad, ddps_cm_fields(mad->hdr.attr_id)));
}

/* One member: a number that is not negative, or a string. */
static int set_member(struct ddps_cm_mad *mad, const struct ddps_cm_field *rows, const char *name,
		      const json_t *value, char *why, size_t why_len)
{
	char number[24];

	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		snprintf(number, sizeof number, "%" PRIu64, (uint64_t)json_integer_value(value));
		return madtext_set(mad, rows, name, number, why, why_len);
	}
	if (json_is_string(value))
		return madtext_set(mad, rows, name, json_string_value(value), why, why_len);
	snprintf(why, why_len, "field %.60s is neither a string nor a number from 0", name);
	return -1;
}

static int rows_from_json(struct ddps_cm_mad *mad, const struct ddps_cm_field *rows,
			  const char *member, json_t *j, char *why, size_t why_len)
{
	const char *name;
	json_t *value;

	if (j && !json_is_object(j)) {
		snprintf(why, why_len, "\"%s\" is not an object", member);
		return -1;
	}
	json_object_foreach(j, name,
			    value) if (set_member(mad, rows, name, value, why, why_len)) return -1;
	return 0;
}

/* Members of a message, and those of the events that have a message in them. */
static bool known_member(const char *name)
{
	static const char *const known[] = { "message", "header", "fields", "event",
					     "time",	"dir",	  "lid" };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i], name))
			return true;
	return false;
}

int madtext_from_json(struct ddps_cm_mad *mad, const json_t *j, char *why, size_t why_len)
{
	const char *message = json_string_value(json_object_get(j, "message")), *name;
	int attr = message ? ddps_cm_attr_parse(message) : DDPS_E_INVAL;
	json_t *value;

	if (attr < 0) {
		snprintf(why, why_len,
			 "no member \"message\" with the name of one, such as \"REQ\"");
		return -1;
	}
	json_object_foreach((json_t *)(uintptr_t)j, name, value) if (!known_member(name))
	{
		snprintf(why, why_len, "unknown member \"%.60s\"", name);
		return -1;
	}
	ddps_cm_mad_init(mad, (uint16_t)attr, 0);
	if (rows_from_json(mad, ddps_cm_hdr_fields(), "header", json_object_get(j, "header"), why,
			   why_len))
		return -1;
	if (mad->hdr.attr_id != attr) {
		snprintf(why, why_len, "header.attr_id 0x%04x is not that of %s", mad->hdr.attr_id,
			 message);
		return -1;
	}
	return rows_from_json(mad, ddps_cm_fields((uint16_t)attr), "fields",
			      json_object_get(j, "fields"), why, why_len);
}
