/*
 * The reference of the splats' gradient. For every pixel it goes through the hits from the last to
 * the first. It adds each term of the chain rule as it is (he, hw, and the matrix's derivative u
 * he^T + d hw^T). The kernels compute other sums, so the two are independent. Each gradient has a
 * second sum: how far its terms may be off.
 */
#include "op/splat/gaussian_splat_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING_LEFT 1e-29 /* kernels count a smaller transmittance as 0 */

/* A gradient, and how far it may be off. */
typedef struct slope {
    double v, off;
} slope;

typedef struct splat_slopes {
    slope opacity, scale[3], position[3], color[3];
    double matrix[3][3], turn_off[3]; /* by the rotation; error about each own axis */
} splat_slopes;

typedef struct backward {
    const host_call *call;
    splat_reference r;
    splat_slopes *all;
    struct pixel_hit *hits;
} backward;

typedef struct pixel_hit {
    uint32_t splat;
    double before, off; /* transmittance before the hit, and its error */
    splat_hit hit;
} pixel_hit;

/* A pixel after the forward pass: summed colours, transmittance, and how far these may be off. */
typedef struct pixel_sum {
    double sum[3], sum_off[3], left, off;
    double flipped;  /* sum of the alphas that may or may not count, because of rounding */
    size_t crossing; /* from this hit on, rounding decides whether hits count; the transmittance
                        is: */
    double crossing_left;
} pixel_sum;

static void add(slope *s, double term, double magnitude, double doubt)
{
    s->v += term;
    s->off += magnitude * doubt;
}

/* ---- A pixel ---- */

/* For a hit that may or may not count. If the number of hits is limited, this also changes which
 * hit is the last one. */
static void doubt_hit(const splat_reference *r, const splat_hit *hit, pixel_sum *p)
{
    double alpha = r->options->max_splat_steps ? 1 : hit->alpha;
    p->flipped += 2 * alpha;
    for (int k = 0; k < 3; k++)
        p->sum_off[k] += 2 * p->left * alpha * r->brightest;
}

/* Lists the hits of a pixel in order. Hits after the end of the pixel have counts = false, as do
 * doubtful hits that do not count. They add only to the errors. */
static size_t find_hits(backward *b, uint64_t pixel, const double ray[3], pixel_sum *p)
{
    const splat_reference *r = &b->r;
    const rlxvk_gaussian_splat_options *o = r->options;
    uint32_t first, end, steps = 0;
    bool open = true;
    size_t count = 0;
    *p = (pixel_sum){.left = 1, .crossing = SIZE_MAX};
    gaussian_splat_entries(r, pixel, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        const splat_shape *s = &r->splats[r->list[i]];
        splat_hit hit = gaussian_splat_meet(r, s, ray);
        if (!hit.counts && !hit.doubtful)
            continue;
        if (open && hit.doubtful)
            doubt_hit(r, &hit, p);
        hit.counts = hit.counts && open;
        b->hits[count++] = (pixel_hit){r->list[i], p->left, p->off, hit};
        if (!hit.counts)
            continue;
        for (int k = 0; k < 3; k++) {
            double color = fabs(s->color[k]);
            p->sum[k] += p->left * hit.alpha * s->color[k];
            p->sum_off[k] += p->off * hit.alpha * color + p->left * hit.error * color +
                             p->left * hit.alpha * (s->color_error[k] + 8 * SPLAT_UNIT * color);
        }
        p->off = p->off * (1 - hit.alpha) + p->left * hit.error + 2 * SPLAT_UNIT * p->left;
        p->left *= 1 - hit.alpha;
        if (p->crossing == SIZE_MAX && fabs(p->left - o->transmittance_threshold) <= 2 * p->off) {
            p->crossing = count;
            p->crossing_left = p->left + p->off;
            for (int k = 0; k < 3; k++)
                p->sum_off[k] += 2 * p->crossing_left * r->brightest;
        }
        open = p->left >= o->transmittance_threshold && ++steps != o->max_splat_steps;
    }
    return count;
}

/* The error of a term f c_i c_j, relative to the magnitude of f. `doubt` is the relative error of
 * f. */
static double product_off(const splat_hit *h, int i, int j, double doubt)
{
    return doubt * h->size[i] * h->size[j] + h->size[i] * h->off[j] + h->size[j] * h->off[i] +
           h->off[i] * h->off[j];
}

/* The error of the derivative by a turn about own axis k, f c_i c_j (s_i / s_j - s_j / s_i). */
static double turn_off(const splat_shape *s, const splat_hit *h, int k, double doubt)
{
    int i = (k + 1) % 3, j = (k + 2) % 3;
    double wide = s->inverse[j] / s->inverse[i];
    return (wide + 1 / wide) * product_off(h, i, j, doubt);
}

/* Derivatives of the loss by the channels (g) and by ln alpha (f), and the magnitudes of their
 * terms. Their errors are `doubt` times these magnitudes. */
typedef struct hit_slopes {
    const double *g, *sizes;
    double f, magnitude, doubt;
} hit_slopes;

static void add_hit(backward *b, const pixel_hit *h, const hit_slopes *by, const double ray[3])
{
    double f = h->hit.counts ? by->f : 0, magnitude = by->magnitude, doubt = by->doubt;
    const splat_shape *s = &b->r.splats[h->splat];
    splat_slopes *to = &b->all[h->splat];
    const float *p = b->call->inputs[SPLAT_POSITIONS].words + 3 * (size_t)h->splat;
    const float *eye = b->call->inputs[SPLAT_VIEW].words;
    double rows[3][3], he[3], w[3], e[3], hw[3], t, share = h->before * h->hit.alpha;
    const double *c = h->hit.c;
    gaussian_splat_rotation(s->unit, rows);
    for (int k = 0; k < 3; k++) {
        w[k] =
            3 * s->inverse[k] * (rows[0][k] * ray[0] + rows[1][k] * ray[1] + rows[2][k] * ray[2]);
        e[k] = 3 * s->local[k];
    }
    t = -splat_dot(e, w) / splat_dot(w, w);
    for (int k = 0; k < 3; k++) {
        double inverse = 3 * s->inverse[k], size = doubt * h->hit.size[k] + h->hit.off[k];
        he[k] = -f * c[k] * inverse;
        hw[k] = t * he[k];
        add(&to->scale[k], f * c[k] * c[k], magnitude, product_off(&h->hit, k, k, doubt));
        add(&to->color[k], h->hit.counts ? by->g[k] * share : 0, by->sizes[k] * share, doubt);
        to->turn_off[k] += magnitude * turn_off(s, &h->hit, k, doubt);
        for (int i = 0; i < 3; i++) {
            add(&to->position[i], -rows[i][k] * he[k],
                magnitude * inverse * (fabs(rows[i][k]) + 16 * SPLAT_UNIT), size);
            to->matrix[i][k] += ((double)eye[i] - p[i]) * he[k] + ray[i] * hw[k];
        }
    }
    double opacity = s->opacity;
    add(&to->opacity, f / opacity, magnitude / opacity, doubt);
}

/* A channel of the loss gradient, clamped to [-clip, clip]. NaN stays. */
static double clipped(double loss, double clip)
{
    return loss < -clip ? -clip : loss > clip ? clip : loss;
}

/* The derivative of the loss by each channel before gamma, and its error. */
static void find_slopes(const backward *b, uint64_t pixel, const pixel_sum *p, double g[4],
                        double off[4])
{
    const rlxvk_gaussian_splat_options *o = b->r.options;
    const float *loss = b->call->inputs[SPLAT_LOSS].words + 4 * pixel;
    double clip = fmax(o->loss_grad_clip, 1e-8), gamma = o->output_gamma;
    g[3] = o->alpha_gradient ? clipped(loss[3], clip) : 0;
    off[3] = 0;
    for (int k = 0; k < 3; k++) {
        double behind = b->r.background[k], v = p->sum[k] + p->left * behind;
        double unsure = p->sum_off[k] + p->off * fabs(behind) +
                        4 * SPLAT_UNIT * (fabs(p->sum[k]) + p->left * fabs(behind));
        double given = clipped(loss[k], clip) * gamma;
        double low = v > unsure ? pow(v - unsure, gamma - 1) : gamma < 1 ? INFINITY : 0;
        double high = pow(fmax(v + unsure, 0), gamma - 1), at = v > 0 ? pow(v, gamma - 1) : 0;
        g[k] = v > 0 ? given * at : 0;
        off[k] = 0;
        if (v + unsure > 0 && given != 0)
            off[k] = fabs(given) * fmax(fabs(high - at), fabs(low - at));
    }
}

/* The error of hit i of `all`, relative to the magnitude of its terms. */
static double doubt_of(const backward *b, const pixel_sum *p, size_t i, size_t all)
{
    const pixel_hit *h = &b->hits[i];
    double behind = h->before * (1 - h->hit.alpha), doubt = 1e-5 + p->flipped;
    if (i >= p->crossing || h->before < NOTHING_LEFT || h->hit.doubtful)
        return 1;
    if (p->crossing != SIZE_MAX)
        doubt += 2 * p->crossing_left / behind;
    doubt += 4 * SPLAT_UNIT * (double)(all - i) + 2 * h->hit.error / h->hit.alpha +
             2 * h->off / h->before;
    return isnan(doubt) ? 1 : doubt;
}

static void add_pixel(backward *b, uint64_t pixel)
{
    const splat_reference *r = &b->r;
    double g[4], off[4], behind[4] = {r->background[0], r->background[1], r->background[2], 0};
    double ray[3];
    pixel_sum sum;
    gaussian_splat_ray(r, pixel, ray);
    size_t all = find_hits(b, pixel, ray, &sum);
    find_slopes(b, pixel, &sum, g, off);
    for (size_t i = all; i-- > 0;) {
        const pixel_hit *h = &b->hits[i];
        const splat_shape *s = &r->splats[h->splat];
        double color[4] = {s->color[0], s->color[1], s->color[2], 1}, slope = 0, size = 0;
        double share = h->before * h->hit.alpha, doubt = doubt_of(b, &sum, i, all);
        double sizes[4];
        for (int k = 0; k < 4; k++) {
            slope += g[k] * (color[k] - behind[k]);
            sizes[k] = fabs(g[k]) + off[k] / doubt;
            size += sizes[k] * (fabs(color[k]) + fabs(behind[k]) + 1e-30);
        }
        add_hit(b, h, &(hit_slopes){g, sizes, share * slope, share * size, doubt}, ray);
        for (int k = 0; k < 4 && h->hit.counts; k++)
            behind[k] += h->hit.alpha * (color[k] - behind[k]);
    }
}

/* ---- A splat ---- */

/* If a gradient is NaN, it must be NaN on a device. If its error is NaN, or if it overflows f32,
 * any value is accepted. */
static void put(const backward *b, uint64_t at, bool flows, slope s)
{
    if (flows && isfinite(s.v) && fabs(s.v) > FLT_MAX) {
        host_leave_open(b->call, at);
        return;
    }
    b->call->out[at] = flows ? s.v : 0;
    if (b->call->bound)
        b->call->bound[at] = !flows || isnan(s.v) ? 0 : isnan(s.off) ? INFINITY : s.off;
}

static void put_quaternion(const backward *b, uint64_t i, uint64_t at)
{
    const splat_shape *s = &b->r.splats[i];
    const float *given = b->call->inputs[SPLAT_ROTATIONS].words + 4 * i;
    double w = s->unit[0], x = s->unit[1], y = s->unit[2], z = s->unit[3], length = 0, along = 0;
    const double by[4][3][3] = {{{0, -z, y}, {z, 0, -x}, {-y, x, 0}},
                                {{0, y, z}, {y, -2 * x, -w}, {z, w, -2 * x}},
                                {{-2 * y, x, w}, {x, 0, z}, {-w, z, -2 * y}},
                                {{-2 * z, -w, x}, {w, -2 * z, y}, {x, y, 0}}};
    /* twice the derivative of n by a turn about own axes */
    const double turns[4][3] = {{x, y, z}, {w, z, y}, {z, w, x}, {y, x, w}};
    double n[4] = {0}, off = 0;
    const double *turn_off = b->all[i].turn_off;
    for (int q = 0; q < 4; q++) {
        for (int k = 0; k < 9; k++)
            n[q] += 2 * by[q][k / 3][k % 3] * b->all[i].matrix[k / 3][k % 3];
        along += n[q] * s->unit[q];
        length += (double)given[q] * given[q];
    }
    length = sqrt(length);
    for (int k = 0; k < 3; k++)
        off += turn_off[k];
    bool unit = length > 1e-8;
    for (uint64_t q = 0; q < 4; q++) {
        double v = n[q] - (unit ? s->unit[q] * along : 0), bound = 16 * SPLAT_UNIT * off;
        for (int k = 0; k < 3; k++)
            bound += 2 * fabs(turns[q][k]) * turn_off[k];
        put(b, at + q, true, (slope){v / fmax(length, 1e-8), bound / fmax(length, 1e-8)});
    }
}

/* For a splat that is not visible: all gradients are 0. */
static void put_nothing(backward *b, uint64_t i)
{
    const splat_sizes *sizes = &b->r.sizes;
    const uint64_t n = sizes->count, words[] = {3, 3, 4, 1, 3, 3 * MAX(sizes->coefficients, 1)};
    uint64_t at = 0;
    for (size_t part = 0; part < ARRAY_COUNT(words); part++) {
        for (uint64_t k = 0; k < words[part]; k++)
            put(b, at + words[part] * i + k, false, (slope){0, 0});
        at += words[part] * n;
    }
}

static void put_splat(backward *b, uint64_t i)
{
    const splat_sizes *sizes = &b->r.sizes;
    const host_tensor *inputs = b->call->inputs;
    splat_slopes *s = &b->all[i];
    const float *color = inputs[SPLAT_COLORS].words + 3 * i;
    const float *p = inputs[SPLAT_POSITIONS].words + 3 * i, *eye = inputs[SPLAT_VIEW].words;
    const float *sh = inputs[SPLAT_SH].words + 3 * sizes->coefficients * i;
    float opacity = inputs[SPLAT_OPACITIES].words[i];
    uint64_t n = sizes->count, coefficients = sizes->coefficients, flowing;
    double away[3], v[3], length, values[SPLAT_COEFFICIENTS], slopes[SPLAT_COEFFICIENTS][3];
    uint32_t bands = (b->r.options->sh_band + 1) * (b->r.options->sh_band + 1);
    slope by_direction[3] = {{0, 0}}, along = {0, 0};
    bool base = true;
    for (int k = 0; k < 3; k++) {
        away[k] = (double)p[k] - eye[k];
        base = base && (coefficients == 0 || fabsf(sh[k]) <= 1e-8f);
    }
    length = sqrt(splat_dot(away, away));
    for (int k = 0; k < 3; k++)
        v[k] = length > 1e-8 ? away[k] / length : k == 2;
    gaussian_splat_harmonics(v, values, slopes);
    flowing = MIN(MIN(coefficients, SPLAT_COEFFICIENTS), bands);
    for (uint64_t c = 0; c < MAX(coefficients, 1); c++)
        for (uint64_t k = 0; k < 3; k++) {
            uint64_t at = SPLAT_GRADIENTS * n + (i * MAX(coefficients, 1) + c) * 3 + k;
            bool flows = c < flowing && !(c == 0 && base);
            slope to = {0, 0};
            if (flows)
                to = (slope){values[c] * s->color[k].v, 2 * s->color[k].off};
            put(b, at, flows, to);
            for (int j = 0; flows && j < 3; j++) {
                by_direction[j].v += s->color[k].v * sh[3 * c + k] * slopes[c][j];
                by_direction[j].off +=
                    (s->color[k].off + 1e-5 * fabs(s->color[k].v)) * 8 * fabs(sh[3 * c + k]);
            }
        }
    for (int k = 0; k < 3; k++) {
        along.v += by_direction[k].v * v[k];
        along.off += by_direction[k].off;
    }
    for (uint64_t k = 0; k < 3; k++) {
        if (length > 1e-8) {
            s->position[k].v += (by_direction[k].v - v[k] * along.v) / length;
            s->position[k].off += (by_direction[k].off + along.off) / length;
        }
        put(b, 3 * i + k, true, s->position[k]);
        put(b, 3 * n + 3 * i + k, 1 / b->r.splats[i].inverse[k] > 1e-6 * (1 + 1e-7), s->scale[k]);
        put(b, 11 * n + 3 * i + k, base && color[k] >= 0 && color[k] <= 1, s->color[k]);
    }
    put_quaternion(b, i, 6 * n + 4 * i);
    put(b, 10 * n + i, opacity >= 0 && opacity <= 1, s->opacity);
}

/* The number of entries of the fullest tile. */
static uint64_t most_entries(const splat_reference *r)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < r->sizes.tiles_wide * r->sizes.tiles_high; i++)
        most = MAX(most, r->ranges[2 * i + 1] - r->ranges[2 * i]);
    return most;
}

rlxvk_status gaussian_splat_render_backward_host(const host_call *c)
{
    backward b = {.call = c};
    rlxvk_status status;
    TRY(gaussian_splat_reference_create(&b.r, c));
    b.all = memory_zeroed((size_t)b.r.sizes.count + 1, sizeof *b.all);
    b.hits = memory_zeroed((size_t)most_entries(&b.r) + 1, sizeof *b.hits);
    TRY(b.all && b.hits ? RLXVK_OK : status_fail_memory("gaussian splats"));
    for (uint64_t i = 0; i < (uint64_t)b.r.options->width * b.r.options->height; i++)
        add_pixel(&b, i);
    for (uint64_t i = 0; i < b.r.sizes.count; i++)
        (b.r.splats[i].valid ? put_splat : put_nothing)(&b, i);
    put(&b, shape_numel(&c->node->shape) - 1, true, (slope){gaussian_splat_flag(&b.r), 0});
error:
    gaussian_splat_reference_free(&b.r);
    memory_free(b.all);
    memory_free(b.hits);
    return status;
}
