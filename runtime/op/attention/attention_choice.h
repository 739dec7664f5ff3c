/* Chooses the attention kernel, its tiles, and how keys are split. It is one table of classes, in
 * order of preference. Pure; unit-tested on made-up profiles. */
#ifndef RLXVK_ATTENTION_CHOICE_H
#define RLXVK_ATTENTION_CHOICE_H

#include "op/choice/variant.h"

typedef struct attention_shape {
    uint64_t batch, heads, kv_heads, queries, keys, width;
    uint64_t new_rows; /* of a step: the last rows of keys, which are not in the caches yet */
} attention_shape;

typedef enum attention_form {
    ATTENTION_FORM_ROWS, /* attention_decode: few queries; a workgroup takes those of a kv head */
    ATTENTION_FORM_TILE  /* attention_prefill: a tile of queries of one head */
} attention_form;

typedef struct attention_class {
    choice_row row;
    uint8_t form;     /* enum attention_form */
    uint16_t threads; /* rows: 0 means four times the lanes */
    uint64_t most_queries, least_width, most_width;
    /* Tiles: invocations across; quads of rows and of keys of each; keys of v that are unrolled;
     * are keys split? */
    uint8_t column_threads, row_quads, key_quads, unroll;
    bool split;
    /* Rows: quads of k or v that an invocation loads ahead; words of partial products; keys * rows
     * of a chunk; the fewest rows of a kv head for which the class is preferred. most_keys: 0 means
     * any number. Otherwise a lane has a single quad of a key if there are enough lanes, because
     * then there is less to add up. */
    uint8_t quads_ahead, least_rows;
    uint16_t scratch, scores, most_keys;
} attention_class;

extern const attention_class attention_classes[];

typedef struct attention_plan {
    const attention_class *class;
    uint32_t threads, rows; /* rows of a workgroup: queries, or (query, head) pairs of a kv head */
    uint32_t tile_keys;     /* keys that a workgroup takes at a time; divides `chunk` */
    uint32_t column_quads, value_keys,
        unroll; /* tiles: quads of columns of an invocation; of v: keys a slice, keys unrolled */
    uint32_t lanes, lane_quads, keys; /* rows: lanes of a key, quads of a lane; keys at a time */
    uint32_t chunk;                   /* keys of a workgroup; 0: all of them */
    uint64_t blocks, chunks;          /* workgroups = blocks * chunks */
    uint32_t new_rows;                /* rows: new rows of a step */
    bool joins;                       /* rows: the same dispatch joins the chunks */
} attention_plan;

/* The first class that suits. There always is one. */
attention_plan attention_choose(const attention_shape *shape, const device_profile *profile,
                                size_t forced);
uint64_t attention_shared_bytes(const attention_plan *p);
/* Words of partial results; 0 if keys are not split. */
uint64_t attention_partial_words(const attention_plan *p, const attention_shape *shape);

/* Whether the last workgroup of a dispatch may join the results of the others. */
bool attention_may_join(const device_profile *profile);

#endif
