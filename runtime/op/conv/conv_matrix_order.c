/* See conv_matrix_order.h. If a convolution is transposed, each of its phases has only the taps
 * that reach it, so a phase is a range of the list. */
#include "op/conv/conv_matrix_order.h"
#include "args/conv_matrix.h"

#define OUTSIDE (1 << 30) /* the distance of items that only fill up a step */

/* The taps of one axis that reach a phase: their numbers, and their distances in x from the first
 * one. */
typedef struct axis_taps {
    int32_t base; /* coordinate of the first one in x, for cell 0 of the phase */
    uint32_t count;
    int32_t *taps, *distances;
} axis_taps;

static void find_taps(const struct conv_args *a, bool transposed, uint32_t axis, uint32_t phase,
                      axis_taps *out)
{
    int64_t reach = (int64_t)phase + a->padding[axis], stride = a->stride[axis];
    out->count = 0;
    for (int64_t t = 0; t < a->kernel[axis]; t++) {
        int64_t ahead = t * a->dilation[axis], source = ahead - a->padding[axis];
        if (transposed && (reach - ahead) % stride != 0)
            continue;
        if (transposed)
            source = (reach - ahead) / stride;
        if (out->count == 0)
            out->base = (int32_t)source;
        out->taps[out->count] = (int32_t)t;
        out->distances[out->count++] = (int32_t)(source - out->base);
    }
    if (out->count == 0)
        out->base = 0;
}

conv_matrix_layout conv_matrix_layout_of(const conv_problem *p, uint32_t form)
{
    const struct conv_args *a = &p->args;
    bool scattered = form == CONV_MATRIX_SCATTERED, words = form != CONV_MATRIX_PACKED;
    uint64_t all = a->channels, channels = all % 64 == 0 ? 64 : all % 32 == 0 ? 32 : all;
    uint64_t item = scattered ? 1 : 8, items = divide_up(channels, item);
    uint64_t cells = (uint64_t)a->in_size[0] * a->in_size[1] * a->in_size[2];
    conv_matrix_layout l = {.channels = channels,
                            .items = items,
                            .blocks = all / MAX(channels, 1u),
                            .item_channels = item,
                            .octet_items = 8 / item,
                            .cells = cells,
                            .block_stride = cells * (words ? channels : items),
                            .cell_stride = words ? 1 : items,
                            .item_stride = words ? item * cells : 1};
    l.group_stride = l.blocks * l.block_stride;
    return l;
}

typedef struct writer {
    const conv_problem *problem;
    const conv_matrix_layout *layout;
    uint64_t channel_step; /* weights from one channel to the next */
    conv_matrix_order *order;
    axis_taps axes[CONV_AXES];
} writer;

static void set_place(conv_matrix_order *o, uint64_t index, int32_t x, int32_t y, int32_t z,
                      int64_t offset)
{
    int32_t *place = o->places[index];
    place[0] = x;
    place[1] = y;
    place[2] = z;
    place[3] = (int32_t)offset;
}

/* Appends the items of one tap in one block. */
static void add_tap(writer *w, uint64_t block, const uint32_t at[CONV_AXES])
{
    const struct conv_args *a = &w->problem->args;
    const conv_matrix_layout *l = w->layout;
    conv_matrix_order *o = w->order;
    int32_t d[CONV_AXES];
    uint64_t tap = 0;
    int64_t cell = 0;
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        d[i] = w->axes[i].distances[at[i]];
        tap = tap * a->kernel[i] + (uint64_t)w->axes[i].taps[at[i]];
        cell = cell * a->in_size[i] + d[i];
    }
    for (uint64_t item = 0; item < l->items; item++) {
        uint64_t first = item * l->item_channels, channel = block * l->channels + first;
        int64_t offset = (int64_t)(block * l->block_stride + item * l->item_stride);
        set_place(o, 2 * o->phases + o->items, d[0], d[1], d[2],
                  offset + cell * (int64_t)l->cell_stride);
        o->filters[o->items][0] = (uint32_t)(channel * w->channel_step + tap);
        o->filters[o->items++][1] = (uint32_t)MIN(l->channels - first, l->item_channels);
    }
}

static void add_phase(writer *w, uint64_t phase, uint64_t step)
{
    conv_matrix_order *o = w->order;
    uint64_t first = o->items, unit = w->layout->octet_items;
    uint32_t at[CONV_AXES];
    for (uint64_t block = 0; block < w->layout->blocks; block++)
        for (at[0] = 0; at[0] < w->axes[0].count; at[0]++)
            for (at[1] = 0; at[1] < w->axes[1].count; at[1]++)
                for (at[2] = 0; at[2] < w->axes[2].count; at[2]++)
                    add_tap(w, block, at);
    for (; o->items % step != 0; o->items++)
        set_place(o, 2 * o->phases + o->items, 0, 0, OUTSIDE, 0);
    set_place(o, 2 * phase, (int32_t)(first / unit), (int32_t)(o->items / unit), 0, 0);
    set_place(o, 2 * phase + 1, w->axes[0].base, w->axes[1].base, w->axes[2].base, 0);
}

static rlxvk_status write_order(writer *w, uint64_t step)
{
    const struct conv_args *a = &w->problem->args;
    bool transposed = w->problem->transposed;
    uint32_t phases[CONV_AXES];
    uint64_t kernels = (uint64_t)a->kernel[0] + a->kernel[1] + a->kernel[2], phase = 0;
    int32_t *work = memory_zeroed(2 * kernels + 1, sizeof *work), *rest = work;
    if (!work)
        return status_fail_memory("taps of a convolution");
    for (uint32_t i = 0; i < CONV_AXES; i++, rest += 2 * (size_t)a->kernel[i - 1]) {
        phases[i] = transposed ? MIN(a->stride[i], a->out_size[i]) : 1;
        w->axes[i].taps = rest;
        w->axes[i].distances = rest + a->kernel[i];
    }
    for (uint32_t x = 0; x < phases[0]; x++)
        for (uint32_t y = 0; y < phases[1]; y++)
            for (uint32_t z = 0; z < phases[2]; z++, phase++) {
                find_taps(a, transposed, 0, x, &w->axes[0]);
                find_taps(a, transposed, 1, y, &w->axes[1]);
                find_taps(a, transposed, 2, z, &w->axes[2]);
                add_phase(w, phase, step);
            }
    memory_free(work);
    return RLXVK_OK;
}

void conv_matrix_order_destroy(conv_matrix_order *o)
{
    memory_free(o->places);
    memory_free(o->filters);
    *o = (conv_matrix_order){0};
}

/* Each tap belongs to one phase, so the phases together have as many items as the window. */
rlxvk_status conv_matrix_order_create(const conv_problem *p, const conv_matrix_layout *layout,
                                      uint64_t step, conv_matrix_order *out)
{
    const struct conv_args *a = &p->args;
    uint64_t taps = (uint64_t)a->kernel[0] * a->kernel[1] * a->kernel[2];
    writer w = {.problem = p,
                .layout = layout,
                .channel_step = taps * (p->transposed ? a->m : 1),
                .order = out};
    *out = (conv_matrix_order){.phases = p->shape.groups / a->groups};
    uint64_t most = taps * layout->blocks * layout->items + out->phases * step;
    rlxvk_status status;
    out->place_count = 2 * out->phases + most + step; /* kernels look one step ahead */
    out->places = memory_zeroed(out->place_count, sizeof *out->places);
    out->filters = memory_zeroed(most, sizeof *out->filters);
    TRY(out->places && out->filters ? RLXVK_OK : status_fail_memory("order of a convolution"));
    TRY(write_order(&w, step));
    return RLXVK_OK;
error:
    conv_matrix_order_destroy(out);
    return status;
}
