/*
 * Ops that a user registers: shape inference and a host function. A SPIR-V kernel is optional, with
 * a function for its arguments and group counts. So is a function that appends the gradient. No
 * rewrite folds or fuses such an op. Its attributes are opaque bytes.
 */
#include "op/compose/custom.h"
#include "base/system.h"
#include "op/bucket.h"
#include "op/gradient.h"

#include <stdlib.h>
#include <string.h>

#define MOST_WORDS (1 << 24)

static struct {
    system_lock lock;
    custom_entry *entries[1024];
    size_t count;
} table = {.lock = SYSTEM_LOCK_INITIALIZER};

/* ---- Registration ---- */

static rlxvk_status copy_kernel(custom_entry *entry, const rlxvk_custom_op *op)
{
    static const char *const constants[] = {[LOCAL_SIZE] = "LOCAL_SIZE"};
    rlxvk_custom_kernel own, *k = &own;
    uint32_t bindings = op->input_count + 1;
    rlxvk_status status;
    if (!op->kernel)
        return RLXVK_OK;
    TRY(sized_read(SIZED(rlxvk_custom_kernel), op->kernel, k));
    if (!k->words || !k->arguments)
        return status_fail(RLXVK_E_ATTR, "custom '%s': the kernel has no %s; give both", op->name,
                           k->words ? "arguments function" : "words");
    if (k->word_count > MOST_WORDS)
        return status_fail(RLXVK_E_ATTR, "custom '%s': a kernel of %zu words; at most %d", op->name,
                           k->word_count, MOST_WORDS);
    TRY(custom_check_module(op->name, k->words, k->word_count, bindings, k->argument_bytes,
                            &entry->invocations));
    uint32_t *words = memory_allocate(k->word_count * sizeof *words);
    if (!words)
        return status_fail_memory("custom kernel");
    memcpy(words, k->words, k->word_count * sizeof *words);
    entry->kernel = (kernel_info){.name = entry->name,
                                  .words = words,
                                  .constants = constants,
                                  .word_count = (uint32_t)k->word_count,
                                  .argument_bytes = k->argument_bytes,
                                  .binding_count = bindings,
                                  .constant_count = 1};
    entry->arguments = k->arguments;
error:
    return status;
}

/* Keeps the entry until the process ends, because entries are found by name and kernels by number.
 */
static void keep(const custom_entry *entry)
{
    memory_keep(entry);
    memory_keep(entry->kernel.words);
}

static rlxvk_status check_registration(const rlxvk_custom_op *op)
{
    if (!op->name)
        return status_require(op->name, "custom_register", "op->name");
    if (!op->name[0] || strlen(op->name) >= sizeof((custom_entry *)0)->name)
        return status_fail(RLXVK_E_ATTR, "custom: a name of %zu bytes; names have 1 to %zu",
                           strlen(op->name), sizeof((custom_entry *)0)->name - 1);
    if (op->input_count >= CUSTOM_MAX_BINDINGS)
        return status_fail(RLXVK_E_ATTR, "custom '%s': %u operands; at most %d", op->name,
                           op->input_count, CUSTOM_MAX_BINDINGS - 1);
    if (!op->host && !op->kernel)
        return status_fail(RLXVK_E_ATTR, "custom '%s': needs a host function or a kernel",
                           op->name);
    return RLXVK_OK;
}

rlxvk_status rlxvk_custom_register(const rlxvk_custom_op *op)
{
    rlxvk_custom_op own;
    rlxvk_status status;
    custom_entry *entry = NULL;
    TRY(status_require(op, "custom_register", "op"));
    TRY(sized_read(SIZED(rlxvk_custom_op), op, &own));
    op = &own;
    TRY(check_registration(op));
    if (!(entry = memory_zeroed(1, sizeof *entry)))
        TRY(status_fail_memory("custom op"));
    memcpy(entry->name, op->name, strlen(op->name));
    entry->op = *op;
    TRY(copy_kernel(entry, op));
    if (entry->kernel.words && !kernel_register(&entry->kernel, &entry->kernel_id))
        TRY(status_fail(RLXVK_E_TOO_LARGE, "custom '%s': %d custom kernels are registered already",
                        op->name, KERNEL_REGISTERED_LIMIT));
    system_lock_take(&table.lock);
    bool room = table.count < ARRAY_COUNT(table.entries);
    if (room)
        table.entries[table.count++] = entry;
    system_lock_release(&table.lock);
    if (room || entry->kernel_id) /* kernels cannot be unregistered */
        keep(entry);
    if (room)
        return RLXVK_OK;
    status = status_fail(RLXVK_E_TOO_LARGE, "custom '%s': %zu registrations already", op->name,
                         ARRAY_COUNT(table.entries));
error:
    if (entry && !entry->kernel_id) {
        memory_free((void *)entry->kernel.words);
        memory_free(entry);
    }
    return status;
}

/* The latest entry with that name. */
static const custom_entry *find_entry(const char *name)
{
    const custom_entry *found = NULL;
    system_lock_take(&table.lock);
    for (size_t i = table.count; i-- > 0 && !found;)
        if (strcmp(table.entries[i]->name, name) == 0)
            found = table.entries[i];
    system_lock_release(&table.lock);
    return found;
}

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                          size_t count, const void *bytes, size_t size, custom_attributes *a)
{
    if (!graph_ready(g, "custom") ||
        graph_fail(g, status_require(name, "custom", "name")) != RLXVK_OK ||
        graph_fail(g, status_require_items(bytes, size, "custom", "attributes")) != RLXVK_OK)
        return RLXVK_NONE;
    a->entry = find_entry(name);
    a->size = size;
    if (!a->entry)
        graph_fail(g, status_fail(RLXVK_E_UNKNOWN_OP,
                                  "custom: no op '%s' is registered; see rlxvk_custom_register",
                                  name));
    else if (size > CUSTOM_ATTRIBUTE_BYTES)
        graph_fail(g, status_fail(RLXVK_E_ATTR, "custom '%s': %zu attribute bytes; at most %d",
                                  name, size, CUSTOM_ATTRIBUTE_BYTES));
    else if (size)
        memcpy(a->bytes, bytes, size);
    return op_build(g, OP_custom, inputs, count, a);
}

rlxvk_tensor rlxvk_custom(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                          size_t count, const void *attributes, size_t size)
{
    custom_attributes a = {0};
    return build(g, name, inputs, count, attributes, size, &a);
}

rlxvk_tensor rlxvk_custom_packed(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                                 size_t count, const void *attributes, size_t size,
                                 rlxvk_shape shape, rlxvk_dtype dtype)
{
    custom_attributes a = {.packed = true, .shape = shape, .dtype = dtype};
    return build(g, name, inputs, count, attributes, size, &a);
}

/* ---- The family ---- */

#define SHAPES_TEXT (CUSTOM_MAX_BINDINGS * SHAPE_TEXT)

/* "2x3, 4x3". Returns `buffer`. */
static const char *list_shapes(const rlxvk_shape *shapes, size_t count, char buffer[SHAPES_TEXT])
{
    char one[SHAPE_TEXT];
    text t = {.buffer = buffer, .size = SHAPES_TEXT};
    buffer[0] = 0;
    for (size_t i = 0; i < count; i++)
        text_append(&t, "%s%s", i ? ", " : "", shape_text(&shapes[i], one));
    return buffer;
}

static rlxvk_status custom_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    custom_attributes *a = attributes;
    rlxvk_shape shapes[CUSTOM_MAX_BINDINGS];
    char list[SHAPES_TEXT];
    const custom_entry *entry = a->entry;
    if (n->input_count != entry->op.input_count || n->input_count > ARRAY_COUNT(shapes))
        return op_fail(n, RLXVK_E_ARITY, "'%s' takes %u operands, given %u", entry->name,
                       entry->op.input_count, n->input_count);
    for (uint32_t i = 0; i < n->input_count; i++)
        shapes[i] = *input_shape(g, n, i);
    if (!a->packed) {
        a->dtype = n->input_count ? input_dtype(g, n, 0) : RLXVK_F32;
        if (!entry->op.infer)
            return op_fail(n, RLXVK_E_ATTR, "'%s' infers no shape; state it", entry->name);
        if (!entry->op.infer(shapes, n->input_count, a->bytes, a->size, &a->shape, &a->dtype))
            return op_fail(n, RLXVK_E_SHAPE, "'%s' refused its operands (%s)", entry->name,
                           list_shapes(shapes, n->input_count, list));
    }
    if (a->shape.rank > RLXVK_MAX_RANK || (unsigned)a->dtype >= RLXVK_DTYPE_COUNT ||
        a->dtype == RLXVK_C64)
        return op_fail(n, RLXVK_E_SHAPE,
                       "'%s' gives rank %u and dtype %d; ranks are 0 to 8, dtypes any but C64",
                       entry->name, a->shape.rank, (int)a->dtype);
    n->shape = a->shape;
    n->dtype = (uint8_t)a->dtype;
    return RLXVK_OK;
}

static uint32_t custom_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    return op_shape_sizes(&((custom_attributes *)attributes)->shape, out);
}

static bool custom_has_kernel(const node *n)
{
    return ((const custom_attributes *)n->attributes)->entry->kernel.words != NULL;
}

static bool custom_has_host(const node *n)
{
    return ((const custom_attributes *)n->attributes)->entry->op.host != NULL;
}

static rlxvk_status custom_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const custom_attributes *a = n->attributes;
    operand operands[CUSTOM_MAX_BINDINGS];
    rlxvk_shape shapes[CUSTOM_MAX_BINDINGS];
    char list[SHAPES_TEXT];
    uint32_t offsets[CUSTOM_MAX_BINDINGS], words[KERNEL_MAX_ARGUMENT_BYTES / 4] = {0};
    for (uint32_t i = 0; i <= n->input_count; i++) {
        operands[i] = i < n->input_count ? lower_input(l, id, i) : lower_write(l, id);
        shapes[i] = i < n->input_count ? *input_shape(l->graph, n, i) : n->shape;
        offsets[i] = operands[i].offset;
    }
    if (a->entry->invocations > l->profile->max_workgroup_invocations)
        return op_fail(n, RLXVK_E_UNSUPPORTED,
                       "'%s' has workgroups of %llu invocations; this device takes %u",
                       a->entry->name, (unsigned long long)a->entry->invocations,
                       l->profile->max_workgroup_invocations);
    dispatch d = {.kernel = a->entry->kernel_id};
    rlxvk_custom_call call = {shapes,   offsets, n->input_count,
                              a->bytes, a->size, l->profile->workgroup_size,
                              words,    d.groups};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    if (!a->entry->arguments(&call))
        return op_fail(n, RLXVK_E_CUSTOM, "'%s' refused to be lowered (operands, result: %s)",
                       a->entry->name, list_shapes(shapes, n->input_count + 1, list));
    return lower_emit(l, &d, words, a->entry->kernel.argument_bytes, operands, n->input_count + 1);
}

static rlxvk_status custom_host(const host_call *c)
{
    const custom_attributes *a = c->node->attributes;
    rlxvk_custom_view views[CUSTOM_MAX_BINDINGS];
    char list[SHAPES_TEXT];
    uint64_t numel = shape_numel(&c->node->shape);
    char *words = (char *)c->out; /* the op's f32 words; they are widened in place */
    for (uint32_t i = 0; i < c->node->input_count; i++)
        views[i] =
            (rlxvk_custom_view){c->inputs[i].node->shape, (rlxvk_dtype)c->inputs[i].node->dtype,
                                c->inputs[i].words, c->inputs[i].bytes};
    int result = a->entry->op.host
                     ? a->entry->op.host(views, c->node->input_count, a->bytes, a->size,
                                         &c->node->shape, (float *)(void *)words)
                     : 0;
    for (uint64_t i = numel; i-- > 0;) { /* from the end, so that no unread word is overwritten */
        float word;
        memcpy(&word, words + i * sizeof word, sizeof word);
        c->out[i] = word;
    }
    if (result)
        return op_fail(c->node, RLXVK_E_CUSTOM, "'%s' failed with %d (result: %s)", a->entry->name,
                       result, list_shapes(&c->node->shape, 1, list));
    return RLXVK_OK;
}

static uint64_t custom_bucket(bucket_call *c)
{
    return bucket_refuse(c, "it is an op of the caller, who does not say what becomes of rows");
}

/* Calls the op's own gradient function. */
static rlxvk_status custom_vjp(gradient_call *c)
{
    const custom_attributes *a = c->n.attributes;
    rlxvk_tensor inputs[CUSTOM_MAX_BINDINGS], d_inputs[CUSTOM_MAX_BINDINGS] = {{0}};
    bool wanted[CUSTOM_MAX_BINDINGS];
    char who[CALL_LABEL];
    rlxvk_status status = RLXVK_OK;
    if (!a->entry->op.vjp)
        return op_fail(&c->n, RLXVK_E_UNSUPPORTED,
                       "'%s' was registered without a vjp and so has no gradient; give it one, or "
                       "put rlxvk_stop_gradient behind it",
                       a->entry->name);
    for (uint32_t i = 0; i < c->n.input_count; i++) {
        inputs[i] = gradient_operand(c, i);
        wanted[i] = gradient_wanted(c, i);
    }
    const rlxvk_custom_gradient call = {c->graph, inputs,  c->n.input_count,
                                        a->bytes, a->size, gradient_result(c),
                                        c->dy,    wanted,  d_inputs};
    if (!a->entry->op.vjp(&call) && c->graph->status == RLXVK_OK)
        return op_fail(&c->n, RLXVK_E_CUSTOM, "'%s' refused to be differentiated", a->entry->name);
    for (uint32_t i = 0; i < c->n.input_count && c->graph->status == RLXVK_OK; i++) {
        gradient_give_zero(c, i); /* a gradient that the function leaves out is zero */
        if (!d_inputs[i].id)
            continue;
        TRY(graph_take(c->graph, d_inputs[i], op_call_label(c->graph, "custom", who),
                       "gradient of operand", i));
        gradient_give(c, i, d_inputs[i]);
    }
error:
    return status;
}

static void custom_describe(const node *n, text *out)
{
    const custom_attributes *a = n->attributes;
    text_append(out, " '%s' attributes=%zu bytes", a->entry->name, a->size);
}

const op_family custom_family = {
    .name = "custom",
    .attribute_size = sizeof(custom_attributes),
    .infer = custom_infer,
    .sizes = custom_sizes,
    .storage = {.raw_inputs = UINT32_MAX},
    .execution = {.has_kernel = custom_has_kernel,
                  .has_host = custom_has_host,
                  .lower = custom_lower,
                  .host = custom_host},
    .rows = {.bucket = custom_bucket},
    .derivative = {.vjp = custom_vjp},
    .describe = custom_describe,
};
