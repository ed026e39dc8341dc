// SPDX-License-Identifier: Apache-2.0
/* What a selection makes of an address: its reject, tier and values (docs/engine.md, section 5). */
#include <linux/if_addr.h>

#include "state.h"

#define IFAPROT_RA 2 /* IFAPROT_KERNEL_RA of newer headers */

/* A selection meets a link. */
void at_lane_new(struct at_engine *e, struct selection *s, uint32_t slot)
{
	uint32_t ifindex = e->links[slot].value.ifindex;
	int f;

	for (f = 0; f < 2; f++) {
		s->rank[f].lanes[slot] =
			(struct lane){ .over = at_over_find(&s->table->sum[f], ifindex) };
	}
	at_judge_link(e, s, slot, true);
}

static void push(struct ranking *k, uint32_t slot)
{
	if (k->rows[slot].pending)
		return;
	k->rows[slot].pending = true;
	k->pending[k->n_pending++] = slot;
}

/* Keeps the numbers that other rows and the view depend on. */
static void recount(struct ranking *k, const struct entry *n, struct row *r, uint8_t counted)
{
	uint8_t differ = r->counted ^ counted;
	struct lane *lane = &k->lanes[n->link];

	if (!differ)
		return;
	if (differ & AT_C_WIDE) {
		lane->wide += counted & AT_C_WIDE ? 1 : -1;
		if (lane->wide == !!(counted & AT_C_WIDE) && !lane->crossed) {
			lane->crossed = true;
			k->crossed[k->n_crossed++] = n->link;
		}
	}
	if (differ & AT_C_ROUTED) {
		lane->routed += counted & AT_C_ROUTED ? 1 : -1;
		k->view_stale |= lane->routed == !!(counted & AT_C_ROUTED);
	}
	if (differ & AT_C_FALLBACK) {
		if (counted & AT_C_FALLBACK)
			k->fallback_count += !k->fallbacks[n->group]++;
		else
			k->fallback_count -= !--k->fallbacks[n->group];
		k->view_stale = true;
	}
	r->counted = counted;
}

/* What the default routes are to one address. */
struct reach {
	uint64_t best;
	unsigned weight;
	bool any, named, named_by_best, gateway;
};

static void find_reach(const struct table *t, int f, const struct family *m, const struct row *r,
		       const struct entry *n, const struct lane *lane, bool live, struct reach *out)
{
	const struct summary *s = &t->sum[f];
	uint64_t value, named = UINT64_MAX;
	const struct naming *naming;
	const struct over *o = NULL;
	const struct path *p;
	uint32_t i;

	*out = (struct reach){ .best = AT_NO_ROUTE };
	if (lane->over != AT_NONE) {
		o = &s->over[lane->over];
		out->any = true;
		out->best = (uint64_t)!live << 34 | o->value;
		for (p = s->paths + o->first; p < s->paths + o->first + o->n; p++) {
			if (p->has_gw && at_within(p->gw, r->a, n->value.prefixlen)) {
				out->gateway = true;
				break;
			}
		}
	}
	if (m->groups[n->group].named) {
		for (i = 0; i < s->n_naming; i++) {
			naming = &s->naming[i];
			if (naming->prefsrc[0] != r->a[0] || naming->prefsrc[1] != r->a[1])
				continue;
			out->named = true;
			value = (uint64_t)!(live && naming->alive) << 34 | naming->value;
			if (value < named)
				named = value;
		}
		if (named < out->best)
			out->best = named;
		out->named_by_best = named == out->best;
	}
	if (o && ((uint64_t)!live << 34 | o->value) == out->best)
		out->weight = o->weight;
}

static uint8_t own_reject(const struct row *r, uint32_t flags, uint8_t link, bool named)
{
	if (r->range)
		return r->range;
	if (flags & IFA_F_DADFAILED)
		return AT_REJECT_DAD_FAILED;
	if ((flags & (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC)) == IFA_F_TENTATIVE)
		return AT_REJECT_TENTATIVE;
	if (!(link & AT_L_UP))
		return AT_REJECT_LINK_DOWN;
	if (r->listed)
		return r->listed;
	if (link & AT_L_OTHER_VRF)
		return AT_REJECT_OTHER_VRF;
	if (link & AT_L_EXCLUDED && !(link & (AT_L_FALLBACK | AT_L_LOOPBACK)) && !named)
		return AT_REJECT_EXCLUDED_INTERFACE;
	return AT_REJECT_NONE;
}

/* Position in the mode's list, its length for what is not in it. */
static uint32_t mode_position(const struct selection *s, const struct row *r, uint32_t link)
{
	if (s->policy.mode != AT_MODE_LIST)
		return 0;
	if (s->named[link] < s->policy.n_mode_names)
		return s->named[link];
	return s->policy.n_mode_names + r->mode;
}

static bool is_in_mode(const struct selection *s, const struct row *r, uint32_t position)
{
	return r->hinted && (s->policy.mode != AT_MODE_LIST ||
			     position < s->policy.n_mode_names + s->policy.n_mode_networks);
}

static uint8_t tier(const struct selection *s, int f, uint8_t link, const struct reach *reach,
		    bool in_mode)
{
	uint8_t by_default = AT_TIER_NONE;

	if ((reach->any && !(link & AT_L_LOOPBACK)) || reach->named)
		by_default = AT_TIER_ROUTE;
	else if (link & AT_L_LOOPBACK && s->table->sum[f].defaults)
		by_default = AT_TIER_LOOPBACK;
	if (s->narrowed[f]) {
		if (in_mode)
			return AT_TIER_ROUTE;
		if (s->policy.fallback == AT_FALLBACK_DEFAULT_ROUTE && by_default != AT_TIER_NONE)
			return AT_TIER_LOOPBACK;
	} else if (by_default != AT_TIER_NONE) {
		return by_default;
	}
	if (link & AT_L_FALLBACK)
		return AT_TIER_FALLBACK;
	if ((s->policy.fallback == AT_FALLBACK_AUTO ||
	     s->policy.fallback == AT_FALLBACK_PHYSICAL) &&
	    !(link & AT_L_LOOPBACK))
		return AT_TIER_FALLBACK;
	return AT_TIER_NONE;
}

static inline void put(uint64_t *w, const struct selection *s, unsigned criterion, uint64_t value)
{
	w[s->field[criterion].word] |= value << s->field[criterion].shift;
}

/* Makes an address's row anew; what changed goes into the tree and the numbers. */
static void judge(struct at_engine *e, struct selection *s, int f, uint32_t slot)
{
	struct family *m = &e->fam[f];
	struct ranking *k = &s->rank[f];
	const struct entry *n = &m->entries[slot];
	const struct lane *lane = &k->lanes[n->link];
	struct row *r = &k->rows[slot];
	uint32_t flags = n->value.flags;
	uint8_t link = s->judged[n->link];
	bool host = n->value.prefixlen == at_host_length(f), live = link & AT_L_LIVE, was,
	     automatic;
	uint64_t w[AT_WORDS + 1] = { 0 };
	uint8_t reject, level, counted;
	struct reach reach;
	uint32_t mode;

	find_reach(s->table, f, m, r, n, lane, live, &reach);
	reject = own_reject(r, flags, link, reach.named);
	mode = mode_position(s, r, n->link);
	level = tier(s, f, link, &reach, is_in_mode(s, r, mode));
	automatic = flags & IFA_F_MANAGETEMPADDR || n->value.proto == IFAPROT_RA;

	w[0] = (uint64_t)level << 62;
	put(w, s, AT_CRIT_STATIC, r->statics);
	put(w, s, AT_CRIT_MODE, mode);
	put(w, s, AT_CRIT_INTERNAL, r->outside);
	put(w, s, AT_CRIT_DEFAULT_ROUTE, reach.best);
	put(w, s, AT_CRIT_PREFSRC, !reach.named_by_best);
	put(w, s, AT_CRIT_NOT_DEPRECATED, !!(flags & IFA_F_DEPRECATED));
	put(w, s, AT_CRIT_NOT_VIP_LIKE, host && flags & IFA_F_PERMANENT && lane->wide);
	put(w, s, AT_CRIT_NOT_TEMPORARY, f && flags & IFA_F_TEMPORARY);
	put(w, s, AT_CRIT_ASSIGNED, automatic);
	put(w, s, AT_CRIT_INCUMBENT, n->group != k->incumbent_group);
	put(w, s, AT_CRIT_GATEWAY_ON_LINK, !reach.gateway);
	put(w, s, AT_CRIT_PRIMARY_FLAG, !f && flags & IFA_F_SECONDARY);
	put(w, s, AT_CRIT_GLOBAL_BEFORE_ULA, f && r->a[0] >> 57 == 0xfc >> 1);
	put(w, s, AT_CRIT_NEXTHOP_WEIGHT, UINT16_MAX - reach.weight);
	put(w, s, AT_CRIT_IFINDEX, n->value.ifindex);
	put(w, s, AT_CRIT_AGE, n->value.cstamp);

	counted = 0;
	if (!reject && !host && !automatic)
		counted |= AT_C_WIDE;
	if (!reject && level == AT_TIER_ROUTE)
		counted |= AT_C_ROUTED;
	if (!reject && level == AT_TIER_FALLBACK)
		counted |= AT_C_FALLBACK;
	recount(k, n, r, counted);
	if (reject == r->own_reject && level == r->tier && live == r->carrier &&
	    !memcmp(w, r->w, sizeof(r->w)))
		return;
	was = at_is_candidate(r);
	r->own_reject = reject;
	r->tier = level;
	r->carrier = live;
	memcpy(r->w, w, sizeof(r->w));
	k->touched = true;
	k->view_stale |= slot == k->best || slot == k->incumbent;
	k->incumbent_stale |= n->group == k->incumbent_group;
	if (was || at_is_candidate(r))
		push(k, slot);
}

/* A selection meets an address, which has been marked. */
void at_row_init(const struct selection *s, struct ranking *k, int f, const struct entry *n,
		 uint32_t slot)
{
	struct row *r = &k->rows[slot];
	uint8_t pending = r->pending;

	memset(r, 0, sizeof(*r));
	r->pending = pending;
	r->a[0] = at_be64(n->value.local);
	r->a[1] = at_be64(n->value.local + 8);
	r->tier = AT_TIER_NONE;
	r->own_reject = AT_REJECT_NO_DEFAULT_ROUTE; /* no judgement: the first is a change */
	at_judge_address(s, f, n->value.prefixlen, r);
}

void at_row_new(struct at_engine *e, int f, uint32_t slot)
{
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i])
			at_row_init(e->selections[i], &e->selections[i]->rank[f], f,
				    &e->fam[f].entries[slot], slot);
	}
}

void at_row_clear(struct at_engine *e, int f, uint32_t slot)
{
	const struct entry *n = &e->fam[f].entries[slot];
	struct ranking *k;
	struct row *r;
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (!e->selections[i])
			continue;
		k = &e->selections[i]->rank[f];
		r = &k->rows[slot];
		recount(k, n, r, 0);
		if (at_is_candidate(r))
			push(k, slot);
		r->tier = AT_TIER_NONE;
		k->touched = true;
		k->view_stale |= slot == k->best || slot == k->incumbent;
		k->incumbent_stale |= n->group == k->incumbent_group;
	}
}

/* Attributes of an address that are shown but do not rank: lifetimes. */
void at_refreshed(struct at_engine *e, int f, uint32_t slot)
{
	struct ranking *k;
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (!e->selections[i])
			continue;
		k = &e->selections[i]->rank[f];
		k->view_stale |= slot == k->best || slot == k->incumbent;
	}
}

void at_group_new(struct at_engine *e, int f, uint32_t group)
{
	struct ranking *k;
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (!e->selections[i])
			continue;
		k = &e->selections[i]->rank[f];
		if (k->has_incumbent &&
		    !memcmp(k->incumbent_address, e->fam[f].groups[group].local, 16))
			k->incumbent_group = group;
	}
}

void at_group_gone(struct at_engine *e, int f, uint32_t group)
{
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i] && e->selections[i]->rank[f].incumbent_group == group) {
			e->selections[i]->rank[f].incumbent_group = AT_NONE;
			e->selections[i]->rank[f].incumbent_stale = true;
		}
	}
}

/* Judges the marked addresses of one family for one selection. */
void at_judge_marked(struct at_engine *e, struct selection *s, int f)
{
	struct family *m = &e->fam[f];
	struct ranking *k = &s->rank[f];
	const struct entry *n;
	uint32_t i, slot;

	for (i = 0; i < m->n_work; i++) {
		n = &m->entries[m->work[i]];
		if (!n->used)
			continue;
		judge(e, s, f, m->work[i]);
		if (n->attributes) {
			/* The peer orders, though no criterion has it: for IPv6 it is an attribute. */
			if (at_is_candidate(&k->rows[m->work[i]]))
				push(k, m->work[i]);
			k->incumbent_stale |= n->group == k->incumbent_group;
			k->touched = true;
			k->view_stale |= m->work[i] == k->best || m->work[i] == k->incumbent;
		}
	}
	/* the first or last wide address of a link makes others there look like VIPs, or not */
	for (i = 0; i < k->n_crossed; i++) {
		k->lanes[k->crossed[i]].crossed = false;
		if (!e->links[k->crossed[i]].used || !e->links[k->crossed[i]].hosts[f])
			continue;
		slot = e->links[k->crossed[i]].head[f];
		for (; slot != AT_NONE; slot = m->entries[slot].next) {
			if (m->entries[slot].value.prefixlen == at_host_length(f))
				judge(e, s, f, slot);
		}
	}
	k->n_crossed = 0;
}
