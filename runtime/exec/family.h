/*
 * Executables of a graph with symbols: a family of programs, one for each binding in use, behind
 * one executable. The struct that the caller holds has the state of the current member in it, so
 * that all calls work on that one; the others lie aside.
 *
 * Invariant: members have the same leaves and outputs in the same order; exactly one is current
 * once anything was bound, and its `state` is NULL.
 */
#ifndef RLXVK_EXEC_FAMILY_H
#define RLXVK_EXEC_FAMILY_H

#include "exec/axes.h"
#include "exec/state.h"
#include "op/bind.h"

#define FAMILY_NOBODY SIZE_MAX

typedef struct family_member {
    int64_t *sizes;          /* of the symbols, in the graph's order */
    rlxvk_executable *state; /* NULL: current */
    uint64_t used;           /* the count of switches when it was chosen last */
    uint64_t feeds_version;  /* which feeds it has */
} family_member;

/* What was set before there was a member. */
typedef struct family_param {
    uint32_t source; /* node of the graph */
    rlxvk_dtype dtype;
    size_t size;
    void *bytes;
} family_param;

/* Feeds of one input; -1: none. */
typedef struct family_feed {
    const char *name;
    int64_t feed, row_feed;
    bool prefix;
} family_feed;

enum family_feed_kind { FAMILY_FEED_WHOLE, FAMILY_FEED_PREFIX, FAMILY_FEED_ROWS, FAMILY_FEED_NONE };

struct family {
    rlxvk_graph *graph; /* with symbols, its own */
    exec_options options;
    rlxvk_context *context; /* held; NULL for a copy that is not open */
    axis_list axes;         /* of buckets */
    uint32_t capacity;
    VECTOR(family_member) members;
    size_t current; /* FAMILY_NOBODY: nothing is bound yet */
    VECTOR(family_param) params;
    VECTOR(family_feed) feeds;
    uint64_t feeds_version, switches, hits, misses, evictions;
    const rlxvk_compile_options *sharing; /* of the first member, while it is made; else NULL */
};

/* Over a copy of the graph, with the symbols that are bound put in. `given`: how many bindings are
 * kept, and bucket axes. */
rlxvk_status family_create(const rlxvk_graph *graph, const binding_list *sizes,
                           const exec_options *options, const rlxvk_compile_options *given,
                           family **out);
/* As if nothing had been bound, with what was set before. */
rlxvk_status family_copy(const family *from, family **out);
/* Its first member, current, of the same sizes as another's. */
rlxvk_status family_adopt(family *f, const family_member *like);
/* An executable of a family, with nothing bound. Takes the family over, also on failure. */
rlxvk_status family_open(rlxvk_context *context, family *f, rlxvk_executable **out);
void family_destroy(family *f);
/* The symbols and how many. */
size_t family_symbol_count(const family *f);
uint32_t family_symbol(const family *f, size_t index);
/* Symbolic shape of a node as it was built. */
rlxvk_shape family_shape(const family *f, uint32_t source);

/* E_UNBOUND_SYMBOL for a param whose shape has symbols. */
rlxvk_status family_check_param(const family *f, const char *call, uint32_t source);
/* Keeps data for the first member. */
rlxvk_status family_keep_param(family *f, uint32_t source, rlxvk_dtype dtype, const void *bytes,
                               size_t size);
/* The same of data that become the family's, also on failure; it takes no memory for as many as
 * there was room made for. */
rlxvk_status family_take_param(family *f, uint32_t source, rlxvk_dtype dtype, void *bytes,
                               size_t size);
rlxvk_status family_reserve_params(family *f, size_t count);
bool family_has_param(const family *f, uint32_t source);
void family_drop_params(family *f);
/* Notes a feed for all members. E_UNKNOWN_NAME, E_INDEX. */
rlxvk_status family_note_feed(family *f, const char *call, const char *name,
                              enum family_feed_kind kind, size_t index);

#endif
