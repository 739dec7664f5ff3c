/* See run_job.h: times and checks of nodes, told by the nodes of the file. */
#include "bench/bench.h"
#include "cli/run_job.h"

#include <rlxvk_report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CEILING_SECONDS 0.1

/* The node of the file that a node of the graph is of; for inputs and the like, its own name. */
static void find_source(const run_job *j, uint32_t node, const char *own, rlxvk_model_source *out)
{
    if (rlxvk_model_node(j->model, node, out) != RLXVK_OK || !*out->op)
        *out = (rlxvk_model_source){.name = own, .op = ""};
}

/* ---- Times ---- */

static void add_kernel(run_row *row, const char *kernel)
{
    text t = {row->kernels, sizeof row->kernels, strlen(row->kernels)};
    if (!strstr(row->kernels, kernel))
        text_append(&t, "%s%s", *row->kernels ? ", " : "", kernel);
}

/* Steps of one node follow each other, but nodes may take turns. */
static run_row *row_of(run_result *r, const rlxvk_model_source *source)
{
    run_row *row;
    for (size_t i = r->row_count; i-- > 0;)
        if (strncmp(r->rows[i].name, source->name, sizeof r->rows[i].name - 1) == 0 &&
            strncmp(r->rows[i].op, source->op, sizeof r->rows[i].op - 1) == 0)
            return &r->rows[i];
    row = &r->rows[r->row_count++];
    snprintf(row->name, sizeof row->name, "%s", source->name);
    snprintf(row->op, sizeof row->op, "%s", source->op);
    return row;
}

static int slower(const void *a, const void *b)
{
    double x = ((const run_row *)a)->microseconds, y = ((const run_row *)b)->microseconds;
    return (x < y) - (x > y);
}

/* Relates the work of each node to the ceilings, which are measured for it. If a large model leaves
 * no memory for that, the shares stay 0. */
static rlxvk_status find_shares(run_job *j)
{
    bench_ceilings c;
    rlxvk_status status = bench_measure_ceilings(j->context, CEILING_SECONDS, &c);
    if (status == RLXVK_E_OUT_OF_DEVICE_MEMORY)
        return RLXVK_OK;
    if (status != RLXVK_OK)
        return status;
    j->r->copy_bytes = c.copy_bytes;
    j->r->fma_flops = c.fma_flops;
    for (size_t i = 0; i < j->r->row_count; i++) {
        run_row *row = &j->r->rows[i];
        row->share = bench_share(&c, row->bytes, row->flops, row->microseconds);
    }
    return RLXVK_OK;
}

rlxvk_status run_profile(run_job *j)
{
    rlxvk_step_time *steps = NULL;
    size_t count;
    rlxvk_status status;
    TRY(rlxvk_executable_profile(j->e, NULL, 0, &count));
    steps = memory_zeroed(count + 1, sizeof *steps);
    j->r->rows = memory_zeroed(count + 1, sizeof *j->r->rows);
    if (!steps || !j->r->rows)
        TRY(status_fail_memory("profile"));
    TRY(rlxvk_executable_profile(j->e, steps, count, &count));
    for (size_t i = 0; i < count; i++) {
        rlxvk_model_source source = {0};
        bench_work work = bench_step_work(j->e, i);
        run_row *row;
        find_source(j, steps[i].node_id, steps[i].node, &source);
        row = row_of(j->r, &source);
        /* What depends only on weights is not done in each run. */
        row->microseconds += steps[i].microseconds * (double)steps[i].times;
        row->bytes += work.bytes * (double)steps[i].times;
        row->flops += work.flops * (double)steps[i].times;
        row->steps++;
        add_kernel(row, steps[i].name);
    }
    qsort(j->r->rows, j->r->row_count, sizeof *j->r->rows, slower);
    TRY(find_shares(j));
error:
    memory_free(steps);
    return status;
}

/* ---- Checks ---- */

rlxvk_status run_check(run_job *j, const rlxvk_run_input *inputs, size_t count)
{
    rlxvk_wrong_node n = {0};
    rlxvk_model_source source = {0};
    size_t wrong;
    rlxvk_status status;
    TRY(rlxvk_first_wrong_node(j->e, inputs, count, &n, NULL, 0, &wrong));
    find_source(j, n.node, n.name, &source);
    if (n.found) {
        j->r->verdict = RUN_WRONG;
        snprintf(j->r->why, sizeof j->r->why,
                 "%s '%s' is wrong, the first of %zu such nodes: its %s (kernel %s) has %.9g "
                 "instead of %.9g at element %llu, beyond the bound %.3g",
                 source.op, source.name, wrong, n.op, *n.kernel ? n.kernel : "none", n.got,
                 n.expected, (unsigned long long)n.index, n.bound);
    } else
        snprintf(j->r->check, sizeof j->r->check,
                 "%llu of %llu nodes agree with their references; the nearest to its bound is %s "
                 "'%.100s', at %.2g of it",
                 (unsigned long long)n.judged_nodes, (unsigned long long)n.computed_nodes,
                 source.op, source.name, n.error);
error:
    return status;
}
