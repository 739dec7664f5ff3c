/*
 * The conformance cases that concern a mutant (test/mutants.py).
 *
 *   cases map                      a line for each case: op, number, and for the kernels that its
 *                                  dispatches run name:pipeline
 *   cases run SECONDS SEED [host|folded]
 *                                  reads lines "op number" and runs these cases in their order,
 *                                  with a seed, until one fails (exit 1) or the processor's time
 *                                  is up; by host functions, or with grids that fold
 *   cases gradients SECONDS SEED   the gradients of these cases
 */
#include "conform/conform.h"
#include "exec/stage.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct session {
    conform_setup setup;
    case_list lines;
} session;

/* "softmax" of "softmax x=2,3 axis=1". */
static size_t row_length(const char *line)
{
    return strcspn(line, " ");
}

/* The same for the same constants. */
static uint64_t pipeline_of(const dispatch *d)
{
    return base_hash(BASE_HASH_START, d->constants, sizeof d->constants);
}

/* Each kernel once with each set of constants, but for what lies between. */
static void print_kernels(const schedule *s)
{
    const dispatch *before = NULL;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        const dispatch *d = &s->dispatches.items[i];
        if (d->kernel < KERNEL_COUNT &&
            !(before && before->kernel == d->kernel && pipeline_of(before) == pipeline_of(d)))
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
    TRY(stage_rewrite(lowered, graph, NULL));
    TRY(stage_lower(lowered));
    printf("%.*s %llu", (int)row_length(line), line, (unsigned long long)number);
    print_kernels(&lowered->schedule);
    printf("\n");
error:
    program_release(lowered);
    rlxvk_graph_destroy(graph);
}

/* Whether the line is a case of this op. */
static bool is_of_op(const char *line, const char *row, size_t length)
{
    return strncmp(line, row, length) == 0 && row_length(line) == length;
}

/* The number of a case within its op, whose lines may stand apart. */
static uint64_t number_of(const session *s, size_t index)
{
    const char *line = s->lines.lines.items[index];
    uint64_t number = 0;
    size_t length = row_length(line);
    for (size_t i = index; i-- > 0;)
        number += is_of_op(s->lines.lines.items[i], line, length);
    return number;
}

static int map(const session *s)
{
    for (size_t i = 0; i < s->lines.lines.count; i++)
        print_case(s, s->lines.lines.items[i], number_of(s, i));
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

/* 1 if a case fails, 2 if none ran. */
static int run(const session *s, double seconds, bool gradients)
{
    char row[64];
    unsigned long long number;
    int ran = 0;
    while ((double)clock() / CLOCKS_PER_SEC < seconds && scanf("%63s %llu", row, &number) == 2) {
        conform_case c = {.line = find_line(s, row, number), .number = number};
        conform_result result = {0};
        if (!c.line)
            continue;
        (gradients ? conform_run_gradients : conform_run)(&s->setup, &c, &result);
        ran++;
        if (result.verdict != VERDICT_FAILED)
            continue;
        printf("%s %llu: %s\n", row, number, result.message);
        return 1;
    }
    printf("%d cases\n", ran);
    return ran ? 0 : 2;
}

int main(int argc, char **argv)
{
    session s = {.setup = {.seeds = {argc > 3 ? strtoull(argv[3], NULL, 10) : 1},
                           .seed_count = 1,
                           .force_host = argc > 4 && strcmp(argv[4], "host") == 0}};
    rlxvk_context_options options = {.cache_directory = "", .tuning = RLXVK_OFF};
    int code = 3;
    rlxvk_status status;
    if (argc < 2) {
        fprintf(stderr, "usage: cases map | run SECONDS SEED [host|folded] | gradients SECONDS SEED\n");
        return code;
    }
    TRY(rlxvk_context_create(&options, &s.setup.context));
    TRY(case_list_generate(&s.lines));
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
