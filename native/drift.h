/* SPDX-License-Identifier: Apache-2.0 */
/* Differences that dumps with AT_DUMP_AUDIT find. */
#ifndef ADDRTRACKER_DRIFT_H
#define ADDRTRACKER_DRIFT_H

#include "state.h"

/* Counts one, and gives room for the record of it. */
void *at_drift(struct at_engine *e, uint32_t scope);
/* Of an entry that a dump shows; once for each *drifted. */
void at_drift_shown(struct at_engine *e, uint32_t scope, const struct record *r, bool *drifted);
/* Of an address, link or nexthop that it does not show. */
void at_drift_missing(struct at_engine *e, uint32_t scope, const void *entry);

#endif
