/* Long loops with a known number of rounds, on the device. */
#ifndef RLXVK_ONNX_SCAN_H
#define RLXVK_ONNX_SCAN_H

#include "model/call.h"

typedef struct onnx_rounds {
    const onnx_graph *body;
    int64_t count;      /* of rounds */
    bool numbered;      /* the body takes the round and a condition first, and gives a condition */
    size_t carried;     /* then it takes these; it gives their next values */
    size_t sliced;      /* then it takes index t of these in round t */
    size_t collected;   /* then it gives these, which are collected along a new first axis */
    onnx_value **start; /* carried values before the first round */
    rlxvk_tensor *sequences; /* [count, ..] each */
    int32_t *sequence_types;
    rlxvk_tensor *results; /* carried values after the last round; then collected ones [count, ..],
                              RLXVK_NONE if the node does not give it */
    int32_t *types;        /* of these */
} onnx_rounds;

/* Whether so many rounds are worth a loop. The graph is small if they are unrolled and few. */
bool onnx_is_long(const onnx_graph *body, int64_t rounds);
/* Builds the loop and fills the last two. False: the loop cannot be built so, for example because
 * the body needs the number of the round as a size. Then nothing is refused; unroll it. */
bool onnx_try_scan(call *c, onnx_rounds *r);

#endif
