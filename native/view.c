// SPDX-License-Identifier: Apache-2.0
/* What the decision sees: best, incumbent, rival, ranked rows. */
#define _GNU_SOURCE
#include <linux/if_addr.h>
#include <stdlib.h>

#include "state.h"

static bool has_rival(const struct selection *s, const struct family *m, struct ranking *k)
{
	if (k->rival_state == AT_RIVAL_UNKNOWN) {
		k->rival = at_tree_rival(s, m, k, 1);
		k->rival_state = k->rival == AT_NONE ? AT_RIVAL_NO : AT_RIVAL_YES;
	}
	return k->rival_state == AT_RIVAL_YES;
}

static uint8_t reject_of(const struct selection *s, const struct ranking *k, const struct row *r)
{
	if (r->own_reject)
		return r->own_reject;
	if (k->best == AT_NONE || r->tier != k->rows[k->best].tier)
		return s->narrowed[k - s->rank] ? AT_REJECT_NOT_IN_MODE :
						  AT_REJECT_NO_DEFAULT_ROUTE;
	return AT_REJECT_NONE;
}

/* All but the rank. */
static void fill_row(const struct at_engine *e, const struct selection *s, int f, uint32_t slot,
		     struct at_row *out)
{
	const struct ranking *k = &s->rank[f];
	const struct entry *n = &e->fam[f].entries[slot];
	const struct row *r = &k->rows[slot];
	const struct field *field;
	unsigned i;

	memset(out, 0, sizeof(*out));
	out->addr = n->value;
	out->reject = reject_of(s, k, r);
	out->own_reject = r->own_reject;
	out->tier = r->tier;
	out->carrier = r->carrier;
	for (i = 0; i < s->policy.n_criteria; i++) {
		field = &s->field[s->policy.criteria[i]];
		out->values[i] = r->w[field->word] >> field->shift & field->mask;
	}
	memcpy(out->link, e->links[n->link].value.name, sizeof(out->link));
}

static uint8_t saturate(uint32_t n)
{
	return n > UINT8_MAX ? UINT8_MAX : n;
}

static uint32_t default_links(const struct at_engine *e, const struct selection *s, int f)
{
	const struct summary *sum = &s->table->sum[f];
	uint32_t i, slot, n = 0;

	for (i = 0; i < sum->n_over; i++) {
		slot = at_link_find(e, sum->over[i].ifindex);
		n += slot != AT_NONE && s->rank[f].lanes[slot].routed;
	}
	return n;
}

static void fill_view(const struct at_engine *e, struct selection *s, int f)
{
	struct ranking *k = &s->rank[f];
	const struct family *m = &e->fam[f];
	struct at_view *v = &k->view;

	memset(v, 0, sizeof(*v));
	v->has_best = k->best != AT_NONE;
	v->has_incumbent = k->incumbent != AT_NONE;
	v->default_routes = saturate(s->table->sum[f].defaults);
	v->other_defaults = saturate(s->table->sum[!f].defaults);
	v->bad_defaults = saturate(s->table->sum[f].bad);
	v->default_links = saturate(default_links(e, s, f));
	v->fallback_count = k->fallback_count;
	v->first_diff = -1;
	if (v->has_best) {
		fill_row(e, s, f, k->best, &v->best);
		v->best.rank = 1;
		v->best_undeprecated = !(v->best.addr.flags & IFA_F_DEPRECATED);
		v->rival = has_rival(s, m, k);
	}
	if (v->has_incumbent) {
		fill_row(e, s, f, k->incumbent, &v->incumbent);
		if (!v->incumbent.reject)
			v->incumbent.rank = 1 + at_tree_before(s, m, k, 1, k->incumbent);
	}
	if (v->has_best && v->has_incumbent &&
	    memcmp(k->rows[k->best].a, k->rows[k->incumbent].a, sizeof(k->rows[0].a)))
		v->first_diff = at_first_diff(s, &k->rows[k->best], &k->rows[k->incumbent]);
	k->view_stale = false;
}

static void plain(struct at_row *r)
{
	r->addr.valid = r->addr.preferred = r->addr.priority = r->addr.scope = 0;
}

/* Whether the view differs from the one that was taken last; *now is what to take. */
static bool differs(const struct at_engine *e, struct selection *s, int f, struct at_view *now)
{
	struct ranking *k = &s->rank[f];

	if (k->view_stale)
		fill_view(e, s, f);
	*now = k->view;
	plain(&now->best);
	plain(&now->incumbent);
	return k->fresh || memcmp(now, &k->taken, sizeof(*now));
}

static uint32_t changes(const struct at_engine *e, bool take)
{
	struct at_view now;
	struct ranking *k;
	uint32_t bits = 0;
	unsigned s, f;

	for (s = 0; s < AT_SELECTIONS_MAX; s++) {
		for (f = 0; e->selections[s] && f < 2; f++) {
			k = &e->selections[s]->rank[f];
			if (!k->view_stale && k->compared)
				continue;
			k->compared = !differs(e, e->selections[s], f, &now);
			if (k->compared)
				continue;
			bits |= 1u << (2 * s + f);
			if (!take)
				continue;
			k->taken = now;
			k->fresh = false;
			k->compared = true;
		}
	}
	return bits;
}

uint32_t at_engine_changed(struct at_engine *e)
{
	return changes(e, true);
}

uint32_t at_engine_pending(const struct at_engine *e)
{
	return changes(e, false);
}

static struct selection *find(const struct at_engine *e, unsigned sel, int family)
{
	if (sel >= AT_SELECTIONS_MAX || (family != AF_INET && family != AF_INET6))
		return NULL;
	return e->selections[sel];
}

int at_engine_view(struct at_engine *e, unsigned sel, int family, struct at_view *out)
{
	struct selection *s = find(e, sel, family);
	int f = AT_INDEX(family);
	struct ranking *k;

	if (!s)
		return -EINVAL;
	k = &s->rank[f];
	if (k->view_stale) {
		fill_view(e, s, f);
		k->compared = false;
	}
	*out = k->view;
	out->last_change_ns = k->last_change_ns;
	out->cause_size = k->cause_size;
	memcpy(out->cause, k->cause, k->cause_size);
	return 0;
}

void at_engine_glance(struct at_engine *e, struct at_glance *out)
{
	struct at_dirty dirt;

	out->changed = at_engine_pending(e);
	out->dirty = at_engine_dirty(e, &dirt, 1) > 0;
	if (!out->changed)
		return;
	out->first = (uint8_t)__builtin_ctz(out->changed);
	at_engine_view(e, out->first >> 1, out->first & 1 ? AF_INET6 : AF_INET, &out->view);
}

struct ordering {
	const struct selection *s;
	const struct family *m;
	const struct ranking *k;
};

static int by_rank(const void *one, const void *other, void *context)
{
	const struct ordering *o = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	bool x = reject_of(o->s, o->k, &o->k->rows[a]), y = reject_of(o->s, o->k, &o->k->rows[b]);

	if (x != y)
		return x ? 1 : -1;
	if (x)
		return at_by_address(o->m, o->k, a, b);
	return at_row_before(o->s, o->m, o->k, a, b) ? -1 : 1;
}

size_t at_engine_rows(struct at_engine *e, unsigned sel, int family, struct at_row *out, size_t max)
{
	struct selection *s = find(e, sel, family);
	int f = AT_INDEX(family);
	struct ordering o;
	uint32_t *order, i;
	size_t n = 0;

	if (!s)
		return 0;
	o = (struct ordering){ s, &e->fam[f], &s->rank[f] };
	order = malloc((o.m->count + 1) * sizeof(*order));
	if (!order)
		return 0;
	for (i = 0; i < o.m->cap; i++) {
		if (o.m->entries[i].used)
			order[n++] = i;
	}
	if (max)
		qsort_r(order, n, sizeof(*order), by_rank, &o);
	for (i = 0; i < n && i < max; i++) {
		fill_row(e, s, f, order[i], &out[i]);
		out[i].rank = out[i].reject ? 0 : i + 1;
	}
	free(order);
	return n;
}

int at_engine_set_incumbent(struct at_engine *e, unsigned sel, int family, const uint8_t *addr)
{
	struct selection *s = find(e, sel, family);
	int f = AT_INDEX(family);
	struct ranking *k;

	if (!s)
		return -EINVAL;
	k = &s->rank[f];
	if (k->has_incumbent)
		at_mark_local(e, f, k->incumbent_address);
	memset(k->incumbent_address, 0, sizeof(k->incumbent_address));
	k->has_incumbent = addr;
	k->incumbent_group = AT_NONE;
	if (addr) {
		memcpy(k->incumbent_address, addr, f ? 16 : 4);
		k->incumbent_group = at_group_find(e, f, k->incumbent_address);
		at_mark_local(e, f, k->incumbent_address);
	}
	k->incumbent_stale = true;
	at_settle(e, NULL, true);
	return 0;
}
