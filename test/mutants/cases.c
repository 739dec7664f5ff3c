/*
 * Runs the conformance cases that concern a mutant (test/mutants.py).
 *
 *   cases map                      prints a line for each case: op, number, and name:pipeline for
 *                                  each kernel that its dispatches run. Then it asks for each
 *                                  variant and precision. If a case then has a pipeline that no
 *                                  case before had, or runs a kernel that is run in no other way,
 *                                  prints op, number:kind=row or number:kind=row:f16
 *   cases run SECONDS SEED [MODE]  reads lines "op number[:...]" and runs these cases in order
 *                                  until one fails (exit 1) or the processor time is used up.
 *                                  MODE: host: by host functions; folded: with folded grids;
 *                                  shifted: with operands inside larger tensors
 *   cases gradients SECONDS SEED   runs the gradients of these cases
 */
#include "conform/conform.h"
#include "program/stage.h"
#include "op/choice/choice.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct session {
    conform_setup setup;
    case_list lines;
} session;

/* The length of "softmax" in "softmax x=2,3 axis=1". */
static size_t row_length(const char *line)
{
    return strcspn(line, " ");
}

static bool seen[1 << 20];

/* A hash of the kernel and its constants. */
static uint64_t pipeline_of(const dispatch *d)
{
    return base_hash(base_hash(BASE_HASH_START, &d->kernel, sizeof d->kernel), d->constants,
                     sizeof d->constants);
}

static bool note_pipelines(const schedule *s)
{
    bool new = false;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        bool *one = &seen[pipeline_of(&s->dispatches.items[i]) % ARRAY_COUNT(seen)];
        new = new || !*one;
        *one = true;
    }
    return new;
}

/* Without a variant by name, notes the kernels. Otherwise returns whether any is not noted. */
static bool has_rare_kernel(const schedule *s, bool named)
{
    static bool ordinary[KERNEL_COUNT];
    bool rare = false;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        unsigned kernel = s->dispatches.items[i].kernel;
        if (kernel >= KERNEL_COUNT)
            continue;
        ordinary[kernel] = ordinary[kernel] || !named;
        rare = rare || !ordinary[kernel];
    }
    return rare;
}

/* Prints each kernel with its pipeline, except if it is the same as the one before. */
static void print_kernels(const schedule *s)
{
    const dispatch *before = NULL;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        const dispatch *d = &s->dispatches.items[i];
        if (d->kernel < KERNEL_COUNT && !(before && pipeline_of(before) == pipeline_of(d)))
            printf(" %s:%llx", kernel_table[d->kernel].name, (unsigned long long)pipeline_of(d));
        before = d;
    }
}

static void print_case(const session *s, const char *line, uint64_t number)
{
    case_spec spec;
    rlxvk_graph *graph = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], output;
    rlxvk_compile_options options = {0};
    option_variants variants;
    program *lowered = NULL;
    rlxvk_status status;
    TRY(case_parse(line, &spec));
    TRY(conform_build(&spec, &graph, leaves, &output));
    rlxvk_graph_output(graph, output);
    TRY(rlxvk_graph_status(graph));
    TRY(conform_compile_options(&spec, &s->setup, &variants, &options));
    TRY(program_create(s->setup.context, &lowered));
    TRY(options_resolve(s->setup.context, &options, &lowered->options));
    TRY(stage_source(lowered, graph));
    TRY(stage_rewrite(lowered, NULL));
    TRY(stage_lower(lowered));
    bool new = note_pipelines(&lowered->schedule), named = s->setup.variant != NULL;
    if (has_rare_kernel(&lowered->schedule, named) || new || !named) {
        printf("%.*s %llu", (int)row_length(line), line, (unsigned long long)number);
        if (s->setup.variant)
            printf(":%s", s->setup.variant);
        if (s->setup.precision)
            printf(":%s", rlxvk_precision_name(s->setup.precision));
        print_kernels(&lowered->schedule);
        printf("\n");
    }
error:
    program_release(lowered);
    rlxvk_graph_destroy(graph);
}

/* Whether the line is a case of this op. */
static bool is_of_op(const char *line, const char *row, size_t length)
{
    return strncmp(line, row, length) == 0 && row_length(line) == length;
}

/* The number of a case within its op. The cases of an op need not follow each other. */
static uint64_t number_of(const session *s, size_t index)
{
    const char *line = s->lines.lines.items[index];
    uint64_t number = 0;
    size_t length = row_length(line);
    for (size_t i = index; i-- > 0;)
        number += is_of_op(s->lines.lines.items[i], line, length);
    return number;
}

static void map_variant(session *s, const kernel_kind *kind, const char *row)
{
    char variant[128], op[64];
    snprintf(variant, sizeof variant, "%s=%s", kind->name, row);
    s->setup.variant = variant;
    for (size_t i = 0; i < s->lines.lines.count; i++) {
        const char *line = s->lines.lines.items[i];
        snprintf(op, sizeof op, "%.*s", (int)row_length(line), line);
        if (choice_reaches(kind, op))
            print_case(s, line, number_of(s, i));
    }
    s->setup.variant = NULL;
}

static int map(session *s)
{
    for (size_t i = 0; i < s->lines.lines.count; i++)
        print_case(s, s->lines.lines.items[i], number_of(s, i));
    for (size_t f = 0; f < CHOICE_COUNT; f++)
        for (unsigned p = 0; p <= RLXVK_PRECISION_SPLIT; p++) {
            const kernel_kind *kind = &choice_kinds[f];
            s->setup.precision = (rlxvk_precision)p;
            for (size_t i = 0; choice_row_name(kind, i) && (!p || kind->precisions >> p & 1); i++)
                map_variant(s, kind, choice_row_name(kind, i));
        }
    return 0;
}

static const char *find_line(const session *s, const char *row, uint64_t number)
{
    size_t length = strlen(row);
    for (size_t i = 0; i < s->lines.lines.count; i++) {
        const char *line = s->lines.lines.items[i];
        if (is_of_op(line, row, length) && number-- == 0)
            return line;
    }
    return NULL;
}

/* Parses "12", "12:matmul=tiled_32x32" or "12:matmul=tiled_32x32:f16". Cuts the precision off
 * `word`. */
static uint64_t take_number(char *word, conform_setup *setup)
{
    char *variant = strchr(word, ':'), *precision = variant ? strchr(variant + 1, ':') : NULL;
    setup->variant = variant ? variant + 1 : NULL;
    setup->precision = RLXVK_PRECISION_F32;
    for (unsigned p = 0; precision && p <= RLXVK_PRECISION_SPLIT; p++)
        if (strcmp(precision + 1, rlxvk_precision_name((rlxvk_precision)p)) == 0)
            setup->precision = (rlxvk_precision)p;
    if (precision)
        *precision = 0;
    return strtoull(word, NULL, 10);
}

/* Returns 1 if a case fails, 2 if none ran. */
static int run(session *s, double seconds, bool gradients)
{
    char row[64], word[160], given[160];
    int ran = 0;
    while ((double)clock() / CLOCKS_PER_SEC < seconds && scanf("%63s %159s", row, word) == 2) {
        memcpy(given, word, sizeof given);
        conform_case c = {.number = take_number(word, &s->setup)};
        conform_result result = {0};
        c.line = find_line(s, row, c.number);
        if (!c.line)
            continue;
        (gradients ? conform_run_gradients : conform_run)(&s->setup, &c, &result);
        ran++;
        if (result.verdict != VERDICT_FAILED)
            continue;
        printf("%s %s: %s\n", row, given, result.message);
        return 1;
    }
    printf("%d cases\n", ran);
    return ran ? 0 : 2;
}

/* Lets lavapipe use all variants. It promises only 32 subgroups of 8 invocations in a workgroup,
 * but runs any number. Variants that need more, such as those of GPUs for long rows, would
 * otherwise never meet a mutant. */
static void promise_more(rlxvk_context *context)
{
    device_profile *p = &context->device->setup.profile;
    if (p->kind == RLXVK_DEVICE_CPU)
        p->max_shuffle_invocations = p->max_workgroup_invocations;
}

int main(int argc, char **argv)
{
    session s = {.setup = {.seeds = {argc > 3 ? strtoull(argv[3], NULL, 10) : 1},
                           .seed_count = 1,
                           .shifted = argc > 4 && strcmp(argv[4], "shifted") == 0,
                           .force_host = argc > 4 && strcmp(argv[4], "host") == 0}};
    rlxvk_context_options options = {.cache_directory = "", .tuning = RLXVK_OFF};
    int code = 3;
    rlxvk_status status;
    if (argc < 2) {
        fprintf(stderr, "usage: cases map | run SECONDS SEED [MODE] | gradients SECONDS SEED\n");
        return code;
    }
    TRY(rlxvk_context_create(&options, &s.setup.context));
    TRY(case_list_generate(&s.lines));
    promise_more(s.setup.context);
    if (argc > 4 && strcmp(argv[4], "folded") == 0)
        conform_fold_grids(s.setup.context);
    code = strcmp(argv[1], "map") == 0
               ? map(&s)
               : run(&s, argc > 2 ? atof(argv[2]) : 5, strcmp(argv[1], "gradients") == 0);
error:
    if (status != RLXVK_OK)
        fprintf(stderr, "%s: %s\n", rlxvk_status_name(status), rlxvk_last_error());
    case_list_destroy(&s.lines);
    rlxvk_context_destroy(s.setup.context);
    return code;
}
