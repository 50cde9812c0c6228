/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_LIST_H
#define DDPS_CREDS_LIST_H
/* Lists of patterns: the file of rules, the file of hosts, the setting "peer". */
#include "secure/creds/name.h"

struct ddps_rule {
	bool allow;
	unsigned line;
	struct ddps_pattern pat;
	struct ddps_pattern host; /* of a file of hosts: the address; p is NULL otherwise */
};

struct ddps_list {
	struct ddps_rule *rule;
	unsigned n;
};

/*
 * Each returns 0, DDPS_E_NOMEM, or DDPS_E_CONFIG with what is wrong and the line in @why.  @text is
 * changed.  The list is to be freed in each case.
 */
int ddps_list_rules(struct ddps_list *l, char *text, char *why, size_t why_len);
int ddps_list_hosts(struct ddps_list *l, char *text, char *why, size_t why_len);
/* "KIND:VALUE" or a host, with commas between them. */
int ddps_list_peers(struct ddps_list *l, const char *text, char *why, size_t why_len);
void ddps_list_free(struct ddps_list *l);

/* The first rule that fits, or NULL. */
const struct ddps_rule *ddps_list_find(const struct ddps_list *l, const struct ddps_who *who,
				       const struct ddps_name **which);
/* The name expected at @addr, or NULL. */
const struct ddps_pattern *ddps_list_at(const struct ddps_list *l, const char *addr);

#endif
