/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * In place of libbpf's headers where BCC compiles the program. BCC declares the
 * helpers by itself. The maps exist already: -DAT_FD_RING=5 and so on say under
 * which numbers.
 */
#ifndef ADDRTRACKER_BCC_H
#define ADDRTRACKER_BCC_H

#include "filter.h"

#define SEC(name) /* BCC has sections of its own */
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define AT_MAP(name) ((void *)bpf_pseudo_fd(1 /* BPF_PSEUDO_MAP_FD */, AT_FD_##name))

#define AT_FD_ring    AT_FD_RING
#define AT_FD_alarm   AT_FD_ALARM
#define AT_FD_counts  AT_FD_COUNTS
#define AT_FD_shared  AT_FD_SHARED
#define AT_FD_filters AT_FD_FILTERS
#define AT_FD_links   AT_FD_LINKS
#define AT_FD_watched AT_FD_WATCHED

#endif
