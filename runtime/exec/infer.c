/*
 * Computes symbols from lengths. An input's length is the product of its dims. If all but one of
 * its symbols are known, the unknown one is the quotient. If it stands there several times, it is a
 * root of the quotient. Known symbols may come from other inputs, in any order.
 */
#include "exec/infer.h"
#include "base/numeric.h"
#include "program/name.h"

#include <math.h>

typedef struct given_input {
    const char *name;
    const symbol_table *table;
    rlxvk_shape shape;
    uint64_t elements;
    uint64_t known;   /* product of the known dims */
    int64_t unknown;  /* a symbol without a size; 0: none */
    uint32_t times;   /* how often it stands there */
    bool others;      /* more is unknown than this symbol */
    bool is_symbolic; /* has symbols at all */
} given_input;

static rlxvk_status look_up(const rlxvk_graph *g, const char *call, const rlxvk_run_input *item,
                            given_input *out)
{
    uint32_t id = program_input_of(g, item->name);
    if (id == NODE_NONE)
        return name_unknown(g, call, "input", item->name);
    const node *n = graph_node(g, id);
    size_t unit = item->f32_words && n->dtype == RLXVK_C64 ? 2 : 1;
    *out = (given_input){.name = n->name,
                         .table = g->symbols,
                         .shape = g->symbols->nodes.items[id].shape,
                         .elements = item->length / unit};
    out->is_symbolic = symbol_in_shape(&out->shape);
    if (item->length % unit && out->is_symbolic)
        return status_fail(RLXVK_E_LENGTH, "%s: input '%s': %zu f32 words are no whole elements",
                           call, n->name, item->length);
    return RLXVK_OK;
}

/* Sorts the dims into known and unknown ones. */
static rlxvk_status measure(given_input *in, const binding_list *sizes)
{
    rlxvk_status status = RLXVK_OK;
    in->known = 1;
    in->unknown = 0;
    in->times = 0;
    in->others = false;
    for (uint32_t i = 0; i < in->shape.rank; i++) {
        int64_t dim = in->shape.dims[i], size;
        if (symbol_is_bound(in->table, sizes->items, sizes->count, dim)) {
            TRY(symbol_bind(in->table, sizes->items, sizes->count, dim, &size));
            if (!size_multiply(in->known, (uint64_t)size, &in->known))
                return status_fail(RLXVK_E_TOO_LARGE, "input '%s' has 2^64 elements or more",
                                   in->name);
        } else if (symbol_is_plain(dim, NULL) && (in->unknown == 0 || in->unknown == dim)) {
            in->unknown = dim;
            in->times++;
        } else {
            in->others = true;
        }
    }
error:
    return status;
}

/* Finds the whole number whose power `power` is `value`; false if there is none. */
static bool whole_root(uint64_t value, uint32_t power, uint64_t *out)
{
    uint64_t guess = (uint64_t)numeric_round(pow((double)value, 1.0 / power));
    for (uint64_t root = guess ? guess - 1 : 0; root <= guess + 1; root++) {
        uint64_t product = 1;
        bool fits = true;
        for (uint32_t i = 0; i < power; i++)
            fits = fits && size_multiply(product, root, &product);
        if (fits && product == value) {
            *out = root;
            return true;
        }
    }
    return false;
}

static rlxvk_status fail_ambiguous(const char *call, const given_input *in, const char *why)
{
    char shape[SHAPE_TEXT];
    return status_fail(
        RLXVK_E_BIND_AMBIGUOUS,
        "%s: %llu elements of input '%s', %s, do not tell its symbols: %s; bind them "
        "with rlxvk_bind_symbols",
        call, (unsigned long long)in->elements, in->name,
        symbol_shape_text(NULL, &in->shape, shape), why);
}

static rlxvk_status solve(const char *call, const given_input *in, binding_list *sizes)
{
    uint64_t size;
    uint32_t id;
    char shape[SHAPE_TEXT];
    if (in->known == 0)
        return fail_ambiguous(call, in, "another dim is 0");
    if (in->elements % in->known)
        return status_fail(RLXVK_E_LENGTH,
                           "%s: %llu elements are given for input '%s', %s: no multiple of %llu",
                           call, (unsigned long long)in->elements, in->name,
                           symbol_shape_text(NULL, &in->shape, shape),
                           (unsigned long long)in->known);
    if (!whole_root(in->elements / in->known, in->times, &size))
        return fail_ambiguous(call, in, "no whole number has that power");
    (void)symbol_is_plain(in->unknown, &id);
    return bind_resolve(&(rlxvk_binding){id, (int64_t)MIN(size, INT64_MAX)}, 1, sizes);
}

/* Computes the symbol of one input, if the sizes known so far suffice. */
static rlxvk_status advance(const char *call, given_input *in, binding_list *sizes, bool *progress)
{
    rlxvk_status status;
    TRY(measure(in, sizes));
    if (!in->unknown && !in->others && in->is_symbolic && in->known != in->elements) {
        char told[160] = "";
        symbol_sizes_text(sizes->items, sizes->count, &(text){.buffer = told, .size = sizeof told});
        return status_fail(RLXVK_E_BIND_CONFLICT,
                           "%s: input '%s' has %llu elements; with %s it has %llu", call, in->name,
                           (unsigned long long)in->elements, told, (unsigned long long)in->known);
    }
    if (in->unknown && !in->others) {
        TRY(solve(call, in, sizes));
        *progress = true;
    }
error:
    return status;
}

/* Inputs may tell BATCH, SEQ and ROWS independently, so they must agree. */
static rlxvk_status check_rows(const char *call, const binding_list *sizes)
{
    int64_t batch = symbol_size(sizes->items, sizes->count, RLXVK_BATCH), product;
    int64_t seq = symbol_size(sizes->items, sizes->count, RLXVK_SEQ);
    int64_t rows = symbol_size(sizes->items, sizes->count, RLXVK_ROWS);
    if (batch < 0 || seq < 0 || rows < 0 ||
        (!multiply_overflows(batch, seq, &product) && product == rows))
        return RLXVK_OK;
    return status_fail(RLXVK_E_BIND_CONFLICT,
                       "%s: lengths tell ROWS=%lld, but BATCH=%lld and SEQ=%lld", call,
                       (long long)rows, (long long)batch, (long long)seq);
}

static rlxvk_status infer_all(const char *call, given_input *all, size_t count, binding_list *out)
{
    rlxvk_status status = RLXVK_OK;
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < count; i++)
            TRY(advance(call, &all[i], out, &progress));
    }
    for (size_t i = 0; i < count; i++)
        if (all[i].others)
            return fail_ambiguous(call, &all[i], "there are several");
    TRY(check_rows(call, out));
error:
    return status;
}

rlxvk_status infer_sizes(const rlxvk_graph *g, const char *call, const sized_array *inputs,
                         binding_list *out)
{
    size_t count = inputs->count;
    given_input *all = memory_zeroed(count + 1, sizeof *all);
    rlxvk_run_input own;
    rlxvk_status status;
    TRY(all ? RLXVK_OK : status_fail_memory("bindings"));
    for (size_t i = 0; i < count; i++)
        TRY(look_up(g, call, sized_item(SIZED(rlxvk_run_input), inputs, i, &own), &all[i]));
    TRY(infer_all(call, all, count, out));
error:
    memory_free(all);
    return status;
}
