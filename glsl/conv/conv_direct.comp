#version 450
/*
 * Convolution without shared memory and barriers. An invocation computes a register block of REG_M
 * channels by REG_N positions of one phase directly from memory. Its positions lie one stripe
 * apart, so that neighbouring invocations read and write neighbouring elements. Channels past the
 * last one repeat it and are not stored.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "conv/conv.glsl"

void main()
{
    uint blocks = (args.m + REG_M - 1) / REG_M, stripe = (args.positions + REG_N - 1) / REG_N;
    uint index = global_index(), rest = index / stripe, first = index - rest * stripe;
    uint m0 = rest % blocks * REG_M;
    rest /= blocks;
    uint phases = phase_count(), group = rest / phases;
    if (group >= args.groups)
        return;
    enter_phase(rest - group * phases);
    uint x_step = x_c_stride(), y_step = y_m_stride();
    uint start[REG_N], at[REG_N], w_at[REG_M];
    ivec3 origin[REG_N];
    bool inside[REG_N];
    float sum[REG_M * REG_N];
    [[unroll]] for (uint j = 0; j < REG_N; j++) {
        uvec3 place;
        uint image = locate(min(first + j * stripe, args.positions - 1), place);
        origin[j] = window_origin(place);
        start[j] = x_start(image, group);
    }
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        w_at[i] = w_start(group, min(m0 + i, args.m - 1));
    [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
        sum[i] = 0.0;

    uvec3 tap = uvec3(0);
    uint w_step = w_c_stride(), taps = volume(tap_count);
    [[dont_unroll]] for (uint t = 0; t < taps; t++) {
        bool any = false, all = true;
        [[unroll]] for (uint j = 0; j < REG_N; j++) {
            uint cell;
            inside[j] = source_cell(origin[j] + ivec3(tap) * shift, cell);
            at[j] = inside[j] ? start[j] + cell : args.x_offset;
            any = any || inside[j];
            all = all && inside[j];
        }
        uint weight_at = tap_weight(tap);
        tap.z++;
        if (tap.z == tap_count.z) {
            tap.z = 0;
            tap.y++;
        }
        if (tap.y == tap_count.y) {
            tap.y = 0;
            tap.x++;
        }
        if (!any)
            continue;
        [[dont_unroll]] for (uint c = 0; c < args.channels; c++) {
            float value[REG_N];
            [[unroll]] for (uint j = 0; j < REG_N; j++)
                value[j] = x[at[j] + c * x_step];
            [[unroll]] for (uint i = 0; i < REG_M; i++) {
                float weight = w[w_at[i] + weight_at];
                [[unroll]] for (uint j = 0; j < REG_N; j++) {
                    float added = fma(weight, value[j], sum[i * REG_N + j]);
                    sum[i * REG_N + j] = all || inside[j] ? added : sum[i * REG_N + j];
                }
            }
            weight_at += w_step;
        }
    }

    [[unroll]] for (uint j = 0; j < REG_N; j++) {
        uvec3 place;
        uint n = first + j * stripe, cell;
        uint y_at = y_start(locate(min(n, args.positions - 1), place), group);
        if (!target_cell(place, cell) || n >= args.positions)
            continue;
        [[unroll]] for (uint i = 0; i < REG_M; i++)
            if (m0 + i < args.m) {
                uint to = y_at + (m0 + i) * y_step + cell;
                y[to] = finish(sum[i * REG_N + j], terms_of(group, m0 + i), to);
            }
    }
}
