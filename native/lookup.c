// SPDX-License-Identifier: Apache-2.0
/* Whether the kernel may have a new answer to the question which way a target is reached, or whose
 * name a VRF has (docs/engine.md, section 6). */
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include "state.h"

/* What the kernel looks at of a link: linkwatch tells routes of carrier together with RUNNING. */
#define WAY_FLAGS (AT_LIVE | IFF_RUNNING)

static bool has_target(const struct at_engine *e, unsigned family)
{
	uint32_t i;

	for (i = 0; i < e->n_targets && e->targets[i].family != family; i++)
		;
	return i < e->n_targets;
}

static bool is_in(const uint32_t *list, uint32_t n, uint32_t value)
{
	uint32_t i;

	for (i = 0; i < n && list[i] != value; i++)
		;
	return i < n;
}

static bool rests_on_link(const struct at_engine *e, uint32_t ifindex)
{
	return !e->grounded || is_in(e->grounds.links, e->grounds.n_links, ifindex);
}

static bool rests_on_nexthop(const struct at_engine *e, uint32_t id)
{
	return !e->grounded || e->grounds.any_nexthop ||
	       is_in(e->grounds.nexthops, e->grounds.n_nexthops, id);
}

static bool is_source(const struct at_engine *e, const struct at_addr *a)
{
	const struct at_ground *s;
	uint32_t i;

	for (i = 0; i < e->grounds.n_sources; i++) {
		s = &e->grounds.sources[i];
		if (s->family == a->family && !memcmp(s->address, a->local, 16))
			return true;
	}
	return false;
}

/* The kernel prefers the addresses of the way's own link; IPv6 does so among those that are not
 * deprecated, or not optimistic. */
static bool is_settled(const struct at_engine *e, const struct at_ground *s)
{
	const struct family *m = &e->fam[AT_INDEX(s->family)];
	uint32_t poor = s->family == AF_INET6 ? IFA_F_DEPRECATED | IFA_F_OPTIMISTIC : 0;
	uint32_t g = at_group_find(e, AT_INDEX(s->family), s->address), slot;

	slot = g == AT_NONE ? AT_NONE : m->groups[g].head;
	for (; slot != AT_NONE; slot = m->entries[slot].group_next) {
		if (m->entries[slot].value.ifindex == s->ifindex &&
		    !(m->entries[slot].value.flags & poor))
			return true;
	}
	return false;
}

/* Whether an address of any link may be the next source, as long as these are the grounds: what
 * makes a source better or worse counts by itself. */
static bool is_open(const struct at_engine *e, int f)
{
	const struct at_ground *s;
	uint32_t i;

	if (!e->grounded || e->grounds.any_address[f])
		return true;
	for (i = 0; i < e->grounds.n_sources; i++) {
		s = &e->grounds.sources[i];
		if (AT_INDEX(s->family) == f && s->ifindex && !is_settled(e, s))
			return true;
	}
	return false;
}

/* Its subnet holds a target, which may be an address of this host by that, on `lo` all of it. */
static bool holds_target(const struct at_engine *e, const struct at_addr *a)
{
	return at_engine_covers_target(e, RT_TABLE_UNSPEC, a->family, a->prefixlen, a->local);
}

/* An address came or went. */
void at_moved_addr(struct at_engine *e, const struct at_addr *a)
{
	if (has_target(e, a->family) &&
	    (e->open[AT_INDEX(a->family)] || rests_on_link(e, a->ifindex) || is_source(e, a) ||
	     holds_target(e, a)))
		e->moved |= AT_MOVED_WAY;
}

/* It has another value, which may make it a better or worse source. */
void at_changed_addr(struct at_engine *e, const struct at_addr *old, const struct at_addr *now)
{
	uint32_t flags = now->family == AF_INET ?
				 IFA_F_SECONDARY :
				 IFA_F_TEMPORARY | IFA_F_OPTIMISTIC | IFA_F_DADFAILED |
					 IFA_F_HOMEADDRESS | IFA_F_DEPRECATED | IFA_F_TENTATIVE;

	if ((old->flags ^ now->flags) & flags || old->scope != now->scope)
		at_moved_addr(e, now);
}

/* Whether a name leads to another table now, or another name to this one. */
static bool moved_vrf(const struct at_link *old, const struct at_link *now)
{
	bool was = !strcmp(old->kind, "vrf"), is = !strcmp(now->kind, "vrf");

	return was != is || (is && (old->vrf_table != now->vrf_table ||
				    strncmp(old->name, now->name, AT_NAME_LEN)));
}

/* Its addresses can be borrowed by other links now, or no longer: those of the same VRF do. IPv4 tells
 * nothing of the addresses. */
static bool moved_lender(const struct at_engine *e, const struct at_link *old,
			 const struct at_link *now)
{
	return old->master != now->master &&
	       (at_link_is_vrf(e, old->master) || at_link_is_vrf(e, now->master)) && e->wide;
}

/* A link has another value, or none. */
void at_moved_link(struct at_engine *e, uint32_t slot, const struct at_link *old, bool was)
{
	struct link *l = &e->links[slot];
	const struct at_link *now = &l->value;

	if (moved_vrf(old, now))
		e->moved |= AT_MOVED_VRF;
	if (!e->n_targets)
		return;
	l->dark &= l->known;
	if (was == l->known && !((old->flags ^ now->flags) & WAY_FLAGS) &&
	    old->master == now->master && !strncmp(old->name, now->name, AT_NAME_LEN))
		return;
	if (rests_on_link(e, now->ifindex) || (l->dark && (now->flags & AT_LIVE) == AT_LIVE) ||
	    (was && l->known && moved_lender(e, old, now)))
		e->moved |= AT_MOVED_WAY;
}

/* A nexthop object came, went or has another value. */
void at_moved_nexthop(struct at_engine *e, uint32_t id)
{
	if (e->n_targets && rests_on_nexthop(e, id))
		e->moved |= AT_MOVED_WAY;
}

void at_engine_set_grounds(struct at_engine *e, const struct at_grounds *grounds)
{
	bool was_wide = e->wide;
	struct link *l;
	uint32_t i;
	int f;

	e->grounded = grounds;
	if (grounds)
		e->grounds = *grounds;
	for (i = 0; i < e->links_cap; i++) {
		l = &e->links[i];
		l->dark = l->known && (l->value.flags & AT_LIVE) != AT_LIVE;
	}
	for (f = 0; f < 2; f++)
		e->open[f] = is_open(e, f);
	e->wide = e->n_targets && (e->open[0] || e->open[1]);
	e->policies += e->wide != was_wide;
	e->moves++;
}

int at_engine_set_targets(struct at_engine *e, const struct at_network *list, uint32_t n)
{
	uint32_t i;

	if (n > AT_TARGETS_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if ((list[i].family != AF_INET && list[i].family != AF_INET6) ||
		    list[i].prefixlen != at_host_length(AT_INDEX(list[i].family)))
			return -EINVAL;
	}
	if (n == e->n_targets && (!n || !memcmp(list, e->targets, n * sizeof(*list))))
		return 0;
	if (n)
		memcpy(e->targets, list, n * sizeof(*list));
	e->n_targets = n;
	e->policies++;
	e->lookups++;
	at_engine_set_grounds(e, NULL);
	return 0;
}

int at_engine_has_targets(const struct at_engine *e)
{
	return e->n_targets > 0;
}

uint64_t at_engine_lookups(const struct at_engine *e)
{
	return e->lookups;
}

uint64_t at_engine_vrfs(const struct at_engine *e)
{
	return e->vrfs;
}

int at_engine_covers_target(const struct at_engine *e, uint32_t table, unsigned family,
			    unsigned dst_len, const uint8_t *dst)
{
	uint64_t to[2], target[2];
	uint32_t i;

	if (!e->n_targets || table == RT_TABLE_LOCAL)
		return 0;
	to[0] = at_be64(dst);
	to[1] = at_be64(dst + 8);
	for (i = 0; i < e->n_targets; i++) {
		target[0] = at_be64(e->targets[i].address);
		target[1] = at_be64(e->targets[i].address + 8);
		if (e->targets[i].family == family && at_within(to, target, dst_len))
			return 1;
	}
	return 0;
}

/* On a link that is not live, each message may be about what the kernel ends late. */
static bool tells_of_link(const struct at_engine *e, const struct at_link *v)
{
	return rests_on_link(e, v->ifindex) && !at_link_live(e, v->ifindex);
}

/* What the record itself says, whatever is stored. */
static bool tells(const struct at_engine *e, const struct record *r)
{
	bool entry = r->h->flags & AT_F_DUMP && r->h->op == AT_OP_NEW;
	const struct at_nexthop *nexthop = r->payload;
	const struct at_route *route = r->payload;
	const struct at_flush *flush = r->payload;
	const struct at_rule *rule = r->payload;

	switch (r->h->kind) {
	case AT_KIND_LOSS:
		return true;
	case AT_KIND_LINK:
		return !entry && tells_of_link(e, r->payload);
	case AT_KIND_NEXTHOP:
		return !entry && rests_on_nexthop(e, nexthop->id);
	case AT_KIND_RULE:
		return has_target(e, rule->family);
	case AT_KIND_ROUTE:
		return !entry && !(route->rtm_flags & RTM_F_CLONED) &&
		       at_engine_covers_target(e, route->table, route->family, route->dst_len,
					       route->dst);
	case AT_KIND_FLUSH:
		return at_engine_covers_target(e, flush->table, flush->family, flush->dst_len,
					       flush->dst);
	}
	return false;
}

/* After each record. */
void at_look(struct at_engine *e, const struct record *r)
{
	unsigned moved = e->moved;

	e->moved = 0;
	e->vrfs += !!(moved & AT_MOVED_VRF);
	e->lookups += e->n_targets && (moved & AT_MOVED_WAY || tells(e, r));
}

/* After routes ended by themselves, all of IPv6. Who knows its grounds knows the time as well. */
void at_look_expired(struct at_engine *e)
{
	e->lookups += !e->grounded && has_target(e, AF_INET6);
}

uint32_t at_engine_vrf(const struct at_engine *e, const char *name, uint32_t *table)
{
	const struct at_link *l, *found = NULL;
	uint32_t i;

	for (i = 0; i < e->links_cap; i++) {
		l = &e->links[i].value;
		if (e->links[i].known && !strcmp(l->kind, "vrf") && !strcmp(l->name, name) &&
		    (!found || l->ifindex < found->ifindex))
			found = l;
	}
	*table = found ? found->vrf_table : 0;
	return found ? found->ifindex : 0;
}
