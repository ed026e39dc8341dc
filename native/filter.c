// SPDX-License-Identifier: Apache-2.0
/*
 * What the filter in the kernel is told: tables and targets whose routes matter, and which links are
 * quiet, in that no selection can choose them. A link that is quiet is late, so every doubt is for loud.
 */
#include <fnmatch.h>
#include <stdlib.h>

#include "bpf.h"
#include "state.h"

typedef const char (*patterns)[AT_PATTERN_LEN];

static bool contains(patterns list, uint32_t n, const char *pattern)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!strcmp(list[i], pattern))
			return true;
	}
	return false;
}

/*
 * A pattern as a mask, which takes exactly what the pattern takes; false where none does. A name is
 * followed by zeros, so `?` can be said where something must follow that is no zero: the masked
 * bytes alone would let a shorter name pass.
 */
static bool exact(const char *pattern, struct at_name_mask *out)
{
	size_t end = strcspn(pattern, "*["), i;
	uint8_t *value = (uint8_t *)out->value, *mask = (uint8_t *)out->mask;

	memset(out, 0, sizeof(*out));
	if ((pattern[end] && strcmp(pattern + end, "*")) || (end && pattern[end - 1] == '?'))
		return false;
	if (end >= AT_NAME_LEN)
		return false;
	for (i = 0; i < end; i++) {
		value[i] = pattern[i] == '?' ? 0 : pattern[i];
		mask[i] = pattern[i] == '?' ? 0 : 0xff;
	}
	if (!pattern[end])
		mask[end] = 0xff; /* the zero that ends a name */
	return true;
}

/* A mask that takes all that the pattern takes, and maybe more: what comes before `*` or `[`. */
static void wide(const char *pattern, struct at_name_mask *out)
{
	uint8_t *value = (uint8_t *)out->value, *mask = (uint8_t *)out->mask;
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < AT_NAME_LEN; i++) {
		if (!pattern[i] || strchr("*[?", pattern[i]))
			break;
		value[i] = pattern[i];
		mask[i] = 0xff;
	}
}

static void add_tables(const struct at_engine *e, struct at_filter *out)
{
	_Static_assert(AT_TABLES_MAX >= AT_SELECTIONS_MAX, "a table for each selection");
	out->n_tables = at_engine_tables(e, out->tables, AT_TABLES_MAX);
}

static void add_targets(const struct at_engine *e, struct at_filter *out)
{
	uint32_t i;

	out->n_targets = e->n_targets;
	for (i = 0; i < e->n_targets; i++) {
		out->targets[i].family = e->targets[i].family;
		memcpy(out->targets[i].address, e->targets[i].address, 16);
	}
}

/* The next selection from `i` on, AT_SELECTIONS_MAX without one. */
static int following(const struct at_engine *e, int i)
{
	while (i < AT_SELECTIONS_MAX && !e->selections[i])
		i++;
	return i;
}

static void add_loud(struct at_filter *out, const char *pattern)
{
	struct at_name_mask mask;

	wide(pattern, &mask);
	if (!mask.mask[0])
		out->n_loud_names = AT_QUIET_NAMES_MAX; /* every name: none is quiet */
	if (out->n_loud_names < AT_QUIET_NAMES_MAX)
		out->loud_names[out->n_loud_names] = mask;
	out->n_loud_names++;
}

/* False: more than there is room for. */
static bool add_all_loud(const struct at_engine *e, struct at_filter *out)
{
	const struct at_policy *p;
	uint32_t j;
	int i;

	add_loud(out, "lo"); /* no policy excludes a loopback link */
	for (i = following(e, 0); i < AT_SELECTIONS_MAX; i = following(e, i + 1)) {
		p = &e->selections[i]->policy;
		for (j = 0; j < p->n_keep_names; j++)
			add_loud(out, p->keep_names[j]);
		if (p->fallback == AT_FALLBACK_INTERFACE)
			add_loud(out, p->fallback_name);
	}
	return out->n_loud_names <= AT_QUIET_NAMES_MAX;
}

static bool all_exclude_name(const struct at_engine *e, const char *pattern)
{
	int i;

	for (i = following(e, 0); i < AT_SELECTIONS_MAX; i = following(e, i + 1)) {
		if (!contains(e->selections[i]->policy.exclude_names,
			      e->selections[i]->policy.n_exclude_names, pattern))
			return false;
	}
	return true;
}

static bool all_exclude_kind(const struct at_engine *e, const char *kind)
{
	const struct at_policy *p;
	uint32_t j;
	int i;

	for (i = following(e, 0); i < AT_SELECTIONS_MAX; i = following(e, i + 1)) {
		p = &e->selections[i]->policy;
		for (j = 0; j < p->n_exclude_kinds; j++) {
			if (!strncmp(p->exclude_kinds[j], kind, AT_NAME_LEN))
				break;
		}
		if (j == p->n_exclude_kinds)
			return false;
	}
	return true;
}

static void add_quiet(const struct at_engine *e, struct at_filter *out)
{
	const struct at_policy *p = &e->selections[following(e, 0)]->policy;
	uint32_t i;

	for (i = 0; i < p->n_exclude_names && out->n_quiet_names < AT_QUIET_NAMES_MAX; i++) {
		if (all_exclude_name(e, p->exclude_names[i]))
			out->n_quiet_names +=
				exact(p->exclude_names[i], &out->quiet_names[out->n_quiet_names]);
	}
	for (i = 0; i < p->n_exclude_kinds && out->n_quiet_kinds < AT_QUIET_KINDS_MAX; i++) {
		if (all_exclude_kind(e, p->exclude_kinds[i]))
			strncpy(out->quiet_kinds[out->n_quiet_kinds++], p->exclude_kinds[i],
				AT_NAME_LEN - 1);
	}
}

void at_engine_filter(const struct at_engine *e, struct at_filter *out)
{
	memset(out, 0, sizeof(*out));
	add_tables(e, out);
	add_targets(e, out);
	if (e->wide || following(e, 0) == AT_SELECTIONS_MAX)
		return;
	if (add_all_loud(e, out))
		add_quiet(e, out);
	else
		out->n_loud_names = 0;
}

struct list {
	uint32_t *ifindex; /* NULL: only counted */
	size_t n;
};

static void add(struct list *list, uint32_t ifindex)
{
	if (list->ifindex)
		list->ifindex[list->n] = ifindex;
	list->n++;
}

/* Links that have an address. */
static void add_holders(const struct at_engine *e, struct list *list, int f, const uint8_t *local)
{
	const struct family *m = &e->fam[f];
	uint32_t g = at_group_find(e, f, local);
	uint32_t slot = g == AT_NONE ? AT_NONE : m->groups[g].head;

	for (; slot != AT_NONE; slot = m->entries[slot].group_next)
		add(list, m->entries[slot].value.ifindex);
}

static void add_routes(const struct at_engine *e, struct list *list)
{
	struct at_leg legs[AT_LEGS_MAX];
	const struct rkey *k;
	uint32_t i, j, l, n;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		for (j = 0; j < k->n; j++) {
			n = at_legs(e, k->alias[j], legs);
			for (l = 0; l < n; l++)
				add(list, legs[l].oif);
			if (!at_is_zero(k->alias[j]->prefsrc))
				add_holders(e, list, AT_INDEX(k->family), k->alias[j]->prefsrc);
		}
	}
	for (i = 0; i < e->n_nexthops; i++)
		add(list, e->nexthops[i]->value.oif);
}

static void add_answers(const struct at_engine *e, struct list *list)
{
	const struct ranking *k;
	int i, f;

	for (i = following(e, 0); i < AT_SELECTIONS_MAX; i = following(e, i + 1)) {
		for (f = 0; f < 2; f++) {
			k = &e->selections[i]->rank[f];
			if (k->best != AT_NONE)
				add(list, e->fam[f].entries[k->best].value.ifindex);
			if (k->incumbent != AT_NONE)
				add(list, e->fam[f].entries[k->incumbent].value.ifindex);
		}
	}
}

/* Links that the way to a target rests on, or may lead over when they have carrier. */
static void add_grounds(const struct at_engine *e, struct list *list)
{
	const struct at_grounds *g = &e->grounds;
	uint32_t i;

	if (!e->n_targets || !e->grounded)
		return;
	for (i = 0; i < g->n_links; i++)
		add(list, g->links[i]);
	for (i = 0; i < g->n_sources; i++)
		add_holders(e, list, AT_INDEX(g->sources[i].family), g->sources[i].address);
	for (i = 0; i < e->links_cap; i++) {
		if (e->links[i].dark)
			add(list, e->links[i].value.ifindex);
	}
}

static void add_all(const struct at_engine *e, struct list *list)
{
	add_routes(e, list);
	add_answers(e, list);
	add_grounds(e, list);
}

static int by_number(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return a < b ? -1 : a > b;
}

int at_engine_watched(const struct at_engine *e, uint32_t *out, size_t max)
{
	struct list list = { 0 };
	size_t i, n = 0;

	add_all(e, &list);
	list.ifindex = malloc((list.n + 1) * sizeof(*list.ifindex));
	if (!list.ifindex)
		return -ENOMEM;
	list.n = 0;
	add_all(e, &list);
	qsort(list.ifindex, list.n, sizeof(*list.ifindex), by_number);
	for (i = 0; i < list.n; i++) {
		if (!list.ifindex[i] || (i && list.ifindex[i] == list.ifindex[i - 1]))
			continue;
		if (n < max)
			out[n] = list.ifindex[i];
		n++;
	}
	free(list.ifindex);
	return (int)n;
}

uint32_t at_engine_moves(const struct at_engine *e)
{
	return e->moves;
}
