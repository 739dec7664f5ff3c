/*
 * Executables of a graph with symbols. One executable has several programs, one for each
 * binding in use. The struct that the caller holds contains the state of the current member, so
 * that all calls work on it. The other members are kept aside.
 *
 * Invariant: all members have the same leaves and outputs in the same order. If anything was ever
 * bound, exactly one member is current, and its `state` is NULL.
 */
#ifndef RLXVK_EXEC_CACHED_BINDINGS_H
#define RLXVK_EXEC_CACHED_BINDINGS_H

#include "exec/executable.h"
#include "op/bind.h"
#include "program/bucket_axes.h"

#define CACHED_NONE SIZE_MAX

typedef struct cached_binding {
    int64_t *sizes;          /* of the symbols, in the graph's order */
    rlxvk_executable *state; /* NULL: current */
    uint64_t used;           /* value of `switches` when it was chosen last */
    uint64_t feeds_version;  /* which feeds it has */
} cached_binding;

/* A param that was set before there was a member. */
typedef struct cached_param {
    uint32_t source; /* node of the graph */
    rlxvk_dtype dtype;
    size_t size;
    void *bytes;
} cached_param;

/* The feeds of one input; -1: none. */
typedef struct cached_feed {
    const char *name;
    int64_t feed, row_feed;
    bool prefix;
} cached_feed;

enum cached_feed_kind { CACHED_FEED_WHOLE, CACHED_FEED_PREFIX, CACHED_FEED_ROWS, CACHED_FEED_NONE };

struct cached_bindings {
    rlxvk_graph *graph; /* a copy with symbols */
    program_options options;
    rlxvk_context *context; /* a reference; NULL for a copy that is not open */
    axis_list axes;         /* of buckets */
    uint32_t capacity;
    VECTOR(cached_binding) members;
    size_t current; /* CACHED_NONE: nothing is bound yet */
    VECTOR(cached_param) params;
    VECTOR(cached_feed) feeds;
    uint64_t feeds_version, switches, hits, misses, evictions;
    bool lent; /* the first member shares memory with an executable of the caller's */
    const rlxvk_compile_options *sharing; /* for the first member, while it is made; else NULL */
};

/* Creates the cached bindings of a copy of the graph, in which `sizes` replace symbols. Of `given`
 * it reads cached_bindings and bucket_axes. */
rlxvk_status cached_create(const rlxvk_graph *graph, const binding_list *sizes,
                           const program_options *options, const rlxvk_compile_options *given,
                           cached_bindings **out);
/* Copies cached bindings as they were before anything was bound, with the params and feeds kept so
 * far. */
rlxvk_status cached_copy(const cached_bindings *from, cached_bindings **out);
/* Adds the first member and makes it current. It gets the sizes of `like`, a member of others. */
rlxvk_status cached_adopt(cached_bindings *f, const cached_binding *like);
/* Creates an executable with nothing bound. It takes over the cached bindings, even if it
 * fails. */
rlxvk_status cached_open(rlxvk_context *context, cached_bindings *f, rlxvk_executable **out);
void cached_destroy(cached_bindings *f);
/* The symbols, by index, and their number. */
size_t cached_symbol_count(const cached_bindings *f);
uint32_t cached_symbol(const cached_bindings *f, size_t index);
/* The symbolic shape of a node of the graph as built. */
rlxvk_shape cached_shape(const cached_bindings *f, uint32_t source);

/* E_UNBOUND_SYMBOL if the param's shape has symbols. */
rlxvk_status cached_check_param(const cached_bindings *f, const char *call, uint32_t source);
/* Keeps a copy of the data for the first member. */
rlxvk_status cached_keep_param(cached_bindings *f, uint32_t source, rlxvk_dtype dtype,
                               const void *bytes, size_t size);
/* Like cached_keep_param, but takes over `bytes`, even if it fails. It allocates nothing if
 * cached_reserve_params made room before. */
rlxvk_status cached_take_param(cached_bindings *f, uint32_t source, rlxvk_dtype dtype, void *bytes,
                               size_t size);
rlxvk_status cached_reserve_params(cached_bindings *f, size_t count);
bool cached_has_param(const cached_bindings *f, uint32_t source);
void cached_drop_params(cached_bindings *f);
/* Notes a feed for all members. E_UNKNOWN_NAME if there is no such input, E_INDEX if there is no
 * such output. */
rlxvk_status cached_note_feed(cached_bindings *f, const char *call, const char *name,
                              enum cached_feed_kind kind, size_t index);

#endif
