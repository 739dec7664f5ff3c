/* The reference of a scene of splats, in double: camera, colours, silhouettes, tiles and their
 * order. Whether an ellipse meets a rectangle follows from the minimum of q on its four edges. */
#include "op/splat/gaussian_splat_reference.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_FLOOR   1e-8
#define DEPTH_FLOOR    1e-4
#define SCALE_FLOOR    1e-6
#define ON_THE_ELLIPSE (1 + 1e-6)
#define RAY_FLOOR      1e-20

/* ---- Vectors ---- */

static void cross(const double *a, const double *b, double out[3])
{
    double v[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    memcpy(out, v, sizeof v);
}

static void normalize(const double *v, double out[3])
{
    double length = sqrt(splat_dot(v, v));
    for (int i = 0; i < 3; i++)
        out[i] = length > VECTOR_FLOOR ? v[i] / length : i == 2;
}

static void widen(const float *v, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = v[i];
}

/* The rows of the matrix that rotates a splat's own axes to those of the world. */
void gaussian_splat_rotation(const double q[4], double out[3][3])
{
    double w = q[0], x = q[1], y = q[2], z = q[3];
    const double rows[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                               {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                               {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    memcpy(out, rows, sizeof rows);
}

/* Not const, because C11 makes no const double[3][3] of a double[3][3]. */
static void turn_back(double rows[3][3], const double v[3], double out[3])
{
    for (int k = 0; k < 3; k++)
        out[k] = rows[0][k] * v[0] + rows[1][k] * v[1] + rows[2][k] * v[2];
}

/* ---- Camera and colours ---- */

static splat_camera find_camera(const rlxvk_gaussian_splat_options *o, const float *meta)
{
    splat_camera c = {.near = fmax(meta[10], DEPTH_FLOOR), .far = meta[11]};
    double up[3], view[3];
    widen(meta, 3, c.position);
    for (int i = 0; i < 3; i++)
        view[i] = (double)meta[3 + i] - c.position[i];
    normalize(view, c.axes[2]);
    widen(meta + 6, 3, up);
    normalize(up, up);
    cross(up, c.axes[2], c.axes[0]);
    normalize(c.axes[0], c.axes[0]);
    cross(c.axes[2], c.axes[0], c.axes[1]);
    normalize(c.axes[1], c.axes[1]);
    c.focal = 0.5 * o->height / tan(meta[9] * (acos(-1) / 360));
    return c;
}

static const double c1 = 0.4886025119029199;
static const double c2[] = {1.0925484305920792, -1.0925484305920792, 0.31539156525252005,
                            -1.0925484305920792, 0.5462742152960396};
static const double c3[] = {-0.5900435899266435, 2.890611442640554,   -0.4570457994644658,
                            0.3731763325901154,  -0.4570457994644658, 1.445305721320277,
                            -0.5900435899266435};

/* A term of a spherical harmonic: a factor times x^i y^j z^k. */
typedef struct monomial {
    int c;
    const double *factors;
    int which;
    double times;
    int x, y, z;
} monomial;

static const double c0[] = {0.28209479177387814};
static const monomial monomials[] = {
    {0, c0, 0, 1, 0, 0, 0},   {1, &c1, 0, -1, 0, 1, 0}, {2, &c1, 0, 1, 0, 0, 1},
    {3, &c1, 0, -1, 1, 0, 0}, {4, c2, 0, 1, 1, 1, 0},   {5, c2, 1, 1, 0, 1, 1},
    {6, c2, 2, 2, 0, 0, 2},   {6, c2, 2, -1, 2, 0, 0},  {6, c2, 2, -1, 0, 2, 0},
    {7, c2, 3, 1, 1, 0, 1},   {8, c2, 4, 1, 2, 0, 0},   {8, c2, 4, -1, 0, 2, 0},
    {9, c3, 0, 3, 2, 1, 0},   {9, c3, 0, -1, 0, 3, 0},  {10, c3, 1, 1, 1, 1, 1},
    {11, c3, 2, 4, 0, 1, 2},  {11, c3, 2, -1, 2, 1, 0}, {11, c3, 2, -1, 0, 3, 0},
    {12, c3, 3, 2, 0, 0, 3},  {12, c3, 3, -3, 2, 0, 1}, {12, c3, 3, -3, 0, 2, 1},
    {13, c3, 4, 4, 1, 0, 2},  {13, c3, 4, -1, 3, 0, 0}, {13, c3, 4, -1, 1, 2, 0},
    {14, c3, 5, 1, 2, 0, 1},  {14, c3, 5, -1, 0, 2, 1}, {15, c3, 6, 1, 3, 0, 0},
    {15, c3, 6, -3, 1, 2, 0},
};

/* x^n, or 0 if n < 0. So n raised(x, n - 1) is its derivative, even if n is 0. */
static double raised(double x, int n)
{
    double r = n < 0 ? 0 : 1;
    for (int i = 0; i < n; i++)
        r *= x;
    return r;
}

void gaussian_splat_harmonics(const double v[3], double values[SPLAT_COEFFICIENTS],
                              double slopes[SPLAT_COEFFICIENTS][3])
{
    memset(values, 0, SPLAT_COEFFICIENTS * sizeof *values);
    memset(slopes, 0, SPLAT_COEFFICIENTS * sizeof *slopes);
    for (size_t i = 0; i < ARRAY_COUNT(monomials); i++) {
        const monomial *m = &monomials[i];
        double f = m->factors[m->which] * m->times;
        double x = raised(v[0], m->x), y = raised(v[1], m->y), z = raised(v[2], m->z);
        values[m->c] += f * x * y * z;
        slopes[m->c][0] += f * m->x * raised(v[0], m->x - 1) * y * z;
        slopes[m->c][1] += f * m->y * raised(v[1], m->y - 1) * x * z;
        slopes[m->c][2] += f * m->z * raised(v[2], m->z - 1) * x * y;
    }
}

static void find_color(splat_shape *s, const host_call *c, const splat_camera *camera, size_t i,
                       size_t coefficients)
{
    const float *color = c->inputs[SPLAT_COLORS].words + 3 * i;
    const float *sh = c->inputs[SPLAT_SH].words + 3 * coefficients * i;
    const float *p = c->inputs[SPLAT_POSITIONS].words + 3 * i;
    double away[3], v[3], values[SPLAT_COEFFICIENTS], slopes[SPLAT_COEFFICIENTS][3];
    bool base = true, finite = isfinite(c->inputs[SPLAT_OPACITIES].words[i]);
    for (int k = 0; k < 3; k++) {
        away[k] = p[k] - camera->position[k];
        base = base && (coefficients == 0 || fabsf(sh[k]) <= 1e-8f);
        finite = finite && isfinite(p[k]) && isfinite(color[k]);
    }
    normalize(away, v);
    gaussian_splat_harmonics(v, values, slopes);
    for (int k = 0; k < 3; k++) {
        double terms = 0.5, first = base ? (fmin(fmax(color[k], 0), 1) - 0.5) / c0[0] : sh[k];
        s->color[k] = 0.5 + values[0] * first;
        terms += fabs(values[0] * first);
        for (size_t m = 1; m < MIN(coefficients, SPLAT_COEFFICIENTS); m++) {
            s->color[k] += values[m] * sh[3 * m + (size_t)k];
            terms += 2 * fabs((double)sh[3 * m + (size_t)k]);
        }
        s->color_error[k] = 32 * SPLAT_UNIT * terms;
        finite = finite && isfinite(s->color[k]) && fabs(s->color[k]) < 3e38;
    }
    s->opacity = fmin(fmax(c->inputs[SPLAT_OPACITIES].words[i], 0), 1);
    for (int k = 0; k < 3 && !finite; k++)
        s->color[k] = s->color_error[k] = 0;
    s->opacity = finite ? s->opacity : 0;
    s->valid = finite;
}

/* ---- The silhouette ---- */

static bool meets_view(const rlxvk_gaussian_splat_options *o, const splat_camera *c,
                       const double m[3], double radius)
{
    const double planes[4][3] = {{c->focal, 0, 0.5 * o->width},
                                 {-c->focal, 0, 0.5 * o->width},
                                 {0, c->focal, 0.5 * o->height},
                                 {0, -c->focal, 0.5 * o->height}};
    bool in = m[2] + radius > DEPTH_FLOOR && m[2] - radius < c->far;
    for (int i = 0; i < 4; i++)
        in = in && splat_dot(planes[i], m) >= -radius * sqrt(splat_dot(planes[i], planes[i]));
    return in;
}

static void find_ellipse(splat_shape *s, const splat_camera *c, const double m[3],
                         double rows[3][3], const double a[3])
{
    double turned[3][3], b[2][3], offset[2], f2, d;
    for (int i = 0; i < 3; i++) {
        turn_back(rows, c->axes[i], turned[i]);
        for (int k = 0; k < 3; k++)
            turned[i][k] *= a[k];
    }
    d = m[2] * m[2] - splat_dot(turned[2], turned[2]);
    for (int i = 0; i < 2; i++) {
        double x = (m[i] * m[2] - splat_dot(turned[i], turned[2])) / d;
        for (int k = 0; k < 3; k++)
            b[i][k] = turned[i][k] - x * turned[2][k];
        offset[i] = m[i] - x * m[2];
        s->centre[i] += c->focal * x;
    }
    f2 = c->focal * c->focal / d;
    s->sxx = f2 * (splat_dot(b[0], b[0]) - offset[0] * offset[0]);
    s->sxy = f2 * (splat_dot(b[0], b[1]) - offset[0] * offset[1]);
    s->syy = f2 * (splat_dot(b[1], b[1]) - offset[1] * offset[1]);
}

static bool project(splat_shape *s, const rlxvk_gaussian_splat_options *o, const splat_camera *c,
                    const double m[3], double rows[3][3], const double deviation[3],
                    const double away[3])
{
    double support = sqrt(fmax(0, -2 * log(o->alpha_cutoff / s->opacity))), a[3], own[3], az[3];
    double outside = 0, deep = 0, radius = 0, h, e;
    turn_back(rows, away, own);
    turn_back(rows, c->axes[2], az);
    for (int k = 0; k < 3; k++) {
        a[k] = fmax(deviation[k] * support, SCALE_FLOOR);
        outside += own[k] / a[k] * (own[k] / a[k]);
        deep += az[k] * a[k] * az[k] * a[k];
        radius = fmax(radius, a[k]);
    }
    s->centre[0] = 0.5 * o->width;
    s->centre[1] = 0.5 * o->height;
    if (sqrt(outside) <= 1 + 1e-6 || m[2] * m[2] - deep <= 1e-12 * m[2] * m[2] ||
        m[2] <= sqrt(deep)) {
        double q = MAX(o->width, o->height);
        s->sxx = s->syy = q * q;
        s->sxy = 0;
        if (!meets_view(o, c, m, radius))
            return false;
    } else {
        find_ellipse(s, c, m, rows, a);
    }
    h = (s->sxx + s->syy) / 2;
    e = sqrt(fmax(0, (s->sxx - s->syy) * (s->sxx - s->syy) / 4 + s->sxy * s->sxy));
    radius = fmax(sqrt(h + e) + 1, 1);
    return isfinite(h + e) && h > e && sqrt(fmax(h - e, 0)) >= o->min_axis_px &&
           s->centre[0] + radius >= 0 && s->centre[0] - radius < o->width &&
           s->centre[1] + radius >= 0 && s->centre[1] - radius < o->height;
}

/* Whether a sum from which the splat's position is computed may overflow f32, in some order of its
 * terms. */
static bool passes_range(const splat_shape *s, const splat_camera *c, double rows[3][3],
                         const double away[3])
{
    bool passes = false;
    for (int k = 0; k < 3; k++) {
        double own = 0, seen = 0;
        for (int i = 0; i < 3; i++) {
            own += fabs(rows[i][k] * away[i]);
            seen += fabs(c->axes[k][i] * away[i]);
        }
        passes = passes || fmax(fmax(own, own * s->inverse[k]), seen) > FLT_MAX;
    }
    return passes;
}

static void find_shape(splat_shape *s, const host_call *call, const rlxvk_gaussian_splat_options *o,
                       const splat_camera *camera, size_t i)
{
    const float *p = call->inputs[SPLAT_POSITIONS].words + 3 * i;
    const float *scale = call->inputs[SPLAT_SCALES].words + 3 * i;
    const float *turn = call->inputs[SPLAT_ROTATIONS].words + 4 * i;
    double length = 0, away[3], m[3], rows[3][3], deviation[3];
    bool finite = s->valid;
    for (int k = 0; k < 4; k++)
        length += (double)turn[k] * turn[k];
    finite = finite && isfinite((float)length);
    for (int k = 0; k < 4; k++)
        s->unit[k] = turn[k] / fmax(sqrt(length), VECTOR_FLOOR);
    gaussian_splat_rotation(s->unit, rows);
    for (int k = 0; k < 3; k++) {
        away[k] = camera->position[k] - p[k];
        deviation[k] = o->radius_scale * exp(scale[k]);
        s->inverse[k] = 1 / fmax(3 * deviation[k], SCALE_FLOOR);
        finite = finite && isfinite(scale[k]) && isfinite((float)(3 * deviation[k])) &&
                 isfinite(away[k]);
    }
    turn_back(rows, away, s->local);
    for (int k = 0; k < 3; k++) {
        s->local[k] *= s->inverse[k];
        m[k] = -splat_dot(camera->axes[k], away);
        finite = finite && fabs(s->local[k]) <= FLT_MAX && fabs(m[k]) <= FLT_MAX;
    }
    s->open = finite && passes_range(s, camera, rows, away);
    finite = finite && !s->open;
    s->distance = sqrt(splat_dot(away, away));
    s->valid = finite && s->opacity >= o->alpha_cutoff && m[2] > camera->near &&
               m[2] < camera->far && project(s, o, camera, m, rows, deviation, away);
    if (!finite) {
        memset(s->local, 0, sizeof s->local);
        memset(s->inverse, 0, sizeof s->inverse);
        memset(s->unit, 0, sizeof s->unit);
    }
}

/* ---- Tiles ---- */

/* The minimum of q on a segment on which one coordinate is `at` and the other is between low and
 * high. */
static double least_on_edge(double a, double b, double c, double at, double low, double high)
{
    double y = fmin(fmax(-b * at / c, low), high);
    return a * at * at + 2 * b * at * y + c * y * y;
}

static bool meets_tile(const splat_shape *s, const double low[2], const double high[2])
{
    double x0 = low[0] - s->centre[0], x1 = high[0] - s->centre[0];
    double y0 = low[1] - s->centre[1], y1 = high[1] - s->centre[1];
    double determinant = s->sxx * s->syy - s->sxy * s->sxy;
    double a = s->syy / determinant, b = -s->sxy / determinant, c = s->sxx / determinant;
    if (x0 <= 0 && x1 >= 0 && y0 <= 0 && y1 >= 0)
        return true;
    double least = fmin(least_on_edge(a, b, c, x0, y0, y1), least_on_edge(a, b, c, x1, y0, y1));
    least = fmin(least, least_on_edge(c, b, a, y0, x0, x1));
    return fmin(least, least_on_edge(c, b, a, y1, x0, x1)) <= ON_THE_ELLIPSE;
}

typedef struct placed_splat {
    double distance;
    uint32_t index;
} placed_splat;

static int compare_placed(const void *left, const void *right)
{
    const placed_splat *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

typedef struct tile_entry {
    uint32_t tile, place, splat;
} tile_entry;

static int compare_entries(const void *left, const void *right)
{
    const tile_entry *a = left, *b = right;
    if (a->tile != b->tile)
        return a->tile < b->tile ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

typedef VECTOR(tile_entry) tile_entries;

/* Lists the entries. It allocates memory only for entries that exist, because max_list_entries may
 * be much larger. */
static rlxvk_status list_entries(splat_reference *r, const placed_splat *order, size_t count,
                                 tile_entries *entries)
{
    const rlxvk_gaussian_splat_options *o = r->options;
    for (size_t i = 0; i < count; i++)
        for (uint64_t tile = 0; tile < r->sizes.tiles_wide * r->sizes.tiles_high; tile++) {
            uint64_t x = tile % r->sizes.tiles_wide, y = tile / r->sizes.tiles_wide;
            double low[2] = {(double)(x * o->tile_size), (double)(y * o->tile_size)};
            double high[2] = {low[0] + o->tile_size, low[1] + o->tile_size};
            if (!meets_tile(&r->splats[order[i].index], low, high))
                continue;
            tile_entry entry = {(uint32_t)tile, (uint32_t)entries->count, order[i].index};
            if (entries->count < o->max_list_entries && !VECTOR_PUSH(entries, entry))
                return status_fail_memory("gaussian splats");
            r->generated++;
        }
    return RLXVK_OK;
}

double gaussian_splat_flag(const splat_reference *r)
{
    bool fits = r->generated <= r->options->max_list_entries;
    return fits ? 0 : (double)MIN(r->generated, UINT32_MAX);
}

static rlxvk_status find_list(splat_reference *r)
{
    placed_splat *order = memory_zeroed((size_t)r->sizes.count + 1, sizeof *order);
    tile_entries entries = {0};
    rlxvk_status status = order ? RLXVK_OK : status_fail_memory("gaussian splats");
    size_t count = 0;
    for (uint32_t i = 0; status == RLXVK_OK && i < r->sizes.count; i++)
        if (r->splats[i].valid)
            order[count++] = (placed_splat){r->splats[i].distance, i};
    TRY(status);
    if (count)
        qsort(order, count, sizeof *order, compare_placed);
    TRY(list_entries(r, order, count, &entries));
    if (entries.count)
        qsort(entries.items, entries.count, sizeof *entries.items, compare_entries);
    r->listed = entries.count;
    r->list = r->memory[1] = memory_zeroed(entries.count + 1, sizeof *r->list);
    TRY(r->list ? RLXVK_OK : status_fail_memory("gaussian splats"));
    for (uint32_t i = 0; i < r->listed; i++) {
        uint32_t *range = r->ranges + 2 * (size_t)entries.items[i].tile;
        r->list[i] = entries.items[i].splat;
        range[0] = range[1] ? range[0] : i;
        range[1] = i + 1;
    }
error:
    memory_free(order);
    VECTOR_FREE(&entries);
    return status;
}

/* ---- All ---- */

/* Allocates everything except the list. */
static rlxvk_status allocate(splat_reference *r)
{
    size_t tiles = (size_t)(r->sizes.tiles_wide * r->sizes.tiles_high);
    r->splats = r->memory[0] = memory_zeroed((size_t)r->sizes.count + 1, sizeof *r->splats);
    r->ranges = r->memory[2] = memory_zeroed(tiles, 2 * sizeof *r->ranges);
    return r->splats && r->ranges ? RLXVK_OK : status_fail_memory("gaussian splats");
}

static void find_brightest(splat_reference *r)
{
    for (uint64_t i = 0; i < r->sizes.count; i++)
        for (int k = 0; k < 3; k++)
            r->brightest = fmax(r->brightest, fabs(r->splats[i].color[k]));
    for (int k = 0; k < 3; k++)
        r->brightest = fmax(r->brightest, fabs(r->background[k]));
}

rlxvk_status gaussian_splat_reference_create(splat_reference *r, const host_call *c)
{
    const splat_attributes *a = c->node->attributes;
    const float *meta = c->inputs[SPLAT_VIEW].words;
    uint64_t count = shape_numel(&c->inputs[SPLAT_POSITIONS].node->shape) / 3;
    rlxvk_status status;
    *r = (splat_reference){.options = &a->options,
                           .sizes = gaussian_splat_sizes(&a->options, count),
                           .camera = find_camera(&a->options, meta)};
    if (count)
        r->sizes.coefficients = shape_numel(&c->inputs[SPLAT_SH].node->shape) / (3 * count);
    TRY(allocate(r));
    widen(meta + 12, 3, r->background);
    for (size_t i = 0; i < count; i++) {
        find_color(&r->splats[i], c, &r->camera, i, (size_t)r->sizes.coefficients);
        find_shape(&r->splats[i], c, &a->options, &r->camera, i);
    }
    find_brightest(r);
    TRY(find_list(r));
error:
    return status;
}

rlxvk_status gaussian_splat_reference_read(splat_reference *r, const host_call *c)
{
    const splat_attributes *a = c->node->attributes;
    const float *words = c->inputs[0].words;
    rlxvk_status status;
    *r = (splat_reference){.options = &a->options,
                           .sizes = gaussian_splat_sizes(&a->options, (uint64_t)a->count)};
    const splat_sizes *s = &r->sizes;
    TRY(allocate(r));
    for (size_t i = 0; i < s->count; i++) {
        splat_shape *splat = &r->splats[i];
        widen(words + 4 * i, 3, splat->color);
        splat->opacity = words[4 * i + 3];
        widen(words + s->local + 3 * i, 3, splat->local);
        widen(words + s->inverse + 3 * i, 3, splat->inverse);
        widen(words + s->rotation + 4 * i, 4, splat->unit);
    }
    r->listed = a->options.max_list_entries;
    r->list = r->memory[1] = memory_zeroed((size_t)r->listed, sizeof *r->list);
    TRY(r->list ? RLXVK_OK : status_fail_memory("gaussian splats"));
    r->rays = words + s->rays;
    widen(words + s->parameters + 6, 3, r->background);
    memcpy(r->list, words + s->list, (size_t)r->listed * sizeof *r->list);
    memcpy(r->ranges, words + s->ranges,
           (size_t)(2 * s->tiles_wide * s->tiles_high) * sizeof *r->ranges);
    find_brightest(r);
error:
    return status;
}

void gaussian_splat_reference_free(splat_reference *r)
{
    for (size_t i = 0; i < ARRAY_COUNT(r->memory); i++)
        memory_free(r->memory[i]);
}

void gaussian_splat_ray(const splat_reference *r, uint64_t pixel, double out[3])
{
    const rlxvk_gaussian_splat_options *o = r->options;
    const splat_camera *c = &r->camera;
    if (r->rays) {
        widen(r->rays + 3 * pixel, 3, out);
        return;
    }
    double sx = ((double)(pixel % o->width) + 0.5 - 0.5 * o->width) / c->focal;
    double sy = ((double)(pixel / o->width) + 0.5 - 0.5 * o->height) / c->focal, ray[3];
    for (int k = 0; k < 3; k++)
        ray[k] = c->axes[0][k] * sx + c->axes[1][k] * sy + c->axes[2][k];
    normalize(ray, out);
}

void gaussian_splat_entries(const splat_reference *r, uint64_t pixel, uint32_t *first,
                            uint32_t *end)
{
    const rlxvk_gaussian_splat_options *o = r->options;
    uint64_t x = pixel % o->width / o->tile_size, y = pixel / o->width / o->tile_size;
    const uint32_t *range = r->ranges + 2 * (y * r->sizes.tiles_wide + x);
    *first = range[0];
    *end = (uint32_t)MIN(range[1], r->listed);
}

/* How far rounding may move c. The ray may be displaced by a small part of the camera's distance,
 * which moves c at right angles to w. It may also be turned, which moves c along w. The thinner an
 * axis, the larger the effect. */
static void find_errors(splat_hit *hit, const double e[3], const double w[3],
                        const double inverse[3])
{
    const double unit = 16 * SPLAT_UNIT;
    double ww = splat_dot(w, w), ee = splat_dot(e, e), cc = splat_dot(hit->c, hit->c);
    double distance = 0, turned = 0, moved = 0, error = 0;
    for (int k = 0; k < 3; k++) {
        double slope = hit->c[k] * inverse[k];
        distance += e[k] / inverse[k] * (e[k] / inverse[k]);
        turned += slope * slope;
    }
    distance = sqrt(distance);
    turned = sqrt(turned);
    for (int k = 0; k < 3; k++) {
        double spread = 0, rest = 0, scaled = 0;
        for (int j = 0; j < 3; j++) {
            double along = w[k] * w[j] / ww;
            double aside = along;
            if (j == k)
                aside = (w[(k + 1) % 3] * w[(k + 1) % 3] + w[(k + 2) % 3] * w[(k + 2) % 3]) / ww;
            spread += aside * inverse[j] * (aside * inverse[j]);
            scaled += fabs(aside * hit->c[j]);
            rest += j == k ? 0 : e[j] * e[j];
        }
        spread = distance * sqrt(spread);
        hit->off[k] = unit * (spread + scaled + 2 * fabs(w[k]) / ww * turned);
        hit->size[k] = sqrt(cc * rest / ee) + cc * fabs(e[k]) / ee;
        moved += spread * spread;
    }
    error = SPLAT_UNIT * (32 + 8 * cc) + unit * distance * turned + unit * unit * moved / 2;
    hit->error = hit->alpha * error;
}

/* c is e + t w, the point of the ray nearest to the centre. Rounding leaves a small part along w,
 * which is subtracted. */
splat_hit gaussian_splat_meet(const splat_reference *r, const splat_shape *s, const double ray[3])
{
    double rows[3][3], e[3], w[3], inverse[3], t, ww, cutoff = r->options->alpha_cutoff;
    splat_hit hit = {.counts = false};
    gaussian_splat_rotation(s->unit, rows);
    turn_back(rows, ray, w);
    for (int k = 0; k < 3; k++) {
        inverse[k] = 3 * s->inverse[k];
        e[k] = 3 * s->local[k];
        w[k] *= inverse[k];
    }
    ww = splat_dot(w, w);
    t = -splat_dot(e, w) / ww;
    if (!(ww > RAY_FLOOR) || !(t > 0))
        return hit;
    for (int k = 0; k < 3; k++)
        hit.c[k] = e[k] + t * w[k];
    t = splat_dot(hit.c, w) / ww;
    for (int k = 0; k < 3; k++)
        hit.c[k] -= t * w[k];
    hit.alpha = s->opacity * exp(-0.5 * splat_dot(hit.c, hit.c));
    find_errors(&hit, e, w, inverse);
    hit.counts = hit.alpha >= cutoff;
    hit.doubtful = fabs(hit.alpha - cutoff) <= hit.error + 2 * SPLAT_UNIT * cutoff;
    return hit;
}
