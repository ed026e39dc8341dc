// SPDX-License-Identifier: Apache-2.0
/*
 * The order of rows, and a tournament tree over it: a change climbs only as far as it makes
 * another winner.
 */
#include "state.h"

/* By address, prefix length, peer, ifindex. */
int at_by_address(const struct family *m, const struct ranking *k, uint32_t a, uint32_t b)
{
	const struct row *x = &k->rows[a], *y = &k->rows[b];
	const struct at_addr *v = &m->entries[a].value, *u = &m->entries[b].value;
	int order;

	if (x->a[0] != y->a[0])
		return x->a[0] < y->a[0] ? -1 : 1;
	if (x->a[1] != y->a[1])
		return x->a[1] < y->a[1] ? -1 : 1;
	if (v->prefixlen != u->prefixlen)
		return v->prefixlen < u->prefixlen ? -1 : 1;
	order = memcmp(v->peer, u->peer, 16);
	if (order)
		return order;
	return v->ifindex < u->ifindex ? -1 : v->ifindex > u->ifindex;
}

bool at_row_before(const struct selection *s, const struct family *m, const struct ranking *k,
		   uint32_t a, uint32_t b)
{
	const struct row *x = &k->rows[a], *y = &k->rows[b];
	uint32_t i;

	for (i = 0; i < s->words; i++) {
		if (x->w[i] != y->w[i])
			return x->w[i] < y->w[i];
	}
	return at_by_address(m, k, a, b) < 0;
}

/* Position of the first criterion on which two rows differ; -2 the tier; else their number. */
int at_first_diff(const struct selection *s, const struct row *a, const struct row *b)
{
	unsigned position;
	uint64_t differ;
	uint32_t i;

	for (i = 0; i < s->words; i++) {
		differ = a->w[i] ^ b->w[i];
		if (!differ)
			continue;
		position = s->position[i][63 - __builtin_clzll(differ)];
		return position == AT_POSITION_TIER ? -2 : (int)position;
	}
	return s->policy.n_criteria;
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
	k->winner[cap + slot] = at_is_candidate(&k->rows[slot]) ? slot : AT_NONE;
}

void at_tree_rebuild(struct at_engine *e, const struct selection *s, struct ranking *k,
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

/* Brings the leaves of pending entries up to date. */
void at_tree_update(struct at_engine *e, const struct selection *s, struct ranking *k,
		    const struct family *m)
{
	uint32_t i;

	if (k->n_pending > m->cap / 8) {
		at_tree_rebuild(e, s, k, m);
	} else {
		for (i = 0; i < k->n_pending; i++)
			climb(s, k, m, k->pending[i]);
	}
}

/* Whether an entry qualifies beside best from another network. */
bool at_is_rival(const struct selection *s, const struct family *m, const struct ranking *k,
		 uint32_t slot)
{
	const struct row *best = &k->rows[k->best], *r = &k->rows[slot];
	int differ;

	if (r->own_reject || r->tier != best->tier)
		return false;
	differ = at_first_diff(s, best, r);
	if (differ <= s->after && differ != s->incumbent)
		return false;
	return !at_within(best->a, r->a, m->entries[k->best].value.prefixlen) &&
	       !at_within(best->a, r->a, m->entries[slot].value.prefixlen);
}

/* Searches the part of the tree whose winners are equal to best where rivals are. */
uint32_t at_tree_rival(const struct selection *s, const struct family *m, const struct ranking *k,
		       uint32_t node)
{
	uint32_t won = k->winner[node], i, found;

	if (won == AT_NONE)
		return AT_NONE;
	for (i = 0; i < s->words; i++) {
		if ((k->rows[won].w[i] ^ k->rows[k->best].w[i]) & s->kin[i])
			return AT_NONE;
	}
	if (at_is_rival(s, m, k, won))
		return won;
	if (node >= m->cap)
		return AT_NONE;
	found = at_tree_rival(s, m, k, 2 * node);
	return found != AT_NONE ? found : at_tree_rival(s, m, k, 2 * node + 1);
}

/* Candidates before an entry. */
uint32_t at_tree_before(const struct selection *s, const struct family *m, const struct ranking *k,
			uint32_t node, uint32_t slot)
{
	uint32_t won = k->winner[node];

	if (won == AT_NONE || won == slot || !at_row_before(s, m, k, won, slot))
		return 0;
	if (node >= m->cap)
		return 1;
	return at_tree_before(s, m, k, 2 * node, slot) +
	       at_tree_before(s, m, k, 2 * node + 1, slot);
}
