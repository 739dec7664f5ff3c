/* What lowerings of nodes with graphs inside share. */
#ifndef RLXVK_ONNX_CONTROL_H
#define RLXVK_ONNX_CONTROL_H

#include "model/call.h"

/* A graph of an attribute, which is required. */
const onnx_graph *control_graph(call *c, const char *name);
/* Room for the values that a graph gives or takes; NULL after a problem. */
onnx_value **control_values(call *c, size_t count);
/* The results of a graph; NULL after a problem. With a loop, it is built as the loop's body. */
onnx_value **control_run(call *c, const onnx_graph *g, import_loop *loop,
                         onnx_value *const *inputs);

/* ---- Loops on the device ---- */

/* The rest of a Loop, of which data decides the number of rounds. */
typedef struct control_loop {
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
} control_loop;

/* Fills the last three. False: after a problem. */
bool control_run_loop(call *c, control_loop *loop);

#endif
