// SPDX-License-Identifier: Apache-2.0
/* The policy as a table, and the filters that depend on one thing alone. */
#include <fnmatch.h>
#include <stdlib.h>

#include "state.h"

struct range {
	uint8_t reject, length;
	uint64_t a[2];
};

static const struct range ranges[2][6] = {
	{
		{ AT_REJECT_UNSPECIFIED, 32, { 0, 0 } },
		{ AT_REJECT_LOOPBACK, 8, { 0x7full << 56, 0 } },
		{ AT_REJECT_LINK_LOCAL, 16, { 0xa9feull << 48, 0 } },
		{ AT_REJECT_MULTICAST, 4, { 0xe0ull << 56, 0 } },
		{ AT_REJECT_RESERVED, 29, { 0xc0000000ull << 32, 0 } }, /* 192.0.0.0: RFC 7335 */
	},
	{
		{ AT_REJECT_UNSPECIFIED, 128, { 0, 0 } },
		{ AT_REJECT_LOOPBACK, 128, { 0, 1 } },
		{ AT_REJECT_LINK_LOCAL, 10, { 0xfe80ull << 48, 0 } },
		{ AT_REJECT_MULTICAST, 8, { 0xffull << 56, 0 } },
	},
};

/* Index of the first network that holds the address; `n` if none does. */
static uint32_t position(const struct at_network *list, uint32_t n, int f, const uint64_t a[2],
			 int host_length)
{
	uint64_t b[2];
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (list[i].family != AT_FAMILY(f) ||
		    (host_length >= 0 && (list[i].prefixlen == at_host_length(f)) != host_length))
			continue;
		b[0] = at_be64(list[i].address);
		b[1] = at_be64(list[i].address + 8);
		if (at_within(a, b, list[i].prefixlen))
			break;
	}
	return i;
}

/* What the mode says of an address, but for the name of its link. */
void at_judge_mode(const struct selection *s, int f, unsigned length, struct row *row)
{
	const struct at_policy *p = &s->policy;
	uint64_t hint[2];
	uint32_t i;
	bool any = false;

	row->mode = position(p->mode_networks, p->n_mode_networks, f, row->a, -1);
	row->hinted = false;
	for (i = 0; i < p->n_hints && !row->hinted; i++) {
		if (p->hints[i].family != AT_FAMILY(f))
			continue;
		any = true;
		hint[0] = at_be64(p->hints[i].address);
		hint[1] = at_be64(p->hints[i].address + 8);
		row->hinted = at_within(row->a, hint, length);
	}
	row->hinted |= !any;
}

void at_judge_address(const struct selection *s, int f, unsigned length, struct row *row)
{
	const struct at_policy *p = &s->policy;
	const struct range *r;

	row->range = row->listed = AT_REJECT_NONE;
	for (r = ranges[f]; r->reject && !row->range; r++) {
		if (at_within(row->a, r->a, r->length))
			row->range = r->reject;
	}
	if (!(p->families & 1u << f))
		row->range = AT_REJECT_FAMILY;
	if (position(p->exclude, p->n_exclude, f, row->a, true) < p->n_exclude)
		row->listed = AT_REJECT_EXCLUDED_ADDRESS;
	else if (position(p->exclude, p->n_exclude, f, row->a, false) < p->n_exclude)
		row->listed = AT_REJECT_EXCLUDED_NETWORK;
	row->statics = position(p->statics, p->n_static, f, row->a, -1);
	row->outside = p->n_internal &&
		       position(p->internal, p->n_internal, f, row->a, -1) == p->n_internal;
	at_judge_mode(s, f, length, row);
}

/* Index of the first pattern that takes the name; `n` if none does. */
static uint32_t matching(const char (*patterns)[AT_PATTERN_LEN], uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n && fnmatch(patterns[i], name, FNM_NOESCAPE); i++)
		;
	return i;
}

static bool matches(const char (*patterns)[AT_PATTERN_LEN], uint32_t n, const char *name)
{
	return matching(patterns, n, name) < n;
}

static bool is_excluded(const struct at_policy *p, const struct at_link *l, const char *over)
{
	uint32_t i;

	if (matches(p->keep_names, p->n_keep_names, l->name))
		return false;
	if (matches(p->exclude_names, p->n_exclude_names, l->name))
		return true;
	for (i = 0; i < p->n_exclude_kinds; i++) {
		if (!strncmp(p->exclude_kinds[i], l->kind, AT_NAME_LEN))
			return true;
	}
	return !strcmp(l->kind, "veth") &&
	       (!strcmp(over, "bridge") || !strcmp(over, "openvswitch"));
}

/* What a policy says of a link; `patterns`: of its name, kind and master too. */
void at_judge_link(struct at_engine *e, struct selection *s, uint32_t slot, bool patterns)
{
	const struct at_link *l = &e->links[slot].value, *over = NULL;
	const struct at_policy *p = &s->policy;
	uint8_t bits = s->judged[slot] & AT_L_PATTERNS;
	uint32_t master, vrf = 0;

	if (patterns) {
		master = at_link_find(e, l->master);
		if (master != AT_NONE)
			over = &e->links[master].value;
		if (!strcmp(l->kind, "vrf"))
			vrf = l->vrf_table;
		else if (over && !strcmp(over->kind, "vrf"))
			vrf = over->vrf_table;
		bits = 0;
		if (is_excluded(p, l, over ? over->kind : ""))
			bits |= AT_L_EXCLUDED;
		if (vrf && vrf != p->table)
			bits |= AT_L_OTHER_VRF;
		if (e->links[slot].known && p->fallback == AT_FALLBACK_INTERFACE &&
		    !fnmatch(p->fallback_name, l->name, FNM_NOESCAPE))
			bits |= AT_L_FALLBACK;
		s->named[slot] = e->links[slot].known ?
					 matching(p->mode_names, p->n_mode_names, l->name) :
					 p->n_mode_names;
	}
	if (l->flags & IFF_UP)
		bits |= AT_L_UP;
	if ((l->flags & AT_LIVE) == AT_LIVE)
		bits |= AT_L_LIVE;
	if (l->flags & IFF_LOOPBACK)
		bits |= AT_L_LOOPBACK;
	s->judged[slot] = bits;
}

static void *copy(const void *from, uint32_t n, size_t size)
{
	void *to = malloc(n * size + 1);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

static int copy_policy(struct at_policy *to, const struct at_policy *p)
{
	*to = *p;
	to->exclude_names = copy(p->exclude_names, p->n_exclude_names, AT_PATTERN_LEN);
	to->keep_names = copy(p->keep_names, p->n_keep_names, AT_PATTERN_LEN);
	to->exclude_kinds = copy(p->exclude_kinds, p->n_exclude_kinds, AT_NAME_LEN);
	to->exclude = copy(p->exclude, p->n_exclude, sizeof(*p->exclude));
	to->statics = copy(p->statics, p->n_static, sizeof(*p->statics));
	to->internal = copy(p->internal, p->n_internal, sizeof(*p->internal));
	to->mode_names = copy(p->mode_names, p->n_mode_names, sizeof(*p->mode_names));
	to->mode_networks = copy(p->mode_networks, p->n_mode_networks, sizeof(*p->mode_networks));
	to->hints = copy(p->hints, p->n_hints, sizeof(*p->hints));
	return to->exclude_names && to->keep_names && to->exclude_kinds && to->exclude &&
			       to->statics && to->internal && to->mode_names && to->mode_networks &&
			       to->hints ?
		       0 :
		       -ENOMEM;
}

static void free_selection(struct selection *s)
{
	free((void *)s->policy.exclude_names);
	free((void *)s->policy.keep_names);
	free((void *)s->policy.exclude_kinds);
	free((void *)s->policy.exclude);
	free((void *)s->policy.statics);
	free((void *)s->policy.internal);
	free((void *)s->policy.mode_names);
	free((void *)s->policy.mode_networks);
	free((void *)s->policy.hints);
	free(s->judged);
	free(s->named);
	at_ranking_free(&s->rank[0]);
	at_ranking_free(&s->rank[1]);
	free(s);
}

static bool valid_networks(const struct at_network *list, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if ((list[i].family != AF_INET && list[i].family != AF_INET6) ||
		    list[i].prefixlen > at_host_length(AT_INDEX(list[i].family)))
			return false;
	}
	return true;
}

static bool terminated(const char (*patterns)[AT_PATTERN_LEN], uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!memchr(patterns[i], 0, AT_PATTERN_LEN))
			return false;
	}
	return true;
}

/* Whether positions in the mode's list fit their field. */
static bool fits(uint32_t names, uint32_t networks)
{
	return names < UINT16_MAX && networks < UINT16_MAX - names;
}

static bool valid(const struct at_policy *p)
{
	unsigned i;

	if (p->n_criteria > AT_CRITERIA_MAX || p->fallback > AT_FALLBACK_DEFAULT_ROUTE ||
	    p->mode > AT_MODE_LIST || p->n_static >= UINT16_MAX ||
	    !fits(p->n_mode_names, p->n_mode_networks) ||
	    !memchr(p->fallback_name, 0, AT_PATTERN_LEN))
		return false;
	for (i = 0; i < p->n_criteria; i++) {
		if (p->criteria[i] < AT_CRIT_STATIC || p->criteria[i] >= AT_CRIT_ADDRESS)
			return false;
	}
	return terminated(p->exclude_names, p->n_exclude_names) &&
	       terminated(p->keep_names, p->n_keep_names) &&
	       valid_networks(p->exclude, p->n_exclude) &&
	       valid_networks(p->statics, p->n_static) &&
	       valid_networks(p->internal, p->n_internal) &&
	       terminated(p->mode_names, p->n_mode_names) &&
	       valid_networks(p->mode_networks, p->n_mode_networks) &&
	       valid_networks(p->hints, p->n_hints);
}

/* The table that a policy names, with one more user; a new one has to be dumped. */
static struct table *use_table(struct at_engine *e, uint32_t id)
{
	struct table *t = at_table(e, id);
	int i;

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return NULL;
		t->id = id;
		for (i = 0; e->tables[i]; i++)
			;
		e->tables[i] = t;
		at_lost(e, AT_SCOPE_ROUTE4, 0, id);
		at_lost(e, AT_SCOPE_ROUTE6, 0, id);
	}
	t->users++;
	return t;
}

static void leave_table(struct at_engine *e, struct table *t)
{
	uint32_t i;

	if (--t->users)
		return;
	for (i = 0; i < e->n_rkeys; i++) {
		while (e->rkeys[i]->table == t->id && e->rkeys[i]->n)
			at_alias_remove(e, e->rkeys[i], e->rkeys[i]->n - 1);
	}
	at_routes_compact(e, false);
	at_dirt_forget(e, t->id);
	at_tomb_forget(e, t->id);
	for (i = 0; e->tables[i] != t; i++)
		;
	e->tables[i] = NULL;
	at_summary_free(&t->sum[0]);
	at_summary_free(&t->sum[1]);
	free(t);
}

static void find_narrowed(struct selection *s)
{
	uint32_t i;

	s->narrowed[0] = s->narrowed[1] = s->policy.mode == AT_MODE_LIST;
	for (i = 0; i < s->policy.n_hints; i++)
		s->narrowed[AT_INDEX(s->policy.hints[i].family)] = true;
}

static struct selection *make_selection(struct at_engine *e, const struct at_policy *p)
{
	struct selection *s = calloc(1, sizeof(*s));
	int f;

	if (!s)
		return NULL;
	if (copy_policy(&s->policy, p) || at_lanes_grow(s, 0, e->links_cap)) {
		free_selection(s);
		return NULL;
	}
	for (f = 0; f < 2; f++) {
		at_ranking_reset(&s->rank[f]);
		if (at_ranking_grow(&s->rank[f], 0, e->fam[f].cap)) {
			free_selection(s);
			return NULL;
		}
	}
	at_lay_out(s);
	find_narrowed(s);
	return s;
}

int at_engine_set_policy(struct at_engine *e, unsigned sel, const struct at_policy *p)
{
	struct selection *s, *old;
	struct table *t;
	bool same;
	int f;

	if (sel >= AT_SELECTIONS_MAX || !valid(p))
		return -EINVAL;
	s = make_selection(e, p);
	if (!s)
		return -ENOMEM;
	old = e->selections[sel];
	same = old && old->table->id == p->table;
	e->selections[sel] = NULL;
	/* there is room for as many tables as selections, so leave one before another is used */
	if (old && !same)
		leave_table(e, old->table);
	t = use_table(e, p->table);
	if (!t) {
		free_selection(s);
		if (old)
			free_selection(old);
		return -ENOMEM;
	}
	t->users -= same;
	s->table = t;
	for (f = 0; old && f < 2; f++) {
		s->rank[f].has_incumbent = old->rank[f].has_incumbent;
		memcpy(s->rank[f].incumbent_address, old->rank[f].incumbent_address, 16);
	}
	if (old)
		free_selection(old);
	e->selections[sel] = s;
	e->policies++;
	at_rank_all(e, s);
	return 0;
}

int at_engine_set_mode_networks(struct at_engine *e, unsigned sel, const struct at_network *list,
				uint32_t n)
{
	struct selection *s = sel < AT_SELECTIONS_MAX ? e->selections[sel] : NULL;
	const struct at_network *copied;
	struct family *m;
	uint32_t i;
	int f;

	if (!s || !fits(s->policy.n_mode_names, n) || !valid_networks(list, n))
		return -EINVAL;
	copied = copy(list, n, sizeof(*list));
	if (!copied)
		return -ENOMEM;
	free((void *)s->policy.mode_networks);
	s->policy.mode_networks = copied;
	s->policy.n_mode_networks = n;
	for (f = 0; f < 2; f++) {
		m = &e->fam[f];
		for (i = 0; i < m->cap; i++) {
			if (!m->entries[i].used)
				continue;
			at_judge_mode(s, f, m->entries[i].value.prefixlen, &s->rank[f].rows[i]);
			at_mark(e, f, i, false);
		}
	}
	at_settle(e, NULL, false);
	return 0;
}

int at_engine_drop_policy(struct at_engine *e, unsigned sel)
{
	struct selection *s = sel < AT_SELECTIONS_MAX ? e->selections[sel] : NULL;

	if (!s)
		return -EINVAL;
	e->selections[sel] = NULL;
	e->policies++;
	leave_table(e, s->table);
	free_selection(s);
	at_settle(e, NULL, true);
	return 0;
}

int at_engine_wants_table(const struct at_engine *e, uint32_t table)
{
	return at_table(e, table) != NULL;
}

uint32_t at_engine_policies(const struct at_engine *e)
{
	return e->policies;
}

size_t at_engine_tables(const struct at_engine *e, uint32_t *out, size_t max)
{
	uint32_t id, last = 0;
	size_t n = 0;
	int i, any;

	/* by number: the next larger one each time */
	do {
		any = 0;
		id = UINT32_MAX;
		for (i = 0; i < AT_SELECTIONS_MAX; i++) {
			if (e->tables[i] && (!n || e->tables[i]->id > last) &&
			    e->tables[i]->id <= id) {
				id = e->tables[i]->id;
				any = 1;
			}
		}
		if (any && n < max)
			out[n] = id;
		n += any;
		last = id;
	} while (any);
	return n;
}
