/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus' text exposition format, version 0.0.4. */
#include "watch/watch.h"
#include <inttypes.h>
#include <string.h>

static const struct {
	const char *prefix, *member;
} kinds[WATCH_KINDS] = {
	[WATCH_CONTEXT] = { "ddpsess_", "context" },
	[WATCH_SESSION] = { "ddpsess_session_", "sessions" },
	[WATCH_DATAGRAMS] = { "ddpsess_datagrams_", "datagrams" },
	[WATCH_SERVICE] = { "ddpsess_service_", "service" },
};

struct metric {
	const struct watch_count *count;
	enum watch_kind kind;
	const char *in; /* the object in which it is, or NULL */
	char name[80];
};

/* What watch_string gives is without control characters, so two are left to be escaped. */
static void put_label(FILE *f, const char *name, const json_t *o, const char *key)
{
	char text[256];

	watch_string(text, sizeof text, o, key);
	fprintf(f, "%s=\"", name);
	for (const char *s = text; *s; s++)
		fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	fputc('"', f);
}

static void put_labels(FILE *f, const json_t *process, enum watch_kind kind, const json_t *item)
{
	fprintf(f, "{pid=\"%" PRIu64 "\",", watch_number(process, "pid"));
	put_label(f, "program", process, "program");
	fputc(',', f);
	put_label(f, "label", process, "label");
	if (kind == WATCH_SESSION) {
		fprintf(f, ",session=\"%" PRIu64 "\",", watch_number(item, "session"));
		put_label(f, "transport", item, "transport");
		fputc(',', f);
		put_label(f, "peer", item, "peer");
	} else if (kind == WATCH_DATAGRAMS) {
		fprintf(f, ",qp=\"%" PRIu64 "\"", watch_number(item, "qp_num"));
	}
	fputc('}', f);
}

static void put_sample(FILE *f, const struct metric *m, const json_t *process, const json_t *item)
{
	const json_t *from = m->in ? json_object_get(item, m->in) : item, *v;

	v = json_object_get(from, m->count->key);
	if (!json_is_integer(v))
		return; /* this wire has no such thing */
	fputs(m->name, f);
	put_labels(f, process, m->kind, item);
	fprintf(f, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
}

static void put_help(FILE *f, const struct metric *m)
{
	const char *help = m->count->help, *gap = strstr(help, "%s");

	fprintf(f, "# HELP %s ", m->name);
	if (gap)
		fprintf(f, "%.*s%s%s\n", (int)(gap - help), help, m->in, gap + 2);
	else
		fprintf(f, "%s\n", help);
	fprintf(f, "# TYPE %s %s\n", m->name, m->count->gauge ? "gauge" : "counter");
}

/* All samples of one name stand together, behind its two lines. */
static void put_metric(FILE *f, const struct watch_count *c, enum watch_kind kind, const char *in,
		       const json_t *all)
{
	struct metric m = { .count = c, .kind = kind, .in = in };
	const json_t *p, *v, *of;
	const char *key;
	size_t i;

	snprintf(m.name, sizeof m.name, "%s%s%s%s%s", kinds[kind].prefix, in ? in : "",
		 in ? "_" : "", c->metric ? c->metric : c->key, c->gauge ? "" : "_total");
	put_help(f, &m);
	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		of = json_object_get(p, kinds[kind].member);
		if (json_is_object(of))
			put_sample(f, &m, p, of);
		json_array_foreach(of, i, v) put_sample(f, &m, p, v);
	}
}

/* Traffic is within two objects. */
static void put_watch_count(FILE *f, const struct watch_count *c, enum watch_kind kind,
			    const json_t *all)
{
	if (strstr(c->help, "%s")) {
		put_metric(f, c, kind, "sent", all);
		put_metric(f, c, kind, "received", all);
	} else {
		put_metric(f, c, kind, NULL, all);
	}
}

void watch_metrics(FILE *f, const json_t *all)
{
	const json_t *p;
	const char *key;

	fputs("# HELP ddpsess_up Whether the process could say how it stands.\n"
	      "# TYPE ddpsess_up gauge\n",
	      f);
	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		fputs("ddpsess_up", f);
		put_labels(f, p, WATCH_CONTEXT, NULL);
		fprintf(f, " %d\n", !json_is_true(json_object_get(p, "stuck")));
	}
	for (enum watch_kind k = 0; k < WATCH_KINDS; k++)
		for (const struct watch_count *c = watch_counts; c->key; c++)
			if (c->of & WATCH_OF(k))
				put_watch_count(f, c, k, all);
}
