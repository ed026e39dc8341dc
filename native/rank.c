// SPDX-License-Identifier: Apache-2.0
/*
 * Judges the addresses that a record concerns and keeps the best of each selection and family on
 * top of a tournament tree: a change climbs only as far as it makes another winner.
 */
#include <linux/if_addr.h>
#include <stdlib.h>

#include "state.h"

#define IFAPROT_RA 2 /* IFAPROT_KERNEL_RA of newer headers */

int at_ranking_grow(struct ranking *k, uint32_t old, uint32_t cap)
{
	struct row *rows;
	uint32_t *array, i;

	if (!cap)
		return 0;
	rows = at_regrow(k->rows, old * sizeof(*rows), cap * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	k->rows = rows;
	for (i = old; i < cap; i++)
		rows[i].tier = AT_TIER_NONE;
	array = at_regrow(k->fallbacks, old * sizeof(*array), cap * sizeof(*array));
	if (!array)
		return -ENOMEM;
	k->fallbacks = array;
	array = at_regrow(k->pending, old * sizeof(*array), cap * sizeof(*array));
	if (!array)
		return -ENOMEM;
	k->pending = array;
	array = at_regrow(k->winner, 0, 2 * cap * sizeof(*array));
	if (!array)
		return -ENOMEM;
	k->winner = array;
	return 0;
}

void at_ranking_reset(struct ranking *k)
{
	k->best = k->incumbent = k->rival = k->incumbent_group = AT_NONE;
}

void at_ranking_free(struct ranking *k)
{
	free(k->rows);
	free(k->winner);
	free(k->pending);
	free(k->fallbacks);
	free(k->lanes);
	free(k->crossed);
}

int at_lanes_grow(struct selection *s, uint32_t old, uint32_t cap)
{
	struct ranking *k;
	void *bigger;

	if (!cap)
		return 0;
	for (k = s->rank; k < s->rank + 2; k++) {
		bigger = at_regrow(k->lanes, old * sizeof(*k->lanes), cap * sizeof(*k->lanes));
		if (!bigger)
			return -ENOMEM;
		k->lanes = bigger;
		bigger =
			at_regrow(k->crossed, old * sizeof(*k->crossed), cap * sizeof(*k->crossed));
		if (!bigger)
			return -ENOMEM;
		k->crossed = bigger;
	}
	bigger = at_regrow(s->judged, old, cap);
	if (!bigger)
		return -ENOMEM;
	s->judged = bigger;
	return 0;
}

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

static bool is_candidate(const struct row *r)
{
	return !r->own_reject && r->tier != AT_TIER_NONE;
}

/* The better of two entries, AT_NONE being the worst. */
static inline uint32_t better(const struct selection *s, const struct family *m,
			      const struct ranking *k, uint32_t a, uint32_t b)
{
	if (a == AT_NONE || b == AT_NONE)
		return a == AT_NONE ? b : a;
	return at_row_before(s, m, k, b, a) ? b : a;
}

static void set_leaf(struct ranking *k, uint32_t cap, uint32_t slot)
{
	k->winner[cap + slot] = is_candidate(&k->rows[slot]) ? slot : AT_NONE;
}

static void rebuild(struct at_engine *e, const struct selection *s, struct ranking *k,
		    const struct family *m)
{
	uint32_t *w = k->winner, i;

	for (i = 0; i < m->cap; i++)
		set_leaf(k, m->cap, i);
	for (i = m->cap; i-- > 1;)
		w[i] = better(s, m, k, w[2 * i], w[2 * i + 1]);
	e->counters.rebuilds++;
}

static void climb(const struct selection *s, struct ranking *k, const struct family *m,
		  uint32_t slot)
{
	uint32_t *w = k->winner, i = (m->cap + slot) / 2, won;

	set_leaf(k, m->cap, slot);
	for (; i; i /= 2) {
		won = better(s, m, k, w[2 * i], w[2 * i + 1]);
		/* the same other entry still wins: nothing above can change */
		if (won == w[i] && won != slot)
			break;
		w[i] = won;
	}
}

/* Trees of a family whose arrays grew. */
void at_ranking_grown(struct at_engine *e, int f)
{
	struct selection *s;
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		s = e->selections[i];
		if (s)
			rebuild(e, s, &s->rank[f], &e->fam[f]);
	}
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
		for (naming = s->naming; naming < s->naming + s->n_naming; naming++) {
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

static uint8_t tier(const struct selection *s, const struct summary *sum, uint8_t link,
		    const struct reach *reach)
{
	if ((reach->any && !(link & AT_L_LOOPBACK)) || reach->named)
		return AT_TIER_ROUTE;
	if (link & AT_L_LOOPBACK && sum->defaults)
		return AT_TIER_LOOPBACK;
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

	find_reach(s->table, f, m, r, n, lane, live, &reach);
	reject = own_reject(r, flags, link, reach.named);
	level = tier(s, &s->table->sum[f], link, &reach);
	automatic = flags & IFA_F_MANAGETEMPADDR || n->value.proto == IFAPROT_RA;

	w[0] = (uint64_t)level << 62;
	put(w, s, AT_CRIT_STATIC, r->statics);
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

	if (reject == r->own_reject && level == r->tier && live == r->carrier &&
	    !memcmp(w, r->w, sizeof(r->w)))
		return;
	counted = 0;
	if (!reject && !host && !automatic)
		counted |= AT_C_WIDE;
	if (!reject && level == AT_TIER_ROUTE)
		counted |= AT_C_ROUTED;
	if (!reject && level == AT_TIER_FALLBACK)
		counted |= AT_C_FALLBACK;
	was = is_candidate(r);
	r->own_reject = reject;
	r->tier = level;
	r->carrier = live;
	memcpy(r->w, w, sizeof(r->w));
	recount(k, n, r, counted);
	k->touched = true;
	k->view_stale |= slot == k->best || slot == k->incumbent;
	k->incumbent_stale |= n->group == k->incumbent_group;
	if (was || is_candidate(r))
		push(k, slot);
}

/* A selection meets an address, which has been marked. */
static void new_row(const struct selection *s, struct ranking *k, int f, const struct entry *n,
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
	at_judge_address(s, f, r);
}

void at_row_new(struct at_engine *e, int f, uint32_t slot)
{
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->selections[i])
			new_row(e->selections[i], &e->selections[i]->rank[f], f,
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
		if (is_candidate(r))
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

/* Whether a tier counts may have changed, though no row did. */
void at_recheck(struct selection *s)
{
	s->rank[0].recheck = s->rank[1].recheck = true;
	s->rank[0].view_stale = s->rank[1].view_stale = true;
}

/* Judges the marked addresses of one family for one selection. */
static void judge_marked(struct at_engine *e, struct selection *s, int f)
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

/* Keeps what is known of a rival while best stays. */
static void follow_rival(const struct selection *s, struct ranking *k, const struct family *m,
			 uint32_t slot)
{
	if (k->rival_state == AT_RIVAL_YES && slot == k->rival && !at_is_rival(s, m, k, slot)) {
		k->rival_state = AT_RIVAL_UNKNOWN;
		k->view_stale = true;
	} else if (k->rival_state == AT_RIVAL_NO && at_is_rival(s, m, k, slot)) {
		k->rival_state = AT_RIVAL_YES;
		k->rival = slot;
		k->view_stale = true;
	}
}

static void update_tree(struct at_engine *e, struct selection *s, int f)
{
	struct ranking *k = &s->rank[f];
	const struct family *m = &e->fam[f];
	uint32_t i;

	if (k->n_pending > m->cap / 8) {
		rebuild(e, s, k, m);
	} else {
		for (i = 0; i < k->n_pending; i++)
			climb(s, k, m, k->pending[i]);
	}
}

/* The winner, if its tier stands. */
static uint32_t find_best(const struct selection *s, const struct ranking *k,
			  const struct family *m)
{
	uint32_t top = m->cap ? k->winner[1] : AT_NONE;

	if (top == AT_NONE || k->rows[top].tier != AT_TIER_FALLBACK ||
	    s->policy.fallback != AT_FALLBACK_AUTO)
		return top;
	if (s->table->sum[0].defaults || s->table->sum[1].defaults || k->fallback_count != 1)
		return AT_NONE;
	return top;
}

static bool incumbent_before(const struct selection *s, const struct family *m,
			     const struct ranking *k, uint32_t a, uint32_t b)
{
	const struct row *x = &k->rows[a], *y = &k->rows[b];
	const struct at_addr *v = &m->entries[a].value, *u = &m->entries[b].value;

	if (!x->own_reject && !y->own_reject)
		return at_row_before(s, m, k, a, b);
	if (x->own_reject != y->own_reject)
		return x->own_reject < y->own_reject;
	if (v->ifindex != u->ifindex)
		return v->ifindex < u->ifindex;
	if (v->prefixlen != u->prefixlen)
		return v->prefixlen < u->prefixlen;
	return memcmp(v->peer, u->peer, 16) < 0;
}

static uint32_t find_incumbent(const struct selection *s, const struct ranking *k,
			       const struct family *m)
{
	uint32_t best = AT_NONE, slot;

	if (k->incumbent_group == AT_NONE)
		return AT_NONE;
	slot = m->groups[k->incumbent_group].head;
	for (; slot != AT_NONE; slot = m->entries[slot].group_next) {
		if (best == AT_NONE || incumbent_before(s, m, k, slot, best))
			best = slot;
	}
	return best;
}

static void pick(const struct ranking *k, const struct family *m, uint32_t slot, struct pick *p)
{
	memset(p, 0, sizeof(*p));
	if (slot == AT_NONE)
		return;
	memcpy(p->w, k->rows[slot].w, sizeof(p->w));
	memcpy(p->a, k->rows[slot].a, sizeof(p->a));
	memcpy(p->peer, m->entries[slot].value.peer, sizeof(p->peer));
	p->ifindex = m->entries[slot].value.ifindex;
	p->prefixlen = m->entries[slot].value.prefixlen;
	p->own_reject = k->rows[slot].own_reject;
	p->present = true;
}

/* Keeps the record, with one leg at most. */
static void set_cause(struct ranking *k, const struct record *r)
{
	struct at_header *h = (struct at_header *)k->cause;
	size_t size = r->h->size - (r->task ? sizeof(*r->task) : 0);
	const struct at_route *route = r->payload;

	if (r->h->kind == AT_KIND_NEXTHOP)
		size = sizeof(*h) + sizeof(struct at_nexthop);
	else if (r->h->kind == AT_KIND_ROUTE)
		size = sizeof(*h) + sizeof(*route) + (route->n_legs ? sizeof(struct at_leg) : 0);
	memcpy(k->cause, r->h, size);
	if (r->h->kind == AT_KIND_NEXTHOP)
		((struct at_nexthop *)(h + 1))->n_members = 0;
	else if (r->h->kind == AT_KIND_ROUTE)
		((struct at_route *)(h + 1))->n_legs = route->n_legs > 0;
	if (r->task) {
		memcpy(k->cause + size, r->task, sizeof(*r->task));
		size += sizeof(*r->task);
	}
	h->size = size;
	k->cause_size = size;
}

static void settle(struct at_engine *e, struct selection *s, int f, const struct record *r,
		   bool quiet)
{
	struct ranking *k = &s->rank[f];
	const struct family *m = &e->fam[f];
	struct pick picks[2];
	uint32_t best, i;

	if (!k->touched && !k->recheck && !k->incumbent_stale)
		return;
	if (k->touched && !quiet)
		k->last_change_ns = e->now;
	if (k->n_pending)
		update_tree(e, s, f);
	if (k->incumbent_stale)
		k->incumbent = find_incumbent(s, k, m);
	best = find_best(s, k, m);
	k->view_stale |= best != k->best || k->incumbent_stale;
	k->best = best;
	pick(k, m, best, &picks[0]);
	pick(k, m, k->incumbent, &picks[1]);
	if (memcmp(&picks[0], &k->picks[0], sizeof(picks[0])))
		k->rival_state = best == AT_NONE ? AT_RIVAL_NO : AT_RIVAL_UNKNOWN;
	else if (k->rival_state != AT_RIVAL_UNKNOWN && best != AT_NONE)
		for (i = 0; i < k->n_pending; i++)
			follow_rival(s, k, m, k->pending[i]);
	/* an incumbent that is not best has a rank, which any row may move */
	if (k->incumbent != AT_NONE && k->incumbent != best)
		k->view_stale = true;
	if (memcmp(picks, k->picks, sizeof(picks))) {
		memcpy(k->picks, picks, sizeof(picks));
		k->view_stale = true;
		if (r && !quiet)
			set_cause(k, r);
	}
	for (i = 0; i < k->n_pending; i++)
		k->rows[k->pending[i]].pending = false;
	k->n_pending = 0;
	k->touched = k->recheck = k->incumbent_stale = false;
}

/* Brings every ranking up to date. `quiet`: nothing that happened on the host is the reason. */
void at_settle(struct at_engine *e, const struct record *r, bool quiet)
{
	struct family *m;
	uint32_t i;
	int s, f;

	at_summarize(e);
	for (s = 0; s < AT_SELECTIONS_MAX; s++) {
		for (f = 0; e->selections[s] && f < 2; f++) {
			if (e->fam[f].n_work || e->selections[s]->rank[f].n_crossed)
				judge_marked(e, e->selections[s], f);
			settle(e, e->selections[s], f, r, quiet);
		}
	}
	for (m = e->fam; m < e->fam + 2; m++) {
		for (i = 0; i < m->n_work; i++)
			m->entries[m->work[i]].marked = m->entries[m->work[i]].attributes = false;
		m->n_work = 0;
	}
}

/* The first ranking of a selection. */
void at_rank_all(struct at_engine *e, struct selection *s)
{
	struct ranking *k;
	struct family *m;
	uint32_t i;
	int f;

	for (i = 0; i < e->links_cap; i++) {
		if (e->links[i].used)
			at_lane_new(e, s, i);
	}
	for (f = 0; f < 2; f++) {
		k = &s->rank[f];
		m = &e->fam[f];
		if (k->has_incumbent)
			k->incumbent_group = at_group_find(e, f, k->incumbent_address);
		for (i = 0; i < m->cap; i++) {
			if (m->entries[i].used) {
				new_row(s, k, f, &m->entries[i], i);
				at_mark(e, f, i, false);
			}
		}
		if (m->cap)
			rebuild(e, s, k, m);
		k->incumbent_stale = k->fresh = k->view_stale = true;
		k->last_change_ns = e->now;
	}
	at_settle(e, NULL, true);
}
