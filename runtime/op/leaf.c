/*
 * The leaves of a graph. Inputs and params have a name, which is unique among inputs or among
 * params. Constants carry their bytes. Name and data are fields of the node, not attributes, so the
 * builders here fill in a node themselves.
 */
#include "op/families.h"

#include <rlxvk_train.h>

#include <string.h>

#define LONGEST_NAME   255
#define RESERVED_NAMES "rlxvk."

/* Keeps an invalid dtype invalid when it is cut to 8 bits. */
static uint8_t leaf_dtype(rlxvk_dtype dtype)
{
    return (uint8_t)((unsigned)dtype < RLXVK_DTYPE_COUNT ? dtype : RLXVK_DTYPE_COUNT);
}

/* A leaf is checked like any node, but it has no operands and attributes. Then the graph's arena
 * copies its name and data. */
static rlxvk_tensor leaf_append(rlxvk_graph *g, node *n)
{
    if (!graph_ready(g, node_row(n)->name))
        return RLXVK_NONE;
    return tensor_of(g, op_append_given(g, n, NULL));
}

bool op_is_own_input(const node *n)
{
    return n->op == OP_input && strncmp(n->name, RESERVED_NAMES, strlen(RESERVED_NAMES)) == 0;
}

uint32_t op_own_input(rlxvk_graph *g, const char *name, int64_t words)
{
    const node leaf = {.op = OP_input,
                       .dtype = RLXVK_F32,
                       .shape = RLXVK_SHAPE(words),
                       .name = name};
    uint32_t id = graph_find(g, OP_input, name);
    return id == NODE_NONE ? op_append_leaf(g, &leaf) : id;
}

rlxvk_tensor rlxvk_input(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape)
{
    node n = {.op = OP_input, .dtype = leaf_dtype(dtype), .shape = shape, .name = name};
    return leaf_append(g, &n);
}

rlxvk_tensor rlxvk_param(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape)
{
    node n = {.op = OP_param, .dtype = leaf_dtype(dtype), .shape = shape, .name = name};
    return leaf_append(g, &n);
}

rlxvk_tensor rlxvk_state(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape)
{
    if (!graph_ready(g, "state") || graph_fail(g, status_require(name, "state", "name")))
        return RLXVK_NONE;
    node n = {.op = OP_param,
              .dtype = leaf_dtype(dtype),
              .shape = shape,
              .name = name,
              .begins_as_zeros = true};
    return leaf_append(g, &n);
}

rlxvk_tensor rlxvk_constant(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape, const void *bytes,
                            size_t size)
{
    node n = {.op = OP_constant,
              .dtype = leaf_dtype(dtype),
              .shape = shape,
              .data = bytes || size ? bytes : "", /* non-NULL data makes the leaf a constant */
              .data_size = size};
    return leaf_append(g, &n);
}

/* The number of continuation bytes after this first byte; -1 if it cannot start a UTF-8 sequence.
 */
static int utf8_continuations(unsigned char first)
{
    if (first < 0x80)
        return 0;
    if (first < 0xc2 || first > 0xf4)
        return -1;
    return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

/* Strict: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool is_utf8(const char *name)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    for (const unsigned char *at = (const unsigned char *)name; *at;) {
        int extra = utf8_continuations(*at);
        if (extra < 0)
            return false;
        uint32_t point = *at++ & (0xffu >> (extra ? extra + 2 : 1));
        for (int i = 0; i < extra; i++, at++) {
            if ((*at & 0xc0) != 0x80) /* also the end of the name */
                return false;
            point = point << 6 | (*at & 0x3fu);
        }
        if (point < smallest[extra] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
            return false;
    }
    return true;
}

/* If a param is declared again with another shape or dtype, the two declarations conflict. */
static rlxvk_status fail_taken(const node *n, const node *other, uint32_t id)
{
    char here[SHAPE_TEXT], there[SHAPE_TEXT];
    if (n->op != OP_param || (n->dtype == other->dtype && shape_equal(&n->shape, &other->shape)))
        return op_fail(n, RLXVK_E_DUP_NAME,
                       "node %u has this name already; names of one kind must differ", id);
    return op_fail(n, RLXVK_E_PARAM_CONFLICT,
                   "%s %s, but node %u has this name and is %s %s; declare it once and use that "
                   "tensor, or choose another name",
                   rlxvk_dtype_name((rlxvk_dtype)n->dtype), shape_text(&n->shape, here), id,
                   rlxvk_dtype_name((rlxvk_dtype)other->dtype), shape_text(&other->shape, there));
}

static rlxvk_status check_name(const rlxvk_graph *g, const node *n)
{
    const char *row = node_row(n)->name;
    if (!n->name)
        return status_require(n->name, row, "name");
    size_t length = strlen(n->name);
    if (length == 0 || length > LONGEST_NAME)
        return status_fail(RLXVK_E_ATTR, "%s: a name of %zu bytes; names have 1 to %d", row, length,
                           LONGEST_NAME);
    if (!is_utf8(n->name))
        return status_fail(RLXVK_E_ATTR, "%s: the name of %zu bytes is not UTF-8; encode it so",
                           row, length);
    if (strncmp(n->name, RESERVED_NAMES, strlen(RESERVED_NAMES)) == 0)
        return op_fail(n, RLXVK_E_ATTR,
                       "names that begin with '%s' are the library's own; choose another",
                       RESERVED_NAMES);
    uint32_t id = graph_find(g, n->op, n->name);
    return id == NODE_NONE ? RLXVK_OK : fail_taken(n, graph_node(g, id), id);
}

static rlxvk_status check_data(const node *n)
{
    uint64_t numel, needed;
    char buffer[SHAPE_TEXT];
    if (!shape_numel_checked(&n->shape, &numel))
        return RLXVK_OK; /* op_check reports it */
    needed = numel * rlxvk_dtype_size((rlxvk_dtype)n->dtype);
    if (n->data_size != needed)
        return op_fail(n, RLXVK_E_CONST_SIZE, "%zu bytes given; %s of shape %s takes %llu",
                       n->data_size, rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                       shape_text(&n->shape, buffer), (unsigned long long)needed);
    return status_require_items(n->data, n->data_size, "constant", "bytes");
}

/* The caller's shape may be anything, so it is checked before any product of its dims. */
static rlxvk_status leaf_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    (void)attributes;
    if (n->dtype >= RLXVK_DTYPE_COUNT)
        return op_fail(n, RLXVK_E_DTYPE, "the element type is none of rlxvk_dtype");
    if (n->shape.rank > RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "rank %u above %d", n->shape.rank, RLXVK_MAX_RANK);
    for (uint32_t i = 0; i < n->shape.rank; i++)
        if (n->shape.dims[i] < 0)
            return op_fail(n, RLXVK_E_SHAPE,
                           "dim %u is %lld; dims are >= 0, and rlxvk_symbol stands for a size that "
                           "is given later",
                           i, (long long)n->shape.dims[i]);
    TRY(n->op == OP_constant ? check_data(n) : check_name(g, n));
error:
    return status;
}

static void leaf_describe(const node *n, text *out)
{
    if (n->data_size)
        text_append(out, " bytes=%zu", n->data_size);
}

const op_family leaf_family = {
    .name = "leaf",
    .infer = leaf_infer,
    .describe = leaf_describe,
};
