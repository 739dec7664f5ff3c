/* The table of cells and weights along each axis. Without a scale and a region, positions are
 * fractions of integers below 2^50, so the cell in which a position lies is always exact. Weights
 * are rounded to f32 only at the end. */
#include "op/image/resize.h"

#include <math.h>
#include <string.h>

/* The cells first .. first + count - 1 of x, from which one cell of the result is computed. */
typedef struct band {
    uint64_t first;
    uint32_t count;
    const double *weights;
    double alike; /* not 0: the weight of all cells; there are no others */
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

static fraction split(double position)
{
    double whole = floor(position);
    return (fraction){(int64_t)whole, position - whole};
}

static double scale_of(const resize_axis *a)
{
    return a->scale != 0 ? a->scale : (double)a->to / (double)a->from;
}

/* The position in double precision, exactly as rlxvk_ops_vision.h says it. */
static double scaled_position(const resize_axis *a, uint64_t o)
{
    double m = (double)a->from, n = (double)a->to, at = (double)o, scale = scale_of(a);
    double length = a->scale != 0 ? scale * m : n;
    switch (a->coordinates) {
    case RLXVK_RESIZE_ALIGN_CORNERS:
        return length == 1 ? 0 : at * (m - 1) / (length - 1);
    case RLXVK_RESIZE_ASYMMETRIC:
        return at / scale;
    case RLXVK_RESIZE_HALF_PIXEL_FOR_NEAREST:
        return (at + 0.5) / scale;
    case RLXVK_RESIZE_HALF_PIXEL_SYMMETRIC:
        return m / 2 * (1 - n / (scale * m)) + (at + 0.5) / scale - 0.5;
    case RLXVK_RESIZE_PYTORCH_HALF_PIXEL:
        return length == 1 ? -0.5 : (at + 0.5) / scale - 0.5;
    case RLXVK_RESIZE_CROP:
        return length == 1 ? (a->begin + a->end) / 2 * (m - 1)
                           : a->begin * (m - 1) + at * (a->end - a->begin) * (m - 1) / (length - 1);
    default:
        return (at + 0.5) / scale - 0.5;
    }
}

/* The position in x of cell `o`. */
static fraction position(const resize_axis *a, uint64_t o)
{
    int64_t from = (int64_t)a->from, to = (int64_t)a->to, at = (int64_t)o;
    if (a->scale != 0 || a->coordinates == RLXVK_RESIZE_CROP)
        return split(scaled_position(a, o));
    if (from == to)
        return (fraction){at, 0};
    switch (a->coordinates) {
    case RLXVK_RESIZE_ASYMMETRIC:
        return divided(at * from, to);
    case RLXVK_RESIZE_ALIGN_CORNERS:
        return divided(at * (from - 1), MAX(to - 1, 1));
    case RLXVK_RESIZE_HALF_PIXEL_FOR_NEAREST:
        return divided((2 * at + 1) * from, 2 * to);
    case RLXVK_RESIZE_PYTORCH_HALF_PIXEL:
        if (to == 1)
            return (fraction){-1, 0.5};
        /* fall through */
    default:
        return divided((2 * at + 1) * from - to, 2 * to);
    }
}

bool resize_is_outside(const resize_axis *a, uint64_t o)
{
    double at;
    if (a->coordinates != RLXVK_RESIZE_CROP || a->mode == RLXVK_RESIZE_AREA)
        return false;
    at = scaled_position(a, o);
    return !(at >= 0 && at <= (double)a->from - 1);
}

static int64_t nearest_cell(const resize_axis *a, fraction p)
{
    rlxvk_resize_rounding rounding = a->rounding;
    if (rounding == RLXVK_RESIZE_ROUND_DEFAULT)
        rounding = a->coordinates == RLXVK_RESIZE_ASYMMETRIC ? RLXVK_RESIZE_ROUND_DOWN
                                                             : RLXVK_RESIZE_ROUND_HALF_UP;
    switch (rounding) {
    case RLXVK_RESIZE_ROUND_HALF_UP:
        return p.whole + (p.rest >= 0.5);
    case RLXVK_RESIZE_ROUND_HALF_DOWN:
        return p.whole + (p.rest > 0.5);
    case RLXVK_RESIZE_ROUND_UP:
        return p.whole + (p.rest > 0);
    default:
        return p.whole;
    }
}

/* ---- Weights ---- */

static bool is_cubic(const resize_axis *a)
{
    return a->mode == RLXVK_RESIZE_CUBIC || a->mode == RLXVK_RESIZE_CUBIC_ANTIALIAS;
}

/* The kernels are 1 at 0. `a` is the coefficient of the cubic one. */
static double near_weight(double t, double a)
{
    return ((a + 2) * t - (a + 3)) * t * t + 1;
}

static double far_weight(double t, double a)
{
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

static double weight_at(const resize_axis *a, double distance)
{
    double t = fabs(distance);
    if (!is_cubic(a))
        return t < 1 ? 1 - t : 0;
    return t <= 1 ? near_weight(t, a->cubic) : t < 2 ? far_weight(t, a->cubic) : 0;
}

/* The factor by which distances are multiplied. With antialiasing it is below 1 if x gets smaller,
 * so that more cells count. */
static double compression(const resize_axis *a)
{
    bool wide = a->mode == RLXVK_RESIZE_LINEAR_ANTIALIAS || a->mode == RLXVK_RESIZE_CUBIC_ANTIALIAS;
    return wide ? MIN(scale_of(a), 1) : 1;
}

static double reach(const resize_axis *a)
{
    return (is_cubic(a) ? 2 : 1) / compression(a);
}

static size_t most_taps(const resize_axis *a)
{
    return 2 * (size_t)ceil(reach(a)) + 2;
}

/* Cells beyond the border get no weight, if the axis asks for that. The rest is scaled to 1. */
static void normalize(const resize_axis *a, int64_t begin, uint32_t count, double *w)
{
    double sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        int64_t cell = begin + (int64_t)k;
        if (a->excludes && (cell < 0 || cell >= (int64_t)a->from))
            w[k] = 0;
        sum += w[k];
    }
    for (uint32_t k = 0; k < count && sum != 0; k++)
        w[k] /= sum;
}

/* The weights of the taps of cell `o`. *begin is the first tap's cell, before clamping. Returns how
 * many there are. */
static uint32_t taps_at(const resize_axis *a, uint64_t o, int64_t *begin, double *w)
{
    fraction p = position(a, o);
    double narrow = compression(a);
    uint32_t count = 2;
    if (a->mode == RLXVK_RESIZE_NEAREST) {
        *begin = nearest_cell(a, p);
        w[0] = 1;
        return 1;
    }
    if (narrow < 1) {
        int64_t last = p.whole + (int64_t)floor(p.rest + reach(a));
        *begin = p.whole + (int64_t)ceil(p.rest - reach(a));
        count = (uint32_t)(last - *begin + 1);
        for (uint32_t k = 0; k < count; k++)
            w[k] = weight_at(a, narrow * ((double)(*begin + (int64_t)k - p.whole) - p.rest));
    } else if (is_cubic(a)) {
        *begin = p.whole - 1;
        count = 4;
        w[0] = far_weight(1 + p.rest, a->cubic);
        w[1] = near_weight(p.rest, a->cubic);
        w[2] = near_weight(1 - p.rest, a->cubic);
        w[3] = far_weight(2 - p.rest, a->cubic);
    } else {
        *begin = p.whole;
        w[0] = 1 - p.rest;
        w[1] = p.rest;
    }
    if (narrow < 1 || a->excludes)
        normalize(a, *begin, count, w);
    return count;
}

/* Taps beyond a border are added to the cell at the border. Taps of weight 0 at either end are
 * dropped. `room` is for twice most_taps(). */
static band band_of(const resize_axis *a, uint64_t o, double *room)
{
    if (a->mode == RLXVK_RESIZE_AREA) {
        uint64_t first = o * a->from / a->to, end = divide_up((o + 1) * a->from, a->to);
        return (band){.first = first,
                      .count = (uint32_t)(end - first),
                      .alike = 1 / (double)(end - first)};
    }
    size_t most = most_taps(a);
    double *w = room, *all = room + most;
    int64_t begin, last = (int64_t)a->from - 1;
    if (resize_is_outside(a, o))
        return (band){.first = 0};
    uint32_t taps = taps_at(a, o, &begin, w), used[2] = {taps, 0};
    int64_t least = MIN(MAX(begin, 0), last);
    memset(all, 0, taps * sizeof *all);
    for (uint32_t k = 0; k < taps; k++)
        all[MIN(MAX(begin + (int64_t)k, 0), last) - least] += w[k];
    for (uint32_t k = 0; k < taps; k++)
        if (all[k] != 0) {
            used[0] = MIN(used[0], k);
            used[1] = k + 1;
        }
    if (used[1] == 0)
        return (band){.first = (uint64_t)least};
    return (band){.first = (uint64_t)least + used[0],
                  .count = used[1] - used[0],
                  .weights = all + used[0]};
}

/* For each block of cells, the columns of the table that it reads. */
typedef struct ranges {
    uint32_t *begin, *end;
    double *room; /* for band_of */
    uint64_t rows, columns, width;
    uint32_t block;
} ranges;

static void ranges_destroy(ranges *r)
{
    memory_free(r->begin);
    memory_free(r->end);
    memory_free(r->room);
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
    r->room = memory_zeroed(2 * most_taps(a), sizeof *r->room);
    if (!r->begin || !r->end || !r->room)
        return status_fail_memory("resize");
    for (uint64_t o = 0; o < a->to; o++) {
        band b = band_of(a, o, r->room);
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
        band b = band_of(a, o, r->room);
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
        more[*count + row] =
            r.begin[row / r.block] | (!backward && resize_is_outside(a, row) ? RESIZE_OUTSIDE : 0);
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
