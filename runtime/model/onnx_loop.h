/* Loops on the device. */
#ifndef RLXVK_ONNX_LOOP_H
#define RLXVK_ONNX_LOOP_H

#include "model/call.h"

/* The rest of a Loop, of which data decides the number of rounds. */
typedef struct onnx_loop_rest {
    const onnx_graph *body; /* takes the round, the condition, carried values; gives the condition,
                               carried values, and values to collect */
    size_t carried, collected;
    onnx_value **values;   /* the body's inputs at the start; [1] NULL: no condition */
    onnx_value *rounds;    /* how many rounds at most; NULL: `most` */
    int64_t done, most;    /* rounds before the rest; rounds in all, at most (INT64_MAX: no end) */
    onnx_value **earlier;  /* what rounds before the rest gave: [done][collected] */
    rlxvk_tensor *results; /* carried values, then collected ones: [most, ..] */
    int32_t *types;        /* of these */
    rlxvk_tensor count;    /* rounds in all, I64 */
} onnx_loop_rest;

/* Fills the last three. False: after a problem. */
bool onnx_run_loop(call *c, onnx_loop_rest *loop);

#endif
