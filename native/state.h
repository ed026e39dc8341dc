/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the engine: what it stores and who changes it.
 *
 * A record changes links, addresses, routes or nexthops (link.c, addr.c, route.c, nexthop.c, with
 * rules.c for what the kernel does not say and merge.c for dumps). These mark the addresses that
 * are concerned; at_settle (rank.c) judges the marked ones for every selection and finds the best.
 */
#ifndef ADDRTRACKER_STATE_H
#define ADDRTRACKER_STATE_H

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "../bpf/filter.h"
#include "engine.h"
#include "table.h"

#define AT_LIVE		(IFF_UP | AT_IFF_LOWER_UP)
#define AT_IFF_LOWER_UP (1u << 16) /* <net/if.h> lacks it, <linux/if.h> collides with it */
/* Dumps show these before they are announced (linkwatch); what is not announced in time never is. */
#define AT_LATE_FLAGS	 (IFF_RUNNING | AT_IFF_LOWER_UP | 1u << 17 /* IFF_DORMANT */)
#define AT_LATE_NS	 5000000000ull
#define AT_LOOKBACK_NS	 20000000ull /* a deletion this long before a dump may be older than it */
#define AT_REAP_NS	 1000000000ull
#define AT_DRIFTS_MAX	 16
#define AT_WORDS	 4 /* of a packed key; enough for any order of the criteria */
#define AT_TIER_NONE	 3
#define AT_POSITION_TIER 255
#define AT_FAMILY(index) ((index) ? AF_INET6 : AF_INET)
#define AT_INDEX(family) ((family) == AF_INET6)

/* A link, or an ifindex that addresses refer to (then not known). */
struct link {
	struct at_link value;
	uint64_t changed_ns;
	uint64_t ahead_ns; /* an audit saw flags that no event has told yet; 0 = none did */
	uint32_t head[2];  /* first address of each family */
	uint32_t hosts[2]; /* how many of them have host length */
	uint32_t next_free;
	uint32_t seen; /* dump that showed it last */
	bool used, known, drifted;
	bool dark; /* not live when the kernel was asked last */
};

struct entry {
	struct at_addr value;
	uint64_t changed_ns;
	uint32_t link, next, prev;		/* of the same link */
	uint32_t group, group_next, group_prev; /* same address on any link */
	uint32_t seen;
	bool used, marked, attributes, drifted;
};

/* All entries with one address. */
struct group {
	uint8_t local[16];
	uint32_t head;
	bool used, named; /* a default route of some table names it */
};

struct family {
	struct entry *entries;
	struct group *groups;
	uint32_t *work; /* marked entries */
	uint32_t cap, count, n_work, free_entry, free_group;
	struct hash by_key, by_local;
};

struct alias {
	uint64_t end; /* UINT64_MAX = none */
	uint32_t nh_id;
	uint8_t type, scope, proto, pref;
	uint8_t prefsrc[16];
	uint32_t n_legs;
	struct at_leg legs[];
};

/* All default routes with one (family, table, tos, metric). */
struct rkey {
	uint32_t table, metric;
	uint8_t family, tos;
	bool drifted;
	uint32_t n, cap;
	struct alias **alias;
	uint64_t changed_ns;
	uint32_t seen, shown; /* dump that showed it last, and how many aliases that showed */
};

struct nexthop {
	uint64_t changed_ns;
	uint32_t seen;
	bool drifted;
	struct at_nexthop value; /* with its members */
};

/* One leg of a unicast default. */
struct path {
	uint64_t value; /* metric << 2 | pref */
	uint64_t gw[2]; /* big-endian words */
	uint32_t ifindex;
	uint16_t weight;
	uint16_t has_gw; /* a gateway of the route's own family */
};

/* The unicast defaults over one link. */
struct over {
	uint64_t value; /* lowest of its paths */
	uint32_t ifindex;
	uint32_t first, n; /* paths */
	uint32_t weight;   /* largest among the lowest */
};

/* A default that names an address. */
struct naming {
	uint64_t prefsrc[2];
	uint64_t value;
	uint64_t alive; /* some leg has a live link */
};

struct summary {
	struct path *paths;
	struct over *over; /* by ifindex */
	struct naming *naming;
	uint32_t n_paths, n_over, n_naming, defaults, bad;
};

/* A routing table that selections name. */
struct table {
	uint32_t id, users;
	struct summary sum[2];
	bool stale[2];
	/* Protocol of its IPv6 aliases that are or may be there: narrow.c. */
	uint16_t narrow, narrow_next;
};

/* What a selection thinks of a link. */
enum {
	AT_L_UP = 1,
	AT_L_LIVE = 2,
	AT_L_LOOPBACK = 4,
	AT_L_EXCLUDED = 8,
	AT_L_OTHER_VRF = 16,
	AT_L_FALLBACK = 32, /* its name matches fallback_name */
	AT_L_PATTERNS = AT_L_EXCLUDED | AT_L_OTHER_VRF | AT_L_FALLBACK,
};

/* Numbers of one link, family and selection. */
struct lane {
	uint32_t over;	  /* in the summary, AT_NONE */
	uint32_t wide;	  /* eligible, not host length, not autoconfigured */
	uint32_t routed;  /* candidates of tier ROUTE */
	uint32_t crossed; /* wide became or left 0 during this record */
};

/* One address as a selection judges it: a cache line. */
struct row {
	uint64_t w[AT_WORDS]; /* tier and values in the policy's order */
	uint64_t a[2];	      /* the address, big-endian words */
	uint8_t own_reject, tier, carrier;
	uint8_t range, listed; /* rejects that depend on nothing but the address */
	uint8_t outside;       /* not in networks.internal */
	uint8_t counted;       /* AT_C_* */
	uint8_t pending;       /* its leaf awaits the tree */
	uint16_t statics;
	uint16_t mode;	/* position in mode_networks */
	uint8_t hinted; /* its subnet holds a hint, or there is none to hold */
	uint8_t pad[3];
} __attribute__((aligned(64)));

enum {
	AT_C_WIDE = 1,
	AT_C_ROUTED = 2,
	AT_C_FALLBACK = 4
};

/* What of best and incumbent makes a cause. */
struct pick {
	uint64_t w[AT_WORDS], a[2];
	uint8_t peer[16];
	uint32_t ifindex;
	uint8_t present, own_reject, prefixlen, pad;
};

enum {
	AT_RIVAL_UNKNOWN,
	AT_RIVAL_NO,
	AT_RIVAL_YES
};

/* A selection's ranking of one family. */
struct ranking {
	struct row *rows; /* by entry */
	uint32_t *winner; /* tournament: 1 is the root, leaf of entry i is cap + i */
	uint32_t *pending;
	uint32_t *fallbacks; /* by group: candidates of tier FALLBACK */
	struct lane *lanes;  /* by link */
	uint32_t *crossed;
	uint32_t n_pending, n_crossed, fallback_count;
	uint32_t best, incumbent, rival, incumbent_group;
	uint8_t rival_state;
	bool touched, recheck, incumbent_stale; /* rows changed; tiers may stand or fall */
	bool view_stale, compared, fresh;
	bool has_incumbent;
	uint8_t incumbent_address[16];
	struct pick picks[2];
	uint64_t last_change_ns;
	uint32_t cause_size;
	uint8_t cause[160] __attribute__((aligned(8)));
	struct at_view view, taken; /* now; at the last at_engine_changed */
};

/* Where a criterion is in the packed key. */
struct field {
	uint8_t word, shift;
	uint64_t mask;
};

struct selection {
	struct at_policy policy;
	struct table *table;
	struct field field[AT_CRIT_ADDRESS + 1];
	uint8_t position[AT_WORDS][64]; /* criterion of a bit, by position in the policy */
	uint64_t kin[AT_WORDS];		/* bits on which a rival is equal to best */
	uint32_t words;
	int after, incumbent; /* positions: rivals differ first behind `after` or at `incumbent` */
	uint8_t *judged;      /* AT_L_* by link */
	uint16_t *named;      /* position in mode_names, by link */
	bool narrowed[2];     /* a default route alone makes no candidate */
	struct ranking rank[2];
};

struct dirt {
	struct at_dirty d;
	bool taken; /* by the open dump of its scope */
};

struct dump {
	bool open, voided, audit;
	bool doubtful; /* an event won over what it showed of a list of aliases */
	uint32_t ifindex, table, gen, shown;
	uint64_t begin_ns;
};

struct tomb {
	uint32_t scope, a, b, c;
	uint8_t local[16], peer[16];
	uint64_t deleted_ns, ruled_ns;
	bool deleted, ruled;
};

/* What a record changed of that which others have to find out. */
enum {
	AT_MOVED_WAY = 1, /* what the way to a target rests on */
	AT_MOVED_VRF = 2,
};

struct at_engine {
	struct link *links;
	uint32_t links_cap, free_link;
	struct hash by_ifindex, by_name;
	struct family fam[2];
	struct rkey **rkeys; /* by family, table, tos, metric */
	uint32_t n_rkeys, rkeys_cap;
	struct nexthop **nexthops; /* by id */
	uint32_t n_nexthops, nexthops_cap;
	struct table *tables[AT_SELECTIONS_MAX];
	struct selection *selections[AT_SELECTIONS_MAX];
	uint32_t policies; /* how often they or the targets changed */
	uint32_t moves;	   /* how often what at_engine_watched() tells may have changed */
	struct dump dumps[AT_SCOPES];
	struct dirt *dirt;
	uint32_t n_dirt, dirt_cap, dirtied;
	struct tomb *tombs;
	uint32_t n_tombs, tombs_cap, reap_at;
	uint64_t reap_ns;
	struct hash by_tomb;
	uint8_t drifts[AT_DRIFTS_MAX][AT_RECORD_MAX] __attribute__((aligned(8)));
	uint32_t n_drifts;
	uint64_t now;
	uint32_t gen;
	uint32_t suspicious; /* scopes whose last dump was empty against the state */
	struct at_network targets[AT_TARGETS_MAX];
	uint32_t n_targets;
	struct at_grounds grounds;
	bool grounded;	/* `grounds` are known; else everything counts */
	bool open[2];	/* an address of any link may be the next source */
	bool wide;	/* the same of either family, while there are targets */
	uint32_t moved; /* AT_MOVED_*, by the record that is applied */
	uint64_t lookups, vrfs;
	bool v6_silent_down, name_clash;
	bool stale; /* some table's summary is */
	struct at_counters counters;
};

/* A record taken apart. */
struct record {
	const struct at_header *h;
	const void *payload;
	const struct at_leg *legs;
	const struct at_member *members;
	const struct at_task *task;
	uint32_t scope; /* of an address, link, route or nexthop */
	bool entry;	/* of the open dump of its scope */
};

/* engine.c */
void at_dirty(struct at_engine *e, uint32_t scope, uint32_t ifindex, uint32_t table, uint32_t rule);
void at_lost(struct at_engine *e, uint32_t scope, uint32_t ifindex, uint32_t table);
void at_dirt_take(struct at_engine *e, const struct dump *dump, uint32_t scope);
void at_dirt_restore(struct at_engine *e, uint32_t scope);
void at_dirt_done(struct at_engine *e, uint32_t scope);
void at_dirt_forget(struct at_engine *e, uint32_t table);

/* link.c */
uint32_t at_link_find(const struct at_engine *e, uint32_t ifindex);
uint32_t at_link_slot(struct at_engine *e, uint32_t ifindex);
void at_link_release(struct at_engine *e, uint32_t slot);
int at_link_put(struct at_engine *e, const struct at_link *value, bool event);
int at_link_apply(struct at_engine *e, const struct record *r);
void at_link_remove(struct at_engine *e, uint32_t slot);
bool at_link_live(const struct at_engine *e, uint32_t ifindex);
bool at_link_is_vrf(const struct at_engine *e, uint32_t ifindex);

/* addr.c */
void at_addr_clean(const struct at_addr *value, struct at_addr *out);
uint32_t at_addr_find(const struct at_engine *e, int f, const struct at_addr *a);
uint32_t at_group_find(const struct at_engine *e, int f, const uint8_t *local);
int at_addr_put(struct at_engine *e, const struct at_addr *value, uint32_t *slot, bool event);
int at_addr_apply(struct at_engine *e, const struct record *r);
void at_addr_remove(struct at_engine *e, int f, uint32_t slot);
void at_mark(struct at_engine *e, int f, uint32_t slot, bool attributes);
void at_mark_link(struct at_engine *e, int f, uint32_t link, bool attributes);
void at_mark_local(struct at_engine *e, int f, const uint8_t *local);

/* route.c */
struct rkey *at_rkey_get(struct at_engine *e, const struct at_route *v, bool make);
struct alias *at_alias_new(const struct at_engine *e, const struct record *r);
void at_routes_compact(struct at_engine *e, bool rule);
void at_check_nexthop(struct at_engine *e, const struct at_route *v);
int at_route_apply(struct at_engine *e, const struct record *r);
uint32_t at_legs(const struct at_engine *e, const struct alias *a, struct at_leg *out);

/* alias.c */
bool at_alias_announced(const struct at_engine *e, const struct alias *a, const struct alias *b);
int at_alias_insert(struct at_engine *e, struct rkey *k, uint32_t at, struct alias *a);
void at_alias_replace(struct at_engine *e, struct rkey *k, uint32_t at, struct alias *a);
void at_alias_remove(struct at_engine *e, struct rkey *k, uint32_t at);
int at_list_new(struct at_engine *e, struct rkey *k, unsigned nl_flags, struct alias *a);
bool at_list_delete(struct at_engine *e, struct rkey *k, const struct record *r);

/* summary.c */
struct table *at_table(const struct at_engine *e, uint32_t id);
void at_stale(struct at_engine *e, uint32_t id, int f);
void at_stale_all(struct at_engine *e);
void at_stale_naming(struct at_engine *e);
uint32_t at_over_find(const struct summary *s, uint32_t ifindex);
bool at_is_named(const struct at_engine *e, int f, const uint8_t *local);
void at_summarize(struct at_engine *e);
void at_summary_free(struct summary *s);

/* narrow.c */
void at_narrow_note(struct at_engine *e, int family, uint32_t table, const struct alias *a);
void at_narrow_begin(struct at_engine *e, uint32_t table); /* a dump of ROUTE6; 0 = of all */
void at_narrow_end(struct at_engine *e, uint32_t table);

/* nexthop.c */
struct nexthop *at_nexthop_find(const struct at_engine *e, uint32_t id);
uint32_t at_nexthop_legs(const struct at_engine *e, const struct nexthop *n, struct at_leg *out);
int at_nexthop_put(struct at_engine *e, const struct record *r, bool event);
int at_nexthop_apply(struct at_engine *e, const struct record *r);
void at_nexthop_remove(struct at_engine *e, uint32_t id);

/* rules.c */
void at_rule_down(struct at_engine *e, uint32_t ifindex);	       /* R1, R8 */
void at_rule_last_address(struct at_engine *e, uint32_t ifindex);      /* R2 */
void at_rule_users(struct at_engine *e, uint32_t id);		       /* R3 */
void at_rule_nexthop(struct at_engine *e, uint32_t id);		       /* R3 */
void at_rule_carrier(struct at_engine *e, uint32_t ifindex);	       /* R3 */
void at_rule_source(struct at_engine *e, int f, const uint8_t *local); /* R4 */
void at_rule_master(struct at_engine *e, uint32_t ifindex);	       /* R5 */
void at_rule_live(struct at_engine *e, uint32_t ifindex);
void at_rule_nexthops_on(struct at_engine *e, uint32_t ifindex, uint32_t rule); /* R6 */
void at_rule_expire(struct at_engine *e);					/* R10 */

/* merge.c, tomb.c */
int at_dump_apply(struct at_engine *e, const struct record *r);
bool at_dump_covers(const struct at_engine *e, const struct record *r);
int at_dump_entry(struct at_engine *e, const struct record *r);
void at_tomb_key(struct tomb *t, uint32_t scope, const void *value);
void at_tomb_rkey(struct tomb *t, const struct rkey *k);
void at_tomb_add(struct at_engine *e, const struct tomb *key, bool rule);
const struct tomb *at_tomb_find(const struct at_engine *e, const struct tomb *key);
void at_tomb_reap(struct at_engine *e);
void at_tomb_forget(struct at_engine *e, uint32_t table);

/* policy.c */
void at_judge_link(struct at_engine *e, struct selection *s, uint32_t slot, bool patterns);
void at_judge_address(const struct selection *s, int f, unsigned length, struct row *row);
void at_judge_mode(const struct selection *s, int f, unsigned length, struct row *row);

/* layout.c */
void at_lay_out(struct selection *s);

/* judge.c */
void at_lane_new(struct at_engine *e, struct selection *s, uint32_t slot);
void at_row_init(const struct selection *s, struct ranking *k, int f, const struct entry *n,
		 uint32_t slot);
void at_row_new(struct at_engine *e, int f, uint32_t slot);
void at_row_clear(struct at_engine *e, int f, uint32_t slot);
void at_refreshed(struct at_engine *e, int f, uint32_t slot);
void at_group_new(struct at_engine *e, int f, uint32_t group);
void at_group_gone(struct at_engine *e, int f, uint32_t group);
void at_judge_marked(struct at_engine *e, struct selection *s, int f);

/* tree.c */
int at_by_address(const struct family *m, const struct ranking *k, uint32_t a, uint32_t b);
bool at_row_before(const struct selection *s, const struct family *m, const struct ranking *k,
		   uint32_t a, uint32_t b);
int at_first_diff(const struct selection *s, const struct row *a, const struct row *b);
void at_tree_rebuild(struct at_engine *e, const struct selection *s, struct ranking *k,
		     const struct family *m);
void at_tree_update(struct at_engine *e, const struct selection *s, struct ranking *k,
		    const struct family *m);
bool at_is_rival(const struct selection *s, const struct family *m, const struct ranking *k,
		 uint32_t slot);
uint32_t at_tree_rival(const struct selection *s, const struct family *m, const struct ranking *k,
		       uint32_t node);
uint32_t at_tree_before(const struct selection *s, const struct family *m, const struct ranking *k,
			uint32_t node, uint32_t slot);

/* rank.c */
int at_ranking_grow(struct ranking *k, uint32_t old, uint32_t cap);
void at_ranking_grown(struct at_engine *e, int f);
void at_ranking_reset(struct ranking *k);
void at_ranking_free(struct ranking *k);
int at_lanes_grow(struct selection *s, uint32_t old, uint32_t cap);
void at_recheck(struct selection *s);
void at_rank_all(struct at_engine *e, struct selection *s);
void at_settle(struct at_engine *e, const struct record *r, bool quiet);

/* lookup.c */
void at_look(struct at_engine *e, const struct record *r);
void at_look_expired(struct at_engine *e);
void at_moved_addr(struct at_engine *e, const struct at_addr *a);
void at_changed_addr(struct at_engine *e, const struct at_addr *old, const struct at_addr *now);
void at_moved_link(struct at_engine *e, uint32_t slot, const struct at_link *old, bool was);
void at_moved_nexthop(struct at_engine *e, uint32_t id);

/* snapshot.c: orders of pointers for qsort; one record each, DUMP and NEW: its size */
int at_by_key(const void *one, const void *other);
int at_by_ifindex(const void *one, const void *other);
size_t at_write_addr(void *out, const struct entry *n, uint64_t now);
size_t at_write_link(void *out, const struct link *l, uint64_t now);
size_t at_write_nexthop(void *out, const struct nexthop *n, uint64_t now);
size_t at_write_route(void *out, const struct rkey *k, const struct alias *a, uint64_t now);

static inline uint64_t at_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

/* The first `length` bits of an address, as two masks. */
static inline void at_mask(unsigned length, uint64_t mask[2])
{
	mask[0] = length >= 64 ? ~0ull : length ? ~0ull << (64 - length) : 0;
	mask[1] = length >= 128 ? ~0ull : length > 64 ? ~0ull << (128 - length) : 0;
}

static inline bool at_within(const uint64_t a[2], const uint64_t b[2], unsigned length)
{
	uint64_t mask[2];

	at_mask(length, mask);
	return !((a[0] ^ b[0]) & mask[0]) && !((a[1] ^ b[1]) & mask[1]);
}

/* Zero where a gateway of this family has no bytes. */
static inline void at_gateway_clean(unsigned family, uint8_t gw[16])
{
	if (family == AF_INET)
		memset(gw + 4, 0, 12);
	else if (family != AF_INET6)
		memset(gw, 0, 16);
}

static inline unsigned at_host_length(int f)
{
	return f ? 128 : 32;
}

static inline bool at_is_candidate(const struct row *r)
{
	return !r->own_reject && r->tier != AT_TIER_NONE;
}

static inline bool at_is_zero(const uint8_t *address)
{
	return !(at_be64(address) | at_be64(address + 8));
}

#endif
