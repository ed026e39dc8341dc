// SPDX-License-Identifier: Apache-2.0
/* How messages change the list of aliases of a key (docs/engine.md, section 2). */
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "state.h"

static bool same_hop(const struct at_leg *a, const struct at_leg *b)
{
	return a->oif == b->oif && a->gw_family == b->gw_family && !memcmp(a->gw, b->gw, 16);
}

static bool has_leg(const struct alias *a, const struct at_leg *leg)
{
	uint32_t i;

	for (i = 0; i < a->n_legs; i++) {
		if (same_hop(&a->legs[i], leg))
			return true;
	}
	return false;
}

static bool same_legs(const struct alias *a, const struct alias *b)
{
	return a->n_legs == b->n_legs && !memcmp(a->legs, b->legs, a->n_legs * sizeof(a->legs[0]));
}

static bool same_value(const struct alias *a, const struct alias *b)
{
	return a->type == b->type && a->scope == b->scope && a->proto == b->proto &&
	       a->nh_id == b->nh_id && !memcmp(a->prefsrc, b->prefsrc, 16);
}

/* All but `end` and `pref`. */
static bool equal(const struct alias *a, const struct alias *b)
{
	return same_value(a, b) && same_legs(a, b);
}

/* The order of IPv6 siblings is that of whoever tells: an event puts the new one first. */
static bool same_legs_unordered(const struct alias *a, const struct alias *b)
{
	uint64_t taken = 0; /* legs of b; AT_LEGS_MAX is 64 */
	uint32_t i, k;

	if (a->n_legs != b->n_legs)
		return false;
	for (i = 0; i < a->n_legs; i++) {
		for (k = 0; k < b->n_legs; k++) {
			if (!(taken >> k & 1) &&
			    !memcmp(&a->legs[i], &b->legs[k], sizeof(a->legs[i])))
				break;
		}
		if (k == b->n_legs)
			return false;
		taken |= (uint64_t)1 << k;
	}
	return true;
}

/* What messages would have told: not `end`, nor legs that a known nexthop object stands for. */
bool at_alias_announced(const struct at_engine *e, const struct alias *a, const struct alias *b)
{
	return same_value(a, b) && a->pref == b->pref &&
	       (same_legs_unordered(a, b) || (a->nh_id && at_nexthop_find(e, a->nh_id)));
}

static int room(struct rkey *k)
{
	return at_grow((void **)&k->alias, &k->cap, k->n + 1, sizeof(*k->alias));
}

/* Takes `a` over; -ENOMEM frees it. */
int at_alias_insert(struct at_engine *e, struct rkey *k, uint32_t at, struct alias *a)
{
	if (room(k)) {
		free(a);
		return -ENOMEM;
	}
	memmove(k->alias + at + 1, k->alias + at, (k->n - at) * sizeof(*k->alias));
	k->alias[at] = a;
	k->n++;
	at_narrow_note(e, k->family, k->table, a);
	at_stale(e, k->table, AT_INDEX(k->family));
	return 0;
}

void at_alias_replace(struct at_engine *e, struct rkey *k, uint32_t at, struct alias *a)
{
	free(k->alias[at]);
	k->alias[at] = a;
	at_narrow_note(e, k->family, k->table, a);
	at_stale(e, k->table, AT_INDEX(k->family));
}

void at_alias_remove(struct at_engine *e, struct rkey *k, uint32_t at)
{
	free(k->alias[at]);
	k->n--;
	memmove(k->alias + at, k->alias + at + 1, (k->n - at) * sizeof(*k->alias));
	at_stale(e, k->table, AT_INDEX(k->family));
}

/* What siblings share in a message, where each has its own. */
static bool same_attributes(const struct alias *a, const struct alias *b)
{
	return a->type == b->type && a->scope == b->scope && a->proto == b->proto &&
	       a->pref == b->pref && !memcmp(a->prefsrc, b->prefsrc, 16);
}

/* R9: the message leaves open what the kernel has now. */
static void doubt(struct at_engine *e, const struct rkey *k)
{
	at_dirty(e, k->family == AF_INET ? AT_SCOPE_ROUTE4 : AT_SCOPE_ROUTE6, 0, k->table, 9);
}

/* R9: what a NEW with NLM_F_REPLACE replaced was removed. */
static void replaced(struct at_engine *e, const struct rkey *k, uint32_t scope, uint32_t n)
{
	if (!n)
		return;
	e->counters.inferred[9] += n;
	at_dirty(e, scope, 0, k->table, 9);
}

static int new4(struct at_engine *e, struct rkey *k, unsigned flags, struct alias *a)
{
	uint32_t i;

	if (flags & NLM_F_REPLACE) {
		replaced(e, k, AT_SCOPE_ROUTE4, k->n > 0);
		if (!k->n)
			return at_alias_insert(e, k, 0, a);
		at_alias_replace(e, k, 0, a);
		return 0;
	}
	for (i = 0; i < k->n; i++) {
		if (equal(k->alias[i], a)) {
			doubt(e, k);
			at_alias_replace(e, k, i, a);
			return 0;
		}
	}
	return at_alias_insert(e, k, flags & NLM_F_APPEND ? k->n : 0, a);
}

/* The first alias with this nexthop id is replaced. */
static int new6_object(struct at_engine *e, struct rkey *k, struct alias *a)
{
	uint32_t i;

	for (i = 0; i < k->n; i++) {
		if (k->alias[i]->nh_id == a->nh_id) {
			at_alias_replace(e, k, i, a);
			return 0;
		}
	}
	return at_alias_insert(e, k, k->n, a);
}

/* A whole list of siblings: it stands for those that it contains. */
static int new6_siblings(struct at_engine *e, struct rkey *k, struct alias *a)
{
	uint32_t at = AT_NONE, i = 0, j;
	struct alias *old;

	if (room(k)) {
		free(a);
		return -ENOMEM;
	}
	while (i < k->n) {
		old = k->alias[i];
		for (j = 0; j < old->n_legs && has_leg(a, &old->legs[j]); j++)
			;
		if (old->nh_id || !old->n_legs || j < old->n_legs) {
			i++;
			continue;
		}
		if (at == AT_NONE)
			at = i;
		if (!same_attributes(old, a) && (old->n_legs > 1 || a->n_legs > 1))
			doubt(e, k);
		at_alias_remove(e, k, i);
	}
	return at_alias_insert(e, k, at == AT_NONE ? k->n : at, a);
}

/* One leg, or none: the alias that has it takes the new values and keeps its legs. */
static int new6_single(struct at_engine *e, struct rkey *k, struct alias *a)
{
	struct alias *old;
	uint32_t i;

	for (i = 0; i < k->n; i++) {
		old = k->alias[i];
		if (old->nh_id || (a->n_legs ? !has_leg(old, a->legs) : old->n_legs))
			continue;
		if (!same_attributes(old, a) && old->n_legs > 1)
			doubt(e, k);
		old->type = a->type;
		old->scope = a->scope;
		old->proto = a->proto;
		old->pref = a->pref;
		old->end = a->end;
		memcpy(old->prefsrc, a->prefsrc, sizeof(old->prefsrc));
		free(a);
		at_narrow_note(e, k->family, k->table, old);
		at_stale(e, k->table, 1);
		return 0;
	}
	return at_alias_insert(e, k, k->n, a);
}

static int new6(struct at_engine *e, struct rkey *k, unsigned flags, struct alias *a)
{
	if (flags & NLM_F_REPLACE) {
		replaced(e, k, AT_SCOPE_ROUTE6, k->n);
		while (k->n > 1)
			at_alias_remove(e, k, k->n - 1);
		if (!k->n)
			return at_alias_insert(e, k, 0, a);
		at_alias_replace(e, k, 0, a);
		return 0;
	}
	if (a->nh_id)
		return new6_object(e, k, a);
	if (a->n_legs > 1 || flags & NLM_F_APPEND)
		return new6_siblings(e, k, a);
	return new6_single(e, k, a);
}

static bool fits4(const struct alias *a, const struct record *r)
{
	const struct at_route *v = r->payload;
	const struct at_leg *leg = r->legs;
	static const uint8_t any[4];
	uint32_t i;

	if ((v->type && v->type != a->type) || (v->proto && v->proto != a->proto) ||
	    (v->scope && v->scope != RT_SCOPE_NOWHERE && v->scope != a->scope) ||
	    (memcmp(v->prefsrc, any, 4) && memcmp(v->prefsrc, a->prefsrc, 4)) ||
	    (v->nh_id && v->nh_id != a->nh_id))
		return false;
	if (v->nh_id || !v->n_legs)
		return true;
	if (v->n_legs != a->n_legs)
		return false;
	for (i = 0; i < v->n_legs; i++) {
		if ((leg[i].oif && leg[i].oif != a->legs[i].oif) ||
		    (leg[i].gw_family && (leg[i].gw_family != a->legs[i].gw_family ||
					  memcmp(leg[i].gw, a->legs[i].gw, 16))))
			return false;
	}
	return true;
}

static bool fits6(const struct alias *a, const struct at_route *v)
{
	return (!v->type || v->type == a->type) && (!v->proto || v->proto == a->proto);
}

static bool del4(struct at_engine *e, struct rkey *k, const struct record *r)
{
	uint32_t i;

	for (i = 0; i < k->n; i++) {
		if (fits4(k->alias[i], r)) {
			at_alias_remove(e, k, i);
			return true;
		}
	}
	return false;
}

/* The alias that has a leg, one of this type and protocol before others: siblings may differ in both,
 * and the message shows those of one of them. */
static uint32_t with_leg(const struct rkey *k, const struct at_route *v, const struct at_leg *leg)
{
	uint32_t i, other = AT_NONE;

	for (i = 0; i < k->n; i++) {
		if (!has_leg(k->alias[i], leg))
			continue;
		if (fits6(k->alias[i], v))
			return i;
		if (other == AT_NONE && (k->alias[i]->n_legs > 1 || v->n_legs > 1))
			other = i;
	}
	return other;
}

static bool del6_leg(struct at_engine *e, struct rkey *k, const struct at_route *v,
		     const struct at_leg *leg)
{
	uint32_t i = with_leg(k, v, leg), j;
	struct alias *a;

	if (i == AT_NONE)
		return false;
	a = k->alias[i];
	if (!a->nh_id && a->n_legs > 1)
		doubt(e, k);
	for (j = 0; !same_hop(&a->legs[j], leg); j++)
		;
	a->n_legs--;
	memmove(a->legs + j, a->legs + j + 1, (a->n_legs - j) * sizeof(a->legs[0]));
	at_stale(e, k->table, 1);
	if (!a->n_legs)
		at_alias_remove(e, k, i);
	return true;
}

static bool del6(struct at_engine *e, struct rkey *k, const struct record *r)
{
	const struct at_route *v = r->payload;
	bool found = false;
	uint32_t i;

	if (v->nh_id) {
		for (i = k->n; i-- > 0;) {
			if (k->alias[i]->nh_id == v->nh_id) {
				at_alias_remove(e, k, i);
				found = true;
			}
		}
		return found;
	}
	if (v->n_legs) {
		for (i = 0; i < v->n_legs; i++)
			found |= del6_leg(e, k, v, &r->legs[i]);
		return found;
	}
	for (i = 0; i < k->n; i++) {
		if (fits6(k->alias[i], v)) {
			if (!k->alias[i]->nh_id && k->alias[i]->n_legs > 1)
				doubt(e, k);
			at_alias_remove(e, k, i);
			return true;
		}
	}
	return false;
}

/* RTM_NEWROUTE: takes `a` over. -ENOMEM. */
int at_list_new(struct at_engine *e, struct rkey *k, unsigned nl_flags, struct alias *a)
{
	return k->family == AF_INET ? new4(e, k, nl_flags, a) : new6(e, k, nl_flags, a);
}

/* RTM_DELROUTE; false if it names nothing that is there. */
bool at_list_delete(struct at_engine *e, struct rkey *k, const struct record *r)
{
	return k->family == AF_INET ? del4(e, k, r) : del6(e, k, r);
}
