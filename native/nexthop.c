// SPDX-License-Identifier: Apache-2.0
/* Nexthop objects and groups, by id. */
#include <stdlib.h>

#include "state.h"

/* Where an id is, or would be. */
static uint32_t position(const struct at_engine *e, uint32_t id)
{
	uint32_t low = 0, high = e->n_nexthops, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (e->nexthops[middle]->value.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct nexthop *at_nexthop_find(const struct at_engine *e, uint32_t id)
{
	uint32_t at = position(e, id);

	return at < e->n_nexthops && e->nexthops[at]->value.id == id ? e->nexthops[at] : NULL;
}

static uint32_t leg_of(const struct nexthop *n, uint32_t weight, struct at_leg *out)
{
	if (n->value.blackhole || n->value.fdb)
		return 0;
	memset(out, 0, sizeof(*out));
	out->oif = n->value.oif;
	out->weight = weight;
	out->gw_family = n->value.gw_family;
	memcpy(out->gw, n->value.gw, sizeof(out->gw));
	return 1;
}

uint32_t at_nexthop_legs(const struct at_engine *e, const struct nexthop *n, struct at_leg *out)
{
	const struct nexthop *m;
	uint32_t i, legs = 0;

	if (!n->value.n_members)
		return leg_of(n, 1, out);
	for (i = 0; i < n->value.n_members; i++) {
		m = at_nexthop_find(e, n->value.member[i].id);
		if (m && !m->value.n_members)
			legs += leg_of(m, n->value.member[i].weight, out + legs);
	}
	return legs;
}

static bool equal(const struct nexthop *a, const struct nexthop *b)
{
	struct at_nexthop x = a->value, y = b->value;

	x.flags = y.flags = 0;
	return !memcmp(&x, &y, sizeof(x)) &&
	       !memcmp(a->value.member, b->value.member, x.n_members * sizeof(a->value.member[0]));
}

/* NEW. Returns 1 if it is new or differs, 0 if not, -ENOMEM. */
int at_nexthop_put(struct at_engine *e, const struct record *r, bool event)
{
	const struct at_nexthop *v = r->payload;
	uint32_t at = position(e, v->id), i;
	struct nexthop *n, *old;
	bool differs = true;

	if (at_grow((void **)&e->nexthops, &e->nexthops_cap, e->n_nexthops + 1,
		    sizeof(*e->nexthops)))
		return -ENOMEM;
	n = calloc(1, sizeof(*n) + v->n_members * sizeof(n->value.member[0]));
	if (!n)
		return -ENOMEM;
	n->value = *v;
	n->value.pad0 = 0;
	n->value.pad1 = 0;
	n->value.blackhole = !!v->blackhole;
	n->value.fdb = !!v->fdb;
	at_gateway_clean(v->gw_family, n->value.gw);
	for (i = 0; i < v->n_members; i++) {
		n->value.member[i] = r->members[i];
		n->value.member[i].pad0 = 0;
	}
	if (at < e->n_nexthops && e->nexthops[at]->value.id == v->id) {
		old = e->nexthops[at];
		differs = !equal(old, n);
		n->changed_ns = old->changed_ns;
		n->seen = old->seen;
		n->drifted = old->drifted;
		free(old);
	} else {
		memmove(e->nexthops + at + 1, e->nexthops + at,
			(e->n_nexthops - at) * sizeof(*e->nexthops));
		e->n_nexthops++;
	}
	e->nexthops[at] = n;
	if (event)
		n->changed_ns = e->now;
	if (differs) {
		at_stale_all(e);
		at_moved_nexthop(e, v->id);
	}
	return differs;
}

void at_nexthop_remove(struct at_engine *e, uint32_t id)
{
	uint32_t at = position(e, id);

	free(e->nexthops[at]);
	e->n_nexthops--;
	memmove(e->nexthops + at, e->nexthops + at + 1,
		(e->n_nexthops - at) * sizeof(*e->nexthops));
	at_stale_all(e);
	at_moved_nexthop(e, id);
}

int at_nexthop_apply(struct at_engine *e, const struct record *r)
{
	const struct at_nexthop *v = r->payload;
	struct tomb tomb;
	int err = 0;

	if (r->h->op == AT_OP_NEW) {
		err = at_nexthop_put(e, r, true);
	} else {
		at_tomb_key(&tomb, AT_SCOPE_NEXTHOP, v);
		at_tomb_add(e, &tomb, false);
		if (at_nexthop_find(e, v->id))
			at_rule_nexthop(e, v->id);
		else
			e->counters.ignored++;
	}
	if (r->h->flags & AT_F_TRUNCATED)
		at_dirty(e, AT_SCOPE_NEXTHOP, 0, 0, 9);
	return err < 0 ? err : 0;
}

size_t at_engine_nexthop(const struct at_engine *e, uint32_t id, void *out)
{
	const struct nexthop *n = at_nexthop_find(e, id);

	return n ? at_write_nexthop(out, n, e->now) : 0;
}
