/*
 * Fuzzes the pure layers, from builder calls to the proof of a plan. The bytes choose a made-up
 * device, compile options, and a sequence of builder calls over every op. The graph must verify.
 * The rewritten graph must verify, keep the outputs and compute the same. Then it is scheduled and
 * planned, and the plan must be proven sound. Errors are allowed if the contract has them.
 */
#include "fuzz.h"
#include "op/random/random.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"
#include "support/fuzz_evaluate.h"
#include "support/fuzz_graph.h"
#include "support/profiles.h"

enum {
    MOST_CALLS = 24,
    MOST_VALUES = 4096,         /* in all tensors together, for a graph that is evaluated */
    MOST_TABLE_VALUES = 1 << 16 /* in one tensor of a rewritten graph: it may be folded */
};

typedef struct choices {
    device_profile profile;
    rewrite_options rewrite;
    schedule_options schedule;
    plan_options plan;
    bool on_host[OP_COUNT];
} choices;

static device_profile any_profile(uint32_t bits)
{
    device_profile p = bits % 3 == 0 ? big_gpu() : bits % 3 == 1 ? baseline() : software();
    p.subgroup_size = (uint32_t[]){32, 4, 64, 1}[bits / 3 % 4];
    p.storage_buffers_per_stage = p.kind == RLXVK_DEVICE_INTEGRATED ? 8 : 64;
    p.push_constant_bytes = 128;
    p.slot_alignment = 256;
    p.max_allocation_bytes = p.kind == RLXVK_DEVICE_INTEGRATED ? 1u << 27 : UINT32_MAX;
    for (int i = 0; i < 3; i++)
        p.max_group_count[i] = p.kind == RLXVK_DEVICE_INTEGRATED ? 64 : 65535;
    if (p.kind == RLXVK_DEVICE_DISCRETE) {
        p.matrix_f16 = p.matrix_bf16 = (matrix_shape){16, 16, 16};
        p.subgroup_shuffle = p.half_subnormals = p.half_rounding = p.byte_products = true;
        p.quick_byte_products = bits & 16;
        p.max_shuffle_invocations = 1024;
    }
    return p;
}

/* Variants by these bits. If they are 0, none is named. */
static variant_set any_variants(uint32_t bits)
{
    variant_set set = {{0}};
    for (uint32_t i = 0; bits && i < CHOICE_COUNT; i++)
        set.rows[i] = (uint8_t)((bits + i) % (choice_kinds[i].table->count + 1));
    return set;
}

static void choose(fuzz_input *in, choices *c)
{
    uint32_t device = fuzz_byte(in), bits = fuzz_byte(in), more = fuzz_byte(in);
    *c = (choices){.profile = any_profile(device)};
    if (more & 1)
        c->on_host[OP_add] = c->on_host[OP_matmul] = c->on_host[OP_concat] = true;
    c->rewrite = (rewrite_options){.fusion = bits & 1,
                                   .regions = bits & 2,
                                   .profile = &c->profile,
                                   .on_host = c->on_host};
    c->schedule = (schedule_options){.profile = &c->profile,
                                     .keep_all = bits & 4 && bits & 8,
                                     .strided = bits & 1,
                                     .reorder = bits & 16 && !(bits & 4 && bits & 8),
                                     .on_host = c->on_host,
                                     .variants = any_variants(bits >> 5),
                                     .precision = (rlxvk_precision)(more >> 1 & 3),
                                     .matrix_in_lanes = more & 8};
    c->rewrite.prepared_bytes = c->schedule.prepared_bytes = device & 128 ? UINT64_MAX : 0;
    c->plan = (plan_options){.max_block_bytes = c->profile.max_allocation_bytes,
                             .max_binding_bytes = c->profile.max_binding_bytes,
                             .alignment = c->profile.slot_alignment,
                             .bump = more & 16 || c->schedule.keep_all,
                             .keep_all = c->schedule.keep_all,
                             .full_barrier = more & 32,
                             .reuse_in_level = more & 64 && c->schedule.reorder};
    if (more & 128)
        c->plan.max_block_bytes = c->plan.max_binding_bytes = 1 << 16;
}

/* ---- Checks ---- */

/* Prints the graph if RLXVK_TEST_FUZZ_DUMP is set, to show what a saved input does. */
static void dump(const char *title, const rlxvk_graph *g)
{
    if (!getenv("RLXVK_TEST_FUZZ_DUMP"))
        return;
    printf("%s\n", title);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        char line[1024] = "";
        op_node_describe(g, id, &(text){line, sizeof line, 0});
        printf("  %s\n", line);
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        printf("  output %%%u\n", g->outputs.items[i]);
    fflush(stdout);
}

static void dump_plan(const schedule *s, const plan *p)
{
    operand o;
    for (uint32_t i = 0; i < s->steps.count && getenv("RLXVK_TEST_FUZZ_DUMP"); i++) {
        const step *at = &s->steps.items[i];
        printf("  step %u, node %u%s, barrier %u:", i, at->node, at->host ? " on the host" : "",
               p->barriers[i].kind);
        for (uint32_t k = 0; schedule_step_operand(s, at, k, &o); k++)
            printf(" %u:%u[%llu+%llu]%s", o.value, p->slots[o.value].block,
                   (unsigned long long)(p->slots[o.value].offset + o.first),
                   (unsigned long long)o.size, o.access & ACCESS_WRITE ? "w" : "");
        printf("\n");
    }
    fflush(stdout);
}

/* Returns the number of elements in all tensors, and in the largest. In the sum, dims of 0 count as
 * 1, because ops may loop over a long axis even if another axis is empty. */
static uint64_t count_values(const rlxvk_graph *g, uint64_t *largest)
{
    uint64_t sum = 0;
    *largest = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const rlxvk_shape *s = &graph_node(g, id)->shape;
        uint64_t steps = 1;
        for (uint32_t i = 0; i < s->rank && steps <= MOST_VALUES; i++)
            steps *= (uint64_t)MAX(s->dims[i], 1);
        sum += steps;
        *largest = MAX(*largest, shape_numel(s));
    }
    return sum;
}

static void check_outputs(const rlxvk_graph *before, const rlxvk_graph *after)
{
    FUZZ_CHECK(before->outputs.count == after->outputs.count, "outputs lost in rewriting");
    for (size_t i = 0; i < before->outputs.count; i++) {
        const node *a = graph_node(before, before->outputs.items[i]);
        const node *b = graph_node(after, after->outputs.items[i]);
        FUZZ_CHECK(shape_equal(&a->shape, &b->shape) && a->dtype == b->dtype,
                   "output %zu has another type after rewriting", i);
    }
}

/* Whether a pure stage succeeded. It may refuse only graphs that the device cannot run or hold. */
static bool stage(const char *name, rlxvk_status status)
{
    FUZZ_CHECK(status == RLXVK_OK || status == RLXVK_E_UNSUPPORTED || status == RLXVK_E_TOO_LARGE,
               "%s: %s: %s", name, rlxvk_status_name(status), rlxvk_last_error());
    FUZZ_CHECK(status == RLXVK_OK || *rlxvk_last_error(), "%s: %s without a sentence", name,
               rlxvk_status_name(status));
    return status == RLXVK_OK;
}

static void check_plan(const rlxvk_graph *g, choices *c)
{
    pair_list pairs = {0};
    schedule s;
    plan p;
    if (c->rewrite.fusion && !c->schedule.keep_all)
        stage("pairs", rewrite_find_norm_pairs(g, &pairs));
    c->schedule.pairs = pairs.items;
    c->schedule.pair_count = pairs.count;
    if (stage("schedule", schedule_create(g, &c->schedule, &s))) {
        if (stage("plan", plan_create(&s, &c->plan, &p))) {
            dump_plan(&s, &p);
            rlxvk_status status = plan_check(&s, &p, NULL);
            FUZZ_CHECK(status == RLXVK_OK, "%s", rlxvk_last_error());
            plan_destroy(&p);
        }
        schedule_destroy(&s);
    }
    VECTOR_FREE(&pairs);
}

static void check_graph(const rlxvk_graph *g, choices *c)
{
    rlxvk_graph *after = NULL;
    uint64_t largest, total = count_values(g, &largest);
    rlxvk_status status = op_verify(g);
    dump("as built", g);
    FUZZ_CHECK(status == RLXVK_OK, "a graph without error does not verify: %s", rlxvk_last_error());
    if (largest > MOST_TABLE_VALUES || !stage("clone", graph_clone(g, &after)))
        return;
    if (c->schedule.keep_all || stage("rewrite", rewrite_graph(after, &c->rewrite))) {
        dump("rewritten", after);
        status = op_verify(after);
        FUZZ_CHECK(status == RLXVK_OK, "a rewritten graph does not verify: %s", rlxvk_last_error());
        check_outputs(g, after);
        check_plan(after, c);
        if (total <= MOST_VALUES)
            fuzz_compare(g, after);
    }
    rlxvk_graph_destroy(after);
}

/* ---- The target ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_register();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    fuzz_maker m = {.in = &in};
    choices c;
    uint64_t ends;
    choose(&in, &c);
    ends = fuzz_bits(&in, 8);
    if (rlxvk_graph_create(&m.g) != RLXVK_OK)
        return 0;
    fuzz_build(&m, MOST_CALLS);
    fuzz_finish(&m, ends);
    if (m.count)
        check_graph(m.g, &c);
    rlxvk_graph_destroy(m.g);
    return 0;
}

void fuzz_report(void)
{
    uint64_t calls = 0, results = 0;
    for (size_t i = 0; i < fuzz_builder_count; i++) {
        calls += fuzz_counts[i].calls;
        results += fuzz_counts[i].results;
    }
    printf("%llu builder calls, %llu with a result; never with one:", (unsigned long long)calls,
           (unsigned long long)results);
    for (size_t i = 0; i < fuzz_builder_count; i++)
        if (fuzz_counts[i].results == 0)
            printf(" %s", fuzz_builders[i].name);
    printf("\n");
}
