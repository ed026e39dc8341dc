// SPDX-License-Identifier: Apache-2.0
/* After each record: rankings up to date, best and incumbent found, the cause of changes kept. */
#include <stdlib.h>

#include "state.h"

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

/* Trees of a family whose arrays grew. */
void at_ranking_grown(struct at_engine *e, int f)
{
	struct selection *s;
	int i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		s = e->selections[i];
		if (s)
			at_tree_rebuild(e, s, &s->rank[f], &e->fam[f]);
	}
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
	bigger = at_regrow(s->named, old * sizeof(*s->named), cap * sizeof(*s->named));
	if (!bigger)
		return -ENOMEM;
	s->named = bigger;
	return 0;
}

/* Whether a tier stands, and numbers of default routes, may have changed though no row did. */
void at_recheck(struct selection *s)
{
	s->rank[0].recheck = s->rank[1].recheck = true;
	s->rank[0].view_stale = s->rank[1].view_stale = true;
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
	h->pad0 = 0;
	if (r->h->kind == AT_KIND_ADDR)
		at_addr_clean(r->payload, (struct at_addr *)(h + 1));
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
		at_tree_update(e, s, k, m);
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
		e->moves++;
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
				at_judge_marked(e, e->selections[s], f);
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
				at_row_init(s, k, f, &m->entries[i], i);
				at_mark(e, f, i, false);
			}
		}
		if (m->cap)
			at_tree_rebuild(e, s, k, m);
		k->incumbent_stale = k->fresh = k->view_stale = true;
		k->last_change_ns = e->now;
	}
	at_settle(e, NULL, true);
}
