// SPDX-License-Identifier: Apache-2.0
/* Hosts and changes as engine_bench.c measures them. */
#include "../engine_host.h"
#include "counted.h"

static struct made made_of(const void *record)
{
	const struct at_header *h = record;
	struct made r;

	must(h->size <= sizeof(r), "a record has room");
	memcpy(&r, record, h->size);
	return r;
}

void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "counted: not so: %s\n", what);
	exit(1);
}

unsigned host_modes(void)
{
	return MODES;
}

const char *host_mode(unsigned which)
{
	return mode_names[which];
}

struct at_engine *host_new(unsigned which, uint32_t n, uint32_t per_link)
{
	mode = which;
	return host(n, per_link);
}

static void mark(struct at_engine *e, uint32_t scope, uint32_t phase)
{
	struct {
		struct at_header h;
		struct at_dump p;
	} r = { header(AT_KIND_DUMP, AT_OP_NEW, sizeof(r)), { .scope = scope, .phase = phase } };

	apply(e, &r);
}

void host_clean(struct at_engine *e)
{
	/* There is nothing of IPv6. */
	static const uint8_t kinds[AT_SCOPES] = {
		[AT_SCOPE_LINK] = AT_KIND_LINK,
		[AT_SCOPE_ADDR4] = AT_KIND_ADDR,
		[AT_SCOPE_NEXTHOP] = AT_KIND_NEXTHOP,
		[AT_SCOPE_ROUTE4] = AT_KIND_ROUTE,
	};
	struct at_dirty dirt;

	for (uint32_t scope = 0; scope < AT_SCOPES; scope++) {
		size_t size = kinds[scope] ? at_engine_snapshot(e, kinds[scope], NULL, 0) : 0;
		void *shown = malloc(size + 1);

		must(shown != NULL, "there is memory");
		if (size)
			at_engine_snapshot(e, kinds[scope], shown, size);
		mark(e, scope, AT_DUMP_BEGIN);
		must(at_engine_apply(e, shown, size) >= 0, "a dump is applied");
		mark(e, scope, AT_DUMP_END);
		free(shown);
	}
	must(at_engine_dirty(e, &dirt, 1) == 0, "no scope is dirty");
}

void host_rank(struct at_engine *e, unsigned which)
{
	mode = which;
	set_policy(e);
}

void made_apply(struct at_engine *e, const struct made *r)
{
	apply(e, r);
}

void made_stamp(struct made *r)
{
	r->h.boot_ns = header(r->h.kind, r->h.op, r->h.size).boot_ns;
}

struct made made_addr(int op, uint32_t ifindex, uint32_t number, uint32_t flags)
{
	struct addr_record r = addr(op, ifindex, number, flags);

	return made_of(&r);
}

struct made made_link(uint32_t ifindex, bool carrier, uint32_t mtu)
{
	struct link_record r = link_up(ifindex, carrier);

	r.p.mtu = mtu;
	return made_of(&r);
}

struct made made_default(int op, uint32_t ifindex, uint32_t metric, uint32_t nh_id)
{
	struct route_record r =
		nh_id ? route_over(op, ifindex, metric, nh_id) : route(op, ifindex, metric);

	return made_of(&r);
}

struct made made_nexthop(uint32_t ifindex)
{
	struct nexthop_record r = nexthop(ifindex, 1);

	return made_of(&r);
}
