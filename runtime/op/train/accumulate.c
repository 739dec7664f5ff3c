/* accumulate: sum := keep sum + t, in place. `keep` is one number, read in each run. If it is 0,
 * the old sum has no effect, even if it is NaN. The node is a view of the sum, which is a param or
 * an input. If keep is 0 or 1, the result is rounded once. */
#include "args/train.h"
#include "constants/train.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/train/train.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>

rlxvk_tensor rlxvk_accumulate(rlxvk_graph *g, rlxvk_tensor sum, rlxvk_tensor t, rlxvk_tensor keep)
{
    return op_build(g, OP_accumulate, (rlxvk_tensor[]){sum, t, keep}, 3, NULL);
}

static rlxvk_status accumulate_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    char sum[SHAPE_TEXT], t[SHAPE_TEXT];
    rlxvk_status status;
    (void)attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = RLXVK_F32;
    if (!shape_equal(input_shape(g, n, 1), &n->shape))
        return op_fail(n, RLXVK_E_SHAPE, "the sum is %s, t %s; they must be alike",
                       shape_text(&n->shape, sum), shape_text(input_shape(g, n, 1), t));
    TRY(train_check_numbers(g, n, 2, "keep", 1));
    TRY(train_check_written(g, n, 0));
error:
    return status;
}

static bool accumulate_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g;
    (void)n;
    *out_offset = 0;
    return true;
}

static uint32_t accumulate_writes(const node *n)
{
    (void)n;
    return 1;
}

static rlxvk_status accumulate_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand o[] = {lower_update(l, n->inputs[0]), lower_input(l, id, 1), lower_input(l, id, 2)};
    struct accumulate_args args = {(u32)shape_numel(&n->shape), o[0].offset, o[1].offset,
                                   o[2].offset};
    bool quads = (args.sum_offset | args.t_offset) % 4 == 0;
    dispatch d = {.kernel = KERNEL_ACCUMULATE};
    if (args.numel == 0)
        return RLXVK_OK;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {ACCUMULATE_VECTORS, quads});
    lower_groups(l, &d,
                 groups_for(quads ? divide_up(args.numel, 4) : args.numel,
                            l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, o, ARRAY_COUNT(o));
}

/* If the result is not finite, it is not finite on a device, either. The exception is infinity
 * times a number that may count as 0. */
static double bound_of(double keep, double sum, double t)
{
    double kept = keep == 0 ? 0 : keep * sum, least = fmin(fabs(keep), fabs(sum));
    if (isfinite(kept + t))
        return 0x1p-23 * (fabs(kept) + fabs(t));
    return isinf(kept) && least < (double)FLT_MIN ? INFINITY : 0;
}

static rlxvk_status accumulate_host(const host_call *call)
{
    const host_tensor *in = call->inputs;
    uint64_t numel = shape_numel(&call->node->shape);
    double keep = in[2].words[0];
    for (uint64_t i = 0; i < numel; i++) {
        double kept = keep == 0 ? 0 : keep * in[0].words[i], t = in[1].words[i];
        call->out[i] = kept + t;
        if (call->bound)
            call->bound[i] = bound_of(keep, in[0].words[i], t);
    }
    return RLXVK_OK;
}

static uint64_t accumulate_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its sum would keep rows that are not active");
}

const op_family accumulate_family = {
    .name = "accumulate",
    .infer = accumulate_infer,
    .views = {.view = accumulate_view},
    .memory = {.writes = accumulate_writes},
    .execution = {.lower = accumulate_lower, .host = accumulate_host},
    .rows = {.bucket = accumulate_bucket},
};
