// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer: a stream of bytes as operations on an engine with two or three selections. Values come
 * from so small ranges that keys collide; some operations are bytes as they are. After each one
 * the engine must be in order, and now and then equal to one that starts from its snapshot.
 */
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include "state_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
	uint64_t now;
};

#define PICK(in, list) ((list)[next(in) % (sizeof(list) / sizeof((list)[0]))])

static uint8_t next(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static void feed(struct at_engine *e, struct input *in, void *record, int kind, size_t size)
{
	static const uint64_t steps[] = { 0, 1, 1000000, 19999999, 20000000, 20000001, 1000000000 };
	static const uint16_t flags[] = {
		0, 0, 0, NLM_F_REPLACE, NLM_F_APPEND, NLM_F_REPLACE | NLM_F_APPEND
	};
	struct at_header *h = record;
	uint8_t how = next(in);

	in->now += PICK(in, steps);
	h->size = size;
	h->version = AT_RECORD_VERSION;
	h->kind = kind;
	h->op = how & 3 ? AT_OP_NEW : AT_OP_DEL;
	h->flags = (how & 4 ? AT_F_DUMP : 0) | (how & 0x38 ? 0 : AT_F_TRUNCATED);
	h->nl_flags = PICK(in, flags);
	h->boot_ns = in->now - (how & 0xc0 ? 0 : 500);
	if (how & 0x80 && size + sizeof(struct at_task) <= AT_RECORD_MAX) {
		memset((char *)record + size, how, sizeof(struct at_task));
		h->flags |= AT_F_TASK;
		h->size += sizeof(struct at_task);
	}
	CHECK(at_engine_apply(e, record, h->size) == 1);
}

static void local_address(struct input *in, int f, uint8_t *out)
{
	static const uint8_t first4[][4] = { { 192, 0, 2, 0 },	 { 192, 0, 2, 0 }, { 10, 0, 0, 0 },
					     { 169, 254, 0, 0 }, { 127, 0, 0, 0 }, { 192, 0, 0, 0 },
					     { 224, 0, 0, 0 },	 { 0, 0, 0, 0 } };
	static const uint8_t first6[][8] = { { 0x20, 1, 0xd, 0xb8 },
					     { 0x20, 1, 0xd, 0xb8 },
					     { 0xfd },
					     { 0xfe, 0x80 },
					     { 0xff, 2 },
					     { 0 } };
	uint8_t which = next(in);

	if (f) {
		memcpy(out, first6[which % 6], 8);
		out[15] = which >> 6;
	} else {
		memcpy(out, first4[which % 8], 4);
		out[3] |= which >> 6;
	}
}

static void send_addr(struct at_engine *e, struct input *in)
{
	static const uint8_t lengths[2][4] = { { 32, 24, 24, 8 }, { 128, 64, 64, 0 } };
	static const uint32_t flags[] = { IFA_F_PERMANENT,
					  IFA_F_PERMANENT,
					  IFA_F_DEPRECATED,
					  IFA_F_TENTATIVE,
					  IFA_F_TENTATIVE | IFA_F_OPTIMISTIC,
					  IFA_F_DADFAILED,
					  IFA_F_PERMANENT | IFA_F_SECONDARY,
					  IFA_F_MANAGETEMPADDR };
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_addr *a = (struct at_addr *)(&r.h + 1);
	uint8_t which = next(in);
	int f = which & 1;

	a->family = AT_FAMILY(f);
	a->prefixlen = lengths[f][which >> 1 & 3];
	a->ifindex = 1 + (which >> 3 & 3);
	a->flags = PICK(in, flags);
	a->proto = which >> 5 & 3;
	a->cstamp = which >> 7;
	a->valid = next(in);
	local_address(in, f, a->local);
	if (which >> 5 == 7)
		local_address(in, f, a->peer);
	feed(e, in, &r, AT_KIND_ADDR, sizeof(r.h) + sizeof(*a));
}

static void send_link(struct at_engine *e, struct input *in)
{
	static const uint32_t flags[] = { AT_LIVE, AT_LIVE, IFF_UP, 0, AT_LIVE | IFF_LOOPBACK };
	static const char *const kinds[] = { "", "veth", "vrf", "bridge", "dummy", "openvswitch" };
	static const char *const names[] = { "eth0", "eth1", "lo", "docker0", "" };
	static const uint32_t tables[] = { 0, RT_TABLE_MAIN, 7 };
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_link *l = (struct at_link *)(&r.h + 1);

	l->ifindex = 1 + next(in) % 5;
	l->flags = PICK(in, flags);
	l->master = next(in) % 6;
	l->vrf_table = PICK(in, tables);
	strcpy(l->name, PICK(in, names));
	strcpy(l->kind, PICK(in, kinds));
	feed(e, in, &r, AT_KIND_LINK, sizeof(r.h) + sizeof(*l));
}

static void fill_leg(struct input *in, int f, struct at_leg *leg)
{
	uint8_t which = next(in);

	leg->oif = which & 3;
	leg->weight = 1 + (which >> 2 & 1);
	leg->gw_family = which & 8 ? AT_FAMILY(f) : which & 16 ? AT_FAMILY(!f) : 0;
	if (leg->gw_family)
		local_address(in, leg->gw_family == AF_INET6, leg->gw);
}

static void send_route(struct at_engine *e, struct input *in)
{
	static const uint32_t tables[] = { RT_TABLE_MAIN, RT_TABLE_MAIN, 7, 9 };
	static const uint8_t types[] = { RTN_UNICAST, RTN_UNICAST, RTN_UNICAST, RTN_UNREACHABLE,
					 RTN_UNSPEC };
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_route *v = (struct at_route *)(&r.h + 1);
	struct at_leg *legs = (struct at_leg *)(v + 1);
	uint8_t which = next(in), more = next(in);
	int f = which & 1, i;

	v->family = AT_FAMILY(f);
	v->table = PICK(in, tables);
	v->metric = which >> 1 & 3;
	v->type = PICK(in, types);
	v->proto = more & 3 ? RTPROT_STATIC : RTPROT_RA;
	v->expires = more >> 2 & 3;
	v->pref = more >> 4 & 3;
	v->tos = which >> 7;
	v->nh_id = more & 64 ? next(in) % 5 : 0;
	v->dst_len = more & 128 ? next(in) % 32 : 0;
	v->n_legs = which >> 3 & 3;
	if (which & 32)
		local_address(in, f, v->prefsrc);
	for (i = 0; i < v->n_legs; i++)
		fill_leg(in, f, &legs[i]);
	feed(e, in, &r, AT_KIND_ROUTE, sizeof(r.h) + sizeof(*v) + v->n_legs * sizeof(*legs));
}

static void send_nexthop(struct at_engine *e, struct input *in)
{
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_nexthop *v = (struct at_nexthop *)(&r.h + 1);
	struct at_member *members = (struct at_member *)(v + 1);
	uint8_t which = next(in);
	struct at_leg leg = { 0 };
	int i;

	v->id = 1 + (which & 3);
	v->n_members = which & 4 ? which >> 3 & 3 : 0;
	if (v->n_members) {
		for (i = 0; i < v->n_members; i++)
			members[i] = (struct at_member){ 1 + next(in) % 5, 1, 0 };
	} else {
		fill_leg(in, which >> 5 & 1, &leg);
		v->family = AT_FAMILY(which >> 5 & 1);
		v->oif = leg.oif;
		v->gw_family = leg.gw_family;
		memcpy(v->gw, leg.gw, 16);
		v->blackhole = which >> 6 == 3;
	}
	feed(e, in, &r, AT_KIND_NEXTHOP,
	     sizeof(r.h) + sizeof(*v) + v->n_members * sizeof(*members));
}

static void send_dump(struct at_engine *e, struct input *in)
{
	static const uint32_t tables[] = { 0, 0, RT_TABLE_MAIN, 7 };
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_dump *d = (struct at_dump *)(&r.h + 1);
	uint8_t which = next(in);

	d->scope = which % AT_SCOPES;
	d->phase = AT_DUMP_BEGIN + (which >> 3) % 3;
	d->ifindex = which & 64 ? which & 3 : 0;
	d->table = PICK(in, tables);
	d->flags = which >> 6;
	feed(e, in, &r, AT_KIND_DUMP, sizeof(r.h) + sizeof(*d));
}

static void send_loss(struct at_engine *e, struct input *in)
{
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_loss *l = (struct at_loss *)(&r.h + 1);

	l->cause = AT_LOSS_OVERRUN;
	l->scopes = next(in);
	feed(e, in, &r, AT_KIND_LOSS, sizeof(r.h) + sizeof(*l));
}

/* Neither changes what is stored. */
static void send_aside(struct at_engine *e, struct input *in)
{
	static const uint32_t tables[] = { RT_TABLE_MAIN, 7, 9 };
	union {
		struct at_header h;
		uint64_t room[(AT_RECORD_MAX + 7) / 8];
	} r = { 0 };
	struct at_flush *f = (struct at_flush *)(&r.h + 1);
	struct at_rule *rule = (struct at_rule *)(&r.h + 1);
	uint8_t which = next(in);

	if (which & 1) {
		rule->family = AT_FAMILY(which >> 1 & 1);
		rule->table = PICK(in, tables);
		feed(e, in, &r, AT_KIND_RULE, sizeof(r.h) + sizeof(*rule));
		return;
	}
	f->family = AT_FAMILY(which >> 1 & 1);
	f->table = PICK(in, tables);
	f->dst_len = which & 4 ? which >> 3 : 0;
	feed(e, in, &r, AT_KIND_FLUSH, sizeof(r.h) + sizeof(*f));
}

/* Bytes as they are, on any address, behind a header that may even be right. */
static void send_raw(struct at_engine *e, struct input *in)
{
	uint8_t room[AT_RECORD_MAX + 8], *at = room + (next(in) & 7);
	struct at_header h = { .version = AT_RECORD_VERSION };
	size_t size = next(in), i;

	h.size = size;
	h.kind = next(in) % (AT_KINDS + 1);
	h.op = next(in) % 4;
	h.flags = next(in) & 7;
	h.boot_ns = in->now;
	if (next(in) & 1)
		h.size -= size % 8;
	for (i = 0; i < size; i++)
		at[i] = next(in);
	memcpy(at, &h, size < sizeof(h) ? size : sizeof(h));
	at_engine_apply(e, at, size);
}

static void set_policy(struct at_engine *e, unsigned sel, uint8_t which, uint8_t how)
{
	static const uint8_t orders[][17] = {
		{ 16, AT_CRIT_STATIC, AT_CRIT_MODE, AT_CRIT_INTERNAL, AT_CRIT_DEFAULT_ROUTE,
		  AT_CRIT_PREFSRC, AT_CRIT_NOT_DEPRECATED, AT_CRIT_NOT_VIP_LIKE,
		  AT_CRIT_NOT_TEMPORARY, AT_CRIT_ASSIGNED, AT_CRIT_INCUMBENT,
		  AT_CRIT_GATEWAY_ON_LINK, AT_CRIT_PRIMARY_FLAG, AT_CRIT_GLOBAL_BEFORE_ULA,
		  AT_CRIT_NEXTHOP_WEIGHT, AT_CRIT_IFINDEX, AT_CRIT_AGE },
		{ 8, AT_CRIT_AGE, AT_CRIT_DEFAULT_ROUTE, AT_CRIT_IFINDEX, AT_CRIT_NEXTHOP_WEIGHT,
		  AT_CRIT_NOT_VIP_LIKE, AT_CRIT_STATIC, AT_CRIT_INCUMBENT, AT_CRIT_AGE },
		{ 3, AT_CRIT_NOT_DEPRECATED, AT_CRIT_INCUMBENT, AT_CRIT_GLOBAL_BEFORE_ULA },
		{ 0 },
	};
	static const char names[][AT_PATTERN_LEN] = { "docker*", "eth[1]" };
	static const char keep[][AT_PATTERN_LEN] = { "docker0" };
	static const char modes[][AT_PATTERN_LEN] = { "eth1", "docker*", "*" };
	static const struct at_network hints[] = { { AF_INET, 32, { 192, 0, 2, 7 } },
						   { AF_INET6, 128, { 0xfd, [15] = 3 } } };
	static const char kinds[][AT_NAME_LEN] = { "dummy" };
	static const struct at_network networks[] = { { AF_INET, 8, { 10 } },
						      { AF_INET, 32, { 192, 0, 2, 2 } },
						      { AF_INET6, 32, { 0x20, 1, 0xd, 0xb8 } } };
	static const uint32_t tables[] = { RT_TABLE_MAIN, RT_TABLE_MAIN, 7, 9 };
	const uint8_t *order = orders[which & 3];
	struct at_policy p = { .families = which & 64 ? 1 + (which & 1) : 3,
			       .fallback = which >> 2 & 3,
			       .n_criteria = order[0],
			       .table = tables[which >> 4 & 3],
			       .fallback_name = "eth*" };

	memcpy(p.criteria, order + 1, order[0]);
	p.exclude_names = names;
	p.keep_names = keep;
	p.exclude_kinds = kinds;
	p.exclude = p.statics = p.internal = networks;
	p.n_exclude_names = which & 128 ? 2 : 0;
	p.n_keep_names = which & 4 ? 1 : 0;
	p.n_exclude_kinds = 1;
	p.n_exclude = which & 8 ? 2 : 0;
	p.n_static = which & 128 ? 3 : 0;
	p.n_internal = which & 16 ? 1 : 0;
	p.mode = how & 1;
	if (how & 128)
		p.fallback = AT_FALLBACK_DEFAULT_ROUTE;
	p.mode_names = modes;
	p.mode_networks = networks;
	p.hints = hints;
	p.n_mode_names = how >> 1 & 3;
	p.n_mode_networks = how >> 3 & 3;
	p.n_hints = how & 64 ? how >> 5 & 1 ? 2 : 1 : 0;
	CHECK(at_engine_set_policy(e, sel, &p) == 0);
}

/* Networks of a mode, or targets. */
static void set_list(struct at_engine *e, unsigned sel, uint8_t which)
{
	static const struct at_network lists[][2] = {
		{ { AF_INET, 24, { 192, 0, 2 } }, { AF_INET6, 0, { 0 } } },
		{ { AF_INET, 32, { 192, 0, 2, 1 } }, { AF_INET6, 128, { 0x20, 1, 0xd, 0xb8 } } },
		{ { AF_INET, 33, { 0 } }, { 0 } },
	};
	const struct at_network *list = lists[which % 3];
	uint32_t n = which >> 3 & 3;
	uint64_t before = at_engine_lookups(e);

	if (n > 2)
		n = 0;
	if (which & 128) {
		CHECK(at_engine_set_targets(e, list, n) == (n && which % 3 != 1 ? -EINVAL : 0));
		CHECK(at_engine_lookups(e) - before <= 1);
	} else {
		CHECK(at_engine_set_mode_networks(e, sel, list, n) ==
		      (!e->selections[sel] || (n && which % 3 == 2) ? -EINVAL : 0));
		CHECK(at_engine_lookups(e) == before);
	}
}

/* What answers rest on: some link, object and source, or any. */
static void set_grounds(struct at_engine *e, struct input *in, uint8_t which)
{
	static const uint32_t numbers[] = { 1, 2, 3, 4 };
	struct at_grounds g = { .n_links = which & 3, .n_nexthops = which >> 2 & 3 };
	uint64_t before = at_engine_lookups(e);
	uint8_t record[AT_RECORD_MAX];
	uint32_t i;

	for (i = 0; i < 3; i++) {
		g.links[i] = numbers[((which >> 4) + i) & 3];
		g.nexthops[i] = numbers[((which >> 5) + i) & 3];
	}
	if (which & 16) {
		g.n_sources = 1;
		g.sources[0].family = which & 32 ? AF_INET6 : AF_INET;
		g.sources[0].ifindex = which & 3;
		local_address(in, which >> 5 & 1, g.sources[0].address);
	}
	g.any_address[which >> 5 & 1] = which >> 6 & 1;
	g.any_nexthop = which >> 7;
	at_engine_set_grounds(e, which == 255 ? NULL : &g);
	CHECK(at_engine_lookups(e) == before);
	CHECK(!e->wide || e->n_targets);
	CHECK(at_engine_nexthop(e, which & 7, record) <= sizeof(record));
}

static void command(struct at_engine *e, struct input *in)
{
	uint8_t which = next(in), number, address[16] = { 0 };
	struct at_dirty dirt[4];
	unsigned sel;

	switch (which & 7) {
	case 0:
		in->now += (uint64_t)next(in) * 20000000;
		at_engine_tick(e, in->now);
		CHECK(at_engine_deadline(e) > e->now);
		break;
	case 1:
	case 2:
		local_address(in, which >> 3 & 1, address);
		at_engine_set_incumbent(e, which >> 4 & 1, which & 8 ? AF_INET6 : AF_INET,
					which & 32 ? NULL : address);
		break;
	case 3:
		sel = which >> 3 & 3;
		number = next(in);
		if (which & 32)
			set_list(e, sel, number);
		else
			set_policy(e, sel, number, next(in));
		break;
	case 4:
		if (which & 32)
			set_grounds(e, in, next(in));
		else
			at_engine_drop_policy(e, which >> 3 & 3);
		break;
	case 5:
		if (which & 16)
			send_aside(e, in);
		else
			at_engine_set_v6_silent_down(e, which & 8);
		break;
	case 6:
		at_engine_lose(e, which >> 3);
		break;
	default:
		at_engine_dirty(e, dirt, 4);
	}
}

static void operate(struct at_engine *e, struct input *in)
{
	uint8_t drifts[4096];
	uint32_t pending;

	switch (next(in) % 16) {
	default:
		send_addr(e, in);
		break;
	case 5:
	case 6:
		send_link(e, in);
		break;
	case 7:
	case 8:
	case 9:
		send_route(e, in);
		break;
	case 10:
		send_nexthop(e, in);
		break;
	case 11:
	case 12:
		send_dump(e, in);
		break;
	case 13:
		send_loss(e, in);
		break;
	case 14:
		send_raw(e, in);
		break;
	case 15:
		command(e, in);
	}
	check_engine(e);
	if (next(in) & 1) {
		pending = at_engine_pending(e);
		CHECK(at_engine_changed(e) == pending && !at_engine_changed(e));
	}
	CHECK(at_engine_drifts(e, drifts, sizeof(drifts)) <= sizeof(drifts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size < 2048 ? size : 2048, 1000000000 };
	struct at_engine *e = at_engine_new();
	unsigned n;

	CHECK(e);
	/* modes by the last bytes, so that inputs of old mean what they did */
	set_policy(e, 0, next(&in), size > 0 ? data[size - 1] : 0);
	set_policy(e, 1, next(&in), size > 1 ? data[size - 2] : 0);
	for (n = 1; in.left; n++) {
		operate(e, &in);
		if (n % 8 == 0)
			check_from_scratch(e);
	}
	check_from_scratch(e);
	at_engine_free(e);
	return 0;
}
