/*
 * Attention whose operands are slices and transposes of other tensors: also rotations, caches and
 * attention steps, in random graphs. If operands are read in place through strides, results must
 * have the same bits as without strides, and be near the host's. Plans must be sound, and operands
 * that can be read in place must not be copied.
 */
#include "support/harness.h"

#include <rlxvk_ops_domain.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct scheme {
    random_source r;
    int64_t batch, rows, heads, kv_heads, width;
    uint32_t names;
} scheme;

static bool chance(scheme *s, uint32_t n)
{
    return random_below(&s->r, n) == 0;
}

static rlxvk_tensor leaf(rlxvk_graph *g, scheme *s, rlxvk_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "x%u", s->names++);
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

static rlxvk_tensor turn(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_transpose(g, x, (int32_t[]){0, 2, 1, 3}, 4);
}

/* Rotates x. The tables have one row for each row of x; both may be slices of one tensor. */
static rlxvk_tensor rotate(rlxvk_graph *g, scheme *s, rlxvk_tensor x)
{
    rlxvk_rope_options o = {.head_dim = s->width,
                            .n_rot = chance(s, 2) ? s->width : 2,
                            .style = chance(s, 2) ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX,
                            .table = RLXVK_ROPE_TABLE_PER_POSITION};
    int64_t half = s->width / 2, rows = s->batch * s->rows;
    rlxvk_tensor all = leaf(g, s, RLXVK_SHAPE(rows, 2 * half));
    rlxvk_tensor cos = rlxvk_narrow(g, all, 1, 0, half), sin = rlxvk_narrow(g, all, 1, half, half);
    if (chance(s, 3))
        sin = leaf(g, s, RLXVK_SHAPE(rows, half));
    return rlxvk_rope(g, x, cos, rlxvk_reshape(g, sin, RLXVK_SHAPE(rows, half)), &o);
}

/* x w, divided by 8. The scores stay moderate because errors grow with them. If only slices of the
 * product are read, it may be written in parts. */
static rlxvk_tensor product(rlxvk_graph *g, scheme *s, rlxvk_tensor x, rlxvk_tensor w)
{
    const float part = 0.125f;
    rlxvk_tensor factor = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &part, sizeof part);
    if (chance(s, 2))
        return rlxvk_matmul(g, rlxvk_mul(g, x, factor), w);
    return rlxvk_mul(g, rlxvk_matmul(g, x, w), factor);
}

/* Makes q, k and v, [batch * rows, heads * width], as slices of one product or of several. */
static void project(rlxvk_graph *g, scheme *s, rlxvk_tensor x, rlxvk_tensor out[3])
{
    int64_t kv = s->kv_heads * s->width, q = s->heads * s->width, gap = chance(s, 3) ? 3 : 0;
    int64_t widths[] = {q, kv, kv}, at = gap, inputs = rlxvk_tensor_shape(g, x).dims[1];
    rlxvk_tensor all = product(g, s, x, leaf(g, s, RLXVK_SHAPE(inputs, q + 2 * kv + gap)));
    rlxvk_tensor turned = all;
    if (chance(s, 3))
        turned = rotate(g, s, rlxvk_narrow(g, all, 1, gap, q + kv));
    for (int i = 0; i < 3; at += widths[i++]) {
        bool early = turned.id != all.id && i < 2;
        out[i] = rlxvk_narrow(g, early ? turned : all, 1, early ? at - gap : at, widths[i]);
        if (chance(s, 4) && i < 2)
            out[i] = rotate(g, s, out[i]);
    }
    if (chance(s, 3)) /* not a slice: a reader of its transpose must not write over it */
        out[0] = product(g, s, x, leaf(g, s, RLXVK_SHAPE(inputs, q)));
}

/* Adds other readers besides attention: an output, a reader of dense rows, and a cache. */
static void read_otherwise(rlxvk_graph *g, scheme *s, rlxvk_tensor x)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    int64_t d[] = {shape.dims[1], shape.dims[2], shape.dims[3]};
    if (chance(s, 8))
        rlxvk_graph_output(g, x);
    if (chance(s, 8))
        rlxvk_graph_output(g, rlxvk_exp(g, x));
    if (!chance(s, 3))
        return;
    rlxvk_tensor cache = leaf(g, s, RLXVK_SHAPE(d[0], d[1] + 2, d[2]));
    rlxvk_tensor rows =
        rlxvk_reshape(g, rlxvk_narrow(g, x, 0, 0, 1), RLXVK_SHAPE(d[0], d[1], d[2]));
    float at = (float)random_below(&s->r, 4);
    rlxvk_tensor place = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &at, sizeof at);
    rlxvk_tensor before = rlxvk_narrow(g, cache, -1, 0, 2);
    rlxvk_graph_output(g, rlxvk_write_rows(g, cache, rows, place));
    if (chance(s, 2))
        rlxvk_graph_output(g, turn(g, rlxvk_reshape(g, before, RLXVK_SHAPE(1, d[0], d[1] + 2, 2))));
}

static rlxvk_tensor attend_rows(rlxvk_graph *g, scheme *s, const rlxvk_tensor part[3])
{
    rlxvk_tensor x[3];
    bool first = chance(s, 2); /* heads before rows */
    rlxvk_attention_options o = {.layout = first ? RLXVK_LAYOUT_BHSD : RLXVK_LAYOUT_BSHD,
                                 .mask = chance(s, 2) ? RLXVK_MASK_CAUSAL : RLXVK_MASK_NONE};
    for (int i = 0; i < 3; i++) {
        int64_t heads = i ? s->kv_heads : s->heads;
        x[i] = rlxvk_reshape(g, part[i], RLXVK_SHAPE(s->batch, s->rows, heads, s->width));
        if (first)
            x[i] = turn(g, x[i]);
        if (first && i < 2 && chance(s, 4))
            x[i] = rotate(g, s, x[i]);
        read_otherwise(g, s, x[i]);
    }
    if (chance(s, 8))
        x[2] = x[1];
    rlxvk_tensor y = rlxvk_attention(g, x[0], x[1], x[2], RLXVK_NONE, &o);
    if (chance(s, 8))
        rlxvk_graph_output(g, rlxvk_neg(g, y));
    return first ? turn(g, y) : y;
}

static rlxvk_tensor attend_step(rlxvk_graph *g, scheme *s, const rlxvk_tensor part[3])
{
    rlxvk_attention_step_options o = {.heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->width};
    rlxvk_tensor x[3], caches[2];
    float at[4];
    for (int i = 0; i < 4; i++)
        at[i] = (float)random_below(&s->r, 6);
    for (int i = 0; i < 3; i++)
        x[i] = rlxvk_reshape(g, part[i], RLXVK_SHAPE(s->batch, s->rows, -1));
    for (int i = 0; i < 2; i++)
        caches[i] = leaf(g, s, RLXVK_SHAPE(s->batch, s->kv_heads, s->rows + 7, s->width));
    return rlxvk_attention_step(g, x[0], x[1], x[2], caches[0], caches[1],
                                rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(s->batch), at,
                                               (size_t)s->batch * sizeof *at),
                                RLXVK_NONE, RLXVK_NONE, &o);
}

static rlxvk_tensor block(rlxvk_graph *g, scheme *s, rlxvk_tensor x, bool steps)
{
    rlxvk_tensor part[3];
    project(g, s, x, part);
    rlxvk_tensor y = steps ? attend_step(g, s, part) : attend_rows(g, s, part);
    return rlxvk_reshape(g, y, RLXVK_SHAPE(s->batch * s->rows, s->heads * s->width));
}

/* A loop. The value that it carries is read by attention both directly and through a product. */
static rlxvk_tensor loop(rlxvk_graph *g, scheme *s, rlxvk_tensor x)
{
    rlxvk_graph *body = NULL;
    rlxvk_scan_options o = {.length = 20, .broadcast_count = 1};
    int64_t rows = s->batch * s->rows, q = s->heads * s->width;
    rlxvk_attention_options how = {.num_heads = 1, .layout = RLXVK_LAYOUT_PACKED};
    expect_ok(rlxvk_graph_create(&body));
    rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(rows, 2 * q));
    rlxvk_tensor w = rlxvk_input(body, "w", RLXVK_F32, RLXVK_SHAPE(2 * q, 3 * q));
    rlxvk_tensor all = product(body, s, c, w), half = rlxvk_narrow(body, c, 1, q, q);
    rlxvk_tensor y = rlxvk_attention(body, rlxvk_narrow(body, all, 1, 0, q),
                                     rlxvk_narrow(body, all, 1, q, q), half, RLXVK_NONE, &how);
    y = rlxvk_concat(body, (rlxvk_tensor[]){y, half}, 2, 1);
    if (chance(s, 2))
        y = rlxvk_min(body, y, c);
    rlxvk_graph_output(body, y);
    expect_ok(rlxvk_graph_status(body));
    rlxvk_tensor given[] = {leaf(g, s, RLXVK_SHAPE(rows, 2 * q)),
                            leaf(g, s, RLXVK_SHAPE(2 * q, 3 * q))};
    y = rlxvk_scan(g, body, given, 2, &o);
    rlxvk_graph_destroy(body);
    return rlxvk_matmul(g, x,
                        rlxvk_transpose(g, rlxvk_narrow(g, y, 1, 0, q), (int32_t[]){1, 0}, 2));
}

static rlxvk_graph *build(uint64_t seed)
{
    scheme s = {.r = {seed}};
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    s.batch = 1 + random_below(&s.r, 2);
    s.rows = (int64_t[]){1, 3, 20}[random_below(&s.r, 3)];
    s.kv_heads = 1 + random_below(&s.r, 2);
    s.heads = s.kv_heads * (1 + random_below(&s.r, 2));
    s.width = chance(&s, 2) ? 6 : 8; /* 6 is not a multiple of 4 */
    rlxvk_tensor x = leaf(g, &s, RLXVK_SHAPE(s.batch * s.rows, s.heads * s.width));
    bool steps = chance(&s, 4);
    x = block(g, &s, x, steps);
    if (chance(&s, 2))
        x = block(g, &s, x, steps);
    if (chance(&s, 5))
        x = loop(g, &s, x);
    rlxvk_graph_output(g, rlxvk_neg(g, x));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static float *run_in(rlxvk_context *c, const rlxvk_graph *g, uint64_t seed, uint64_t *dispatches,
                     size_t *count)
{
    rlxvk_compile_options o = {.check_plan = RLXVK_ON,
                               .reorder = seed % 2 ? RLXVK_OFF : RLXVK_ON,
                               .forbid_host = RLXVK_ON};
    rlxvk_executable *e = NULL;
    rlxvk_plan_report report;
    expect_ok(rlxvk_compile(c, g, &o, &e));
    rlxvk_executable_plan(e, &report);
    *dispatches += report.dispatches;
    float *values = run_seeded(e, g, seed, false, count);
    rlxvk_executable_destroy(e);
    return values;
}

static void same_bits(void **state)
{
    rlxvk_context *dense;
    uint64_t with = 0, without = 0;
    (void)state;
    setenv("RLXVK_NO_STRIDED_ACCESS", "1", 1);
    dense = open_context(NULL);
    unsetenv("RLXVK_NO_STRIDED_ACCESS");
    for (uint64_t seed = 1; seed <= harness_rounds(60); seed++) {
        rlxvk_graph *g = build(seed);
        size_t count;
        float *a = run_in(shared_context, g, seed, &with, &count);
        float *b = run_in(dense, g, seed, &without, &count);
        float *host = evaluate_seeded(g, seed, false, &count);
        for (size_t i = 0; i < count; i++) {
            bool close = fabsf(b[i] - host[i]) <= 1e-4f * (1 + fabsf(host[i]));
            if (memcmp(&a[i], &b[i], sizeof *a) != 0 || !close)
                fail_msg(
                    "seed %llu, element %zu: %.9g with strides, %.9g without, %.9g on the host",
                    (unsigned long long)seed, i, (double)a[i], (double)b[i], (double)host[i]);
        }
        free(a);
        free(b);
        free(host);
        rlxvk_graph_destroy(g);
    }
    close_context(dense);
    print_message("%llu dispatches instead of %llu\n", (unsigned long long)with,
                  (unsigned long long)without);
    assert_true(with * 4 < without * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
