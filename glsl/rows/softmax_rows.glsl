/* Softmax or log softmax of rows (see softmax_held.glsl). y may be x. A few rows that do not fit
 * the registers use softmax_partial and softmax_finish instead. */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const bool LONG = false;
layout(constant_id = 4) const bool LOG = false;
layout(push_constant) uniform block { softmax_args args; };
#include "lib/rows.glsl"
#include "lib/row_forms.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_OUTPUT(1, y)
SPAN_LOAD(x)
SPAN_STORE(y)
#include "rows/softmax.glsl"

vec4 load_quad(row_work w, uvec4 r, bvec4 live)
{
    uvec4 at = w.start + r * args.rows.inner;
    if (SPAN)
        return span_read(at, live, -INFINITY);
    return read_x(args.x_offset + at, live, -INFINITY);
}

vec2 load_beside(row_work w)
{
    return vec2(0.0);
}

struct row_terms {
    float m, share; /* with LOG: the logarithm of the sum */
};

row_terms terms_of(float m, float s, vec2 beside)
{
    return row_terms(m, LOG ? log(s) : 1.0 / s);
}

void store_quad(row_work w, row_terms t, uvec4 r, bvec4 live, vec4 e)
{
    uvec4 at = w.start + r * args.rows.inner;
    vec4 v = LOG ? log_softmax_value(e, t.m, t.share) : softmax_value(e, t.m, t.share);
    if (SPAN)
        span_write(at, live, v);
    else
        write_y(args.y_offset + at, live, v);
}

#define ROW_SPANS
#define ROW_VALUES
#define KEEPS_X LOG
#include "rows/softmax_held.glsl"
