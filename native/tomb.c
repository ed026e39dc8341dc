// SPDX-License-Identifier: Apache-2.0
/* Keys that were deleted a moment ago: a dump that began before may still show them. */
#include <stdlib.h>

#include "state.h"

/* The key of the address (cleaned), link, nexthop or route of a record. */
void at_tomb_key(struct tomb *t, uint32_t scope, const void *value)
{
	const struct at_addr *addr = value;
	const struct at_route *route = value;

	memset(t, 0, sizeof(*t));
	t->scope = scope;
	switch (scope) {
	case AT_SCOPE_LINK:
		t->a = ((const struct at_link *)value)->ifindex;
		break;
	case AT_SCOPE_NEXTHOP:
		t->a = ((const struct at_nexthop *)value)->id;
		break;
	case AT_SCOPE_ROUTE4:
	case AT_SCOPE_ROUTE6:
		t->a = route->table;
		t->b = route->metric;
		t->c = scope == AT_SCOPE_ROUTE4 ? route->tos : 0;
		break;
	default:
		t->a = addr->ifindex;
		t->b = addr->prefixlen;
		memcpy(t->local, addr->local, sizeof(t->local));
		if (addr->family == AF_INET)
			memcpy(t->peer, addr->peer, sizeof(t->peer));
	}
}

void at_tomb_rkey(struct tomb *t, const struct rkey *k)
{
	memset(t, 0, sizeof(*t));
	t->scope = k->family == AF_INET ? AT_SCOPE_ROUTE4 : AT_SCOPE_ROUTE6;
	t->a = k->table;
	t->b = k->metric;
	t->c = k->tos;
}

static uint32_t hash_of(const struct tomb *t)
{
	return at_hash_mix(at_be64(t->local) ^ (uint64_t)t->a << 32 ^ t->b,
			   at_be64(t->local + 8) ^ at_be64(t->peer),
			   (uint64_t)t->c << 32 | t->scope);
}

static uint32_t search(const struct at_engine *e, const struct tomb *key)
{
	uint32_t hash = hash_of(key), at = hash, i;

	while ((i = at_hash_next(&e->by_tomb, hash, &at)) != AT_NONE) {
		/* all before the times is the key */
		if (!memcmp(&e->tombs[i], key, offsetof(struct tomb, deleted_ns)))
			break;
	}
	return i;
}

const struct tomb *at_tomb_find(const struct at_engine *e, const struct tomb *key)
{
	uint32_t i = e->n_tombs ? search(e, key) : AT_NONE;

	return i == AT_NONE ? NULL : &e->tombs[i];
}

/* Now an event or a rule deleted this key. Without memory it is not remembered. */
void at_tomb_add(struct at_engine *e, const struct tomb *key, bool rule)
{
	uint32_t i = e->n_tombs ? search(e, key) : AT_NONE;

	if (i == AT_NONE) {
		at_tomb_reap(e);
		if (at_hash_reserve(&e->by_tomb) ||
		    at_grow((void **)&e->tombs, &e->tombs_cap, e->n_tombs + 1, sizeof(*key)))
			return;
		i = e->n_tombs++;
		e->tombs[i] = *key;
		at_hash_add(&e->by_tomb, hash_of(key), i);
	}
	if (rule) {
		e->tombs[i].ruled = true;
		e->tombs[i].ruled_ns = e->now;
	} else {
		e->tombs[i].deleted = true;
		e->tombs[i].deleted_ns = e->now;
	}
}

/* No dump that is open, and none that begins from now on, can show it. */
static bool is_over(const struct at_engine *e, const struct tomb *t)
{
	uint64_t last = t->deleted && (!t->ruled || t->deleted_ns > t->ruled_ns) ? t->deleted_ns :
										   t->ruled_ns;
	const struct dump *d = &e->dumps[t->scope];
	uint64_t begin = d->open ? d->begin_ns : e->now;

	return last + AT_LOOKBACK_NS <= begin;
}

/* Only the first `n` are left. */
static void keep(struct at_engine *e, uint32_t n)
{
	uint32_t i;

	if (n != e->n_tombs) {
		at_hash_clear(&e->by_tomb);
		for (i = 0; i < n; i++)
			at_hash_add(&e->by_tomb, hash_of(&e->tombs[i]), i);
		e->n_tombs = n;
	}
	/* as many again, or a second, before it is worth looking */
	e->reap_at = 2 * n + 256;
	e->reap_ns = e->now + AT_REAP_NS;
}

void at_tomb_reap(struct at_engine *e)
{
	uint32_t i, n = 0;

	if (e->n_tombs < e->reap_at && e->now < e->reap_ns)
		return;
	for (i = 0; i < e->n_tombs; i++) {
		if (!is_over(e, &e->tombs[i]))
			e->tombs[n++] = e->tombs[i];
	}
	keep(e, n);
}

void at_tomb_forget(struct at_engine *e, uint32_t table)
{
	uint32_t i, n = 0;

	for (i = 0; i < e->n_tombs; i++) {
		if (e->tombs[i].scope < AT_SCOPE_ROUTE4 || e->tombs[i].a != table)
			e->tombs[n++] = e->tombs[i];
	}
	keep(e, n);
}
