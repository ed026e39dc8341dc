// SPDX-License-Identifier: Apache-2.0
/* Where the criteria of a policy are packed. */
#include "state.h"

static unsigned width(unsigned criterion)
{
	switch (criterion) {
	case AT_CRIT_DEFAULT_ROUTE:
		return 36;
	case AT_CRIT_IFINDEX:
	case AT_CRIT_AGE:
		return 32;
	case AT_CRIT_STATIC:
	case AT_CRIT_MODE:
	case AT_CRIT_NEXTHOP_WEIGHT:
		return 16;
	default:
		return 1;
	}
}

/* Packs the criteria, in order and none across two words, behind two bits of tier. */
void at_lay_out(struct selection *s)
{
	const struct at_policy *p = &s->policy;
	unsigned used = 2, i, j, criterion, bits;
	struct field *f;

	for (i = 0; i <= AT_CRIT_ADDRESS; i++)
		s->field[i] = (struct field){ .word = AT_WORDS };
	memset(s->position, 0, sizeof(s->position));
	memset(s->kin, 0, sizeof(s->kin));
	s->field[0] = (struct field){ 0, 62, 3 };
	s->position[0][62] = s->position[0][63] = AT_POSITION_TIER;
	s->kin[0] = 3ull << 62;
	s->words = 1;
	s->after = p->n_criteria - 1;
	s->incumbent = p->n_criteria;
	for (i = 0; i < p->n_criteria; i++) {
		criterion = p->criteria[i];
		f = &s->field[criterion];
		if (f->mask)
			continue;
		bits = width(criterion);
		if (used + bits > 64) {
			s->words++;
			used = 0;
		}
		used += bits;
		*f = (struct field){ s->words - 1, 64 - used, ~0ull >> (64 - bits) };
		for (j = 0; j < bits; j++)
			s->position[f->word][f->shift + j] = i;
		if (criterion == AT_CRIT_GLOBAL_BEFORE_ULA)
			s->after = i;
		if (criterion == AT_CRIT_INCUMBENT)
			s->incumbent = i;
	}
	for (i = 0; i < p->n_criteria && (int)i <= s->after && (int)i < s->incumbent; i++) {
		f = &s->field[p->criteria[i]];
		s->kin[f->word] |= f->mask << f->shift;
	}
}
