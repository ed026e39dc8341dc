// SPDX-License-Identifier: Apache-2.0
/* Default routes of the tables that selections name: lists of aliases by key. */
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "state.h"

static int compare_key(const struct rkey *k, unsigned family, uint32_t table, unsigned tos,
		       uint32_t metric)
{
	if (k->family != family)
		return k->family < family ? -1 : 1;
	if (k->table != table)
		return k->table < table ? -1 : 1;
	if (k->tos != tos)
		return k->tos < tos ? -1 : 1;
	return k->metric < metric ? -1 : k->metric > metric;
}

/* The key of a route; made if there is none and `make`. NULL: none, or no memory. */
struct rkey *at_rkey_get(struct at_engine *e, const struct at_route *v, bool make)
{
	uint32_t low = 0, high = e->n_rkeys, middle;
	unsigned tos = v->family == AF_INET ? v->tos : 0;
	struct rkey *k;
	int order;

	while (low < high) {
		middle = (low + high) / 2;
		order = compare_key(e->rkeys[middle], v->family, v->table, tos, v->metric);
		if (!order)
			return e->rkeys[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!make || at_grow((void **)&e->rkeys, &e->rkeys_cap, e->n_rkeys + 1, sizeof(*e->rkeys)))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->family = v->family;
	k->table = v->table;
	k->tos = tos;
	k->metric = v->metric;
	memmove(e->rkeys + low + 1, e->rkeys + low, (e->n_rkeys - low) * sizeof(*e->rkeys));
	e->rkeys[low] = k;
	e->n_rkeys++;
	return k;
}

struct alias *at_alias_new(const struct at_engine *e, const struct record *r)
{
	const struct at_route *v = r->payload;
	struct alias *a = calloc(1, sizeof(*a) + v->n_legs * sizeof(a->legs[0]));
	struct at_leg *leg;

	if (!a)
		return NULL;
	a->end = UINT64_MAX;
	if (v->family == AF_INET6 && v->expires && v->proto == RTPROT_RA)
		a->end = e->now + v->expires * 1000000000ull;
	a->nh_id = v->nh_id;
	a->type = v->type;
	a->scope = v->scope;
	a->proto = v->proto;
	a->pref = v->pref;
	memcpy(a->prefsrc, v->prefsrc, v->family == AF_INET ? 4 : 16);
	a->n_legs = v->n_legs;
	for (leg = a->legs; leg < a->legs + a->n_legs; leg++) {
		*leg = r->legs[leg - a->legs];
		leg->flags = 0;
		at_gateway_clean(leg->gw_family, leg->gw);
	}
	return a;
}

/* Frees keys without aliases; those that rules emptied are remembered while dumps are open. */
void at_routes_compact(struct at_engine *e, bool rule)
{
	struct tomb tomb;
	uint32_t i, n = 0;

	for (i = 0; i < e->n_rkeys; i++) {
		if (e->rkeys[i]->n) {
			e->rkeys[n++] = e->rkeys[i];
			continue;
		}
		if (rule) {
			at_tomb_rkey(&tomb, e->rkeys[i]);
			at_tomb_add(e, &tomb, true);
		}
		free(e->rkeys[i]->alias);
		free(e->rkeys[i]);
	}
	e->n_rkeys = n;
}

static bool is_kept(const struct at_engine *e, const struct at_route *v)
{
	return !v->dst_len && !(v->rtm_flags & RTM_F_CLONED) && at_table(e, v->table);
}

static int add(struct at_engine *e, const struct record *r)
{
	const struct at_route *v = r->payload;
	struct rkey *k = at_rkey_get(e, v, true);
	struct alias *a = at_alias_new(e, r);
	int err;

	if (!k || !a) {
		free(a);
		at_routes_compact(e, false);
		return -ENOMEM;
	}
	k->changed_ns = e->now;
	err = at_list_new(e, k, r->h->nl_flags, a);
	if (!k->n)
		at_routes_compact(e, false);
	return err;
}

static void delete(struct at_engine *e, const struct record *r)
{
	const struct at_route *v = r->payload;
	struct rkey *k = at_rkey_get(e, v, false);
	struct tomb tomb;

	at_tomb_key(&tomb, r->scope, v);
	at_tomb_add(e, &tomb, false);
	if (k)
		k->changed_ns = e->now;
	if (!k || !at_list_delete(e, k, r))
		e->counters.ignored++;
	if (k && !k->n)
		at_routes_compact(e, false);
}

/* A route on an object that nobody described leads nowhere that we know. */
void at_check_nexthop(struct at_engine *e, const struct at_route *v)
{
	if (v->nh_id && !v->n_legs && !at_nexthop_find(e, v->nh_id))
		at_dirty(e, AT_SCOPE_NEXTHOP, 0, 0, 3);
}

int at_route_apply(struct at_engine *e, const struct record *r)
{
	const struct at_route *v = r->payload;
	int err = 0;

	if (!is_kept(e, v)) {
		e->counters.ignored++;
		return 0;
	}
	if (r->entry)
		return at_dump_entry(e, r);
	if (r->h->op == AT_OP_NEW) {
		err = add(e, r);
		at_check_nexthop(e, v);
	} else {
		delete(e, r);
	}
	if (r->h->flags & AT_F_TRUNCATED)
		at_dirty(e, r->scope, 0, v->table, 9);
	return err;
}

/* The legs that count: those of the nexthop object where it is known. At most AT_LEGS_MAX. */
uint32_t at_legs(const struct at_engine *e, const struct alias *a, struct at_leg *out)
{
	const struct nexthop *n = a->nh_id ? at_nexthop_find(e, a->nh_id) : NULL;

	if (n)
		return at_nexthop_legs(e, n, out);
	memcpy(out, a->legs, a->n_legs * sizeof(*out));
	return a->n_legs;
}
