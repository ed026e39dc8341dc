// SPDX-License-Identifier: Apache-2.0
/*
 * What a dump that confirms may be narrowed to. The kernel walks all IPv6 routes of a table for it,
 * starts again at the root for each part of the answer where the table changed meanwhile, and filters
 * by protocol. So each table knows the one protocol of all default routes that it has, or that a
 * dump has yet to show gone.
 */
#include "state.h"

/* Several protocols, or siblings: those may differ in it, and the kernel looks at the first one. */
#define MIXED 256

static void note(uint16_t *set, const struct alias *a)
{
	uint16_t one = !a->proto || (a->n_legs > 1 && !a->nh_id) ? MIXED : a->proto;

	*set = !*set || *set == one ? one : MIXED;
}

void at_narrow_note(struct at_engine *e, int family, uint32_t table, const struct alias *a)
{
	struct table *t = at_table(e, table);

	if (family == AF_INET)
		return;
	note(&t->narrow, a);
	note(&t->narrow_next, a);
}

/* Of one dump: what it is to show, and whatever comes meanwhile. */
static void restart(struct at_engine *e, struct table *t)
{
	const struct rkey *k;
	uint32_t i, j;

	t->narrow_next = 0;
	for (i = 0; i < e->n_rkeys; i++) {
		k = e->rkeys[i];
		for (j = 0; k->family == AF_INET6 && k->table == t->id && j < k->n; j++)
			note(&t->narrow_next, k->alias[j]);
	}
}

void at_narrow_begin(struct at_engine *e, uint32_t table)
{
	uint32_t i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->tables[i] && (!table || e->tables[i]->id == table))
			restart(e, e->tables[i]);
	}
}

void at_narrow_end(struct at_engine *e, uint32_t table)
{
	uint32_t i;

	for (i = 0; i < AT_SELECTIONS_MAX; i++) {
		if (e->tables[i] && (!table || e->tables[i]->id == table))
			e->tables[i]->narrow = e->tables[i]->narrow_next;
	}
}

uint8_t at_engine_protocol(const struct at_engine *e, uint32_t table)
{
	const struct table *t = at_table(e, table);
	bool doubted = false;
	uint32_t i;

	for (i = 0; i < e->n_dirt; i++) {
		const struct at_dirty *d = &e->dirt[i].d;

		if (d->scope != AT_SCOPE_ROUTE6 || (d->table && d->table != table))
			continue;
		if (d->lost)
			return 0;
		doubted = true;
	}
	return t && doubted && t->narrow < MIXED ? t->narrow : 0;
}
