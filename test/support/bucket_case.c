/* See bucket_case.h. */
#include "support/bucket_case.h"

#include "op/bucket.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

rlxvk_tensor bucket_case_param(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    char numbered[32];
    snprintf(numbered, sizeof numbered, "%s%zu", name, g->nodes.count);
    return rlxvk_param(g, numbered, RLXVK_F32, shape);
}

bucket_analysis bucket_analysis_begin(void)
{
    bucket_analysis a = {0};
    assert_int_equal(rlxvk_graph_create(&a.g), RLXVK_OK);
    return a;
}

void bucket_analysis_lower(bucket_analysis *a, const schedule_options *how, const char *what)
{
    if (rlxvk_graph_status(a->g) != RLXVK_OK || schedule_create(a->g, how, &a->s) != RLXVK_OK)
        fail_msg("%s: %s", what, rlxvk_last_error());
}

void bucket_analysis_find(bucket_analysis *a, const bucket_input *axes, size_t count,
                          rlxvk_precision precision)
{
    extent_destroy(&a->e);
    a->e = (extent){0};
    assert_int_equal(extent_analyze(&a->s, axes, count, precision, &profile, &a->e), RLXVK_OK);
}

void bucket_analysis_end(bucket_analysis *a)
{
    extent_destroy(&a->e);
    schedule_destroy(&a->s);
    rlxvk_graph_destroy(a->g);
}

void bucket_case_expect(const bucket_case *r, const schedule_options *how, uint64_t span,
                        const char *why)
{
    bucket_analysis a = bucket_analysis_begin();
    const extent *e = &a.e;
    rlxvk_tensor x = rlxvk_input(a.g, "x", RLXVK_F32, r->shape);
    rlxvk_graph_output(a.g, r->build(a.g, x));
    bucket_analysis_lower(&a, how, r->name);
    bucket_analysis_find(&a, &(bucket_input){op_find_input(a.g, "x"), r->axis, false}, 1,
                         how->precision);
    if (why ? !strstr(e->why, why) || e->spans : *e->why != 0 || !e->spans)
        fail_msg("%s: '%s', wanted '%s'", r->name, e->why, why ? why : "");
    if (!why && e->spans[a.g->outputs.items[0]] != span)
        fail_msg("%s: span %llu, wanted %llu", r->name,
                 (unsigned long long)e->spans[a.g->outputs.items[0]], (unsigned long long)span);
    bucket_analysis_end(&a);
}
