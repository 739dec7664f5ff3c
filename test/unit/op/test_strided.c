/*
 * Views with strides into other tensors' memory, without a device. Tests which slices and
 * transposes need no copy and which do, and the reason that a dump prints. Also tests strides after
 * a reshape against the address of every element.
 */
#include "op/strided.h"
#include "plan/plan.h"
#include "support/profiles.h"
#include "support/rewritten.h"

#include <rlxvk_ops_domain.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* ---- Shapes ---- */

static int64_t address(const rlxvk_shape *s, const int64_t *strides, uint64_t element)
{
    int64_t at = 0;
    for (uint32_t i = s->rank; i-- > 0;) {
        at += (int64_t)(element % (uint64_t)s->dims[i]) * strides[i];
        element /= (uint64_t)s->dims[i];
    }
    return at;
}

/* Returns true if strides for `to` exist that give every element's address. Finds them axis by
 * axis. */
static bool can_say(const rlxvk_shape *from, const int64_t *strides, const rlxvk_shape *to)
{
    int64_t found[RLXVK_MAX_RANK] = {0};
    uint64_t inner = 1;
    for (uint32_t i = to->rank; i-- > 0; inner *= (uint64_t)to->dims[i])
        found[i] = to->dims[i] > 1 ? address(from, strides, inner) : 0;
    for (uint64_t e = 0; e < inner; e++)
        if (address(to, found, e) != address(from, strides, e))
            return false;
    return true;
}

static rlxvk_shape random_shape(random_source *r, uint64_t elements)
{
    rlxvk_shape s = {.rank = 0};
    while (elements > 1 || random_below(r, 3) == 0) {
        uint32_t dim = (uint32_t[]){1, 2, 3, 4, 6}[random_below(r, 5)];
        if (s.rank == RLXVK_MAX_RANK - 1)
            dim = (uint32_t)elements;
        if (elements % dim)
            continue;
        s.dims[s.rank++] = dim;
        elements /= dim;
        if (s.rank == RLXVK_MAX_RANK)
            break;
    }
    return s;
}

/* Axes in a random order. Some have gaps between their elements. */
static void random_strides(random_source *r, const rlxvk_shape *s, int64_t *strides)
{
    uint32_t order[RLXVK_MAX_RANK];
    int64_t step = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        order[i] = s->rank - 1 - i;
    for (uint32_t i = 0; i < s->rank; i++) {
        uint32_t other = random_below(r, 4) ? i : random_below(r, s->rank), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint32_t i = 0; i < s->rank; i++) {
        step += random_below(r, 4) ? 0 : 1 + random_below(r, 3);
        strides[order[i]] = step;
        step *= s->dims[order[i]];
    }
}

static void reshapes(void **state)
{
    random_source r = {7};
    uint32_t said = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t elements = (uint64_t[]){1, 6, 24, 144}[random_below(&r, 4)];
        rlxvk_shape from = random_shape(&r, elements), to = random_shape(&r, elements);
        strided at = {.first = 5}, got;
        random_strides(&r, &from, at.strides);
        got = at;
        bool can = strided_reshape(&from, &to, &got);
        assert_int_equal(can, can_say(&from, at.strides, &to));
        for (uint64_t e = 0; can && e < elements; e++)
            assert_int_equal(address(&to, got.strides, e), address(&from, at.strides, e));
        assert_int_equal(got.first, 5);
        said += can;
    }
    assert_in_range(said, 4000, 16000);
}

/* ---- Copies ---- */

static rlxvk_tensor made(rlxvk_graph *g, rlxvk_shape shape)
{
    return rlxvk_neg(g, input(g, "x", shape));
}

static rlxvk_tensor attend(rlxvk_graph *g, const rlxvk_tensor part[3],
                           rlxvk_attention_layout layout)
{
    rlxvk_attention_options o = {.layout = layout};
    if (layout == RLXVK_LAYOUT_PACKED) {
        o.num_heads = 4;
        o.head_dim = 8;
    }
    return rlxvk_attention(g, part[0], part[1], part[2], RLXVK_NONE, &o);
}

/* Columns `at` to `at + count` of all rows. */
static rlxvk_tensor columns(rlxvk_graph *g, rlxvk_tensor x, int64_t at, int64_t count)
{
    return rlxvk_narrow(g, x, -1, at, count);
}

static rlxvk_tensor turn(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_transpose(g, x, (int32_t[]){0, 2, 1, 3}, 4);
}

/* q, k and v as [2, 5, 4, 8] from a product with 96 columns. */
static void parts(rlxvk_graph *g, rlxvk_tensor all, rlxvk_tensor out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = rlxvk_reshape(g, columns(g, all, 32 * i, 32), RLXVK_SHAPE(2, 5, 4, 8));
}

static rlxvk_tensor axis_of_three(rlxvk_graph *g)
{
    rlxvk_tensor all = made(g, RLXVK_SHAPE(2, 5, 3, 4, 8)), part[3];
    for (int i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(g, rlxvk_narrow(g, all, 2, i, 1), RLXVK_SHAPE(2, 5, 4, 8));
    return attend(g, part, RLXVK_LAYOUT_BSHD);
}

static rlxvk_tensor unequal_widths(rlxvk_graph *g)
{
    rlxvk_tensor all = made(g, RLXVK_SHAPE(2, 5, 64));
    rlxvk_tensor part[] = {columns(g, all, 0, 32), columns(g, all, 32, 16),
                           columns(g, all, 48, 16)};
    return attend(g, part, RLXVK_LAYOUT_PACKED);
}

static rlxvk_tensor heads_first(rlxvk_graph *g)
{
    rlxvk_tensor part[3];
    parts(g, made(g, RLXVK_SHAPE(10, 96)), part);
    for (int i = 0; i < 3; i++)
        part[i] = turn(g, part[i]);
    rlxvk_tensor y = turn(g, attend(g, part, RLXVK_LAYOUT_BHSD));
    return rlxvk_neg(g, rlxvk_reshape(g, y, RLXVK_SHAPE(10, 32)));
}

/* The transposed result is a part of a concat, so the attention writes directly into the concat. */
static rlxvk_tensor into_concat(rlxvk_graph *g)
{
    rlxvk_tensor part[3], all = made(g, RLXVK_SHAPE(10, 96));
    parts(g, all, part);
    rlxvk_tensor x = rlxvk_reshape(g, columns(g, all, 0, 32), RLXVK_SHAPE(2, 4, 5, 8));
    rlxvk_tensor y = turn(g, attend(g, part, RLXVK_LAYOUT_BSHD));
    return rlxvk_concat(g, (rlxvk_tensor[]){rlxvk_exp(g, x), y}, 2, 0);
}

static rlxvk_tensor into_caches(rlxvk_graph *g)
{
    rlxvk_tensor all = made(g, RLXVK_SHAPE(5, 64)), place = input(g, "position", RLXVK_SHAPE(1));
    rlxvk_tensor table = input(g, "table", RLXVK_SHAPE(9, 8));
    rlxvk_rope_options rope = {.head_dim = 8, .n_rot = 8, .table = RLXVK_ROPE_TABLE_PER_POSITION};
    rlxvk_tensor turned = rlxvk_rope(g, columns(g, all, 0, 48), columns(g, table, 0, 4),
                                     columns(g, table, 4, 4), &rope);
    rlxvk_tensor part[] = {columns(g, turned, 0, 32), columns(g, turned, 32, 16),
                           columns(g, all, 48, 16)};
    for (int i = 0; i < 3; i++) {
        part[i] = rlxvk_reshape(g, part[i], RLXVK_SHAPE(1, 5, i ? 2 : 4, 8));
        if (i == 0)
            continue;
        rlxvk_tensor cache = input(g, i == 1 ? "k" : "v", RLXVK_SHAPE(2, 9, 8));
        rlxvk_write_rows(g, cache, rlxvk_reshape(g, turn(g, part[i]), RLXVK_SHAPE(2, 5, 8)), place);
    }
    return attend(g, part, RLXVK_LAYOUT_BSHD);
}

/* k has `gap` rows between one sequence and the next. */
static rlxvk_tensor take_step(rlxvk_graph *g, int64_t gap)
{
    rlxvk_attention_step_options o = {.heads = 4, .kv_heads = 2, .head_dim = 8};
    rlxvk_tensor all = made(g, RLXVK_SHAPE(2, 3, 64));
    rlxvk_tensor k = rlxvk_exp(g, input(g, "other", RLXVK_SHAPE(2, 3 + gap, 16)));
    rlxvk_tensor caches[2];
    for (int i = 0; i < 2; i++)
        caches[i] = input(g, i ? "values" : "keys", RLXVK_SHAPE(2, 2, 20, 8));
    return rlxvk_attention_step(g, columns(g, all, 0, 32), rlxvk_narrow(g, k, 1, gap, 3),
                                columns(g, all, 48, 16), caches[0], caches[1],
                                input(g, "position", RLXVK_SHAPE(2)), RLXVK_NONE, RLXVK_NONE, &o);
}

static rlxvk_tensor step_rows(rlxvk_graph *g)
{
    return take_step(g, 0);
}

static rlxvk_tensor step_uneven(rlxvk_graph *g)
{
    return take_step(g, 2);
}

static rlxvk_tensor chain(rlxvk_graph *g)
{
    rlxvk_tensor x = columns(g, made(g, RLXVK_SHAPE(2, 5, 4, 12)), 2, 8);
    return rlxvk_softmax(g, turn(g, x), -1);
}

static rlxvk_tensor some_heads(rlxvk_graph *g)
{
    rlxvk_tensor x = turn(g, made(g, RLXVK_SHAPE(2, 5, 6, 8)));
    x = rlxvk_narrow(g, x, 1, 1, 4);
    return attend(g, (rlxvk_tensor[]){x, x, x}, RLXVK_LAYOUT_BHSD);
}

/* Attention of the three parts. `more` adds another use of part 1. */
static rlxvk_tensor with_more(rlxvk_graph *g, rlxvk_tensor (*more)(rlxvk_graph *, rlxvk_tensor))
{
    rlxvk_tensor part[3];
    parts(g, made(g, RLXVK_SHAPE(10, 96)), part);
    rlxvk_graph_output(g, more(g, part[1]));
    return attend(g, part, RLXVK_LAYOUT_BSHD);
}

static rlxvk_tensor same(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)g;
    return x;
}

static rlxvk_tensor normalized(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_softmax(g, x, -1);
}

static rlxvk_tensor attended(rlxvk_graph *g, rlxvk_tensor x)
{
    return attend(g, (rlxvk_tensor[]){x, x, x}, RLXVK_LAYOUT_BSHD);
}

static rlxvk_tensor is_output(rlxvk_graph *g)
{
    return with_more(g, same);
}

static rlxvk_tensor is_needed(rlxvk_graph *g)
{
    return with_more(g, normalized);
}

static rlxvk_tensor twice_attended(rlxvk_graph *g)
{
    return with_more(g, attended);
}

static rlxvk_tensor merged(rlxvk_graph *g)
{
    rlxvk_tensor x =
        rlxvk_reshape(g, columns(g, made(g, RLXVK_SHAPE(10, 96)), 0, 32), RLXVK_SHAPE(320));
    return attended(g, rlxvk_reshape(g, x, RLXVK_SHAPE(2, 5, 4, 8)));
}

static rlxvk_tensor turned_columns(rlxvk_graph *g)
{
    rlxvk_tensor x = made(g, RLXVK_SHAPE(2, 5, 8, 4));
    return attended(g, rlxvk_transpose(g, x, (int32_t[]){0, 1, 3, 2}, 4));
}

static rlxvk_tensor of_mask(rlxvk_graph *g)
{
    rlxvk_tensor x = made(g, RLXVK_SHAPE(2, 5, 4, 8)), mask = input(g, "mask", RLXVK_SHAPE(2, 9));
    rlxvk_attention_options o = {.layout = RLXVK_LAYOUT_BSHD, .mask = RLXVK_MASK_CUSTOM};
    return rlxvk_attention(g, x, x, x, columns(g, mask, 0, 5), &o);
}

/* Reads the cache as it was before the write. */
static rlxvk_tensor overwritten(rlxvk_graph *g)
{
    rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(4, 9, 8));
    rlxvk_tensor x = rlxvk_reshape(g, rlxvk_narrow(g, cache, 1, 0, 5), RLXVK_SHAPE(1, 4, 5, 8));
    rlxvk_write_rows(g, cache, input(g, "rows", RLXVK_SHAPE(4, 1, 8)),
                     input(g, "position", RLXVK_SHAPE(1)));
    return attend(g, (rlxvk_tensor[]){x, x, x}, RLXVK_LAYOUT_BHSD);
}

static rlxvk_tensor waited_for(rlxvk_graph *g)
{
    rlxvk_tensor x = made(g, RLXVK_SHAPE(10, 96)), part[3];
    parts(g, rlxvk_after(g, x, rlxvk_exp(g, x)), part);
    return attend(g, part, RLXVK_LAYOUT_BSHD);
}

static rlxvk_tensor shared_result(rlxvk_graph *g)
{
    rlxvk_tensor x = made(g, RLXVK_SHAPE(2, 4, 5, 8));
    rlxvk_tensor y = attend(g, (rlxvk_tensor[]){x, x, x}, RLXVK_LAYOUT_BHSD);
    rlxvk_graph_output(g, rlxvk_neg(g, y));
    return rlxvk_neg(g, turn(g, y));
}

static rlxvk_tensor result_as_output(rlxvk_graph *g)
{
    rlxvk_tensor x = made(g, RLXVK_SHAPE(2, 4, 5, 8));
    rlxvk_tensor y = attend(g, (rlxvk_tensor[]){x, x, x}, RLXVK_LAYOUT_BHSD);
    rlxvk_graph_output(g, y);
    return rlxvk_neg(g, turn(g, y));
}

static rlxvk_tensor otherwise_turned(rlxvk_graph *g)
{
    rlxvk_tensor x = made(g, RLXVK_SHAPE(2, 4, 5, 8));
    rlxvk_tensor y = attend(g, (rlxvk_tensor[]){x, x, x}, RLXVK_LAYOUT_BHSD);
    return rlxvk_neg(g, rlxvk_transpose(g, y, (int32_t[]){1, 0, 2, 3}, 4));
}

static rlxvk_tensor other_maker(rlxvk_graph *g)
{
    return rlxvk_neg(g, turn(g, made(g, RLXVK_SHAPE(2, 4, 5, 8))));
}

/* ---- Products in parts ---- */

/* [2, 5, 96] */
static rlxvk_tensor product(rlxvk_graph *g)
{
    return rlxvk_matmul(g, made(g, RLXVK_SHAPE(2, 5, 24)),
                        rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(24, 96)));
}

static rlxvk_tensor attend_parts(rlxvk_graph *g, rlxvk_tensor all)
{
    rlxvk_tensor part[3];
    parts(g, all, part);
    return attend(g, part, RLXVK_LAYOUT_BSHD);
}

static rlxvk_tensor divided(rlxvk_graph *g)
{
    rlxvk_tensor part[3];
    parts(g, product(g), part);
    rlxvk_graph_output(g, rlxvk_softmax(g, part[1], -1));
    return attend(g, part, RLXVK_LAYOUT_BSHD);
}

static rlxvk_tensor two_packed(rlxvk_graph *g)
{
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(96, 34)), part[2];
    rlxvk_tensor all = rlxvk_dequant_matmul(g, made(g, RLXVK_SHAPE(10, 32)), w, RLXVK_Q8_0);
    part[0] = rlxvk_reshape(g, columns(g, all, 64, 32), RLXVK_SHAPE(2, 5, 4, 8));
    part[1] = rlxvk_softmax(g, columns(g, all, 0, 64), -1);
    rlxvk_graph_output(g, part[1]);
    return attended(g, part[0]);
}

/* Two column ranges of equal width. Both are needed dense. */
static rlxvk_tensor two_dense(rlxvk_graph *g, rlxvk_tensor all, int64_t second, int64_t count)
{
    return rlxvk_add(g, rlxvk_softmax(g, columns(g, all, 0, count), -1),
                     rlxvk_softmax(g, columns(g, all, second, count), -1));
}

static rlxvk_tensor one_row(rlxvk_graph *g)
{
    rlxvk_tensor x = rlxvk_matmul(g, made(g, RLXVK_SHAPE(1, 24)),
                                  rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(24, 96)));
    return two_dense(g, x, 48, 48);
}

static rlxvk_tensor whole_too(rlxvk_graph *g)
{
    rlxvk_tensor all = product(g);
    rlxvk_graph_output(g, rlxvk_softmax(g, columns(g, all, 0, 32), -1));
    return rlxvk_exp(g, all);
}

static rlxvk_tensor product_is_output(rlxvk_graph *g)
{
    rlxvk_tensor all = product(g);
    rlxvk_graph_output(g, all);
    return two_dense(g, all, 48, 48);
}

static rlxvk_tensor part_is_output(rlxvk_graph *g)
{
    rlxvk_tensor all = product(g);
    rlxvk_graph_output(g, columns(g, all, 0, 48));
    return rlxvk_softmax(g, columns(g, all, 48, 48), -1);
}

/* The output is a copy of the part, so the part itself is not an output. */
static rlxvk_tensor turned_part(rlxvk_graph *g)
{
    rlxvk_tensor all = product(g);
    rlxvk_graph_output(g,
                       rlxvk_transpose(g, columns(g, all, 0, 48), (const int32_t[]){0, 2, 1}, 3));
    return rlxvk_softmax(g, columns(g, all, 48, 48), -1);
}

static rlxvk_tensor with_a_gap(rlxvk_graph *g)
{
    return two_dense(g, product(g), 48, 40);
}

static rlxvk_tensor overlapping(rlxvk_graph *g)
{
    return two_dense(g, product(g), 40, 56);
}

/* All columns, and some of them once more. */
static rlxvk_tensor within_others(rlxvk_graph *g)
{
    rlxvk_tensor all = product(g);
    rlxvk_graph_output(g, rlxvk_softmax(g, columns(g, all, 8, 32), -1));
    return rlxvk_softmax(g, columns(g, all, 0, 96), -1);
}

static rlxvk_tensor four_parts(rlxvk_graph *g)
{
    rlxvk_tensor all = product(g), sum = rlxvk_softmax(g, columns(g, all, 72, 24), -1);
    for (int i = 0; i < 3; i++)
        sum = rlxvk_add(g, sum, rlxvk_softmax(g, columns(g, all, 24 * i, 24), -1));
    return sum;
}

/* The weights are several matrices one after the other, so the parts are not columns of one matrix.
 */
static rlxvk_tensor many_matrices(rlxvk_graph *g)
{
    return attend_parts(g, rlxvk_matmul(g, made(g, RLXVK_SHAPE(2, 5, 24)),
                                        rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2, 24, 96))));
}

typedef struct row {
    const char *what;
    rlxvk_tensor (*build)(rlxvk_graph *);
    uint32_t without, with;
    const char *reason; /* why a copy is left; NULL: no reason */
} row;

static const row rows[] = {
    {"an axis of three", axis_of_three, 3, 0, NULL},
    {"unequal widths", unequal_widths, 3, 0, NULL},
    {"heads first, and back", heads_first, 7, 0, NULL},
    {"a result into its concat", into_concat, 5, 1, NULL},
    {"rotation, caches, tables", into_caches, 8, 0, NULL},
    {"a step's rows", step_rows, 2, 0, NULL},
    {"a step's uneven rows", step_uneven, 3, 1, "attention_step %10 does not take it at strides"},
    {"a copy of a part", chain, 2, 1, NULL},
    {"some heads, turned", some_heads, 2, 0, NULL},
    {"two attentions", twice_attended, 3, 0, NULL},
    {"a part that is an output", is_output, 3, 1, "reshape %5 is a graph output"},
    {"a part needed dense", is_needed, 3, 1, "softmax %8 does not take it at strides"},
    {"axes merged", merged, 1, 1, "reshape %3 does not take it at strides"},
    {"columns that are turned", turned_columns, 1, 1, "attention %3 does not take it at strides"},
    {"a mask", of_mask, 1, 1, NULL},
    {"a cache that changes", overwritten, 1, 1, "written in place"},
    {"what must wait", waited_for, 3, 3, "waited for"},
    {"a result with more readers", shared_result, 1, 1, "attention %2 has other readers"},
    {"a result that is an output", result_as_output, 1, 1, "attention %2 has other readers"},
    {"another order", otherwise_turned, 1, 1, NULL},
    {"another op's result", other_maker, 1, 1, NULL},
    {"a product's parts", divided, 3, 0, NULL},
    {"two unequal parts, packed weights", two_packed, 2, 0, NULL},
    {"parts of a row", one_row, 0, 0, NULL},
    {"a product that is read whole", whole_too, 1, 1, "%3 is not made in parts: it is read as a"},
    {"a product that is an output", product_is_output, 2, 2, "parts: it is a graph output"},
    {"a product's part as output", part_is_output, 2, 0, NULL},
    {"a product's part as output, turned", turned_part, 3, 1, NULL},
    {"columns left out", with_a_gap, 2, 2, "parts: the parts are not all columns"},
    {"columns of two parts", overlapping, 2, 2, "parts: the parts are not all columns"},
    {"columns within others", within_others, 1, 1, "parts: the parts are not all columns"},
    {"four parts", four_parts, 4, 4, "parts: it has more than three readers"},
    {"parts of many matrices", many_matrices, 3, 0, NULL},
};

static rlxvk_graph *build_row(const row *r)
{
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, r->build(g));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static uint32_t count_copies(const rlxvk_graph *g, schedule_options how)
{
    device_profile profile = ORDINARY_GPU;
    const plan_options layout = {.max_block_bytes = 1u << 30,
                                 .max_binding_bytes = 1u << 30,
                                 .alignment = 256};
    schedule s;
    plan p;
    uint32_t count = 0;
    how.profile = &profile;
    expect_ok(schedule_create(g, &how, &s));
    for (size_t i = 0; i < s.dispatches.count; i++)
        count += s.dispatches.items[i].kernel == KERNEL_STRIDED_COPY ||
                 s.dispatches.items[i].kernel == KERNEL_TRANSPOSE2D;
    expect_ok(plan_create(&s, &layout, &p));
    expect_ok(plan_check(&s, &p, NULL));
    plan_destroy(&p);
    schedule_destroy(&s);
    return count;
}

static void copies(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = build_row(&rows[i]);
        bool hosted[OP_COUNT] = {[OP_attention] = true,
                                 [OP_attention_step] = true,
                                 [OP_rope] = true,
                                 [OP_matmul] = true,
                                 [OP_write_rows] = true};
        uint32_t dense = count_copies(g, (schedule_options){.strided = false});
        expect_count(rows[i].what, dense, rows[i].without);
        expect_count(rows[i].what, count_copies(g, (schedule_options){.strided = true}),
                     rows[i].with);
        expect_count("all kept",
                     count_copies(g, (schedule_options){.strided = true, .keep_all = true}),
                     count_copies(g, (schedule_options){.keep_all = true}));
        uint32_t aside = count_copies(g, (schedule_options){.strided = true, .on_host = hosted});
        assert_true(aside >= rows[i].with);
        if (rows[i].with == 0 && rows[i].without > 0)
            assert_true(aside > 0);
        rlxvk_graph_destroy(g);
    }
}

/* ---- Reasons ---- */

static void list_copy(void *user, uint32_t id, const char *pattern, const char *reason)
{
    text_append(user, "%%%u %s: %s\n", id, pattern, reason);
}

static void reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = build_row(&rows[i]);
        char said[2048] = "";
        expect_ok(rewrite_find_copies(g, NULL, true, list_copy, &(text){said, sizeof said, 0}));
        bool right = rows[i].reason ? strstr(said, rows[i].reason) != NULL : said[0] == 0;
        if (!right)
            print_error("%s: '%s'\n", rows[i].what, said);
        assert_true(right);
        said[0] = 0;
        expect_ok(rewrite_find_copies(g, NULL, false, list_copy, &(text){said, sizeof said, 0}));
        bool off = strstr(said, "strides are off") != NULL;
        if (rows[i].with < rows[i].without && rows[i].build != chain && !off)
            print_error("%s, off: '%s'\n", rows[i].what, said);
        assert_true(off || rows[i].with == rows[i].without || rows[i].build == chain);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reshapes), cmocka_unit_test(copies),
                                       cmocka_unit_test(reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
