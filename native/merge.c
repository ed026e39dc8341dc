// SPDX-License-Identifier: Apache-2.0
/* Dumps: events win over entries, and what a dump did not show goes (docs/engine.md, section 4). */
#include <linux/if_addr.h>
#include <stdlib.h>

#include "drift.h"

/* Whether a dump is open that covers a record. */
bool at_dump_covers(const struct at_engine *e, const struct record *r)
{
	const struct dump *d = &e->dumps[r->scope];
	const struct at_addr *addr = r->payload;
	const struct at_route *route = r->payload;

	if (!d->open)
		return false;
	if (r->h->kind == AT_KIND_ADDR)
		return !d->ifindex || d->ifindex == addr->ifindex;
	if (r->h->kind == AT_KIND_ROUTE)
		return !d->table || d->table == route->table;
	return true;
}

static bool is_protected(const struct at_engine *e, uint32_t scope, bool known, uint64_t changed_ns,
			 const struct tomb *key)
{
	const struct tomb *t = at_tomb_find(e, key);
	uint64_t begin = e->dumps[scope].begin_ns;

	if (known && changed_ns >= begin)
		return true;
	return t && ((t->deleted && t->deleted_ns + AT_LOOKBACK_NS > begin) ||
		     (t->ruled && t->ruled_ns >= begin));
}

static bool addr_differs(const struct at_addr *a, const struct at_addr *b)
{
	return a->flags != b->flags || a->scope != b->scope || a->proto != b->proto ||
	       a->priority != b->priority || memcmp(a->peer, b->peer, sizeof(a->peer));
}

static int entry_addr(struct at_engine *e, uint32_t scope, const struct record *r)
{
	const struct dump *d = &e->dumps[scope];
	int f = scope == AT_SCOPE_ADDR6, err;
	struct at_addr a;
	struct entry *n;
	struct tomb key;
	uint32_t slot;
	bool differs;

	at_addr_clean(r->payload, &a);
	slot = at_addr_find(e, f, &a);
	n = slot == AT_NONE ? NULL : &e->fam[f].entries[slot];
	if (n && n->seen != d->gen) {
		n->seen = d->gen;
		n->drifted = false;
	}
	at_tomb_key(&key, scope, &a);
	if (is_protected(e, scope, n, n ? n->changed_ns : 0, &key)) {
		e->counters.ignored++;
		return 0;
	}
	differs = n ? addr_differs(&n->value, &a) : !(a.flags & IFA_F_TENTATIVE);
	err = at_addr_put(e, &a, &slot, false);
	if (err)
		return err;
	n = &e->fam[f].entries[slot];
	n->seen = d->gen;
	if (differs)
		at_drift_shown(e, scope, r, &n->drifted);
	return 0;
}

static bool link_differs(const struct at_link *a, const struct at_link *b)
{
	return a->flags != b->flags || a->master != b->master || a->vrf_table != b->vrf_table ||
	       a->type != b->type || strcmp(a->name, b->name) || strcmp(a->kind, b->kind);
}

/*
 * Carrier is shown by dumps at once, but announced up to a second later (linkwatch), and routes and
 * nexthops follow the announcement. So an audit that runs between the two finds no drift, and
 * leaves these flags as they were; one that finds the same later, does. *v is then as announced.
 */
static void as_announced(struct at_engine *e, struct link *l, struct at_link *v)
{
	struct at_link told = *v;
	uint64_t since = l->ahead_ns ? l->ahead_ns : e->now;

	told.flags = (v->flags & ~AT_LATE_FLAGS) | (l->value.flags & AT_LATE_FLAGS);
	l->ahead_ns = 0;
	if (told.flags == v->flags || link_differs(&l->value, &told) ||
	    e->now - since >= AT_LATE_NS)
		return;
	l->ahead_ns = since;
	*v = told;
}

static int entry_link(struct at_engine *e, const struct record *r)
{
	const struct dump *d = &e->dumps[AT_SCOPE_LINK];
	struct at_link shown = *(const struct at_link *)r->payload;
	const struct at_link *v = &shown;
	uint32_t slot = at_link_find(e, v->ifindex);
	struct link *l = slot == AT_NONE ? NULL : &e->links[slot];
	struct tomb key;
	bool differs;
	int err;

	if (l && l->seen != d->gen) {
		l->seen = d->gen;
		l->drifted = false;
	}
	at_tomb_key(&key, AT_SCOPE_LINK, v);
	if (is_protected(e, AT_SCOPE_LINK, l && l->known, l ? l->changed_ns : 0, &key)) {
		e->counters.ignored++;
		return 0;
	}
	if (l && l->known && d->audit)
		as_announced(e, l, &shown);
	else if (l)
		l->ahead_ns = 0;
	differs = !l || !l->known || link_differs(&l->value, v);
	err = at_link_put(e, v, false);
	if (err)
		return err;
	l = &e->links[at_link_find(e, v->ifindex)];
	l->seen = d->gen;
	if (differs)
		at_drift_shown(e, AT_SCOPE_LINK, r, &l->drifted);
	return 0;
}

static int entry_nexthop(struct at_engine *e, const struct record *r)
{
	const struct dump *d = &e->dumps[AT_SCOPE_NEXTHOP];
	const struct at_nexthop *v = r->payload;
	struct nexthop *n = at_nexthop_find(e, v->id);
	struct tomb key;
	int differs;

	if (n && n->seen != d->gen) {
		n->seen = d->gen;
		n->drifted = false;
	}
	at_tomb_key(&key, AT_SCOPE_NEXTHOP, v);
	if (is_protected(e, AT_SCOPE_NEXTHOP, n, n ? n->changed_ns : 0, &key)) {
		e->counters.ignored++;
		return 0;
	}
	differs = at_nexthop_put(e, r, false);
	if (differs < 0)
		return differs;
	n = at_nexthop_find(e, v->id);
	n->seen = d->gen;
	if (differs)
		at_drift_shown(e, AT_SCOPE_NEXTHOP, r, &n->drifted);
	return 0;
}

/* The n-th entry of a key takes the place of its n-th alias. */
static int entry_route(struct at_engine *e, uint32_t scope, const struct record *r)
{
	struct dump *d = &e->dumps[scope];
	const struct at_route *v = r->payload;
	struct rkey *k = at_rkey_get(e, v, false);
	struct alias *a = at_alias_new(e, r), *old;
	struct tomb key;
	uint32_t at;

	at_tomb_key(&key, scope, v);
	if (k && k->seen != d->gen) {
		k->seen = d->gen;
		k->shown = 0;
		k->drifted = false;
	}
	at = k ? k->shown++ : 0;
	old = k && at < k->n ? k->alias[at] : NULL;
	if (a && is_protected(e, scope, k, k ? k->changed_ns : 0, &key)) {
		e->counters.ignored++;
		d->doubtful |= !old || !at_alias_announced(e, old, a);
		at_narrow_note(e, v->family, v->table, a);
		free(a);
		return 0;
	}
	if (!k)
		k = at_rkey_get(e, v, true);
	if (!a || !k) {
		free(a);
		at_routes_compact(e, false);
		return -ENOMEM;
	}
	k->seen = d->gen;
	k->shown = at + 1;
	if (!old || !at_alias_announced(e, old, a))
		at_drift_shown(e, scope, r, &k->drifted);
	if (old) {
		at_alias_replace(e, k, at, a);
	} else if (at_alias_insert(e, k, k->n, a)) {
		at_routes_compact(e, false);
		return -ENOMEM;
	}
	at_check_nexthop(e, v);
	return 0;
}

int at_dump_entry(struct at_engine *e, const struct record *r)
{
	uint32_t scope = r->scope;

	e->dumps[scope].shown++;
	switch (scope) {
	case AT_SCOPE_LINK:
		return entry_link(e, r);
	case AT_SCOPE_NEXTHOP:
		return entry_nexthop(e, r);
	case AT_SCOPE_ADDR4:
	case AT_SCOPE_ADDR6:
		return entry_addr(e, scope, r);
	default:
		return entry_route(e, scope, r);
	}
}

/* What is swept goes in the order of its keys, as drifts are reported. */
static void sweep_links(struct at_engine *e, const struct dump *d)
{
	struct link **gone = malloc((e->links_cap + 1) * sizeof(*gone));
	uint32_t i, n = 0;
	struct link *l;

	if (!gone) {
		at_lost(e, AT_SCOPE_LINK, 0, 0);
		return;
	}
	for (i = 0; i < e->links_cap; i++) {
		l = &e->links[i];
		if (l->known && l->seen != d->gen && l->changed_ns < d->begin_ns)
			gone[n++] = l;
	}
	qsort(gone, n, sizeof(*gone), at_by_ifindex);
	for (i = 0; i < n; i++) {
		at_drift_missing(e, AT_SCOPE_LINK, gone[i]);
		at_link_remove(e, gone[i] - e->links);
	}
	free(gone);
}

static void sweep_addrs(struct at_engine *e, const struct dump *d, int f)
{
	struct family *m = &e->fam[f];
	struct entry **gone = malloc((m->count + 1) * sizeof(*gone)), *n;
	uint32_t scope = f ? AT_SCOPE_ADDR6 : AT_SCOPE_ADDR4, i, count = 0;

	if (!gone) {
		at_lost(e, scope, d->ifindex, 0);
		return;
	}
	for (i = 0; i < m->cap; i++) {
		n = &m->entries[i];
		if (n->used && n->seen != d->gen && n->changed_ns < d->begin_ns &&
		    (!d->ifindex || n->value.ifindex == d->ifindex))
			gone[count++] = n;
	}
	qsort(gone, count, sizeof(*gone), at_by_key);
	for (i = 0; i < count; i++) {
		at_drift_missing(e, scope, gone[i]);
		at_addr_remove(e, f, gone[i] - m->entries);
	}
	free(gone);
}

/* The kernel took their IPv4 routes without a message, as it did with them. */
static void sweep_nexthops(struct at_engine *e, const struct dump *d)
{
	struct nexthop *n;
	uint32_t i = 0, id;

	while (i < e->n_nexthops) {
		n = e->nexthops[i];
		if (n->seen == d->gen || n->changed_ns >= d->begin_ns) {
			i++;
			continue;
		}
		at_drift_missing(e, AT_SCOPE_NEXTHOP, n);
		id = n->value.id;
		at_nexthop_remove(e, id);
		at_rule_users(e, id);
	}
	at_routes_compact(e, true);
}

static void sweep_routes(struct at_engine *e, struct dump *d, int f)
{
	uint32_t scope = f ? AT_SCOPE_ROUTE6 : AT_SCOPE_ROUTE4, i, keep;
	struct at_header *h;
	struct rkey *k;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		keep = k->seen == d->gen ? k->shown : 0;
		if (AT_INDEX(k->family) != f || (d->table && k->table != d->table) || keep >= k->n)
			continue;
		if (k->changed_ns >= d->begin_ns) {
			d->doubtful = true;
			continue;
		}
		if (d->audit && !(k->seen == d->gen && k->drifted)) {
			h = at_drift(e, scope);
			at_write_route(h, k, k->alias[keep], e->now);
			h->op = AT_OP_DEL;
		}
		while (k->n > keep)
			at_alias_remove(e, k, k->n - 1);
	}
	at_routes_compact(e, false);
}

/*
 * Whether what a dump of routes did not show includes one that may be too large for any answer: the
 * kernel ends a dump there, without an error. How large it is nobody knows who has 64 of its legs.
 */
static bool lacks_large(const struct at_engine *e, const struct dump *d, int f)
{
	const struct rkey *k;
	uint32_t i, at;

	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		if (AT_INDEX(k->family) != f || (d->table && k->table != d->table) ||
		    k->changed_ns >= d->begin_ns)
			continue;
		for (at = k->seen == d->gen ? k->shown : 0; at < k->n; at++) {
			if (k->alias[at]->n_legs == AT_LEGS_MAX && !k->alias[at]->nh_id)
				return true;
		}
	}
	return false;
}

static void sweep(struct at_engine *e, uint32_t scope)
{
	struct dump *d = &e->dumps[scope];

	switch (scope) {
	case AT_SCOPE_LINK:
		sweep_links(e, d);
		break;
	case AT_SCOPE_NEXTHOP:
		sweep_nexthops(e, d);
		break;
	case AT_SCOPE_ADDR4:
	case AT_SCOPE_ADDR6:
		sweep_addrs(e, d, scope == AT_SCOPE_ADDR6);
		break;
	default:
		sweep_routes(e, d, scope == AT_SCOPE_ROUTE6);
	}
}

/* A whole dump that showed nothing though there ought to be something. */
static bool is_suspicious(const struct at_engine *e, uint32_t scope, const struct dump *d)
{
	if (d->shown)
		return false;
	if (scope == AT_SCOPE_LINK)
		return true;
	if (scope != AT_SCOPE_ADDR4 && scope != AT_SCOPE_ADDR6)
		return false;
	return !d->ifindex && e->fam[scope == AT_SCOPE_ADDR6].count &&
	       !(e->suspicious & 1u << scope);
}

/* A dump mark may name a link for addresses only, a table for routes only. */
static uint32_t ifindex_of(const struct at_dump *v)
{
	return v->scope == AT_SCOPE_ADDR4 || v->scope == AT_SCOPE_ADDR6 ? v->ifindex : 0;
}

static uint32_t table_of(const struct at_dump *v)
{
	return v->scope >= AT_SCOPE_ROUTE4 ? v->table : 0;
}

static void begin(struct at_engine *e, const struct at_dump *v)
{
	struct dump *d = &e->dumps[v->scope];

	at_dirt_restore(e, v->scope);
	*d = (struct dump){
		.open = true, .audit = v->flags & AT_DUMP_AUDIT, .gen = ++e->gen, .begin_ns = e->now
	};
	d->ifindex = ifindex_of(v);
	d->table = table_of(v);
	at_dirt_take(e, d, v->scope);
	if (v->scope == AT_SCOPE_ROUTE6)
		at_narrow_begin(e, d->table);
}

static void fail(struct at_engine *e, uint32_t scope, uint32_t ifindex, uint32_t table)
{
	e->dumps[scope].open = false;
	at_dirt_done(e, scope);
	at_lost(e, scope, ifindex, table);
}

static void end(struct at_engine *e, const struct at_dump *v)
{
	uint32_t scope = v->scope;
	struct dump *d = &e->dumps[scope];

	if (scope == AT_SCOPE_LINK)
		e->name_clash = false;
	if (!d->open) {
		e->counters.ignored++;
		return;
	}
	if (d->voided) {
		d->open = false;
		e->counters.voided[scope]++;
		at_dirt_restore(e, scope);
		return;
	}
	if (is_suspicious(e, scope, d)) {
		e->suspicious |= 1u << scope;
		fail(e, scope, d->ifindex, d->table);
		return;
	}
	if (v->flags & AT_DUMP_UNPROVEN && scope >= AT_SCOPE_ROUTE4 &&
	    lacks_large(e, d, scope == AT_SCOPE_ROUTE6)) {
		fail(e, scope, 0, d->table);
		return;
	}
	if (!d->ifindex && !d->table)
		e->suspicious &= ~(1u << scope);
	sweep(e, scope);
	if (scope == AT_SCOPE_ROUTE6)
		at_narrow_end(e, d->table);
	d->open = false;
	at_dirt_done(e, scope);
	if (d->doubtful)
		at_dirty(e, scope, 0, d->table, 9);
}

int at_dump_apply(struct at_engine *e, const struct record *r)
{
	const struct at_dump *v = r->payload;
	struct dump *d = &e->dumps[v->scope];

	switch (v->phase) {
	case AT_DUMP_BEGIN:
		begin(e, v);
		break;
	case AT_DUMP_END:
		end(e, v);
		break;
	default:
		if (d->open)
			fail(e, v->scope, d->ifindex, d->table);
		else
			fail(e, v->scope, ifindex_of(v), table_of(v));
	}
	return 0;
}
