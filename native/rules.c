// SPDX-License-Identifier: Apache-2.0
/* Silent removals: what the kernel takes away without a message (docs/engine.md, section 3). */
#include "state.h"

static uint32_t scope_of(const struct rkey *k)
{
	return k->family == AF_INET ? AT_SCOPE_ROUTE4 : AT_SCOPE_ROUTE6;
}

/* How many of an alias's legs are on a link; *all: those are all it has. */
static uint32_t legs_on(const struct at_engine *e, const struct alias *a, uint32_t ifindex,
			bool *all)
{
	struct at_leg legs[AT_LEGS_MAX];
	uint32_t n = at_legs(e, a, legs), on = 0, i;

	for (i = 0; i < n; i++)
		on += legs[i].oif == ifindex;
	*all = on && on == n;
	return on;
}

static void take(struct at_engine *e, struct rkey *k, uint32_t at, uint32_t rule)
{
	at_alias_remove(e, k, at);
	k->changed_ns = e->now;
	e->counters.inferred[rule]++;
}

/* Routes of a family with a leg on a link: dirt, and where all legs are on it, removal. */
static void routes_on(struct at_engine *e, unsigned family, uint32_t ifindex, uint32_t rule,
		      bool remove)
{
	struct rkey *k;
	uint32_t i, j;
	bool all;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		if (k->family != family)
			continue;
		for (j = k->n; j-- > 0;) {
			if (!legs_on(e, k->alias[j], ifindex, &all))
				continue;
			at_dirty(e, scope_of(k), 0, k->table, rule);
			if (all && remove)
				take(e, k, j, rule);
		}
	}
	if (remove)
		at_routes_compact(e, true);
}

void at_rule_down(struct at_engine *e, uint32_t ifindex)
{
	routes_on(e, AF_INET, ifindex, 1, true);
	routes_on(e, AF_INET6, ifindex, e->v6_silent_down ? 8 : 1, e->v6_silent_down);
}

void at_rule_last_address(struct at_engine *e, uint32_t ifindex)
{
	routes_on(e, AF_INET, ifindex, 2, true);
}

/* The routes of an object that went. */
static void users_gone(struct at_engine *e, uint32_t id)
{
	struct rkey *k;
	uint32_t i, j;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		for (j = k->n; j-- > 0;) {
			if (k->alias[j]->nh_id != id)
				continue;
			at_dirty(e, scope_of(k), 0, k->table, 3);
			if (k->family == AF_INET)
				take(e, k, j, 3);
		}
	}
}

/* It leaves its groups; an empty group goes as well. */
static void leave_groups(struct at_engine *e, uint32_t id)
{
	struct nexthop *n;
	struct tomb tomb;
	uint32_t i, j;

	for (i = e->n_nexthops; i-- > 0;) {
		n = e->nexthops[i];
		if (!n->value.n_members)
			continue;
		for (j = n->value.n_members; j-- > 0;) {
			if (n->value.member[j].id != id)
				continue;
			n->value.n_members--;
			memmove(n->value.member + j, n->value.member + j + 1,
				(n->value.n_members - j) * sizeof(n->value.member[0]));
			n->changed_ns = e->now;
			at_moved_nexthop(e, n->value.id);
		}
		if (!n->value.n_members) {
			at_tomb_key(&tomb, AT_SCOPE_NEXTHOP, &n->value);
			at_tomb_add(e, &tomb, true);
			users_gone(e, n->value.id);
			at_nexthop_remove(e, n->value.id);
			e->counters.inferred[3]++;
		}
	}
}

void at_rule_nexthop(struct at_engine *e, uint32_t id)
{
	at_nexthop_remove(e, id);
	users_gone(e, id);
	leave_groups(e, id);
	at_routes_compact(e, true);
}

/* Carrier or link went: the kernel deletes the objects on it, unannounced. */
void at_rule_carrier(struct at_engine *e, uint32_t ifindex)
{
	struct nexthop *n;
	struct tomb tomb;
	uint32_t i;

	for (i = e->n_nexthops; i-- > 0;) {
		n = e->nexthops[i];
		if (n->value.oif != ifindex)
			continue;
		at_tomb_key(&tomb, AT_SCOPE_NEXTHOP, &n->value);
		at_tomb_add(e, &tomb, true);
		e->counters.inferred[3]++;
		at_dirty(e, AT_SCOPE_NEXTHOP, 0, 0, 3);
		at_rule_nexthop(e, n->value.id);
		/* groups may have gone too */
		if (i > e->n_nexthops)
			i = e->n_nexthops;
	}
}

void at_rule_source(struct at_engine *e, int f, const uint8_t *local)
{
	struct rkey *k;
	uint32_t i, j;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		if (AT_INDEX(k->family) != f)
			continue;
		for (j = k->n; j-- > 0;) {
			if (at_is_zero(local) || memcmp(k->alias[j]->prefsrc, local, 16))
				continue;
			at_dirty(e, scope_of(k), 0, k->table, 4);
			if (f) {
				memset(k->alias[j]->prefsrc, 0, 16);
				k->changed_ns = e->now;
				at_stale(e, k->table, f);
			} else {
				take(e, k, j, 4);
			}
		}
	}
	if (!f)
		at_routes_compact(e, true);
}

void at_rule_master(struct at_engine *e, uint32_t ifindex)
{
	routes_on(e, AF_INET, ifindex, 5, true);
	routes_on(e, AF_INET6, ifindex, 5, false);
	at_dirty(e, AT_SCOPE_ADDR4, ifindex, 0, 5);
	at_dirty(e, AT_SCOPE_ADDR6, ifindex, 0, 5);
}

/* Doubt about objects: on a link without carrier any change of the link may end them. */
void at_rule_nexthops_on(struct at_engine *e, uint32_t ifindex, uint32_t rule)
{
	uint32_t i;

	for (i = 0; i < e->n_nexthops; i++) {
		if (e->nexthops[i]->value.oif == ifindex)
			at_dirty(e, AT_SCOPE_NEXTHOP, 0, 0, rule);
	}
}

void at_rule_live(struct at_engine *e, uint32_t ifindex)
{
	routes_on(e, AF_INET, ifindex, 6, false);
	routes_on(e, AF_INET6, ifindex, 6, false);
	at_rule_nexthops_on(e, ifindex, 6);
}

void at_rule_expire(struct at_engine *e)
{
	struct rkey *k;
	uint32_t i, j;
	bool any = false;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		for (j = k->n; j-- > 0;) {
			if (k->alias[j]->end > e->now)
				continue;
			take(e, k, j, 10);
			at_dirty(e, scope_of(k), 0, k->table, 10);
			any = true;
		}
	}
	if (any)
		at_routes_compact(e, true);
}
