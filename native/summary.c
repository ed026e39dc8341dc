// SPDX-License-Identifier: Apache-2.0
/* What the default routes of a table come to: per link, and per address that they name. */
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "state.h"

struct table *at_table(const struct at_engine *e, uint32_t id)
{
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->tables[i] && e->tables[i]->id == id)
			return e->tables[i];
	}
	return NULL;
}

void at_stale(struct at_engine *e, uint32_t id, int f)
{
	struct table *t = at_table(e, id);

	t->stale[f] = e->stale = true;
}

void at_stale_all(struct at_engine *e)
{
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->tables[i])
			e->tables[i]->stale[0] = e->tables[i]->stale[1] = e->stale = true;
	}
}

/* A link came to life or died: routes that name an address may lead over it. */
void at_stale_naming(struct at_engine *e)
{
	int i, f;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		for (f = 0; e->tables[i] && f < 2; f++) {
			if (e->tables[i]->sum[f].n_naming)
				e->tables[i]->stale[f] = e->stale = true;
		}
	}
}

uint32_t at_over_find(const struct summary *s, uint32_t ifindex)
{
	uint32_t i;

	for (i = 0; i < s->n_over; i++) {
		if (s->over[i].ifindex == ifindex)
			return i;
	}
	return AT_NONE;
}

bool at_is_named(const struct at_engine *e, int f, const uint8_t *local)
{
	uint64_t a[2] = { at_be64(local), at_be64(local + 8) };
	const struct summary *s;
	uint32_t i, j;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (!e->tables[i])
			continue;
		s = &e->tables[i]->sum[f];
		for (j = 0; j < s->n_naming; j++) {
			if (s->naming[j].prefsrc[0] == a[0] && s->naming[j].prefsrc[1] == a[1])
				return true;
		}
	}
	return false;
}

void at_summary_free(struct summary *s)
{
	free(s->paths);
	free(s->over);
	free(s->naming);
	memset(s, 0, sizeof(*s));
}

static int by_link(const void *one, const void *other)
{
	const struct path *a = one, *b = other;

	if (a->ifindex != b->ifindex)
		return a->ifindex < b->ifindex ? -1 : 1;
	return memcmp(a, b, sizeof(*a));
}

static uint64_t value_of(const struct rkey *k, const struct alias *a)
{
	static const uint8_t rank[4] = { 1, 0, 1, 2 }; /* medium, high, reserved, low */

	return (uint64_t)k->metric << 2 | (k->family == AF_INET ? 1 :
					   a->pref < 4		? rank[a->pref] :
								  1);
}

static void add_alias(const struct at_engine *e, struct summary *s, const struct rkey *k,
		      const struct alias *a)
{
	struct at_leg legs[AT_LEGS_MAX];
	uint32_t n = at_legs(e, a, legs), i;
	struct naming *naming;
	struct path *p;
	bool alive = false;

	for (i = 0; i < n; i++) {
		p = &s->paths[s->n_paths++];
		memset(p, 0, sizeof(*p));
		p->value = value_of(k, a);
		p->ifindex = legs[i].oif;
		p->weight = legs[i].weight;
		p->has_gw = legs[i].gw_family == k->family;
		if (p->has_gw) {
			p->gw[0] = at_be64(legs[i].gw);
			p->gw[1] = at_be64(legs[i].gw + 8);
		}
		alive |= at_link_live(e, legs[i].oif);
	}
	if (at_is_zero(a->prefsrc))
		return;
	naming = &s->naming[s->n_naming++];
	naming->prefsrc[0] = at_be64(a->prefsrc);
	naming->prefsrc[1] = at_be64(a->prefsrc + 8);
	naming->value = value_of(k, a);
	naming->alive = alive;
}

static void group_by_link(struct summary *s)
{
	struct over *o = NULL;
	struct path *p;

	qsort(s->paths, s->n_paths, sizeof(*s->paths), by_link);
	for (p = s->paths; p < s->paths + s->n_paths; p++) {
		if (!o || o->ifindex != p->ifindex) {
			o = &s->over[s->n_over++];
			*o = (struct over){ .value = p->value,
					    .ifindex = p->ifindex,
					    .first = p - s->paths };
		}
		o->n++;
		if (p->value < o->value) {
			o->value = p->value;
			o->weight = 0;
		}
		if (p->value == o->value && p->weight > o->weight)
			o->weight = p->weight;
	}
}

static int build(const struct at_engine *e, uint32_t table, unsigned family, struct summary *s)
{
	uint32_t i, j, aliases = 0;
	struct at_leg legs[AT_LEGS_MAX];
	size_t paths = 0;
	struct rkey *k;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		if (k->table != table || k->family != family)
			continue;
		for (j = 0; j < k->n; j++) {
			if (k->alias[j]->type != RTN_UNICAST) {
				s->bad++;
				continue;
			}
			aliases++;
			paths += at_legs(e, k->alias[j], legs);
		}
	}
	s->defaults = aliases;
	s->paths = malloc((paths + 1) * sizeof(*s->paths));
	s->over = malloc((paths + 1) * sizeof(*s->over));
	s->naming = malloc((aliases + 1) * sizeof(*s->naming));
	if (!s->paths || !s->over || !s->naming) {
		at_summary_free(s);
		return -ENOMEM;
	}
	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		if (k->table != table || k->family != family)
			continue;
		for (j = 0; j < k->n; j++) {
			if (k->alias[j]->type == RTN_UNICAST)
				add_alias(e, s, k, k->alias[j]);
		}
	}
	group_by_link(s);
	return 0;
}

static bool same_over(const struct summary *a, uint32_t i, const struct summary *b, uint32_t j)
{
	return a->over[i].n == b->over[j].n &&
	       !memcmp(a->paths + a->over[i].first, b->paths + b->over[j].first,
		       a->over[i].n * sizeof(*a->paths));
}

/* Lanes of a link point to its line of the summary again. */
static void point(struct at_engine *e, const struct table *t, int f, uint32_t ifindex,
		  uint32_t over, bool changed)
{
	uint32_t slot = at_link_find(e, ifindex), i;

	if (slot == AT_NONE)
		return;
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i] && e->selections[i]->table == t)
			e->selections[i]->rank[f].lanes[slot].over = over;
	}
	if (changed)
		at_mark_link(e, f, slot, false);
}

static void point_all(struct at_engine *e, const struct table *t, int f, const struct summary *old)
{
	const struct summary *new = &t->sum[f];
	uint32_t i = 0, j = 0;

	while (i < old->n_over || j < new->n_over) {
		if (j == new->n_over ||
		    (i < old->n_over && old->over[i].ifindex < new->over[j].ifindex)) {
			point(e, t, f, old->over[i++].ifindex, AT_NONE, true);
		} else if (i == old->n_over || new->over[j].ifindex < old->over[i].ifindex) {
			point(e, t, f, new->over[j].ifindex, j, true);
			j++;
		} else {
			point(e, t, f, new->over[j].ifindex, j, !same_over(old, i, new, j));
			i++;
			j++;
		}
	}
}

static void mark_named(struct at_engine *e, int f, const struct summary *s)
{
	uint8_t local[16];
	uint64_t word;
	uint32_t i, g;
	int half;

	for (i = 0; i < s->n_naming; i++) {
		for (half = 0; half < 2; half++) {
			word = __builtin_bswap64(s->naming[i].prefsrc[half]);
			memcpy(local + 8 * half, &word, sizeof(word));
		}
		g = at_group_find(e, f, local);
		if (g == AT_NONE)
			continue;
		e->fam[f].groups[g].named = at_is_named(e, f, local);
		at_mark_local(e, f, local);
	}
}

/* Addresses of loopback links have a tier while there is a default. */
static void mark_loopback(struct at_engine *e, int f)
{
	uint32_t i;

	for (i = 0; i < e->links_cap; i++) {
		if (e->links[i].used && e->links[i].value.flags & IFF_LOOPBACK)
			at_mark_link(e, f, i, false);
	}
}

static void refresh(struct at_engine *e, struct table *t, int f)
{
	struct summary old = t->sum[f], *new = &t->sum[f], fresh;
	uint32_t i;

	if (build(e, t->id, AT_FAMILY(f), &fresh)) {
		at_engine_lose(e, ~0u);
		e->stale = true;
		return;
	}
	*new = fresh;
	t->stale[f] = false;
	e->moves++;
	point_all(e, t, f, &old);
	if (old.n_naming != new->n_naming ||
	    (old.n_naming &&
	     memcmp(old.naming, new->naming, new->n_naming * sizeof(*new->naming)))) {
		mark_named(e, f, &old);
		mark_named(e, f, new);
	}
	if (!old.defaults != !new->defaults)
		mark_loopback(e, f);
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i] && e->selections[i]->table == t)
			at_recheck(e->selections[i]);
	}
	at_summary_free(&old);
}

void at_summarize(struct at_engine *e)
{
	int i, f;

	if (!e->stale)
		return;
	e->stale = false;
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		for (f = 0; e->tables[i] && f < 2; f++) {
			if (e->tables[i]->stale[f])
				refresh(e, e->tables[i], f);
		}
	}
}
