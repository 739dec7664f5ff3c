/* Choosing lanes and chunks for the row kernels; only speed depends on the choice. */
#include "op/row_tile.h"

/* Columns side by side in a workgroup that still make whole memory transactions. */
#define COALESCED 32
/* Workgroups wanted before a row is worth cutting up. */
#define FEWEST_GROUPS 256

static uint32_t power_of_two_from(uint64_t value, uint32_t most)
{
    uint32_t power = 1;
    while (power < value && power < most)
        power *= 2;
    return power;
}

static uint32_t power_of_two_within(uint32_t value)
{
    uint32_t power = 1;
    while (power <= value / 2)
        power *= 2;
    return power;
}

row_tile row_tile_choose(const device_profile *profile, axis_view view, uint32_t per_lane)
{
    uint32_t size = power_of_two_within(MIN(profile->workgroup_size, ROW_TILE_LARGEST));
    uint32_t columns = power_of_two_from(view.inner, MIN(COALESCED, size));
    uint32_t lanes = power_of_two_from(divide_up(view.length, per_lane), size / columns);
    return (row_tile){size, lanes, view.inner == 1 ? 1 : size / lanes};
}

row_chunks row_chunks_choose(const device_profile *profile, axis_view view, const row_tile *tile,
                             uint32_t multiple)
{
    uint64_t groups = divide_up(view.outer * view.inner, tile->size / tile->lanes);
    uint64_t wanted = MAX(FEWEST_GROUPS, 4ull * profile->compute_units);
    uint64_t most = view.length / multiple;
    uint64_t count = groups < wanted ? MIN(divide_up(wanted, groups), most / 2) : 1;
    if (count < 2)
        return (row_chunks){1, view.length};
    uint64_t length = round_up(divide_up(view.length, count), multiple);
    return (row_chunks){(uint32_t)divide_up(view.length, length), length};
}

dispatch row_dispatch(const lowering *l, uint32_t kernel, const row_tile *tile, uint64_t outputs)
{
    dispatch d = {.kernel = (uint16_t)kernel, .constants = {tile->size}};
    lower_groups(l, &d, divide_up(outputs, tile->size / tile->lanes));
    return d;
}
