/* The table of cells and weights along each axis. Positions are fractions of integers below 2^50,
 * so the cell in which a position lies is always exact. Weights are rounded to f32 only at the
 * end. */
#include "op/image/resize.h"

#include <string.h>

/* The cells first .. first + count - 1 of x, from which one cell of the result is computed. */
typedef struct band {
    uint64_t first;
    uint32_t count;
    double weights[RESIZE_TAPS];
    double alike; /* not 0: the weight of all cells, of which there may be more than RESIZE_TAPS */
} band;

typedef struct fraction {
    int64_t whole; /* floor */
    double rest;   /* in [0, 1) */
} fraction;

static fraction divided(int64_t over, int64_t under)
{
    int64_t whole = over / under, rest = over % under;
    if (rest < 0) {
        rest += under;
        whole--;
    }
    return (fraction){whole, (double)rest / (double)under};
}

/* The position in x of cell `o`, plus 1/2 if `plus_half`. */
static fraction position(const resize_axis *a, uint64_t o, bool plus_half)
{
    int64_t from = (int64_t)a->from, to = (int64_t)a->to, at = (int64_t)o;
    if (a->coordinates == RLXVK_RESIZE_HALF_PIXEL)
        return divided((2 * at + 1) * from - (plus_half ? 0 : to), 2 * to);
    if (a->coordinates == RLXVK_RESIZE_ASYMMETRIC)
        return divided(2 * at * from + (plus_half ? to : 0), 2 * to);
    int64_t under = to > 1 ? to - 1 : 1;
    return divided(2 * at * (from - 1) + (plus_half ? under : 0), 2 * under);
}

static double near_weight(double t)
{
    return (1.25 * t - 2.25) * t * t + 1;
}

static double far_weight(double t)
{
    return ((-0.75 * t + 3.75) * t - 6) * t + 3;
}

/* The weights of the taps of cell `o`. *begin is the first tap's cell, before clamping. Returns how
 * many there are. */
static uint32_t taps_at(const resize_axis *a, uint64_t o, int64_t *begin, double w[RESIZE_TAPS])
{
    bool nearest = a->mode == RLXVK_RESIZE_NEAREST;
    fraction p = position(a, o, nearest && a->coordinates != RLXVK_RESIZE_ASYMMETRIC);
    *begin = p.whole - (a->mode == RLXVK_RESIZE_CUBIC);
    w[0] = nearest ? 1 : 1 - p.rest;
    w[1] = p.rest;
    if (a->mode != RLXVK_RESIZE_CUBIC)
        return nearest ? 1 : 2;
    w[0] = far_weight(1 + p.rest);
    w[1] = near_weight(p.rest);
    w[2] = near_weight(1 - p.rest);
    w[3] = far_weight(2 - p.rest);
    return 4;
}

/* Taps beyond a border are added to the cell at the border. Taps of weight 0 at either end are
 * dropped. */
static band band_of(const resize_axis *a, uint64_t o)
{
    if (a->mode == RLXVK_RESIZE_AREA) {
        uint64_t first = o * a->from / a->to, end = divide_up((o + 1) * a->from, a->to);
        return (band){first, (uint32_t)(end - first), .alike = 1 / (double)(end - first)};
    }
    double w[RESIZE_TAPS], all[RESIZE_TAPS] = {0};
    int64_t begin, last = (int64_t)a->from - 1;
    uint32_t taps = taps_at(a, o, &begin, w), used[2] = {RESIZE_TAPS, 0};
    int64_t least = MIN(MAX(begin, 0), last);
    band b = {.first = (uint64_t)least};
    for (uint32_t k = 0; k < taps; k++)
        all[MIN(MAX(begin + (int64_t)k, 0), last) - least] += w[k];
    for (uint32_t k = 0; k < RESIZE_TAPS; k++)
        if (all[k] != 0) {
            used[0] = MIN(used[0], k);
            used[1] = k + 1;
        }
    b.first += used[0];
    b.count = used[1] - used[0];
    memcpy(b.weights, all + used[0], b.count * sizeof *all);
    return b;
}

/* For each block of cells, the columns of the table that it reads. */
typedef struct ranges {
    uint32_t *begin, *end;
    uint64_t rows, columns, width;
    uint32_t block;
} ranges;

static void ranges_destroy(ranges *r)
{
    memory_free(r->begin);
    memory_free(r->end);
}

static void extend(ranges *r, uint64_t block, uint64_t column)
{
    if (r->end[block] == 0)
        r->begin[block] = (uint32_t)column;
    r->begin[block] = MIN(r->begin[block], (uint32_t)column);
    r->end[block] = MAX(r->end[block], (uint32_t)column + 1);
    r->width = MAX(r->width, (uint64_t)(r->end[block] - r->begin[block]));
}

/* Finds the widest range and makes all ranges this wide. begin[] is moved back if a range would end
 * outside. */
static rlxvk_status find_ranges(const resize_axis *a, bool backward, ranges *r)
{
    *r = (ranges){.rows = backward ? a->from : a->to,
                  .columns = backward ? a->to : a->from,
                  .width = 1,
                  .block = a->block};
    uint64_t blocks = divide_up(r->rows, r->block);
    r->begin = memory_zeroed(blocks, sizeof *r->begin);
    r->end = memory_zeroed(blocks, sizeof *r->end);
    if (!r->begin || !r->end)
        return status_fail_memory("resize");
    for (uint64_t o = 0; o < a->to; o++) {
        band b = band_of(a, o);
        for (uint32_t k = 0; k < b.count; k++)
            extend(r, (backward ? b.first + k : o) / r->block, backward ? o : b.first + k);
    }
    for (uint64_t i = 0; i < blocks; i++)
        r->begin[i] = (uint32_t)MIN(r->begin[i], r->columns - r->width);
    return RLXVK_OK;
}

rlxvk_status resize_table_width(const resize_axis *a, bool backward, uint64_t *out)
{
    ranges r;
    rlxvk_status status = find_ranges(a, backward, &r);
    *out = r.width;
    ranges_destroy(&r);
    return status;
}

static void fill_weights(const resize_axis *a, bool backward, const ranges *r, uint64_t pitch,
                         uint32_t *words)
{
    for (uint64_t o = 0; o < a->to; o++) {
        band b = band_of(a, o);
        for (uint32_t k = 0; k < b.count; k++) {
            uint64_t cell = b.first + k, row = backward ? cell : o, column = backward ? o : cell;
            float w = (float)(b.alike != 0 ? b.alike : b.weights[k]);
            memcpy(&words[(column - r->begin[row / r->block]) * pitch + row], &w, sizeof w);
        }
    }
}

static rlxvk_status append_axis(const resize_axis *a, bool backward, uint32_t axis,
                                struct resize_args *args, uint32_t **words, uint64_t *count)
{
    ranges r;
    rlxvk_status status;
    TRY(find_ranges(a, backward, &r));
    uint64_t pitch = round_up(r.rows, 4), weights = *count + pitch;
    uint32_t *more = memory_zeroed(weights + pitch * r.width, sizeof *more);
    if (!more)
        TRY(status_fail_memory("resize"));
    if (*words)
        memcpy(more, *words, *count * sizeof *more);
    for (uint64_t row = 0; row < r.rows; row++)
        more[*count + row] = r.begin[row / r.block];
    fill_weights(a, backward, &r, pitch, more + weights);
    args->first[axis] = (u32)*count;
    args->weights[axis] = (u32)weights;
    args->pitch[axis] = (u32)pitch;
    args->taps[axis] = (u32)r.width;
    *count = weights + pitch * r.width;
    memory_free(*words);
    *words = more;
error:
    ranges_destroy(&r);
    return status;
}

rlxvk_status resize_table_make(const resize_axis axes[RESIZE_AXES], bool backward,
                               struct resize_args *args, uint32_t **out, uint64_t *out_words)
{
    rlxvk_status status = RLXVK_OK;
    *out = NULL;
    *out_words = 0;
    for (uint32_t i = 0; i < RESIZE_AXES && status == RLXVK_OK; i++)
        status = append_axis(&axes[i], backward, i, args, out, out_words);
    if (status != RLXVK_OK) {
        memory_free(*out);
        *out = NULL;
    }
    return status;
}
