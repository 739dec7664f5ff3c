/*
 * Counts the dispatches and barriers of graphs. They show if a fusion fires only where it may, and
 * if barriers stand only before steps that need them. Also compares the proof's count of needless
 * barriers with removing each barrier.
 */
#include "support/planned.h"
#include "support/profiles.h"
#include "support/random_graph.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_domain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

static void make_plan(planned *p, bool fusion, bool full_barrier)
{
    const planning how = {
        .rewrite = {.fusion = fusion, .regions = fusion, .profile = &profile},
        .schedule = {.profile = &profile, .forbid_host = true, .strided = true, .reorder = true},
        .plan = {.max_block_bytes = 1u << 30,
                 .max_binding_bytes = 1u << 30,
                 .alignment = 256,
                 .full_barrier = full_barrier}};
    assert_int_equal(planned_make(p, &how), RLXVK_OK);
    assert_int_equal(plan_check(&p->schedule, &p->plan, NULL), RLXVK_OK);
}

/* ---- Graphs ---- */

static rlxvk_tensor in(rlxvk_graph *g, const char *name)
{
    return rlxvk_input(g, name, RLXVK_F32, RLXVK_SHAPE(8, 64));
}

static void out(rlxvk_graph *g, rlxvk_tensor t)
{
    rlxvk_graph_output(g, t);
}

static rlxvk_tensor root(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_rms_norm(g, x, RLXVK_NONE, RLXVK_NONE, -1, 0.1f);
}

#define GRAPH(name, ...)                                                                           \
    static void name(rlxvk_graph *g)                                                               \
    {                                                                                              \
        rlxvk_tensor x = in(g, "x"), y = in(g, "y");                                               \
        (void)y;                                                                                   \
        __VA_ARGS__                                                                                \
    }
#define W(name, ...) rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(__VA_ARGS__))

GRAPH(chain, out(g, rlxvk_neg(g, rlxvk_exp(g, rlxvk_sin(g, x))));)
GRAPH(chain_seen, rlxvk_tensor s = rlxvk_softmax(g, x, -1); out(g, s);
      out(g, rlxvk_softmax(g, rlxvk_exp(g, s), -1));)
GRAPH(sum_and_norm,
      out(g, rlxvk_layer_norm(g, rlxvk_add(g, x, y), W("g", 64), W("b", 64), -1, 0.1f));)
GRAPH(sum_seen, rlxvk_tensor s = rlxvk_add(g, x, y);
      out(g, rlxvk_layer_norm(g, s, W("g", 64), RLXVK_NONE, -1, 0.1f)); out(g, s);)
GRAPH(sum_across, out(g, rlxvk_layer_norm(g, rlxvk_add(g, x, y), RLXVK_NONE, RLXVK_NONE, 0, 0.1f));)
GRAPH(sum_as_gamma, rlxvk_tensor s = rlxvk_add(g, rlxvk_reduce_max(g, x, (int32_t[]){0}, 1, false),
                                               rlxvk_reduce_max(g, y, (int32_t[]){0}, 1, false));
      out(g, rlxvk_layer_norm(g, s, s, RLXVK_NONE, -1, 0.1f));)
GRAPH(product, out(g, rlxvk_relu(g, rlxvk_add(g, rlxvk_matmul(g, x, W("w", 64, 32)), W("b", 32))));)
GRAPH(product_seen, rlxvk_tensor p = rlxvk_matmul(g, x, W("w", 64, 32)); out(g, p);
      out(g, rlxvk_relu(g, rlxvk_add(g, p, W("b", 32))));)
GRAPH(gate, out(g, rlxvk_mul(g, rlxvk_silu(g, rlxvk_narrow(g, x, -1, 0, 32)),
                             rlxvk_narrow(g, x, -1, 32, 32)));)
GRAPH(gate_apart, out(g, rlxvk_softmax(g,
                                       rlxvk_mul(g, rlxvk_silu(g, rlxvk_narrow(g, x, -1, 0, 16)),
                                                 rlxvk_narrow(g, x, -1, 32, 16)),
                                       -1));)
GRAPH(apart, out(g, rlxvk_softmax(g, x, -1)); out(g, rlxvk_softmax(g, y, -1));)
GRAPH(behind, out(g, rlxvk_softmax(g, rlxvk_softmax(g, x, -1), -1));)
GRAPH(two_chains, out(g, rlxvk_softmax(g, rlxvk_softmax(g, x, -1), -1));
      out(g, rlxvk_softmax(g, rlxvk_softmax(g, y, -1), -1));)
GRAPH(both_read, out(g, rlxvk_softmax(g, x, -1)); out(g, root(g, x));)
GRAPH(three_levels, rlxvk_tensor s = rlxvk_softmax(g, x, -1); out(g, root(g, s));
      out(g, root(g, rlxvk_reverse(g, s, (int32_t[]){1}, 1)));)
/* The cumulative sum takes the slot of a value that the norm reads. */
GRAPH(in_place, rlxvk_tensor s = rlxvk_softmax(g, x, -1); out(g, root(g, s));
      out(g, root(g, rlxvk_cumsum(g, s, 1, false)));)
GRAPH(parts, rlxvk_tensor p[] = {rlxvk_softmax(g, x, -1), root(g, y)};
      out(g, rlxvk_concat(g, p, 2, 0));)
GRAPH(parts_read, rlxvk_tensor p[] = {rlxvk_softmax(g, x, -1), root(g, y)};
      out(g, rlxvk_cumsum(g, rlxvk_concat(g, p, 2, 0), 0, false));)
GRAPH(parts_between, rlxvk_tensor p[] = {rlxvk_softmax(g, x, -1), root(g, y)};
      out(g, rlxvk_concat(g, p, 2, 1));)
GRAPH(twice, rlxvk_tensor s = rlxvk_softmax(g, x, -1); out(g, rlxvk_cumsum(g, s, 0, false));
      out(g, rlxvk_cumsum(g, rlxvk_softmax(g, x, -1), 1, false));)

static const struct counted {
    const char *name;
    void (*build)(rlxvk_graph *g);
    uint32_t steps, barriers;             /* with all rewrites */
    uint32_t plain_steps, plain_barriers; /* without fusion */
} cases[] = {
    {"elementwise chain", chain, 1, 0, 3, 2},
    {"chain behind an output", chain_seen, 3, 2, 3, 2},
    {"sum and norm", sum_and_norm, 1, 0, 2, 1},
    {"sum that is seen, and norm", sum_seen, 1, 0, 2, 1},
    {"sum and norm across", sum_across, 2, 1, 2, 1},
    {"sum as its own gamma", sum_as_gamma, 4, 2, 4, 2},
    {"product, bias, relu", product, 1, 0, 3, 2},
    {"product that is seen", product_seen, 2, 1, 3, 2},
    {"gate", gate, 1, 0, 4, 2},
    {"gate of other halves", gate_apart, 4, 2, 5, 3},
    {"two apart", apart, 2, 0, 2, 0},
    {"one behind another", behind, 2, 1, 2, 1},
    {"two chains", two_chains, 4, 1, 4, 1},
    {"two readers", both_read, 2, 0, 2, 0},
    {"three levels", three_levels, 4, 2, 4, 2},
    {"in place beside a reader", in_place, 4, 3, 4, 3},
    {"parts in place", parts, 2, 0, 2, 0},
    {"parts in place, read", parts_read, 3, 1, 3, 1},
    {"parts side by side", parts_between, 3, 1, 3, 1},
    {"one node twice", twice, 3, 1, 4, 1},
};

static void test_counts(void **state)
{
    bool wrong = false;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int fusion = 1; fusion >= 0; fusion--) {
            planned p = {0};
            const struct counted *c = &cases[i];
            uint32_t steps = fusion ? c->steps : c->plain_steps;
            uint32_t barriers = fusion ? c->barriers : c->plain_barriers;
            assert_int_equal(rlxvk_graph_create(&p.source), RLXVK_OK);
            c->build(p.source);
            make_plan(&p, fusion, false);
            if (p.schedule.steps.count != steps || p.plan.barrier_count != barriers) {
                print_error("%s%s: %zu steps and %u barriers, wanted %u and %u\n", c->name,
                            fusion ? "" : ", without fusion", p.schedule.steps.count,
                            p.plan.barrier_count, steps, barriers);
                wrong = true;
            }
            planned_release(&p);
        }
    assert_false(wrong);
}

/* ---- The count of needless barriers ---- */

/* Counts needless barriers by removing each one in turn. */
static uint32_t droppable(planned *p)
{
    uint32_t count = 0;
    for (size_t i = 1; i < p->schedule.steps.count; i++) {
        barrier kept = p->plan.barriers[i];
        if (kept.kind == HAZARD_NONE)
            continue;
        p->plan.barriers[i].kind = HAZARD_NONE;
        count += plan_check(&p->schedule, &p->plan, NULL) == RLXVK_OK;
        p->plan.barriers[i] = kept;
    }
    return count;
}

/* A loop of several steps, and a node that reads its result. */
static void append_loop(rlxvk_graph *g, random_source *r)
{
    static const int32_t axis = 0;
    rlxvk_graph *body = NULL;
    assert_int_equal(rlxvk_graph_create(&body), RLXVK_OK);
    rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(64)), y = c;
    for (uint32_t i = 0; i < 1 + random_below(r, 3); i++) /* reverse and cumsum are independent */
        y = rlxvk_softmax(body,
                          rlxvk_add(body, rlxvk_reverse(body, y, &axis, 1),
                                    rlxvk_cumsum(body, y, 0, false)),
                          0);
    rlxvk_graph_output(body, y);
    rlxvk_tensor x = rlxvk_input(g, "start", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_graph_output(
        g, rlxvk_softmax(g, rlxvk_scan(g, body, &x, 1, &(rlxvk_scan_options){.length = 5}), 0));
    rlxvk_graph_destroy(body);
}

static uint32_t add_barriers(planned *p, random_source *r)
{
    uint32_t added = 0;
    for (uint32_t i = 1; i < p->schedule.steps.count; i++)
        if (p->plan.barriers[i].kind == HAZARD_NONE && !schedule_edge(&p->schedule, i) &&
            random_below(r, 3) == 0) {
            p->plan.barriers[i].kind = HAZARD_FORCED;
            added++;
        }
    return added;
}

static void test_needless(void **state)
{
    uint32_t total = 0, loops = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        random_source r = {seed};
        planned p = {0};
        uint32_t needless = 77;
        assert_int_equal(rlxvk_graph_create(&p.source), RLXVK_OK);
        if (seed % 2)
            append_loop(p.source, &r);
        else
            random_graph(p.source, &r, 8 + random_below(&r, 24), seed & 2);
        make_plan(&p, true, seed % 5 == 0);
        (void)add_barriers(&p, &r);
        assert_int_equal(plan_check(&p.schedule, &p.plan, &needless), RLXVK_OK);
        assert_int_equal(needless, droppable(&p));
        loops += p.schedule.loops.count && needless;
        total += needless;
        planned_release(&p);
    }
    print_message("%u needless barriers; %u loops have some\n", total, loops);
    assert_true(total > 100 && loops > 10);
}

/* If a result takes its operand's slot, it must begin at the same place. A shifted result would
 * overwrite elements that other invocations have yet to read. */
static void test_shifted(void **state)
{
    uint32_t shifted = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        planned p = {0};
        operand o;
        assert_int_equal(rlxvk_graph_create(&p.source), RLXVK_OK);
        cases[i].build(p.source);
        make_plan(&p, false, true);
        for (uint32_t k = 0; k < p.schedule.steps.count; k++)
            for (uint32_t m = 0;
                 schedule_step_operand(&p.schedule, &p.schedule.steps.items[k], m, &o); m++) {
                slot *x = &p.plan.slots[o.value];
                slot *y = &p.plan.slots[p.schedule.steps.items[k].node], kept = *y;
                if (o.overlap != OVERLAP_FIRST || x->class != y->class || x->offset != y->offset ||
                    x->block != y->block || x->size <= 256)
                    continue;
                y->offset += 256;
                assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_E_RANGE);
                *y = kept;
                shifted++;
            }
        planned_release(&p);
    }
    print_message("%u shifted\n", shifted);
    assert_true(shifted >= 3);
}

/* ---- Value 0 ---- */

/* The first value is pinned. The proof must find every value that overwrites it: before it is read,
 * or after all its readers. */
static void test_the_first_value(void **state)
{
    uint32_t found[2] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        planned p = {0};
        assert_int_equal(rlxvk_graph_create(&p.source), RLXVK_OK);
        cases[i].build(p.source);
        make_plan(&p, true, true);
        slot *first = &p.plan.slots[0];
        assert_true(node_is_input(graph_node(p.graph, 0)) && first->block != SLOT_NONE);
        for (uint32_t v = 1; v < p.plan.value_count; v++) {
            slot *s = &p.plan.slots[v], kept = *s;
            if (s->block == SLOT_NONE || s->class == CLASS_WEIGHTS ||
                (v < p.graph->nodes.count && graph_node(p.graph, v)->input_count == 0))
                continue;
            s->class = first->class;
            s->block = first->block;
            s->offset = first->offset;
            assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_E_RANGE);
            found[0] += strstr(rlxvk_last_error(), "value 0 after its slot was reused") != NULL;
            found[1] += strstr(rlxvk_last_error(), "pinned value 0 is overwritten") != NULL;
            *s = kept;
        }
        planned_release(&p);
    }
    print_message("%u read after, %u pinned\n", found[0], found[1]);
    assert_true(found[0] > 0 && found[1] > 10);
}

/* ---- Preparation within a number of bytes ---- */

typedef struct prepared_plan {
    uint32_t rewritten, laid_out; /* prepared steps made by rewrites, and by lowerings */
    uint32_t steps;               /* all steps */
    uint64_t rewritten_bytes, laid_out_bytes;
} prepared_plan;

/* A batch norm after a convolution, and two products with packed weights. The rewrite computes the
 * terms of the norm from params, and the lowering of each product unpacks its weights. */
static rlxvk_graph *preparing_graph(void)
{
    rlxvk_graph *g = NULL;
    rlxvk_conv_options around = {.padding = {1, 1}};
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 64, 8, 8));
    rlxvk_tensor y = rlxvk_conv(g, x, W("w", 64, 64, 3, 3), RLXVK_NONE, &around);
    rlxvk_graph_output(g, rlxvk_batch_norm_inference(g, y, W("gamma", 64), W("beta", 64),
                                                     W("mean", 64), W("var", 64), 1e-5f, 1));
    rlxvk_tensor z = rlxvk_input(g, "z", RLXVK_F32, RLXVK_SHAPE(320, 64));
    for (int i = 0; i < 2; i++)
        rlxvk_graph_output(g, rlxvk_dequant_matmul(g, z,
                                                   rlxvk_param(g, i ? "p" : "q", RLXVK_U8,
                                                               RLXVK_SHAPE(i ? 128 : 64, 2 * 34)),
                                                   RLXVK_Q8_0));
    return g;
}

static prepared_plan prepare_within(uint64_t most, bool packed_conv)
{
    device_profile units = profile;
    prepared_plan found = {0};
    rlxvk_graph *g = preparing_graph();
    schedule s;
    units.matrix_f16 = (matrix_shape){16, 16, 16};
    rewrite_options rewrite = {.fusion = true, .profile = &units, .prepared_bytes = most};
    schedule_options how = {.profile = &units,
                            .strided = true,
                            .precision = RLXVK_PRECISION_F16,
                            .prepared_bytes = most};
    /* Packing asks for no bytes: layouts over the limit are made in every run. A named variant of
     * conv keeps it off the matrix units, for which its weights would be packed, too. */
    assert_int_equal(variant_parse(packed_conv ? "conv=packed_64x128" : "conv=tiled_64x128", "test",
                                   &how.variants),
                     RLXVK_OK);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_int_equal(rewrite_graph(g, &rewrite), RLXVK_OK);
    assert_int_equal(schedule_create(g, &how, &s), RLXVK_OK);
    for (uint32_t i = 0; i < s.prepared; i++) {
        operand o;
        bool made = graph_node(g, s.steps.items[i].node)->prepare;
        *(made ? &found.rewritten : &found.laid_out) += 1;
        for (uint32_t k = 0; schedule_step_operand(&s, &s.steps.items[i], k, &o); k++)
            if (o.access & ACCESS_WRITE)
                *(made ? &found.rewritten_bytes : &found.laid_out_bytes) +=
                    schedule_value_bytes(&s, o.value);
    }
    found.steps = (uint32_t)s.steps.count;
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
    return found;
}

/* Results that rewrites prepare are always kept. Lowerings may use the remaining bytes for layouts,
 * exactly up to the limit. */
static void test_preparation_budget(void **state)
{
    prepared_plan all = prepare_within(UINT64_MAX, false), none = prepare_within(0, false);
    prepared_plan packed = prepare_within(UINT64_MAX, true);
    uint64_t both = all.laid_out_bytes, larger = both / 3 * 2, smaller = both / 3;
    (void)state;
    print_message("%u steps, %u by rewrites (%llu bytes), %u laid out (%llu bytes)\n", all.steps,
                  all.rewritten, (unsigned long long)all.rewritten_bytes, all.laid_out,
                  (unsigned long long)all.laid_out_bytes);
    assert_true(all.rewritten > 0 && all.laid_out == 2 && both % 3 == 0);
    assert_int_equal(none.laid_out, 0);
    assert_int_equal(none.rewritten, all.rewritten);
    const struct {
        uint64_t left;
        uint32_t laid_out;
    } limits[] = {{both, 2},    {both - 1, 1},    {larger, 1}, {larger - 1, 1},
                  {smaller, 1}, {smaller - 1, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        prepared_plan p = prepare_within(all.rewritten_bytes + limits[i].left, false);
        if (p.laid_out != limits[i].laid_out)
            print_error("%llu left\n", (unsigned long long)limits[i].left);
        assert_int_equal(p.laid_out, limits[i].laid_out);
        assert_int_equal(p.rewritten, all.rewritten);
        assert_int_equal(p.steps, none.steps + p.laid_out); /* no run unpacks weights */
        assert_true(p.laid_out_bytes <= limits[i].left);
    }
    assert_int_equal(packed.laid_out, 3);
    for (int less = 0; less < 2; less++) {
        uint64_t left = packed.laid_out_bytes - (uint64_t)less;
        prepared_plan p = prepare_within(packed.rewritten_bytes + left, true);
        assert_int_equal(p.laid_out, 3 - less);
        assert_true(p.laid_out_bytes <= left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_needless),
        cmocka_unit_test(test_the_first_value),
        cmocka_unit_test(test_shifted),
        cmocka_unit_test(test_preparation_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
