// SPDX-License-Identifier: Apache-2.0
/* Whether the kernel may have a new answer to the question which way a target is reached, or whose
 * name a VRF has (docs/engine.md, section 6). */
#include <linux/rtnetlink.h>

#include "state.h"

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

static bool has_target(const struct at_engine *e, unsigned family)
{
	uint32_t i;

	for (i = 0; i < e->n_targets && e->targets[i].family != family; i++)
		;
	return i < e->n_targets;
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

/* What the record itself says, whatever is stored. */
static bool tells(const struct at_engine *e, const struct record *r)
{
	bool entry = r->h->flags & AT_F_DUMP && r->h->op == AT_OP_NEW;
	const struct at_route *route = r->payload;
	const struct at_flush *flush = r->payload;
	const struct at_rule *rule = r->payload;

	switch (r->h->kind) {
	case AT_KIND_LOSS:
		return true;
	case AT_KIND_NEXTHOP:
		return !entry;
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
	if (moved & AT_MOVED_VRF || (e->n_targets && (moved & AT_MOVED_LINK || tells(e, r))) ||
	    (moved & AT_MOVED_ADDR4 && has_target(e, AF_INET)) ||
	    (moved & AT_MOVED_ADDR6 && has_target(e, AF_INET6)))
		e->lookups++;
}

/* After routes ended by themselves, all of IPv6. */
void at_look_expired(struct at_engine *e)
{
	if (has_target(e, AF_INET6))
		e->lookups++;
}

uint32_t at_engine_vrf_table(const struct at_engine *e, const char *name)
{
	const struct at_link *l, *found = NULL;
	uint32_t i;

	for (i = 0; i < e->links_cap; i++) {
		l = &e->links[i].value;
		if (e->links[i].known && !strcmp(l->kind, "vrf") && !strcmp(l->name, name) &&
		    (!found || l->ifindex < found->ifindex))
			found = l;
	}
	return found ? found->vrf_table : 0;
}
