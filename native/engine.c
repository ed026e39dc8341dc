// SPDX-License-Identifier: Apache-2.0
/* Records in: what is well formed goes to the file of its kind; what has to be dumped comes out. */
#include <stdlib.h>

#include "state.h"

#define DIRT_SPARE (2 * AT_SCOPES) /* room that only whole scopes use: marking one cannot fail */

struct at_engine *at_engine_new(void)
{
	struct at_engine *e = calloc(1, sizeof(*e));
	int f;

	if (!e)
		return NULL;
	e->free_link = AT_NONE;
	for (f = 0; f < 2; f++)
		e->fam[f].free_entry = e->fam[f].free_group = AT_NONE;
	if (at_grow((void **)&e->dirt, &e->dirt_cap, DIRT_SPARE, sizeof(*e->dirt))) {
		free(e);
		return NULL;
	}
	return e;
}

void at_engine_free(struct at_engine *e)
{
	uint32_t i, j;
	int f;

	if (!e)
		return;
	for (i = 0; i < AT_SELECTIONS_MAX; i++)
		at_engine_drop_policy(e, i);
	for (f = 0; f < 2; f++) {
		free(e->fam[f].entries);
		free(e->fam[f].groups);
		free(e->fam[f].work);
		at_hash_free(&e->fam[f].by_key);
		at_hash_free(&e->fam[f].by_local);
	}
	for (i = 0; i < e->n_rkeys; i++) {
		for (j = 0; j < e->rkeys[i]->n; j++)
			free(e->rkeys[i]->alias[j]);
		free(e->rkeys[i]->alias);
		free(e->rkeys[i]);
	}
	for (i = 0; i < e->n_nexthops; i++)
		free(e->nexthops[i]);
	free(e->rkeys);
	free(e->nexthops);
	free(e->links);
	free(e->dirt);
	free(e->tombs);
	at_hash_free(&e->by_ifindex);
	at_hash_free(&e->by_name);
	at_hash_free(&e->by_tomb);
	free(e);
}

void at_engine_set_v6_silent_down(struct at_engine *e, int on)
{
	e->v6_silent_down = on;
}

/* Where dirt meets dirt, a loss wins; else the first rule stays. */
static void mark(struct at_engine *e, const struct at_dirty *d)
{
	struct at_dirty *there;
	uint32_t i;

	for (i = 0; i < e->n_dirt; i++) {
		there = &e->dirt[i].d;
		if (e->dirt[i].taken || there->scope != d->scope || there->ifindex != d->ifindex ||
		    there->table != d->table)
			continue;
		if (d->lost && !there->lost) {
			*there = *d;
			e->dirtied++;
		}
		return;
	}
	if ((d->ifindex || d->table) && at_grow((void **)&e->dirt, &e->dirt_cap,
						e->n_dirt + 1 + DIRT_SPARE, sizeof(*e->dirt))) {
		mark(e, &(struct at_dirty){ .scope = d->scope, .lost = d->lost, .rule = d->rule });
		return;
	}
	e->dirt[e->n_dirt++] = (struct dirt){ .d = *d };
	e->dirtied++;
}

/* Dirt means that an open dump that covers some of it cannot be believed. */
static void void_dump(struct at_engine *e, const struct at_dirty *d)
{
	struct dump *dump = &e->dumps[d->scope];

	if ((!dump->ifindex || !d->ifindex || dump->ifindex == d->ifindex) &&
	    (!dump->table || !d->table || dump->table == d->table))
		dump->voided = true;
}

void at_dirty(struct at_engine *e, uint32_t scope, uint32_t ifindex, uint32_t table, uint32_t rule)
{
	struct at_dirty d = { .scope = scope, .ifindex = ifindex, .table = table, .rule = rule };

	mark(e, &d);
	if (rule)
		void_dump(e, &d);
}

void at_lost(struct at_engine *e, uint32_t scope, uint32_t ifindex, uint32_t table)
{
	struct at_dirty d = { .scope = scope, .ifindex = ifindex, .table = table, .lost = 1 };

	mark(e, &d);
	void_dump(e, &d);
}

void at_dirt_take(struct at_engine *e, const struct dump *dump, uint32_t scope)
{
	struct dirt *d;

	for (d = e->dirt; d < e->dirt + e->n_dirt; d++) {
		if (d->d.scope == scope && (!dump->ifindex || dump->ifindex == d->d.ifindex) &&
		    (!dump->table || dump->table == d->d.table))
			d->taken = true;
	}
}

void at_dirt_restore(struct at_engine *e, uint32_t scope)
{
	struct dirt d;
	uint32_t i = 0;

	while (i < e->n_dirt) {
		d = e->dirt[i];
		if (!d.taken || d.d.scope != scope) {
			i++;
			continue;
		}
		e->dirt[i] = e->dirt[--e->n_dirt];
		mark(e, &d.d);
	}
}

void at_dirt_done(struct at_engine *e, uint32_t scope)
{
	uint32_t i, n = 0;

	for (i = 0; i < e->n_dirt; i++) {
		if (!e->dirt[i].taken || e->dirt[i].d.scope != scope)
			e->dirt[n++] = e->dirt[i];
	}
	e->n_dirt = n;
}

void at_dirt_forget(struct at_engine *e, uint32_t table)
{
	uint32_t i, n = 0;

	for (i = 0; i < e->n_dirt; i++) {
		if (e->dirt[i].d.scope < AT_SCOPE_ROUTE4 || e->dirt[i].d.table != table)
			e->dirt[n++] = e->dirt[i];
	}
	e->n_dirt = n;
}

static int dirtier(const void *one, const void *other)
{
	const struct at_dirty *a = one, *b = other;

	if (a->lost != b->lost)
		return a->lost ? -1 : 1;
	if (a->scope != b->scope)
		return a->scope < b->scope ? -1 : 1;
	if (a->ifindex != b->ifindex)
		return a->ifindex < b->ifindex ? -1 : 1;
	return a->table < b->table ? -1 : a->table > b->table;
}

size_t at_engine_dirty(const struct at_engine *e, struct at_dirty *out, size_t max)
{
	struct at_dirty *all;
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < e->n_dirt; i++)
		n += !e->dirt[i].taken;
	if (!n || !max)
		return n;
	all = malloc(n * sizeof(*all));
	if (!all)
		return 0;
	n = 0;
	for (i = 0; i < e->n_dirt; i++) {
		if (!e->dirt[i].taken)
			all[n++] = e->dirt[i].d;
	}
	qsort(all, n, sizeof(*all), dirtier);
	memcpy(out, all, (n < max ? n : max) * sizeof(*out));
	free(all);
	return n;
}

uint32_t at_engine_dirtied(const struct at_engine *e)
{
	return e->dirtied;
}

static void lose(struct at_engine *e, uint32_t scopes)
{
	uint32_t scope;

	for (scope = 0; scope < AT_SCOPES; scope++) {
		if (scopes & 1u << scope)
			at_lost(e, scope, 0, 0);
	}
}

void at_engine_lose(struct at_engine *e, uint32_t scopes)
{
	lose(e, scopes);
	e->lookups += scopes && e->n_targets;
}

static bool named_well(const struct at_link *l)
{
	return memchr(l->name, 0, sizeof(l->name)) && memchr(l->kind, 0, sizeof(l->kind));
}

static bool family_of(unsigned family, unsigned length, unsigned limit4)
{
	return (family == AF_INET && length <= limit4) ||
	       (family == AF_INET6 && length <= 4 * limit4);
}

/* Bytes of the payload with its legs, if that is well formed; else 0. */
static size_t payload_size(struct record *r, size_t left)
{
	const struct at_route *route = r->payload;
	const struct at_nexthop *nexthop = r->payload;
	const struct at_addr *addr = r->payload;
	const struct at_dump *dump = r->payload;
	const struct at_rule *rule = r->payload;
	const struct at_flush *flush = r->payload;

	switch (r->h->kind) {
	case AT_KIND_ADDR:
		return left >= sizeof(*addr) && family_of(addr->family, addr->prefixlen, 32) ?
			       sizeof(*addr) :
			       0;
	case AT_KIND_LINK:
		return left >= sizeof(struct at_link) && named_well(r->payload) ?
			       sizeof(struct at_link) :
			       0;
	case AT_KIND_ROUTE:
		if (left < sizeof(*route) || !family_of(route->family, route->dst_len, 32) ||
		    route->n_legs > AT_LEGS_MAX)
			return 0;
		r->legs = route->leg;
		return sizeof(*route) + route->n_legs * sizeof(struct at_leg);
	case AT_KIND_NEXTHOP:
		if (left < sizeof(*nexthop) || !nexthop->id || nexthop->n_members > AT_LEGS_MAX ||
		    (nexthop->family && !family_of(nexthop->family, 0, 32)))
			return 0;
		r->members = nexthop->member;
		return sizeof(*nexthop) + nexthop->n_members * sizeof(struct at_member);
	case AT_KIND_LOSS:
		return sizeof(struct at_loss);
	case AT_KIND_DUMP:
		return left >= sizeof(*dump) && dump->scope < AT_SCOPES &&
				       dump->phase >= AT_DUMP_BEGIN && dump->phase <= AT_DUMP_FAIL ?
			       sizeof(*dump) :
			       0;
	case AT_KIND_RULE:
		return left >= sizeof(*rule) && family_of(rule->family, 0, 32) ? sizeof(*rule) : 0;
	case AT_KIND_FLUSH:
		return left >= sizeof(*flush) && family_of(flush->family, flush->dst_len, 32) ?
			       sizeof(*flush) :
			       0;
	}
	return 0;
}

static bool has_op(unsigned kind)
{
	return kind != AT_KIND_LOSS && kind != AT_KIND_DUMP;
}

/* Takes the first record of `left` bytes apart; false: malformed. */
static bool take_apart(const void *buf, size_t left, struct record *r)
{
	size_t size, task;

	memset(r, 0, sizeof(*r));
	r->h = buf;
	if (left < sizeof(*r->h) || r->h->size < sizeof(*r->h) || r->h->size > left ||
	    r->h->version != AT_RECORD_VERSION)
		return false;
	if (has_op(r->h->kind) && r->h->op != AT_OP_NEW && r->h->op != AT_OP_DEL)
		return false;
	r->payload = r->h + 1;
	size = payload_size(r, r->h->size - sizeof(*r->h));
	task = r->h->flags & AT_F_TASK ? sizeof(struct at_task) : 0;
	if (!size || r->h->size != sizeof(*r->h) + size + task)
		return false;
	if (task)
		r->task = (const void *)((const char *)r->payload + size);
	return true;
}

static uint32_t scope_of(const struct record *r)
{
	const struct at_addr *addr = r->payload;
	const struct at_route *route = r->payload;

	switch (r->h->kind) {
	case AT_KIND_LINK:
		return AT_SCOPE_LINK;
	case AT_KIND_ADDR:
		return addr->family == AF_INET ? AT_SCOPE_ADDR4 : AT_SCOPE_ADDR6;
	case AT_KIND_ROUTE:
		return route->family == AF_INET ? AT_SCOPE_ROUTE4 : AT_SCOPE_ROUTE6;
	default:
		return AT_SCOPE_NEXTHOP;
	}
}

/* The kernel says nothing of it to others, so it is no more than a reason to look (R11). */
static void flushed(struct at_engine *e, const struct at_flush *f)
{
	if (f->family != AF_INET || f->dst_len || !at_table(e, f->table))
		return;
	e->counters.flushed++;
	at_dirty(e, AT_SCOPE_ROUTE4, 0, f->table, 11);
}

static int dispatch(struct at_engine *e, struct record *r)
{
	const struct at_loss *loss = r->payload;

	if (r->h->kind <= AT_KIND_NEXTHOP) {
		r->scope = scope_of(r);
		r->entry = r->h->flags & AT_F_DUMP && r->h->op == AT_OP_NEW && at_dump_covers(e, r);
	}
	switch (r->h->kind) {
	case AT_KIND_LOSS:
		lose(e, loss->scopes);
		return 0;
	case AT_KIND_DUMP:
		return at_dump_apply(e, r);
	case AT_KIND_RULE:
		return 0;
	case AT_KIND_FLUSH:
		flushed(e, r->payload);
		return 0;
	case AT_KIND_ADDR:
		return r->entry ? at_dump_entry(e, r) : at_addr_apply(e, r);
	case AT_KIND_LINK:
		return r->entry ? at_dump_entry(e, r) : at_link_apply(e, r);
	case AT_KIND_ROUTE:
		return at_route_apply(e, r);
	default:
		return r->entry ? at_dump_entry(e, r) : at_nexthop_apply(e, r);
	}
}

int at_engine_apply(struct at_engine *e, const void *buf, size_t size)
{
	uint64_t aligned[(AT_RECORD_MAX + 7) / 8];
	const char *at = buf;
	const void *from;
	struct record r;
	int n = 0, failed;

	for (; size; n++) {
		from = at;
		if ((uintptr_t)at & 7)
			from = memcpy(aligned, at, size < sizeof(aligned) ? size : sizeof(aligned));
		if (!take_apart(from, size, &r)) {
			e->counters.malformed++;
			return -EINVAL;
		}
		if (r.h->boot_ns > e->now)
			e->now = r.h->boot_ns;
		e->counters.applied[r.h->kind][has_op(r.h->kind) ? r.h->op : AT_OP_NEW]++;
		failed = dispatch(e, &r);
		at_look(e, &r);
		if (failed) {
			at_engine_lose(e, ~0u);
			at_settle(e, &r, false);
			return -ENOMEM;
		}
		at_settle(e, &r, false);
		at += r.h->size;
		size -= r.h->size;
	}
	return n;
}

void at_engine_tick(struct at_engine *e, uint64_t now_ns)
{
	uint64_t expired;

	if (now_ns > e->now)
		e->now = now_ns;
	expired = e->counters.inferred[10];
	at_rule_expire(e);
	if (e->counters.inferred[10] != expired)
		at_look_expired(e);
	at_tomb_reap(e);
	at_settle(e, NULL, false);
}

uint64_t at_engine_deadline(const struct at_engine *e)
{
	uint64_t first = UINT64_MAX;
	uint32_t i, j;

	for (i = 0; i < e->n_rkeys; i++) {
		for (j = 0; j < e->rkeys[i]->n; j++) {
			if (e->rkeys[i]->alias[j]->end < first)
				first = e->rkeys[i]->alias[j]->end;
		}
	}
	return first;
}

void at_engine_counters(const struct at_engine *e, struct at_counters *out)
{
	uint32_t i;

	*out = e->counters;
	out->addresses = e->fam[0].count + e->fam[1].count;
	out->nexthops = e->n_nexthops;
	out->links = out->routes = 0;
	for (i = 0; i < e->links_cap; i++)
		out->links += e->links[i].known;
	for (i = 0; i < e->n_rkeys; i++)
		out->routes += e->rkeys[i]->n;
}
