/*
 * Constant folding. If all operands of a pure node are constants, the host computes it once and it
 * becomes a constant of the same dtype. The host uses the reference functions that tests trust. Its
 * words do not change by a bit.
 */
#include "rewrite/pass.h"
#include "op/evaluation.h"

#include <string.h>

#define FOLD_LIMIT_BYTES (1u << 20)

static uint64_t word_bytes(const node *n)
{
    return dtype_storage_bytes(n->dtype == RLXVK_C64 ? STORAGE_PAIR : STORAGE_WORD,
                               shape_numel(&n->shape));
}

/* Operands are looked up in the new list, because those folded in this pass are constants there. So
 * one pass folds whole chains. */
static bool can_fold(const pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    if (n->input_count == 0 || !node_row(n)->family->execution.foldable ||
        word_bytes(n) > FOLD_LIMIT_BYTES)
        return false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const node *operand = graph_node(p->graph, p->map[n->inputs[i]]);
        if (operand->op != OP_constant || word_bytes(operand) > 8 * FOLD_LIMIT_BYTES)
            return false;
    }
    return true;
}

/* Makes a graph that has only the node and its operands. */
static rlxvk_status isolate(const pass *p, const node *n, rlxvk_graph **out)
{
    rlxvk_graph *g = NULL;
    uint32_t *inputs = memory_zeroed(n->input_count + 1, sizeof *inputs);
    node copy = *n;
    rlxvk_status status = inputs ? RLXVK_OK : status_fail_memory("constant folding");
    if (status == RLXVK_OK)
        status = rlxvk_graph_create(&g);
    for (uint32_t i = 0; i < n->input_count && status == RLXVK_OK; i++) {
        inputs[i] = graph_append(g, graph_node(p->graph, p->map[n->inputs[i]]));
        status = g->status;
    }
    copy.inputs = inputs;
    if (status == RLXVK_OK) {
        graph_append(g, &copy);
        status = g->status;
    }
    memory_free(inputs);
    if (status == RLXVK_OK)
        *out = g;
    else
        rlxvk_graph_destroy(g);
    return status;
}

/* Arithmetic is f32 for every dtype, so a node of F16 or an integer dtype may hold words that a
 * constant of its dtype cannot. Such nodes are not folded. */
static bool holds_words(rlxvk_dtype dtype, const uint8_t *bytes, const float *words, uint64_t numel)
{
    size_t size = rlxvk_dtype_size(dtype);
    if (dtype == RLXVK_F32 || dtype == RLXVK_C64)
        return true;
    for (uint64_t i = 0; i < numel; i++) {
        float held;
        dtype_widen(dtype, bytes + i * size, 1, &held);
        if (memcmp(&held, &words[i], sizeof held) != 0)
            return false;
    }
    return true;
}

/* Returns NODE_NONE without an error if the constant would not be the node's value to the bit. */
static uint32_t append_constant(pass *p, const node *n, const float *words)
{
    uint64_t numel = shape_numel(&n->shape);
    size_t size = numel * rlxvk_dtype_size((rlxvk_dtype)n->dtype);
    void *bytes = memory_zeroed(1, size + 1);
    if (!bytes) {
        graph_fail(p->graph, status_fail_memory("folded constant"));
        return NODE_NONE;
    }
    dtype_narrow((rlxvk_dtype)n->dtype, words, numel, bytes);
    node folded = {.op = OP_constant,
                   .dtype = n->dtype,
                   .shape = n->shape,
                   .name = n->name,
                   .data = bytes,
                   .data_size = size};
    uint32_t id = NODE_NONE;
    if (holds_words((rlxvk_dtype)n->dtype, bytes, words, numel))
        id = graph_append(p->graph, &folded);
    memory_free(bytes);
    return id;
}

uint32_t fold_constant(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    rlxvk_graph *g = NULL;
    evaluation v = {0};
    uint32_t result = NODE_NONE;
    rlxvk_status status;
    /* A folded U8 or I8 constant would be raw bytes, but readers expect words. */
    if (!can_fold(p, id) || n->dtype == RLXVK_U8 || n->dtype == RLXVK_I8)
        return NODE_NONE;
    TRY(isolate(p, n, &g));
    TRY(evaluation_create(g, &v));
    v.values_only = true;
    TRY(evaluation_run(&v));
    result = append_constant(p, n, v.words[g->nodes.count - 1]);
error:
    if (status != RLXVK_OK)
        graph_fail(p->graph, status);
    evaluation_destroy(&v);
    rlxvk_graph_destroy(g);
    return result;
}
