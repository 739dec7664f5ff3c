/*
 * Golden results were computed from decimal attributes in double, but the library's options are
 * f32. If f32 cannot hold an attribute, the true value lies between the f32 that is used and one of
 * its neighbours. The reference at that neighbour tells how much of the result depends on this.
 */
#include "conform/conform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CURVED 1.0625 /* margin, because the result is not linear between two neighbours */

/* Whether a pair is a number that f32 rounds. *out_neighbour is the f32 on the other side of the
 * number; *out_part is the number's fraction of the way there. */
static bool is_rounded(const case_pair *pair, float *out_neighbour, double *out_part)
{
    char *end = NULL;
    double v = text_to_real(pair->value, &end);
    float taken = (float)v;
    if (end == pair->value || *end || !isfinite(taken) || (double)taken == v)
        return false;
    *out_neighbour = nextafterf(taken, v > (double)taken ? INFINITY : -INFINITY);
    *out_part = (v - (double)taken) / ((double)*out_neighbour - (double)taken);
    return true;
}

/* Adds the difference between the reference of this spec and `at`, times `part`. */
static rlxvk_status add_difference(const case_spec *spec, const golden_reference *r, double part,
                                   double *slack)
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result;
    evaluation v = {0};
    rlxvk_status status;
    uint64_t offset;
    TRY(conform_build(spec, &g, leaves, &result));
    TRY(rlxvk_graph_status(g));
    TRY(evaluation_create(g, &v));
    v.precision = r->precision;
    for (size_t i = 0; i < spec->input_count; i++)
        TRY(evaluation_set(&v, leaves[i].id - 1, r->contents[i]));
    TRY(evaluation_run(&v));
    uint32_t node = conform_source(g, result.id - 1, &offset);
    for (uint64_t i = 0; i < r->count && v.exact[node]; i++) {
        double difference = fabs(v.exact[node][offset + i] - r->at[i]);
        slack[i] += isfinite(difference) ? CURVED * part * difference : 0;
    }
error:
    if (v.graph)
        evaluation_destroy(&v);
    rlxvk_graph_destroy(g);
    return status;
}

rlxvk_status golden_rounding(const case_spec *spec, const golden_reference *r, double **out_slack)
{
    rlxvk_status status = RLXVK_OK;
    double *slack = memory_zeroed(r->count + 1, sizeof *slack);
    if (!slack)
        return status_fail_memory("golden attributes");
    for (size_t i = 0; i < spec->pair_count && status == RLXVK_OK; i++) {
        case_spec moved = *spec;
        double part;
        float neighbour;
        if (strcmp(spec->pairs[i].key, "within") == 0 ||
            !is_rounded(&spec->pairs[i], &neighbour, &part))
            continue;
        snprintf(moved.pairs[i].value, sizeof moved.pairs[i].value, "%.9g", (double)neighbour);
        status = add_difference(&moved, r, part, slack);
    }
    if (status == RLXVK_OK)
        *out_slack = slack;
    else
        memory_free(slack);
    return status;
}
