/* The lists of names among the options of a compile: ops that run on the host, kernel variants. */
#ifndef RLXVK_OPTION_LIST_H
#define RLXVK_OPTION_LIST_H

#include "base/switches.h"
#include "op/op.h"

/* E_NULL for a name that is missing, E_ATTR for one that could not stand in a switch, either. */
rlxvk_status option_list_check(const rlxvk_compile_options *o);
/* Replaces the caller's lists by copies, which live as long as the arena. */
rlxvk_status option_list_keep(rlxvk_compile_options *o, arena *memory);
/* OP_COUNT flags: the rows that are to run on the host. */
rlxvk_status option_list_force(const rlxvk_compile_options *o, const switches *s,
                               bool on_host[OP_COUNT]);
/* The variants in the words of RLXVK_VARIANT, and what an error is to call them. */
rlxvk_status option_list_variants(const rlxvk_compile_options *o, const switches *s, arena *memory,
                                  const char **out_text, const char **out_source);

#endif
