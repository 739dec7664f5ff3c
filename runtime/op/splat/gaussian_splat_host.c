/* The reference of the splats' images. It composites one pixel after the other and bounds the
 * effect of rounding. */
#include "op/splat/gaussian_splat_reference.h"

#include <string.h>

/* ---- Prepare ---- */

static double bits_as_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* If the error is NaN, the splat is not valid. Its words are then 0, without an error. */
static void put(const host_call *c, uint64_t at, double v, double error)
{
    c->out[at] = v;
    if (c->bound)
        c->bound[at] = isnan(error) ? 0 : error;
}

static void put_splat(const host_call *c, const splat_reference *r, uint64_t i)
{
    const splat_shape *s = &r->splats[i];
    const splat_sizes *at = &r->sizes;
    double size = sqrt(splat_dot(s->local, s->local)), largest = 0;
    for (int k = 0; k < 3; k++)
        largest = fmax(largest, s->inverse[k]);
    /* The camera is off by a small part of its distance, in units of the thinnest axis. */
    size = 16 * SPLAT_UNIT * (size + s->distance * largest);
    for (uint64_t k = 0; k < 3; k++) {
        put(c, 4 * i + k, s->color[k], s->color_error[k]);
        put(c, at->local + 3 * i + k, s->local[k], size);
        put(c, at->inverse + 3 * i + k, s->inverse[k], 32 * SPLAT_UNIT * s->inverse[k]);
    }
    put(c, 4 * i + 3, s->opacity, 0);
    put(c, at->valid + i, bits_as_float(s->valid), 0);
    for (uint64_t k = 0; k < 4; k++)
        put(c, at->rotation + 4 * i + k, s->unit[k], 8 * SPLAT_UNIT);
    for (uint64_t k = 0; k < 3 && s->open; k++) {
        host_leave_open(c, at->local + 3 * i + k);
        host_leave_open(c, at->inverse + 3 * i + k);
    }
    for (uint64_t k = 0; k < 4 && s->open; k++)
        host_leave_open(c, at->rotation + 4 * i + k);
}

rlxvk_status gaussian_splat_prepare_host(const host_call *c)
{
    splat_reference r;
    rlxvk_status status;
    TRY(gaussian_splat_reference_create(&r, c));
    const rlxvk_gaussian_splat_options *o = r.options;
    const splat_sizes *at = &r.sizes;
    for (uint64_t i = 0; c->bound && i < at->words; i++)
        c->bound[i] = 0;
    for (uint64_t i = 0; i < at->count; i++)
        put_splat(c, &r, i);
    for (uint64_t i = 0; i < o->max_list_entries; i++)
        put(c, at->list + i, i < r.listed ? bits_as_float(r.list[i]) : 0, 0);
    for (uint64_t i = 0; i < 2 * at->tiles_wide * at->tiles_high; i++)
        put(c, at->ranges + i, bits_as_float(r.ranges[i]), 0);
    for (uint64_t i = 0; i < (uint64_t)o->width * o->height; i++) {
        double ray[3];
        gaussian_splat_ray(&r, i, ray);
        for (uint64_t k = 0; k < 3; k++)
            put(c, at->rays + 3 * i + k, ray[k], 16 * SPLAT_UNIT);
    }
    const uint32_t whole[] = {o->width, o->height, o->tile_size, (uint32_t)at->tiles_wide};
    for (uint64_t i = 0; i < ARRAY_COUNT(whole); i++)
        put(c, at->parameters + i, bits_as_float(whole[i]), 0);
    put(c, at->parameters + 4, o->alpha_cutoff, 0);
    put(c, at->parameters + 5, o->transmittance_threshold, 0);
    for (uint64_t k = 0; k < 3; k++)
        put(c, at->parameters + 6 + k, r.background[k], 0);
    put(c, at->parameters + 9, bits_as_float(o->max_splat_steps), 0);
    put(c, at->parameters + 10, bits_as_float((uint32_t)MIN(r.generated, UINT32_MAX)), 0);
error:
    gaussian_splat_reference_free(&r);
    return status;
}

/* ---- Compositing ---- */

typedef struct pixel_sum {
    double color[3], left; /* before the background is added */
    double error[3], off;  /* errors of color and left */
    double doubt;          /* change of a channel if rounding decides otherwise */
} pixel_sum;

static pixel_sum composite(const splat_reference *r, uint64_t pixel)
{
    const rlxvk_gaussian_splat_options *o = r->options;
    pixel_sum p = {.left = 1};
    uint32_t first, end, hits = 0;
    double ray[3];
    gaussian_splat_ray(r, pixel, ray);
    gaussian_splat_entries(r, pixel, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        if (r->list[i] >= r->sizes.count)
            continue;
        const splat_shape *s = &r->splats[r->list[i]];
        splat_hit hit = gaussian_splat_meet(r, s, ray);
        if (hit.doubtful)
            p.doubt += 2 * p.left * (o->max_splat_steps ? 1 : o->alpha_cutoff) * r->brightest;
        if (!hit.counts)
            continue;
        for (int k = 0; k < 3; k++) {
            double color = s->color[k];
            p.color[k] += p.left * hit.alpha * color;
            p.error[k] += p.off * hit.alpha * fabs(color) + p.left * hit.error * fabs(color) +
                          p.left * hit.alpha * (s->color_error[k] + 8 * SPLAT_UNIT * fabs(color));
        }
        p.off = p.off * (1 - hit.alpha) + p.left * hit.error + 2 * SPLAT_UNIT * p.left;
        p.left *= 1 - hit.alpha;
        if (fabs(p.left - o->transmittance_threshold) <= 2 * p.off)
            p.doubt += 2 * (p.left + p.off) * r->brightest;
        if (p.left < o->transmittance_threshold || ++hits == o->max_splat_steps)
            break;
    }
    return p;
}

static double shown(double v, double gamma)
{
    return pow(fmax(0, v), gamma);
}

static void put_pixel(const host_call *c, const splat_reference *r, uint64_t pixel)
{
    double gamma = r->options->output_gamma, rounding = 16 * SPLAT_UNIT;
    pixel_sum p = composite(r, pixel);
    for (uint64_t k = 0; k < 3; k++) {
        double v = p.color[k] + p.left * r->background[k], y = shown(v, gamma);
        double off = p.error[k] + p.off * fabs(r->background[k]) + p.doubt +
                     rounding * (fabs(p.color[k]) + fabs(r->background[k]));
        double change = fmax(shown(v + off, gamma) - y, y - shown(v - off, gamma));
        put(c, 4 * pixel + k, y, change + rounding * y);
    }
    put(c, 4 * pixel + 3, 1 - p.left,
        p.off + rounding + (r->brightest > 0 ? p.doubt / r->brightest : 0));
}

static rlxvk_status put_image(const host_call *c, splat_reference *r, rlxvk_status status)
{
    uint64_t pixels = status == RLXVK_OK ? shape_numel(&c->node->shape) / 4 : 0;
    for (uint64_t i = 0; i < pixels; i++)
        put_pixel(c, r, i);
    if (status == RLXVK_OK && c->node->op == OP_gaussian_splat_render)
        put(c, 4 * pixels, gaussian_splat_flag(r), 0);
    gaussian_splat_reference_free(r);
    return status;
}

rlxvk_status gaussian_splat_rasterize_host(const host_call *c)
{
    splat_reference r = {.options = NULL};
    return put_image(c, &r, gaussian_splat_reference_read(&r, c));
}

rlxvk_status gaussian_splat_render_host(const host_call *c)
{
    splat_reference r = {.options = NULL};
    return put_image(c, &r, gaussian_splat_reference_create(&r, c));
}
