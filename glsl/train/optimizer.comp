#version 450
/*
 * One step of an optimizer, in place, on a parameter, its gradient and one or two running averages
 * per element. An invocation takes one element. With VECTORS it takes four. Then all offsets are
 * multiples of four, and the first invocations also take the elements after the last whole quad.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/train.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint CODE = 0; /* OPTIMIZER_... */
layout(constant_id = 2) const bool VECTORS = false;
layout(constant_id = 3) const bool NESTEROV = false;
layout(constant_id = 4) const bool SCHEDULED = false; /* rate and corrections from memory */
layout(constant_id = 5) const bool SCALED = false;    /* the gradient is multiplied by a number */
layout(push_constant) uniform block { optimizer_args args; };
layout(set = 0, binding = 0) buffer parameters { float p[]; };
layout(set = 0, binding = 0) buffer parameters4 { vec4 p4[]; };
layout(set = 0, binding = 1) readonly buffer gradients { float g[]; };
layout(set = 0, binding = 1) readonly buffer gradients4 { vec4 g4[]; };
layout(set = 0, binding = 2) buffer firsts { float m[]; };
layout(set = 0, binding = 2) buffer firsts4 { vec4 m4[]; };
layout(set = 0, binding = 3) buffer seconds { float v[]; };
layout(set = 0, binding = 3) buffer seconds4 { vec4 v4[]; };
layout(set = 0, binding = 4) readonly buffer schedules { float schedule[]; };
layout(set = 0, binding = 5) readonly buffer scales { float scale[]; };

struct rates {
    float rate, correction1, root2, scale; /* root2: of the second correction */
};

struct element {
    float p, m, v;
};

rates load_rates()
{
    rates r = rates(args.rate, args.correction1, args.correction2, 1.0);
    if (SCHEDULED) {
        r.rate = schedule[args.schedule_offset];
        if (CODE == OPTIMIZER_ADAMW) {
            r.correction1 = schedule[args.schedule_offset + 1u];
            r.root2 = schedule[args.schedule_offset + 2u];
        }
    }
    if (CODE == OPTIMIZER_ADAMW)
        r.root2 = square_root(r.root2);
    if (SCALED)
        r.scale = scale[args.scale_offset];
    return r;
}

/* The weight decay of AdamW and Lion is not added to the gradient. */
element stepped(rates r, element e, float gradient)
{
    gradient *= r.scale;
    if (CODE == OPTIMIZER_SGD) {
        gradient = fma(args.decay, e.p, gradient);
        e.m = fma(args.beta1, e.m, gradient);
        e.p = fma(-r.rate, NESTEROV ? fma(args.beta1, e.m, gradient) : e.m, e.p);
    } else if (CODE == OPTIMIZER_LION) {
        float u = fma(args.beta1, e.m, args.rest1 * gradient);
        float direction = u > 0.0 ? 1.0 : u < 0.0 ? -1.0 : u; /* NaN stays NaN */
        e.p = fma(-r.rate, fma(args.decay, e.p, direction), e.p);
        e.m = fma(args.beta2, e.m, args.rest2 * gradient);
    } else {
        e.m = fma(args.beta1, e.m, args.rest1 * gradient);
        e.v = fma(args.beta2, e.v, args.rest2 * gradient * gradient);
        /* Roots and a product come before the quotient, because v / correction2 and m / correction1
         * may be out of f32's range although their quotient is not. */
        float spread = divide(square_root(e.v), r.root2) + args.eps;
        float change = divide(e.m, r.correction1 * spread);
        e.p = fma(-r.rate, fma(args.decay, e.p, change), e.p);
    }
    return e;
}

void step_one(rates r, uint i)
{
    uint first = args.first_offset + i, second = args.second_offset + i;
    element e = element(p[args.parameter_offset + i], m[first], 0.0);
    if (CODE == OPTIMIZER_ADAMW)
        e.v = v[second];
    e = stepped(r, e, g[args.gradient_offset + i]);
    p[args.parameter_offset + i] = e.p;
    m[first] = e.m;
    if (CODE == OPTIMIZER_ADAMW)
        v[second] = e.v;
}

void step_four(rates r, uint i)
{
    uint at = args.parameter_offset / 4u + i, first = args.first_offset / 4u + i;
    uint second = args.second_offset / 4u + i;
    vec4 ps = p4[at], gs = g4[args.gradient_offset / 4u + i], ms = m4[first], vs = vec4(0.0);
    if (CODE == OPTIMIZER_ADAMW)
        vs = v4[second];
    for (uint k = 0u; k < 4u; k++) {
        element e = stepped(r, element(ps[k], ms[k], vs[k]), gs[k]);
        ps[k] = e.p;
        ms[k] = e.m;
        vs[k] = e.v;
    }
    p4[at] = ps;
    m4[first] = ms;
    if (CODE == OPTIMIZER_ADAMW)
        v4[second] = vs;
}

void main()
{
    uint i = global_index(), count = VECTORS ? args.numel / 4u : args.numel;
    rates r = load_rates();
    if (VECTORS && i < args.numel % 4u)
        step_one(r, count * 4u + i);
    if (i >= count)
        return;
    if (VECTORS)
        step_four(r, i);
    else
        step_one(r, i);
}
