// SPDX-License-Identifier: Apache-2.0
/* The state as records, as a dump would show it. */
#include <stdlib.h>

#include "state.h"

static void *header(void *out, int kind, size_t payload, uint64_t now)
{
	struct at_header *h = out;

	memset(h, 0, sizeof(*h));
	h->size = sizeof(*h) + payload;
	h->version = AT_RECORD_VERSION;
	h->kind = kind;
	h->op = AT_OP_NEW;
	h->flags = AT_F_DUMP;
	h->boot_ns = now;
	return h + 1;
}

size_t at_write_addr(void *out, const struct entry *n, uint64_t now)
{
	memcpy(header(out, AT_KIND_ADDR, sizeof(n->value), now), &n->value, sizeof(n->value));
	return sizeof(struct at_header) + sizeof(n->value);
}

size_t at_write_link(void *out, const struct link *l, uint64_t now)
{
	memcpy(header(out, AT_KIND_LINK, sizeof(l->value), now), &l->value, sizeof(l->value));
	return sizeof(struct at_header) + sizeof(l->value);
}

size_t at_write_nexthop(void *out, const struct nexthop *n, uint64_t now)
{
	size_t members = n->value.n_members * sizeof(n->value.member[0]);
	struct at_nexthop *v = header(out, AT_KIND_NEXTHOP, sizeof(*v) + members, now);

	memcpy(v, &n->value, sizeof(*v));
	memcpy(v->member, n->value.member, members);
	return sizeof(struct at_header) + sizeof(*v) + members;
}

size_t at_write_route(void *out, const struct rkey *k, const struct alias *a, uint64_t now)
{
	size_t legs = a->n_legs * sizeof(a->legs[0]);
	struct at_route *v = header(out, AT_KIND_ROUTE, sizeof(*v) + legs, now);

	memset(v, 0, sizeof(*v));
	v->table = k->table;
	v->metric = k->metric;
	v->nh_id = a->nh_id;
	if (a->end != UINT64_MAX)
		v->expires = a->end <= now ? 1 : (a->end - now + 999999999) / 1000000000;
	v->family = k->family;
	v->tos = k->tos;
	v->proto = a->proto;
	v->type = a->type;
	v->scope = a->scope;
	v->pref = a->pref;
	v->n_legs = a->n_legs;
	memcpy(v->prefsrc, a->prefsrc, sizeof(v->prefsrc));
	memcpy(v->leg, a->legs, legs);
	return sizeof(struct at_header) + sizeof(*v) + legs;
}

/* Room for whole records; what does not fit is only counted. */
struct writer {
	char *buf;
	size_t max, size;
	uint64_t record[(AT_RECORD_MAX + 7) / 8];
};

static void emit(struct writer *w, size_t size)
{
	if (w->size + size <= w->max)
		memcpy(w->buf + w->size, w->record, size);
	w->size += size;
}

int at_by_key(const void *one, const void *other)
{
	const struct at_addr *a = &(*(const struct entry *const *)one)->value;
	const struct at_addr *b = &(*(const struct entry *const *)other)->value;
	int order;

	if (a->ifindex != b->ifindex)
		return a->ifindex < b->ifindex ? -1 : 1;
	order = memcmp(a->local, b->local, sizeof(a->local));
	if (order)
		return order;
	if (a->prefixlen != b->prefixlen)
		return a->prefixlen < b->prefixlen ? -1 : 1;
	return memcmp(a->peer, b->peer, sizeof(a->peer));
}

int at_by_ifindex(const void *one, const void *other)
{
	uint32_t a = (*(const struct link *const *)one)->value.ifindex;
	uint32_t b = (*(const struct link *const *)other)->value.ifindex;

	return a < b ? -1 : a > b;
}

static void write_addrs(const struct at_engine *e, const struct family *m, struct writer *w)
{
	const struct entry **order = malloc((m->count + 1) * sizeof(*order));
	uint32_t i, n = 0;

	if (!order)
		return;
	for (i = 0; i < m->cap; i++) {
		if (m->entries[i].used)
			order[n++] = &m->entries[i];
	}
	qsort(order, n, sizeof(*order), at_by_key);
	for (i = 0; i < n; i++)
		emit(w, at_write_addr(w->record, order[i], e->now));
	free(order);
}

static void write_links(const struct at_engine *e, struct writer *w)
{
	const struct link **order = malloc((e->links_cap + 1) * sizeof(*order));
	uint32_t i, n = 0;

	if (!order)
		return;
	for (i = 0; i < e->links_cap; i++) {
		if (e->links[i].known)
			order[n++] = &e->links[i];
	}
	qsort(order, n, sizeof(*order), at_by_ifindex);
	for (i = 0; i < n; i++)
		emit(w, at_write_link(w->record, order[i], e->now));
	free(order);
}

size_t at_engine_snapshot(struct at_engine *e, int kind, void *buf, size_t max)
{
	struct writer w = { .buf = buf, .max = max };
	uint32_t i, j;

	switch (kind) {
	case AT_KIND_LINK:
		write_links(e, &w);
		break;
	case AT_KIND_ADDR:
		write_addrs(e, &e->fam[0], &w);
		write_addrs(e, &e->fam[1], &w);
		break;
	case AT_KIND_NEXTHOP:
		for (i = 0; i < e->n_nexthops; i++)
			emit(&w, at_write_nexthop(w.record, e->nexthops[i], e->now));
		break;
	case AT_KIND_ROUTE:
		for (i = 0; i < e->n_rkeys; i++) {
			for (j = 0; j < e->rkeys[i]->n; j++)
				emit(&w, at_write_route(w.record, e->rkeys[i],
							e->rkeys[i]->alias[j], e->now));
		}
		break;
	}
	return w.size;
}
