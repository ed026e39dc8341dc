// SPDX-License-Identifier: Apache-2.0
/* Links, by ifindex. A slot exists for each known link and for each that addresses refer to. */
#include "state.h"

static uint32_t hash_ifindex(uint32_t ifindex)
{
	return at_hash_mix(ifindex, 0, 0);
}

static uint32_t hash_name(const char *name)
{
	return at_hash_mix(at_be64((const uint8_t *)name), at_be64((const uint8_t *)name + 8), 1);
}

uint32_t at_link_find(const struct at_engine *e, uint32_t ifindex)
{
	uint32_t hash = hash_ifindex(ifindex), at = hash, slot;

	while ((slot = at_hash_next(&e->by_ifindex, hash, &at)) != AT_NONE) {
		if (e->links[slot].value.ifindex == ifindex)
			break;
	}
	return slot;
}

static bool is_live(const struct at_link *l)
{
	return (l->flags & AT_LIVE) == AT_LIVE;
}

bool at_link_live(const struct at_engine *e, uint32_t ifindex)
{
	uint32_t slot = at_link_find(e, ifindex);

	return slot != AT_NONE && is_live(&e->links[slot].value);
}

bool at_link_is_vrf(const struct at_engine *e, uint32_t ifindex)
{
	uint32_t slot = at_link_find(e, ifindex);

	return slot != AT_NONE && !strcmp(e->links[slot].value.kind, "vrf");
}

static int grow(struct at_engine *e)
{
	uint32_t old = e->links_cap, cap = old ? 2 * old : 4, i;
	struct link *links;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i] && at_lanes_grow(e->selections[i], old, cap))
			return -ENOMEM;
	}
	links = at_regrow(e->links, old * sizeof(*links), cap * sizeof(*links));
	if (!links)
		return -ENOMEM;
	e->links = links;
	e->links_cap = cap;
	for (i = cap; i-- > old;) {
		links[i].next_free = e->free_link;
		e->free_link = i;
	}
	return 0;
}

/* The slot of an ifindex, made if there is none; AT_NONE: no memory. */
uint32_t at_link_slot(struct at_engine *e, uint32_t ifindex)
{
	uint32_t slot = at_link_find(e, ifindex), i;
	struct link *l;

	if (slot != AT_NONE)
		return slot;
	if ((e->free_link == AT_NONE && grow(e)) || at_hash_reserve(&e->by_ifindex))
		return AT_NONE;
	slot = e->free_link;
	l = &e->links[slot];
	e->free_link = l->next_free;
	memset(l, 0, sizeof(*l));
	l->value.ifindex = ifindex;
	l->head[0] = l->head[1] = AT_NONE;
	l->used = true;
	at_hash_add(&e->by_ifindex, hash_ifindex(ifindex), slot);
	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i])
			at_lane_new(e, e->selections[i], slot);
	}
	return slot;
}

void at_link_release(struct at_engine *e, uint32_t slot)
{
	struct link *l = &e->links[slot];

	if (!l->used || l->known || l->head[0] != AT_NONE || l->head[1] != AT_NONE)
		return;
	at_hash_remove(&e->by_ifindex, hash_ifindex(l->value.ifindex), slot);
	l->used = false;
	l->next_free = e->free_link;
	e->free_link = slot;
}

/* What selections think of a link; marks its addresses if that is new. */
static void judge(struct at_engine *e, uint32_t slot, bool patterns, bool renamed)
{
	bool changed = renamed;
	struct selection *s;
	uint16_t named;
	uint8_t before;
	uint32_t i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		s = e->selections[i];
		if (!s)
			continue;
		before = s->judged[slot];
		named = s->named[slot];
		at_judge_link(e, s, slot, patterns);
		changed |= before != s->judged[slot] || named != s->named[slot];
	}
	if (changed) {
		at_mark_link(e, 0, slot, renamed);
		at_mark_link(e, 1, slot, renamed);
	}
}

static bool matters_to_ports(const char *kind)
{
	return !strcmp(kind, "vrf") || !strcmp(kind, "bridge") || !strcmp(kind, "openvswitch");
}

/* Stores a value (known), or that there is none, with all that follows for the ranking. */
static void store(struct at_engine *e, uint32_t slot, const struct at_link *value)
{
	struct link *l = &e->links[slot];
	struct at_link old = l->value;
	bool was = l->known, renamed = strncmp(old.name, value ? value->name : "", AT_NAME_LEN);
	uint32_t i;

	if (was && old.name[0] && renamed)
		at_hash_remove(&e->by_name, hash_name(old.name), slot);
	l->known = value;
	memset(&l->value, 0, sizeof(l->value));
	if (value) {
		l->value = *value;
		l->value.pad0 = 0;
		l->value.pad1 = 0;
		/* nothing behind the NUL, so that names compare as words */
		memset(l->value.name, 0, sizeof(l->value.name));
		memset(l->value.kind, 0, sizeof(l->value.kind));
		memcpy(l->value.name, value->name, strlen(value->name));
		memcpy(l->value.kind, value->kind, strlen(value->kind));
		if (value->name[0] && renamed)
			at_hash_add(&e->by_name, hash_name(l->value.name), slot);
	}
	l->value.ifindex = old.ifindex;
	judge(e, slot,
	      !was || renamed || memcmp(old.kind, l->value.kind, sizeof(old.kind)) ||
		      old.master != l->value.master || old.vrf_table != l->value.vrf_table,
	      renamed);
	if (memcmp(old.kind, l->value.kind, sizeof(old.kind)) ||
	    old.vrf_table != l->value.vrf_table) {
		if (matters_to_ports(old.kind) || matters_to_ports(l->value.kind)) {
			for (i = 0; i < e->links_cap; i++) {
				if (e->links[i].known && e->links[i].value.master == old.ifindex)
					judge(e, i, true, false);
			}
		}
	}
	if ((old.flags ^ l->value.flags) & AT_LIVE)
		at_stale_naming(e);
	at_moved_link(e, slot, &old, was);
}

static bool name_is_taken(const struct at_engine *e, uint32_t slot)
{
	const char *name = e->links[slot].value.name;
	uint32_t hash = hash_name(name), at = hash, other;

	while ((other = at_hash_next(&e->by_name, hash, &at)) != AT_NONE) {
		if (other != slot && !memcmp(e->links[other].value.name, name, AT_NAME_LEN))
			return true;
	}
	return false;
}

/* A new value, with the rules that its edges fire. */
int at_link_put(struct at_engine *e, const struct at_link *value, bool event)
{
	uint32_t slot = at_link_slot(e, value->ifindex);
	struct at_link old;
	struct link *l;
	bool was, was_live, live;

	if (slot == AT_NONE)
		return -ENOMEM;
	if (at_hash_reserve(&e->by_name)) {
		at_link_release(e, slot);
		return -ENOMEM;
	}
	l = &e->links[slot];
	old = l->value;
	was = l->known;
	store(e, slot, value);
	if (event) {
		l->changed_ns = e->now;
		l->ahead_ns = 0;
		if (value->name[0] && strcmp(old.name, value->name) && !e->name_clash &&
		    name_is_taken(e, slot)) {
			e->name_clash = true;
			at_dirty(e, AT_SCOPE_LINK, 0, 0, 0);
		}
	}
	was_live = is_live(&old);
	live = is_live(value);
	if (was && old.master != value->master &&
	    (at_link_is_vrf(e, old.master) || at_link_is_vrf(e, value->master)))
		at_rule_master(e, value->ifindex);
	if (!(value->flags & IFF_UP) && (!was || old.flags & IFF_UP))
		at_rule_down(e, value->ifindex);
	if ((was && old.flags & ~value->flags & IFF_UP) || (was_live && !live))
		at_rule_carrier(e, value->ifindex);
	else if (!live)
		at_rule_nexthops_on(e, value->ifindex, 3);
	if (!was_live && live)
		at_rule_live(e, value->ifindex);
	return 0;
}

/* Forgets the value, without rules; addresses stay. */
void at_link_remove(struct at_engine *e, uint32_t slot)
{
	store(e, slot, NULL);
	at_link_release(e, slot);
}

int at_link_apply(struct at_engine *e, const struct record *r)
{
	const struct at_link *v = r->payload;
	struct tomb tomb;
	struct at_addr a;
	uint32_t slot;
	bool up;
	int f;

	if (r->h->op == AT_OP_NEW)
		return at_link_put(e, v, true);
	at_tomb_key(&tomb, AT_SCOPE_LINK, v);
	at_tomb_add(e, &tomb, false);
	slot = at_link_find(e, v->ifindex);
	if (slot == AT_NONE || !e->links[slot].known) {
		e->counters.ignored++;
		return 0;
	}
	up = e->links[slot].value.flags & IFF_UP;
	store(e, slot, NULL);
	at_rule_down(e, v->ifindex);
	if (up)
		at_rule_carrier(e, v->ifindex);
	for (f = 0; f < 2; f++) {
		while (e->links[slot].head[f] != AT_NONE) {
			a = e->fam[f].entries[e->links[slot].head[f]].value;
			at_tomb_key(&tomb, f ? AT_SCOPE_ADDR6 : AT_SCOPE_ADDR4, &a);
			at_tomb_add(e, &tomb, false);
			at_addr_remove(e, f, e->links[slot].head[f]);
			if (at_group_find(e, f, a.local) == AT_NONE)
				at_rule_source(e, f, a.local);
		}
	}
	at_link_release(e, slot);
	return 0;
}

int at_engine_link_name(const struct at_engine *e, uint32_t ifindex, char *out)
{
	uint32_t slot = at_link_find(e, ifindex);

	if (slot == AT_NONE || !e->links[slot].known)
		return -ENOENT;
	memcpy(out, e->links[slot].value.name, AT_NAME_LEN);
	return 0;
}
