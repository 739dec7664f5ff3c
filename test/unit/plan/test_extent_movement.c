/*
 * Random chains of ops that move elements, with one bucketed input. The test knows only the public
 * contract of rlxvk_set_active_extent. If the analysis supports a graph, each output must have an
 * axis along which the first rows depend only on active rows. The host finds dependences on other
 * rows, because those rows are NaN.
 */
#include "op/evaluation.h"
#include "plan/extent.h"
#include "rewrite/rewrite.h"
#include "support/profiles.h"
#include "support/random_graph.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_array.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

typedef struct chain {
    rlxvk_graph *g;
    random_source r;
    rlxvk_tensor x;
    rlxvk_shape s;
} chain;

static int32_t any_axis(chain *c)
{
    return (int32_t)random_below(&c->r, c->s.rank);
}

/* ---- The ops. The tensor has rank 1 at least and no empty dims ---- */

/* Joins all axes to one dim and divides it into new axes. */
static rlxvk_tensor reshaped(chain *c)
{
    rlxvk_shape to = {0};
    int64_t left = 1;
    for (uint32_t i = 0; i < c->s.rank; i++)
        left *= c->s.dims[i];
    while (to.rank < 3 && random_below(&c->r, 4)) {
        int64_t dim = 1 + random_below(&c->r, (uint32_t)left);
        while (left % dim)
            dim--;
        to.dims[to.rank++] = dim;
        left /= dim;
    }
    to.dims[to.rank++] = left;
    return rlxvk_reshape(c->g, c->x, to);
}

/* Merges two neighbouring axes into one, or splits one into two. */
static rlxvk_tensor flattened(chain *c)
{
    int32_t at = any_axis(c);
    rlxvk_shape to = c->s;
    if (at + 1 < (int32_t)c->s.rank) {
        to.dims[at] *= to.dims[at + 1];
        for (uint32_t i = (uint32_t)at + 1; i + 1 < c->s.rank; i++)
            to.dims[i] = to.dims[i + 1];
        to.rank--;
    }
    return rlxvk_reshape(c->g, c->x, to);
}

static rlxvk_tensor split(chain *c)
{
    int32_t at = any_axis(c);
    rlxvk_shape to = c->s;
    int64_t by = 1 + random_below(&c->r, (uint32_t)to.dims[at]);
    while (to.dims[at] % by)
        by--;
    for (uint32_t i = to.rank++; i > (uint32_t)at + 1; i--)
        to.dims[i] = to.dims[i - 1];
    to.dims[at + 1] = by;
    to.dims[at] /= by;
    return rlxvk_reshape(c->g, c->x, to);
}

static rlxvk_tensor transposed(chain *c)
{
    int32_t perm[RLXVK_MAX_RANK];
    uint32_t by = random_below(&c->r, c->s.rank);
    for (uint32_t i = 0; i < c->s.rank; i++)
        perm[i] = (int32_t)((i + by) % c->s.rank);
    if (c->s.rank > 1 && random_below(&c->r, 2)) {
        int32_t first = perm[0];
        perm[0] = perm[1];
        perm[1] = first;
    }
    return rlxvk_transpose(c->g, c->x, perm, c->s.rank);
}

/* Adds leading axes and repeats axes of size 1. */
static rlxvk_tensor expanded(chain *c)
{
    rlxvk_shape to = {.rank = c->s.rank + 1, .dims = {1 + random_below(&c->r, 3)}};
    for (uint32_t i = 0; i < c->s.rank; i++)
        to.dims[i + 1] = c->s.dims[i] == 1 ? 1 + (int64_t)random_below(&c->r, 3) : c->s.dims[i];
    return rlxvk_expand(c->g, c->x, to);
}

static rlxvk_tensor tiled(chain *c)
{
    int64_t repeats[RLXVK_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t more = random_below(&c->r, 4) == 0;
    repeats[random_below(&c->r, c->s.rank + more)] = 1 + random_below(&c->r, 3);
    return rlxvk_tile(c->g, c->x, repeats, c->s.rank + more);
}

static rlxvk_tensor joined(chain *c)
{
    rlxvk_tensor parts[] = {c->x, c->x};
    if (random_below(&c->r, 2))
        parts[1] = rlxvk_neg(c->g, c->x);
    return rlxvk_concat(c->g, parts, 2, any_axis(c));
}

static rlxvk_tensor narrowed(chain *c)
{
    int32_t at = any_axis(c);
    int64_t length = 1 + random_below(&c->r, (uint32_t)c->s.dims[at]);
    int64_t start = random_below(&c->r, (uint32_t)(c->s.dims[at] - length + 1));
    return rlxvk_narrow(c->g, c->x, at, start, length);
}

static rlxvk_tensor sliced(chain *c)
{
    int64_t starts[RLXVK_MAX_RANK] = {0}, ends[RLXVK_MAX_RANK], steps[RLXVK_MAX_RANK];
    for (uint32_t i = 0; i < c->s.rank; i++) {
        ends[i] = c->s.dims[i];
        steps[i] = 1;
    }
    int32_t at = any_axis(c);
    starts[at] = random_below(&c->r, 2);
    steps[at] = 1 + random_below(&c->r, 2);
    if (c->s.dims[at] == 1)
        starts[at] = 0;
    return rlxvk_slice(c->g, c->x, starts, ends, steps, c->s.rank);
}

static rlxvk_tensor reversed(chain *c)
{
    return rlxvk_reverse(c->g, c->x, &(int32_t){any_axis(c)}, 1);
}

static rlxvk_tensor rolled(chain *c)
{
    int32_t at = any_axis(c);
    return rlxvk_roll(c->g, c->x, &(int64_t){random_below(&c->r, (uint32_t)c->s.dims[at] + 1)}, &at,
                      1);
}

static rlxvk_tensor padded(chain *c)
{
    int64_t before[RLXVK_MAX_RANK] = {0}, after[RLXVK_MAX_RANK] = {0};
    int32_t at = any_axis(c);
    before[at] = random_below(&c->r, 3);
    after[at] = random_below(&c->r, 3);
    return rlxvk_pad(c->g, c->x, before, after, c->s.rank, NULL);
}

/* These ops move no element, but the analysis compares the rows of their operands. */
static rlxvk_tensor computed(chain *c)
{
    switch (random_below(&c->r, 3)) {
    case 0:
        return rlxvk_relu(c->g, c->x);
    case 1:
        return rlxvk_add(c->g, c->x, rlxvk_neg(c->g, c->x));
    default:
        return rlxvk_softmax(c->g, c->x, any_axis(c));
    }
}

static const struct mover {
    const char *name;
    rlxvk_tensor (*build)(chain *c);
} movers[] = {{"reshape", reshaped},     {"flatten", flattened}, {"split", split},
              {"transpose", transposed}, {"expand", expanded},   {"tile", tiled},
              {"concat", joined},        {"narrow", narrowed},   {"slice", sliced},
              {"reverse", reversed},     {"roll", rolled},       {"pad", padded},
              {"none", computed}};
enum { MOVERS = sizeof movers / sizeof *movers };

static uint64_t numel_of(const rlxvk_shape *s)
{
    uint64_t numel = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        numel *= (uint64_t)s->dims[i];
    return numel;
}

/* Appends up to four ops to an input. Bit i of the result is set if op i was used. */
static uint32_t build_chain(chain *c, rlxvk_shape shape)
{
    uint32_t used = 0;
    c->x = rlxvk_input(c->g, "x", RLXVK_F32, shape);
    c->s = shape;
    for (uint32_t k = 1 + random_below(&c->r, 4); k > 0; k--) {
        uint32_t which = random_below(&c->r, MOVERS);
        rlxvk_tensor y = movers[which].build(c);
        if (rlxvk_graph_status(c->g) != RLXVK_OK)
            fail_msg("%s: %s", movers[which].name, rlxvk_graph_error(c->g));
        rlxvk_shape s = rlxvk_tensor_shape(c->g, y);
        if (numel_of(&s) > 2000 || s.rank > 5)
            continue;
        c->x = y;
        c->s = s;
        used |= 1u << which;
    }
    rlxvk_graph_output(c->g, c->x);
    return used;
}

/* ---- Dependences found on the host ---- */

/* The coordinate along an axis of element `i`. */
static uint64_t along(const rlxvk_shape *s, uint32_t axis, uint64_t i)
{
    for (uint32_t k = s->rank; k-- > axis + 1;)
        i /= (uint64_t)s->dims[k];
    return i % (uint64_t)s->dims[axis];
}

/* The output if the rows from `actual` of `upper` on are NaN. */
static void run_host(const chain *c, const rlxvk_shape *in, uint32_t axis, uint64_t actual,
                     uint64_t upper, float *out)
{
    float values[2000];
    evaluation v;
    uint32_t id = c->g->outputs.items[0];
    for (uint64_t i = 0; i < numel_of(in); i++)
        values[i] = along(in, axis, i) < actual * ((uint64_t)in->dims[axis] / upper)
                        ? (float)(i % 97) + 1
                        : NAN;
    assert_int_equal(evaluation_create(c->g, &v), RLXVK_OK);
    assert_int_equal(evaluation_set(&v, 0, values), RLXVK_OK);
    assert_int_equal(evaluation_run(&v), RLXVK_OK);
    memcpy(out, v.words[id], numel_of(&c->s) * sizeof *out);
    evaluation_destroy(&v);
}

/* Bit a is set if, along axis a of the output, the first rows of every extent equal those of a full
 * run. */
static uint32_t sound_axes(const chain *c, const rlxvk_shape *in, uint32_t axis)
{
    static float full[2000], part[2000];
    uint64_t rows = (uint64_t)in->dims[axis];
    uint32_t sound = 0;
    for (uint32_t a = 0; a < c->s.rank; a++)
        sound |= ((uint64_t)c->s.dims[a] % rows == 0 ? 1u : 0) << a;
    run_host(c, in, axis, 1, 1, full);
    for (uint64_t upper = 1; upper <= rows && sound; upper++)
        for (uint64_t actual = 1; actual < upper && rows % upper == 0; actual++) {
            run_host(c, in, axis, actual, upper, part);
            for (uint64_t i = 0; i < numel_of(&c->s); i++)
                for (uint32_t a = 0; a < c->s.rank; a++)
                    if (memcmp(&full[i], &part[i], 4) != 0 &&
                        along(&c->s, a, i) < actual * ((uint64_t)c->s.dims[a] / upper))
                        sound &= ~(1u << a);
        }
    return sound;
}

/* Returns true if an extent is supported, and its span. */
static bool is_supported(const chain *c, uint32_t axis, bool rewritten, uint64_t *out_span)
{
    bucket_input of = {0, (int32_t)axis, false};
    schedule_options how = {.profile = &profile, .strided = rewritten};
    rlxvk_graph *g = NULL;
    schedule s;
    extent e;
    assert_int_equal(graph_clone(c->g, &g), RLXVK_OK);
    if (rewritten)
        assert_int_equal(rewrite_graph(g, &(rewrite_options){.profile = &profile,
                                                             .fusion = true,
                                                             .regions = true}),
                         RLXVK_OK);
    of.node = op_find_input(g, "x");
    assert_int_equal(schedule_create(g, &how, &s), RLXVK_OK);
    assert_int_equal(extent_analyze(&s, &of, 1, RLXVK_PRECISION_F32, &profile, &e), RLXVK_OK);
    bool supported = e.spans != NULL;
    *out_span = supported ? e.spans[g->outputs.items[0]] : 0;
    extent_destroy(&e);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
    return supported;
}

static void test_chains(void **state)
{
    static const int64_t rows[] = {2, 3, 4, 6, 8, 12, 23};
    uint32_t supported[MOVERS] = {0}, refused[MOVERS] = {0}, needless = 0, all = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        chain c = {.r = {seed}};
        rlxvk_shape in = {.rank = 1 + random_below(&c.r, 3)};
        uint32_t axis = random_below(&c.r, in.rank);
        for (uint32_t i = 0; i < in.rank; i++)
            in.dims[i] =
                i == axis ? rows[random_below(&c.r, 7)] : 1 + (int64_t)random_below(&c.r, 4);
        assert_int_equal(rlxvk_graph_create(&c.g), RLXVK_OK);
        uint32_t used = build_chain(&c, in), sound = sound_axes(&c, &in, axis);
        uint64_t span;
        bool yes = is_supported(&c, axis, seed & 1, &span);
        if (yes && !sound)
            fail_msg("seed %llu: supported, with a span of %llu, though no axis of the output has "
                     "the rows of a full run",
                     (unsigned long long)seed, (unsigned long long)span);
        for (uint32_t i = 0; i < MOVERS; i++)
            *(yes ? &supported[i] : &refused[i]) += used >> i & 1;
        needless += !yes && sound;
        all += yes;
        rlxvk_graph_destroy(c.g);
    }
    for (uint32_t i = 0; i < MOVERS; i++) {
        print_message("%s: in %u graphs that are supported, %u that are not\n", movers[i].name,
                      supported[i], refused[i]);
        assert_true(supported[i] >= 40 && refused[i] >= 40);
    }
    print_message("%u supported; %u refused that could be\n", all, needless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
