/*
 * Executables of a graph with symbols. One executable has a family of programs, one for each
 * binding in use. The struct that the caller holds contains the state of the current member, so
 * that all calls work on it. The other members are kept aside.
 *
 * Invariant: all members have the same leaves and outputs in the same order. If anything was ever
 * bound, exactly one member is current, and its `state` is NULL.
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
    uint64_t used;           /* value of `switches` when it was chosen last */
    uint64_t feeds_version;  /* which feeds it has */
} family_member;

/* A param that was set before there was a member. */
typedef struct family_param {
    uint32_t source; /* node of the graph */
    rlxvk_dtype dtype;
    size_t size;
    void *bytes;
} family_param;

/* The feeds of one input; -1: none. */
typedef struct family_feed {
    const char *name;
    int64_t feed, row_feed;
    bool prefix;
} family_feed;

enum family_feed_kind { FAMILY_FEED_WHOLE, FAMILY_FEED_PREFIX, FAMILY_FEED_ROWS, FAMILY_FEED_NONE };

struct family {
    rlxvk_graph *graph; /* a copy with symbols */
    exec_options options;
    rlxvk_context *context; /* a reference; NULL for a copy that is not open */
    axis_list axes;         /* of buckets */
    uint32_t capacity;
    VECTOR(family_member) members;
    size_t current; /* FAMILY_NOBODY: nothing is bound yet */
    VECTOR(family_param) params;
    VECTOR(family_feed) feeds;
    uint64_t feeds_version, switches, hits, misses, evictions;
    const rlxvk_compile_options *sharing; /* for the first member, while it is made; else NULL */
};

/* Creates a family with a copy of the graph, in which `sizes` replace symbols. Of `given` it reads
 * cached_bindings and bucket_axes. */
rlxvk_status family_create(const rlxvk_graph *graph, const binding_list *sizes,
                           const exec_options *options, const rlxvk_compile_options *given,
                           family **out);
/* Copies a family as it was before anything was bound, with the params and feeds kept so far. */
rlxvk_status family_copy(const family *from, family **out);
/* Adds the first member and makes it current. It gets the sizes of `like`, a member of another
 * family. */
rlxvk_status family_adopt(family *f, const family_member *like);
/* Creates an executable of a family, with nothing bound. It takes over the family, even if it
 * fails. */
rlxvk_status family_open(rlxvk_context *context, family *f, rlxvk_executable **out);
void family_destroy(family *f);
/* The symbols, by index, and their number. */
size_t family_symbol_count(const family *f);
uint32_t family_symbol(const family *f, size_t index);
/* The symbolic shape of a node of the graph as built. */
rlxvk_shape family_shape(const family *f, uint32_t source);

/* E_UNBOUND_SYMBOL if the param's shape has symbols. */
rlxvk_status family_check_param(const family *f, const char *call, uint32_t source);
/* Keeps a copy of the data for the first member. */
rlxvk_status family_keep_param(family *f, uint32_t source, rlxvk_dtype dtype, const void *bytes,
                               size_t size);
/* Like family_keep_param, but takes over `bytes`, even if it fails. It allocates nothing if
 * family_reserve_params made room before. */
rlxvk_status family_take_param(family *f, uint32_t source, rlxvk_dtype dtype, void *bytes,
                               size_t size);
rlxvk_status family_reserve_params(family *f, size_t count);
bool family_has_param(const family *f, uint32_t source);
void family_drop_params(family *f);
/* Notes a feed for all members. E_UNKNOWN_NAME if there is no such input, E_INDEX if there is no
 * such output. */
rlxvk_status family_note_feed(family *f, const char *call, const char *name,
                              enum family_feed_kind kind, size_t index);

#endif
