// SPDX-License-Identifier: Apache-2.0
/* One change to the ranking, on hosts and links of several sizes; and the ranking from scratch. */
#include <stdlib.h>

#include <linux/if_addr.h>
#include <sys/socket.h>

#include "counted.h"

#define CHANGES	 64 /* pairs that undo themselves */
#define WARM_UPS 2  /* until arrays are as long as they get */

struct batch {
	struct at_engine *engine;
	uint32_t n;
	bool told; /* until it is known what changed for whom */
	struct made record[CHANGES];
};

static void apply_batch(void *arg)
{
	struct batch *b = arg;
	struct at_view view;

	for (uint32_t i = 0; i < b->n; i++) {
		at_engine_apply(b->engine, &b->record[i], b->record[i].h.size);
		if (!b->told)
			continue;
		at_engine_changed(b->engine);
		at_engine_view(b->engine, 0, AF_INET, &view);
	}
}

static void stamp_batch(struct batch *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		made_stamp(&b->record[i]);
}

static void count_batch(struct batch *b, const struct path *path)
{
	for (int i = 0; i < WARM_UPS; i++) {
		stamp_batch(b);
		for (uint32_t r = 0; r < b->n; r++)
			made_apply(b->engine, &b->record[r]);
	}
	stamp_batch(b);
	count(path, apply_batch, b);
}

static uint32_t link_of(uint32_t number)
{
	return FIRST_LINK + number / PER_LINK;
}

static void flip_flags(struct made *pair, uint32_t number)
{
	pair[0] = made_addr(AT_OP_NEW, link_of(number), number, IFA_F_PERMANENT | IFA_F_DEPRECATED);
	pair[1] = made_addr(AT_OP_NEW, link_of(number), number, IFA_F_PERMANENT);
}

static void delete_add(struct made *pair, uint32_t number)
{
	pair[0] = made_addr(AT_OP_DEL, link_of(number), number, IFA_F_PERMANENT);
	pair[1] = made_addr(AT_OP_NEW, link_of(number), number, IFA_F_PERMANENT);
}

/* Any of n, the same each time. */
static uint32_t scattered(uint32_t i, uint32_t n)
{
	return (uint32_t)((i + 1) * 2654435761ull % n);
}

void change_paths(unsigned mode, uint32_t n)
{
	static const struct {
		const char *name;
		void (*make)(struct made *pair, uint32_t number);
		bool best, told;
	} changes[] = {
		{ "address flags", flip_flags, false, false },
		{ "address delete and add", delete_add, false, false },
		{ "best address flags", flip_flags, true, false },
		{ "best address delete and add", delete_add, true, false },
		{ "best address flags, told", flip_flags, true, true },
	};
	struct batch b = { .engine = host_new(mode, n, PER_LINK), .n = CHANGES };

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct path path = { changes[i].name, host_mode(mode), n, CHANGES, true };

		b.told = changes[i].told;
		for (uint32_t r = 0; r < CHANGES; r += 2)
			changes[i].make(&b.record[r], changes[i].best ? 0 : scattered(r, n));
		count_batch(&b, &path);
	}
	at_engine_free(b.engine);
}

/* One record that touches all addresses of a link: each pair undoes itself. */
void bulk_paths(unsigned mode, uint32_t n)
{
	struct batch b = { .engine = host_new(mode, n, n), .n = 2 };
	struct path path = { NULL, host_mode(mode), n, 2 * n, false };
	struct made other = made_link(FIRST_LINK + 1, true, 1500);
	struct made over;

	path.name = "link carrier";
	b.record[0] = made_link(FIRST_LINK, false, 1500);
	b.record[1] = made_link(FIRST_LINK, true, 1500);
	count_batch(&b, &path);

	path.name = "default route";
	b.record[0] = made_default(AT_OP_DEL, FIRST_LINK, 100, 0);
	b.record[1] = made_default(AT_OP_NEW, FIRST_LINK, 100, 0);
	count_batch(&b, &path);

	/* The better default goes over an object, which changes its link. */
	path.name = "nexthop object";
	made_stamp(&other);
	made_apply(b.engine, &other);
	b.record[0] = made_nexthop(FIRST_LINK);
	made_apply(b.engine, &b.record[0]);
	over = made_default(AT_OP_NEW, FIRST_LINK, 50, NEXTHOP_ID);
	made_apply(b.engine, &over);
	b.record[0] = made_nexthop(FIRST_LINK + 1);
	b.record[1] = made_nexthop(FIRST_LINK);
	count_batch(&b, &path);
	at_engine_free(b.engine);
}

struct whole {
	struct at_engine *engine;
	unsigned mode;
	struct at_row *rows;
	size_t n;
};

static void rank_all(void *arg)
{
	struct whole *w = arg;

	host_rank(w->engine, w->mode);
}

static void copy_rows(void *arg)
{
	struct whole *w = arg;

	at_engine_rows(w->engine, 0, AF_INET, w->rows, w->n);
}

static void glance(void *arg)
{
	struct whole *w = arg;
	struct at_glance seen;

	at_engine_glance(w->engine, &seen);
}

static void view(void *arg)
{
	struct whole *w = arg;
	struct at_view seen;

	at_engine_view(w->engine, 0, AF_INET, &seen);
}

/* What looks at all addresses, and what must not. */
void whole_paths(uint32_t n)
{
	struct whole w = { .n = n, .rows = calloc(n, sizeof(*w.rows)) };
	struct path path = { "glance at a new view", host_mode(0), n, 1, true };
	struct made best[2];

	must(w.rows != NULL, "there is memory");
	w.engine = host_new(0, n, PER_LINK);
	flip_flags(best, 0);
	host_clean(w.engine);
	made_stamp(&best[0]);
	made_apply(w.engine, &best[0]);
	count(&path, glance, &w);
	path.name = "view again";
	count(&path, view, &w);
	path = (struct path){ "all rows", path.mode, n, n, false };
	count(&path, copy_rows, &w);
	for (w.mode = 0; w.mode < host_modes(); w.mode++) {
		path = (struct path){ "ranking from scratch", host_mode(w.mode), n, n, false };
		count(&path, rank_all, &w);
	}
	at_engine_free(w.engine);
	free(w.rows);
}
