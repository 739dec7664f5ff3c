/*
 * The reference of the splats' gradient: for every pixel its hits from the last to the first, each
 * term of the chain rule as it stands (he, hw and the matrix's slope u he^T + d hw^T), where the
 * kernels add up other sums. Beside each gradient goes the sum of what its terms may be off by.
 */
#include "op/splat/gaussian_splat_reference.h"

#include <stdlib.h>
#include <string.h>

/* A gradient, and what it may be off by. */
typedef struct slope {
    double v, off;
} slope;

typedef struct splat_slopes {
    slope opacity, scale[3], position[3], matrix[3][3], color[3];
} splat_slopes;

typedef struct backward {
    const host_call *call;
    splat_reference r;
    splat_slopes *all;
    struct pixel_hit *hits;
} backward;

typedef struct pixel_hit {
    uint32_t splat;
    double before, off; /* what was left in front of it, and its error */
    splat_hit hit;
} pixel_hit;

static void add(slope *s, double term, double magnitude, double doubt)
{
    s->v += term;
    s->off += magnitude * doubt;
}

/* ---- A pixel ---- */

/* Its hits in their order. Behind where a pixel ends, and where a hit is in doubt, hits go on, as
 * such that only add to the errors: counts is false. */
static size_t find_hits(backward *b, uint64_t pixel, double sum[3], double *left, bool *doubtful)
{
    const splat_reference *r = &b->r;
    const rlxvk_gaussian_splat_options *o = r->options;
    uint32_t first, end, steps = 0;
    double off = 0;
    bool open = true;
    size_t count = 0;
    *left = 1;
    memset(sum, 0, 3 * sizeof *sum);
    gaussian_splat_entries(r, pixel, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        const splat_shape *s = &r->splats[r->list[i]];
        splat_hit hit = gaussian_splat_meet(r, s, r->rays + 3 * pixel);
        if (!hit.counts && !hit.doubtful)
            continue;
        *doubtful |= open && hit.doubtful;
        hit.counts = hit.counts && open;
        b->hits[count++] = (pixel_hit){r->list[i], *left, off, hit};
        if (!hit.counts)
            continue;
        for (int k = 0; k < 3; k++)
            sum[k] += *left * hit.alpha * s->color[k];
        off = off * (1 - hit.alpha) + *left * hit.error + 2 * SPLAT_UNIT * *left;
        *left *= 1 - hit.alpha;
        *doubtful |= fabs(*left - o->transmittance_threshold) <= 2 * off;
        open = *left >= o->transmittance_threshold && ++steps != o->max_splat_steps;
    }
    return count;
}

static void add_hit(backward *b, const pixel_hit *h, const double g[4], double f, double magnitude,
                    double doubt, const double ray[3])
{
    const splat_shape *s = &b->r.splats[h->splat];
    splat_slopes *to = &b->all[h->splat];
    const float *p = b->call->inputs[SPLAT_POSITIONS].words + 3 * (size_t)h->splat;
    const float *eye = b->call->inputs[SPLAT_VIEW].words;
    double rows[3][3], he[3], w[3], e[3], hw[3], t, counts = h->hit.counts;
    const double *c = h->hit.c;
    gaussian_splat_rotation(s->unit, rows);
    for (int k = 0; k < 3; k++) {
        w[k] =
            3 * s->inverse[k] * (rows[0][k] * ray[0] + rows[1][k] * ray[1] + rows[2][k] * ray[2]);
        e[k] = 3 * s->local[k];
    }
    t = -splat_dot(e, w) / splat_dot(w, w);
    for (int k = 0; k < 3; k++) {
        double inverse = 3 * s->inverse[k];
        he[k] = -f * c[k] * inverse;
        hw[k] = t * he[k];
        add(&to->scale[k], counts * f * c[k] * c[k], magnitude * (c[k] * c[k] + 1e-3), doubt);
        add(&to->color[k], counts * g[k] * h->before * h->hit.alpha,
            fabs(g[k]) * h->before * h->hit.alpha, doubt);
        for (int i = 0; i < 3; i++) {
            double spread = 0;
            add(&to->position[i], -counts * rows[i][k] * he[k],
                magnitude * inverse * (fabs(c[k]) + 1e-3), doubt);
            for (int j = 0; j < 3; j++)
                spread += fabs(rows[i][j] * c[j]) / (3 * s->inverse[j]);
            add(&to->matrix[i][k], counts * (((double)eye[i] - p[i]) * he[k] + ray[i] * hw[k]),
                magnitude * inverse * (fabs(c[k]) + 1e-3) * (spread + 1e-6), doubt);
        }
    }
    double opacity = s->opacity;
    add(&to->opacity, counts * f / opacity, magnitude / opacity, doubt);
}

static void add_pixel(backward *b, uint64_t pixel)
{
    const splat_reference *r = &b->r;
    const rlxvk_gaussian_splat_options *o = r->options;
    const float *loss = b->call->inputs[SPLAT_LOSS].words + 4 * pixel;
    double clip = fmax(o->loss_grad_clip, 1e-8), sum[3], left, g[4] = {0}, behind[4];
    double gamma = o->output_gamma;
    bool doubtful = false;
    size_t count = find_hits(b, pixel, sum, &left, &doubtful);
    memcpy(behind, r->background, sizeof r->background);
    behind[3] = 0;
    for (int k = 0; k < 3; k++) {
        double v = sum[k] + left * r->background[k];
        if (v > 0)
            g[k] = fmin(fmax(loss[k], -clip), clip) * gamma * pow(v, gamma - 1);
    }
    if (o->alpha_gradient)
        g[3] = fmin(fmax(loss[3], -clip), clip);
    while (count--) {
        const pixel_hit *h = &b->hits[count];
        const splat_shape *s = &r->splats[h->splat];
        double color[4] = {s->color[0], s->color[1], s->color[2], 1}, slope = 0, size = 0;
        double doubt = 1e-5 + 16 * h->hit.error / h->hit.alpha + 16 * h->off / h->before;
        for (int k = 0; k < 4; k++) {
            slope += g[k] * (color[k] - behind[k]);
            size += fabs(g[k]) * (fabs(color[k]) + fabs(behind[k]));
        }
        slope *= h->before * h->hit.alpha;
        size *= h->before * h->hit.alpha;
        add_hit(b, h, g, slope, size, doubtful ? 1 : doubt, r->rays + 3 * pixel);
        for (int k = 0; k < 4 && h->hit.counts; k++)
            behind[k] += h->hit.alpha * (color[k] - behind[k]);
    }
}

/* ---- A splat ---- */

static void put_quaternion(const backward *b, uint64_t i, uint64_t at)
{
    const splat_shape *s = &b->r.splats[i];
    const float *given = b->call->inputs[SPLAT_ROTATIONS].words + 4 * i;
    double w = s->unit[0], x = s->unit[1], y = s->unit[2], z = s->unit[3], length = 0, along = 0;
    const double by[4][3][3] = {{{0, -z, y}, {z, 0, -x}, {-y, x, 0}},
                                {{0, y, z}, {y, -2 * x, -w}, {z, w, -2 * x}},
                                {{-2 * y, x, w}, {x, 0, z}, {-w, z, -2 * y}},
                                {{-2 * z, -w, x}, {w, -2 * z, y}, {x, y, 0}}};
    slope n[4] = {{0, 0}};
    double size = 0;
    for (int q = 0; q < 4; q++) {
        for (int k = 0; k < 9; k++) {
            const slope *m = &b->all[i].matrix[k / 3][k % 3];
            n[q].v += 2 * by[q][k / 3][k % 3] * m->v;
            n[q].off += 2 * fabs(by[q][k / 3][k % 3]) * m->off;
        }
        along += n[q].v * s->unit[q];
        size += n[q].off * fabs(s->unit[q]);
        length += (double)given[q] * given[q];
    }
    length = sqrt(length);
    bool unit = length > 1e-8;
    for (uint64_t q = 0; q < 4; q++) {
        double v = n[q].v - (unit ? s->unit[q] * along : 0);
        double off = n[q].off + (unit ? fabs(s->unit[q]) * size : 0);
        b->call->out[at + q] = v / fmax(length, 1e-8);
        if (b->call->bound)
            b->call->bound[at + q] = off / fmax(length, 1e-8);
    }
}

static void put(const backward *b, uint64_t at, bool flows, slope s)
{
    b->call->out[at] = flows ? s.v : 0;
    if (b->call->bound)
        b->call->bound[at] = flows ? s.off : 0;
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

rlxvk_status gaussian_splat_render_backward_host(const host_call *c)
{
    backward b = {.call = c};
    rlxvk_status status;
    TRY(gaussian_splat_reference_create(&b.r, c));
    b.all = memory_zeroed((size_t)b.r.sizes.count + 1, sizeof *b.all);
    b.hits = memory_zeroed((size_t)b.r.options->max_list_entries + 1, sizeof *b.hits);
    TRY(b.all && b.hits ? RLXVK_OK : status_fail_memory("gaussian splats"));
    for (uint64_t i = 0; i < (uint64_t)b.r.options->width * b.r.options->height; i++)
        add_pixel(&b, i);
    for (uint64_t i = 0; i < b.r.sizes.count; i++)
        put_splat(&b, i);
    put(&b, shape_numel(&c->node->shape) - 1, true, (slope){gaussian_splat_flag(&b.r), 0});
error:
    gaussian_splat_reference_free(&b.r);
    memory_free(b.all);
    memory_free(b.hits);
    return status;
}
