// SPDX-License-Identifier: Apache-2.0
/* What audits found that the state had not. */
#include "drift.h"

void *at_drift(struct at_engine *e, uint32_t scope)
{
	void *out = e->drifts[e->n_drifts++ % AT_DRIFTS_MAX];

	e->counters.drift[scope]++;
	return out;
}

void at_drift_shown(struct at_engine *e, uint32_t scope, const struct record *r, bool *drifted)
{
	if (!e->dumps[scope].audit || *drifted)
		return;
	*drifted = true;
	memcpy(at_drift(e, scope), r->h, r->h->size);
}

void at_drift_missing(struct at_engine *e, uint32_t scope, const void *entry)
{
	struct at_header *h;

	if (!e->dumps[scope].audit)
		return;
	h = at_drift(e, scope);
	if (scope == AT_SCOPE_LINK)
		at_write_link(h, entry, e->now);
	else if (scope == AT_SCOPE_NEXTHOP)
		at_write_nexthop(h, entry, e->now);
	else
		at_write_addr(h, entry, e->now);
	h->op = AT_OP_DEL;
}

/* Newest last; each as long as its header says. */
size_t at_engine_drifts(struct at_engine *e, void *buf, size_t max)
{
	uint32_t first = e->n_drifts > AT_DRIFTS_MAX ? e->n_drifts - AT_DRIFTS_MAX : 0, i;
	const struct at_header *h;
	size_t size = 0;

	for (i = first; i < e->n_drifts; i++) {
		h = (const void *)e->drifts[i % AT_DRIFTS_MAX];
		if (size + h->size > max)
			break;
		memcpy((char *)buf + size, h, h->size);
		size += h->size;
	}
	e->n_drifts = 0;
	return size;
}
