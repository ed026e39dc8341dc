/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables of slots (open addressing) and growing arrays. */
#ifndef ADDRTRACKER_TABLE_H
#define ADDRTRACKER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define AT_NONE UINT32_MAX

struct cell {
	uint32_t hash, slot;
};

struct hash {
	struct cell *cells;
	uint32_t mask, used;
};

/* Room for one more; -ENOMEM. */
int at_hash_reserve(struct hash *h);
void at_hash_add(struct hash *h, uint32_t hash, uint32_t slot);
void at_hash_remove(struct hash *h, uint32_t hash, uint32_t slot);
void at_hash_clear(struct hash *h);
void at_hash_free(struct hash *h);

/* The next slot with this hash; *at starts as the hash itself. AT_NONE: no more. */
static inline uint32_t at_hash_next(const struct hash *h, uint32_t hash, uint32_t *at)
{
	const struct cell *c;

	if (!h->cells)
		return AT_NONE;
	do {
		c = &h->cells[(*at)++ & h->mask];
	} while (c->slot != AT_NONE && c->hash != hash);
	return c->slot;
}

static inline uint32_t at_hash_mix(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h =
		a * 0x9e3779b97f4a7c15ull ^ b * 0xc2b2ae3d27d4eb4full ^ c * 0xd6e8feb86659fd93ull;

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h >> 32;
}

/* Makes room for `need` elements of `size` bytes; doubles. -ENOMEM leaves it as it was. */
int at_grow(void **array, uint32_t *cap, uint32_t need, size_t size);
/* A larger copy, aligned to cache lines, the rest zero. NULL: no memory; the old one stays. */
void *at_regrow(void *old, size_t used, size_t bytes);

#endif
