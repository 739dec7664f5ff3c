#version 450
/*
 * Convolution without shared memory or barriers: an invocation makes REG_M channels of REG_N
 * positions straight from memory. Its positions lie a whole stripe apart, so that neighbours read
 * and write neighbours. Channels outside are read as the last one and not stored.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "conv.glsl"

void main()
{
    uint blocks = (args.m + REG_M - 1) / REG_M, stripe = (args.positions + REG_N - 1) / REG_N;
    uint index = global_index(), block = index / stripe, first = index - block * stripe;
    uint group = block / blocks, m0 = (block - group * blocks) * REG_M;
    if (group >= args.groups)
        return;
    uint out_cells = cells(args.out_size), in_cells = cells(args.in_size);
    uint start[REG_N], at[REG_N], w_at[REG_M];
    ivec3 origin[REG_N];
    bool inside[REG_N];
    float sum[REG_M * REG_N];
    [[unroll]] for (uint j = 0; j < REG_N; j++) {
        uint n = min(first + j * stripe, args.positions - 1), image = n / out_cells;
        origin[j] = window_origin(n - image * out_cells);
        start[j] = x_start(image, group);
    }
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        w_at[i] = w_start(group, min(m0 + i, args.m - 1));
    [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
        sum[i] = 0.0;

    uint taps = cells(args.kernel);
    [[dont_unroll]] for (uint tap = 0; tap < taps; tap++) {
        ivec3 shift = tap_shift(tap);
        bool any = false, all = true;
        [[unroll]] for (uint j = 0; j < REG_N; j++) {
            uint cell;
            inside[j] = tap_source(origin[j], shift, cell);
            at[j] = inside[j] ? start[j] + cell : start[j];
            any = any || inside[j];
            all = all && inside[j];
        }
        uint w_step = tap;
        if (!any)
            continue;
        [[dont_unroll]] for (uint c = 0; c < args.channels; c++) {
            float value[REG_N];
            [[unroll]] for (uint j = 0; j < REG_N; j++)
                value[j] = x[at[j] + c * in_cells];
            [[unroll]] for (uint i = 0; i < REG_M; i++) {
                float weight = w[w_at[i] + w_step];
                [[unroll]] for (uint j = 0; j < REG_N; j++) {
                    float added = fma(weight, value[j], sum[i * REG_N + j]);
                    sum[i * REG_N + j] = all || inside[j] ? added : sum[i * REG_N + j];
                }
            }
            w_step += args.w_c_stride;
        }
    }

    [[unroll]] for (uint j = 0; j < REG_N; j++) {
        uint n = first + j * stripe, image = n / out_cells;
        uint y_at = args.y_offset + (image * args.groups + group) * args.m * out_cells + n -
                    image * out_cells;
        [[unroll]] for (uint i = 0; i < REG_M; i++)
            if (n < args.positions && m0 + i < args.m)
                y[y_at + (m0 + i) * out_cells] = sum[i * REG_N + j] + bias_of(group, m0 + i);
    }
}
