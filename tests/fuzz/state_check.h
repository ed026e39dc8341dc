/* SPDX-License-Identifier: Apache-2.0 */
/* Is an engine in order: lists, indexes and numbers, and every ranking as if made from scratch? */
#ifndef ADDRTRACKER_STATE_CHECK_H
#define ADDRTRACKER_STATE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "state.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static void check_links(const struct at_engine *e)
{
	uint32_t i, f, slot, used = 0, named = 0, free_links = 0, hosts, before;
	const struct entry *n;

	for (i = 0; i < e->links_cap; i++) {
		const struct link *l = &e->links[i];

		if (!l->used)
			continue;
		used++;
		named += l->known && l->value.name[0];
		CHECK(l->known || l->head[0] != AT_NONE || l->head[1] != AT_NONE);
		CHECK(at_link_find(e, l->value.ifindex) == i);
		for (f = 0; f < 2; f++) {
			hosts = 0;
			before = AT_NONE;
			for (slot = l->head[f]; slot != AT_NONE; slot = n->next) {
				n = &e->fam[f].entries[slot];
				CHECK(n->used && n->link == i && n->prev == before);
				CHECK(n->value.ifindex == l->value.ifindex);
				hosts += n->value.prefixlen == at_host_length(f);
				before = slot;
			}
			CHECK(hosts == l->hosts[f]);
		}
	}
	for (i = e->free_link; i != AT_NONE; i = e->links[i].next_free) {
		CHECK(!e->links[i].used);
		free_links++;
	}
	CHECK(used + free_links == e->links_cap);
	CHECK(e->by_ifindex.used == used && e->by_name.used == named);
}

static void check_addresses(const struct at_engine *e, int f)
{
	const struct family *m = &e->fam[f];
	uint32_t i, slot, used = 0, groups = 0, grouped = 0, before, n_free = 0;

	for (i = 0; i < m->cap; i++) {
		const struct group *g = &m->groups[i];

		if (m->entries[i].used) {
			used++;
			CHECK(at_addr_find(e, f, &m->entries[i].value) == i);
			CHECK(!m->entries[i].marked && !m->entries[i].attributes);
		}
		if (!g->used)
			continue;
		groups++;
		CHECK(at_group_find(e, f, g->local) == i);
		CHECK(g->named || !at_is_named(e, f, g->local));
		before = AT_NONE;
		for (slot = g->head; slot != AT_NONE; slot = m->entries[slot].group_next) {
			CHECK(m->entries[slot].used && m->entries[slot].group == i);
			CHECK(m->entries[slot].group_prev == before);
			CHECK(!memcmp(m->entries[slot].value.local, g->local, 16));
			before = slot;
			grouped++;
		}
	}
	CHECK(used == m->count && grouped == used && !m->n_work);
	CHECK(m->by_key.used == used && m->by_local.used == groups);
	for (i = m->free_entry; i != AT_NONE; i = m->entries[i].next)
		n_free++;
	CHECK(used + n_free == m->cap);
	for (i = m->free_group; i != AT_NONE; i = m->groups[i].head)
		n_free++;
	CHECK(groups + used + n_free == 2 * m->cap);
}

static void check_numbers(const struct at_engine *e, const struct selection *s, int f)
{
	const struct ranking *k = &s->rank[f];
	const struct family *m = &e->fam[f];
	uint32_t i, slot, wide, routed, fallbacks, addresses = 0;

	for (i = 0; i < e->links_cap; i++) {
		if (!e->links[i].used)
			continue;
		wide = routed = 0;
		for (slot = e->links[i].head[f]; slot != AT_NONE; slot = m->entries[slot].next) {
			wide += k->rows[slot].counted & AT_C_WIDE;
			routed += !!(k->rows[slot].counted & AT_C_ROUTED);
		}
		CHECK(k->lanes[i].wide == wide && k->lanes[i].routed == routed);
		CHECK(k->lanes[i].over ==
		      at_over_find(&s->table->sum[f], e->links[i].value.ifindex));
		CHECK(!k->lanes[i].crossed);
	}
	for (i = 0; i < m->cap; i++) {
		if (!m->groups[i].used)
			continue;
		fallbacks = 0;
		for (slot = m->groups[i].head; slot != AT_NONE; slot = m->entries[slot].group_next)
			fallbacks += !!(k->rows[slot].counted & AT_C_FALLBACK);
		CHECK(k->fallbacks[i] == fallbacks);
		addresses += fallbacks > 0;
	}
	CHECK(k->fallback_count == addresses);
}

static void check_tree(const struct at_engine *e, const struct selection *s, int f)
{
	const struct ranking *k = &s->rank[f];
	const struct family *m = &e->fam[f];
	uint32_t i, first = AT_NONE, a, b;

	CHECK(!k->n_pending && !k->n_crossed && !k->touched && !k->recheck);
	CHECK(!e->moved);
	for (i = 0; i < m->cap; i++) {
		CHECK(!k->rows[i].pending);
		CHECK(m->entries[i].used || !at_is_candidate(&k->rows[i]));
		CHECK(k->winner[m->cap + i] == (at_is_candidate(&k->rows[i]) ? i : AT_NONE));
		if (at_is_candidate(&k->rows[i]) &&
		    (first == AT_NONE || at_row_before(s, m, k, i, first)))
			first = i;
	}
	for (i = 1; i < m->cap; i++) {
		a = k->winner[2 * i];
		b = k->winner[2 * i + 1];
		if (a == AT_NONE || b == AT_NONE)
			CHECK(k->winner[i] == (a == AT_NONE ? b : a));
		else
			CHECK(k->winner[i] == (at_row_before(s, m, k, b, a) ? b : a));
	}
	if (m->cap)
		CHECK(k->winner[1] == first);
	CHECK(k->best == AT_NONE || k->best == first);
	if (k->rival_state == AT_RIVAL_YES)
		CHECK(at_is_rival(s, m, k, k->rival));
	if (k->rival_state == AT_RIVAL_NO && k->best != AT_NONE) {
		for (i = 0; i < m->cap; i++)
			CHECK(!m->entries[i].used || !at_is_rival(s, m, k, i));
	}
}

static inline void check_engine(const struct at_engine *e)
{
	uint32_t i, j;
	int f;

	check_links(e);
	check_addresses(e, 0);
	check_addresses(e, 1);
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		for (f = 0; e->selections[i] && f < 2; f++) {
			check_numbers(e, e->selections[i], f);
			check_tree(e, e->selections[i], f);
		}
	}
	for (i = 0; i < e->n_rkeys; i++) {
		CHECK(e->rkeys[i]->n && at_table(e, e->rkeys[i]->table));
		for (j = 0; j < e->rkeys[i]->n; j++)
			CHECK(e->rkeys[i]->alias[j]->n_legs <= AT_LEGS_MAX);
	}
	for (i = 1; i < e->n_nexthops; i++)
		CHECK(e->nexthops[i - 1]->value.id < e->nexthops[i]->value.id);
	CHECK(e->by_tomb.used == e->n_tombs);
}

static void *snapshot(struct at_engine *e, int kind, size_t *size)
{
	void *out;

	*size = at_engine_snapshot(e, kind, NULL, 0);
	out = malloc(*size + 1);
	CHECK(out && at_engine_snapshot(e, kind, out, *size) == *size);
	return out;
}

static void mark(struct at_engine *e, uint32_t scope, uint32_t phase, uint64_t now)
{
	struct {
		struct at_header h;
		struct at_dump d;
	} r = { { .size = sizeof(r),
		  .version = AT_RECORD_VERSION,
		  .kind = AT_KIND_DUMP,
		  .op = AT_OP_NEW,
		  .boot_ns = now },
		{ .scope = scope, .phase = phase } };

	CHECK(at_engine_apply(e, &r, sizeof(r)) == 1);
}

static void compare_views(struct at_engine *e, struct at_engine *other, unsigned sel, int family)
{
	size_t n = at_engine_rows(e, sel, family, NULL, 0);
	struct at_row *a = calloc(n + 1, sizeof(*a)), *b = calloc(n + 1, sizeof(*b));
	struct at_view v, u;

	CHECK(a && b && at_engine_rows(other, sel, family, NULL, 0) == n);
	CHECK(at_engine_rows(e, sel, family, a, n) == n);
	CHECK(at_engine_rows(other, sel, family, b, n) == n);
	CHECK(!memcmp(a, b, n * sizeof(*a)));
	CHECK(!at_engine_view(e, sel, family, &v) && !at_engine_view(other, sel, family, &u));
	v.last_change_ns = u.last_change_ns = v.cause_size = u.cause_size = 0;
	memset(v.cause, 0, sizeof(v.cause));
	memset(u.cause, 0, sizeof(u.cause));
	CHECK(!memcmp(&v, &u, sizeof(v)));
	CHECK(!v.has_best || (n && !memcmp(&v.best, &a[0], sizeof(v.best))));
	free(a);
	free(b);
}

/* A new engine that is told the state in dumps must come to the same. */
static inline void check_from_scratch(struct at_engine *e)
{
	static const int kinds[] = { AT_KIND_LINK, AT_KIND_ADDR, AT_KIND_NEXTHOP, AT_KIND_ROUTE };
	struct at_engine *fresh = at_engine_new();
	size_t size, again;
	char *one, *other;
	uint32_t i, f;

	CHECK(fresh);
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		const struct selection *s = e->selections[i];

		if (!s)
			continue;
		CHECK(!at_engine_set_policy(fresh, i, &s->policy));
		for (f = 0; f < 2; f++) {
			if (s->rank[f].has_incumbent)
				CHECK(!at_engine_set_incumbent(fresh, i, AT_FAMILY(f),
							       s->rank[f].incumbent_address));
		}
	}
	for (i = 0; i < AT_SCOPES; i++)
		mark(fresh, i, AT_DUMP_BEGIN, e->now);
	for (i = 0; i < 4; i++) {
		one = snapshot(e, kinds[i], &size);
		CHECK(at_engine_apply(fresh, one, size) >= 0);
		free(one);
	}
	for (i = 0; i < AT_SCOPES; i++)
		mark(fresh, i, AT_DUMP_END, e->now);
	for (i = 0; i < 4; i++) {
		one = snapshot(e, kinds[i], &size);
		other = snapshot(fresh, kinds[i], &again);
		CHECK(size == again && !memcmp(one, other, size));
		free(one);
		free(other);
	}
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (!e->selections[i])
			continue;
		compare_views(e, fresh, i, AF_INET);
		compare_views(e, fresh, i, AF_INET6);
	}
	check_engine(fresh);
	at_engine_free(fresh);
}

#endif
