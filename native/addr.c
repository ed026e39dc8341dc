// SPDX-License-Identifier: Apache-2.0
/* Addresses, by (family, ifindex, local, prefix length, IPv4: peer), and groups of equal ones. */
#include "state.h"

static uint32_t hash_local(const uint8_t *local)
{
	return at_hash_mix(at_be64(local), at_be64(local + 8), 0);
}

static uint32_t hash_key(int f, const struct at_addr *a)
{
	uint64_t peer = f ? 0 : at_be64(a->peer);

	return at_hash_mix(at_be64(a->local), at_be64(a->local + 8),
			   peer ^ (uint64_t)a->ifindex << 8 ^ a->prefixlen);
}

uint32_t at_addr_find(const struct at_engine *e, int f, const struct at_addr *a)
{
	uint32_t hash = hash_key(f, a), at = hash, slot;
	const struct at_addr *v;

	while ((slot = at_hash_next(&e->fam[f].by_key, hash, &at)) != AT_NONE) {
		v = &e->fam[f].entries[slot].value;
		if (v->ifindex == a->ifindex && v->prefixlen == a->prefixlen &&
		    !memcmp(v->local, a->local, 16) && (f || !memcmp(v->peer, a->peer, 16)))
			break;
	}
	return slot;
}

uint32_t at_group_find(const struct at_engine *e, int f, const uint8_t *local)
{
	uint32_t hash = hash_local(local), at = hash, slot;

	while ((slot = at_hash_next(&e->fam[f].by_local, hash, &at)) != AT_NONE) {
		if (!memcmp(e->fam[f].groups[slot].local, local, 16))
			break;
	}
	return slot;
}

static int grow_arrays(struct at_engine *e, int f)
{
	struct family *m = &e->fam[f];
	uint32_t old = m->cap, cap = old ? 2 * old : 4, i;
	void *bigger;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i] && at_ranking_grow(&e->selections[i]->rank[f], old, cap))
			return -ENOMEM;
	}
	bigger = at_regrow(m->entries, old * sizeof(*m->entries), cap * sizeof(*m->entries));
	if (!bigger)
		return -ENOMEM;
	m->entries = bigger;
	bigger = at_regrow(m->groups, old * sizeof(*m->groups), cap * sizeof(*m->groups));
	if (!bigger)
		return -ENOMEM;
	m->groups = bigger;
	bigger = at_regrow(m->work, old * sizeof(*m->work), cap * sizeof(*m->work));
	if (!bigger)
		return -ENOMEM;
	m->work = bigger;
	m->cap = cap;
	for (i = cap; i-- > old;) {
		m->entries[i].next = m->free_entry;
		m->free_entry = i;
		m->groups[i].head = m->free_group;
		m->free_group = i;
	}
	return 0;
}

/* Twice the entries; on -ENOMEM as many as before. */
static int grow(struct at_engine *e, int f)
{
	int err = grow_arrays(e, f);

	at_ranking_grown(e, f);
	return err;
}

/* The group of an address; there is room, as groups are no more than entries. */
static uint32_t join(struct at_engine *e, int f, uint32_t slot)
{
	struct family *m = &e->fam[f];
	struct entry *n = &m->entries[slot];
	uint32_t g = at_group_find(e, f, n->value.local);

	if (g == AT_NONE) {
		g = m->free_group;
		m->free_group = m->groups[g].head;
		memset(&m->groups[g], 0, sizeof(m->groups[g]));
		memcpy(m->groups[g].local, n->value.local, 16);
		m->groups[g].head = AT_NONE;
		m->groups[g].used = true;
		m->groups[g].named = at_is_named(e, f, n->value.local);
		at_hash_add(&m->by_local, hash_local(n->value.local), g);
		at_group_new(e, f, g);
	}
	n->group_prev = AT_NONE;
	n->group_next = m->groups[g].head;
	if (n->group_next != AT_NONE)
		m->entries[n->group_next].group_prev = slot;
	m->groups[g].head = slot;
	e->moves += m->groups[g].named;
	return g;
}

static void leave(struct at_engine *e, int f, uint32_t slot)
{
	struct family *m = &e->fam[f];
	struct entry *n = &m->entries[slot];
	struct group *g = &m->groups[n->group];

	if (n->group_next != AT_NONE)
		m->entries[n->group_next].group_prev = n->group_prev;
	if (n->group_prev != AT_NONE)
		m->entries[n->group_prev].group_next = n->group_next;
	else
		g->head = n->group_next;
	if (g->head != AT_NONE)
		return;
	at_group_gone(e, f, n->group);
	at_hash_remove(&m->by_local, hash_local(g->local), n->group);
	g->used = false;
	g->head = m->free_group;
	m->free_group = n->group;
}

static uint32_t create(struct at_engine *e, int f, const struct at_addr *a)
{
	struct family *m = &e->fam[f];
	uint32_t slot, link;
	struct entry *n;

	if ((m->free_entry == AT_NONE && grow(e, f)) || at_hash_reserve(&m->by_key) ||
	    at_hash_reserve(&m->by_local))
		return AT_NONE;
	link = at_link_slot(e, a->ifindex);
	if (link == AT_NONE)
		return AT_NONE;
	slot = m->free_entry;
	n = &m->entries[slot];
	m->free_entry = n->next;
	memset(n, 0, sizeof(*n));
	n->value = *a;
	n->used = true;
	n->link = link;
	n->prev = AT_NONE;
	n->next = e->links[link].head[f];
	if (n->next != AT_NONE)
		m->entries[n->next].prev = slot;
	e->links[link].head[f] = slot;
	e->links[link].hosts[f] += a->prefixlen == at_host_length(f);
	n->group = join(e, f, slot);
	at_hash_add(&m->by_key, hash_key(f, a), slot);
	m->count++;
	at_moved_addr(e, a);
	at_row_new(e, f, slot);
	return slot;
}

/* NEW: a value, in a slot of its own. -ENOMEM. */
int at_addr_put(struct at_engine *e, const struct at_addr *value, uint32_t *slot, bool event)
{
	struct at_addr a;
	int f = AT_INDEX(value->family);
	struct entry *n;

	at_addr_clean(value, &a);
	*slot = at_addr_find(e, f, &a);
	if (*slot == AT_NONE) {
		*slot = create(e, f, &a);
		if (*slot == AT_NONE)
			return -ENOMEM;
		n = &e->fam[f].entries[*slot];
		at_mark(e, f, *slot, true);
	} else {
		n = &e->fam[f].entries[*slot];
		if (n->value.flags != a.flags || n->value.proto != a.proto ||
		    n->value.cstamp != a.cstamp || memcmp(n->value.peer, a.peer, 16))
			at_mark(e, f, *slot, true);
		else
			at_refreshed(e, f, *slot);
		at_changed_addr(e, &n->value, &a);
		n->value = a;
	}
	if (event)
		n->changed_ns = e->now;
	return 0;
}

void at_addr_remove(struct at_engine *e, int f, uint32_t slot)
{
	struct family *m = &e->fam[f];
	struct entry *n = &m->entries[slot];
	struct link *l = &e->links[n->link];

	at_row_clear(e, f, slot);
	at_hash_remove(&m->by_key, hash_key(f, &n->value), slot);
	leave(e, f, slot);
	if (n->next != AT_NONE)
		m->entries[n->next].prev = n->prev;
	if (n->prev != AT_NONE)
		m->entries[n->prev].next = n->next;
	else
		l->head[f] = n->next;
	l->hosts[f] -= n->value.prefixlen == at_host_length(f);
	n->used = false;
	n->next = m->free_entry;
	m->free_entry = slot;
	m->count--;
	at_moved_addr(e, &n->value);
	at_link_release(e, n->link);
}

/* The same without what the fields do not mean. */
void at_addr_clean(const struct at_addr *value, struct at_addr *out)
{
	*out = *value;
	out->pad0 = 0;
	if (out->family == AF_INET) {
		memset(out->local + 4, 0, 12);
		memset(out->peer + 4, 0, 12);
	}
}

int at_addr_apply(struct at_engine *e, const struct record *r)
{
	const struct at_addr *v = r->payload;
	int f = AT_INDEX(v->family);
	struct at_addr a;
	struct tomb tomb;
	uint32_t slot, link;

	if (r->h->op == AT_OP_NEW)
		return at_addr_put(e, v, &slot, true);
	at_addr_clean(v, &a);
	at_tomb_key(&tomb, r->scope, &a);
	at_tomb_add(e, &tomb, false);
	slot = at_addr_find(e, f, &a);
	if (slot == AT_NONE) {
		e->counters.ignored++;
		return 0;
	}
	at_addr_remove(e, f, slot);
	link = at_link_find(e, a.ifindex);
	if (!f && (link == AT_NONE || e->links[link].head[0] == AT_NONE))
		at_rule_last_address(e, a.ifindex);
	if (at_group_find(e, f, a.local) == AT_NONE)
		at_rule_source(e, f, a.local);
	return 0;
}

void at_mark(struct at_engine *e, int f, uint32_t slot, bool attributes)
{
	struct entry *n = &e->fam[f].entries[slot];

	n->attributes |= attributes;
	if (n->marked)
		return;
	n->marked = true;
	e->fam[f].work[e->fam[f].n_work++] = slot;
}

void at_mark_link(struct at_engine *e, int f, uint32_t link, bool attributes)
{
	uint32_t slot;

	for (slot = e->links[link].head[f]; slot != AT_NONE; slot = e->fam[f].entries[slot].next)
		at_mark(e, f, slot, attributes);
}

void at_mark_local(struct at_engine *e, int f, const uint8_t *local)
{
	uint32_t g = at_group_find(e, f, local), slot;

	if (g == AT_NONE)
		return;
	for (slot = e->fam[f].groups[g].head; slot != AT_NONE;
	     slot = e->fam[f].entries[slot].group_next)
		at_mark(e, f, slot, false);
}
