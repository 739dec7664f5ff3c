/*
 * Cross entropy of rows with dense targets: the loss or, with LOSS_BACKWARD, the gradients of both
 * operands, one behind the other. A lane holds QUADS (constant 1) quads of each operand in
 * registers. If rows are LONG (constant 3), the elements that do not fit are read first, and read
 * again for the gradients.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const bool LONG = false;
layout(push_constant) uniform block { softmax_dense_args args; };
#include "lib/rows.glsl"
#include "lib/row_forms.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, t, true)
#ifdef LOSS_BACKWARD
layout(set = 0, binding = 2) restrict readonly buffer upstream { float d_loss[]; };
QUAD_OUTPUT(3, y)
#else
layout(set = 0, binding = 2) restrict writeonly buffer target { float loss[]; };
#endif
#include "lib/math.glsl"
#include "rows/softmax.glsl"
#include "rows/softmax_dense.glsl"

vec3 add_sums(vec3 a, vec3 b)
{
    return a + b;
}
ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(vec3, sums_of_lanes, scratch_of_sums, add_sums)

vec4 x_of(row_work w, uvec4 r, bvec4 live)
{
    return read_x(args.x_offset + w.start + r, live, -INFINITY);
}
vec4 t_of(row_work w, uvec4 r, bvec4 live)
{
    return read_t(args.t_offset + w.start + r, live, 0.0);
}

#ifdef LOSS_BACKWARD
void store_quad(row_work w, uvec4 r, bvec4 live, vec4 row, vec4 v, vec4 target)
{
    write_y(args.y_offset + w.start + r, live, logits_gradient(row, decay(v - row.x), target));
    write_y(args.second_offset + w.start + r, live, targets_gradient(row, v));
}
#endif

void main()
{
    row_work w = row_formed(row_whole(), args.x_offset);
    vec4 v[HELD], target[HELD], rest = vec4(-INFINITY, 0.0, 0.0, 0.0);
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            largest most = largest(-INFINITY, 0u);
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = x_of(w, r, rest_live(r, w.end));
                target[k] = t_of(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                take_largest(most, v[k]);
            vec4 block = vec4(largest_value(most), 0.0, 0.0, 0.0);
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                bvec4 live = rest_live(row_rest(w, first + k), w.end);
                block.y += is_plain(block.x) ? sum_of(decay(v[k] - block.x)) : 0.0;
                block.z += weighted_distance(v[k], target[k], live, plain_or_0(block.x));
                block.w += sum_of(target[k]);
            }
            rest = join_dense(rest, block);
        }
    }
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        v[k] = x_of(w, r, row_live(r, w.end));
        target[k] = t_of(w, r, row_live(r, w.end));
    }
    largest most = largest(-INFINITY, 0u);
    [[unroll]] for (uint k = 0u; k < HELD; k++)
        take_largest(most, v[k]);
    float m = largest_of_lanes(row_larger(largest_value(most), rest.x), w.lane);

    vec3 sums = LONG ? join_dense(rest, vec4(m, 0.0, 0.0, 0.0)).yzw : vec3(0.0);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        sums.x += sum_of(decay(v[k] - m));
        sums.y += weighted_distance(v[k], target[k], row_live(row_quad(w, k), w.end), m);
        sums.z += sum_of(target[k]);
    }
    vec4 all = vec4(m, sums_of_lanes(sums, w.lane));

#ifdef LOSS_BACKWARD
    vec4 row = dense_row(all, w.live ? d_loss[args.d_offset + w.o] : 0.0);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        store_quad(w, r, row_live(r, w.end), row, v[k], target[k]);
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = x_of(w, r, rest_live(r, w.end));
                target[k] = t_of(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                store_quad(w, r, rest_live(r, w.end), row, v[k], target[k]);
            }
        }
    }
#else
    if (w.live && w.lane == 0u)
        loss[args.y_offset + w.o] = dense_loss(all);
#endif
}
