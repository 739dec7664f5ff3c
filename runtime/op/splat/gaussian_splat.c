/*
 * 3-D Gaussian splats (rlxvk_ops_splat.h has the formulas).
 *
 *   prepare    Computes colours from spherical harmonics, the ellipse of each splat in the
 *              image, and the rays. Splats are sorted by distance. Each tile that an ellipse
 *              meets gets an entry; entries are sorted by tile and stay in order of distance
 *              (gaussian_splat_lower.c).
 *   rasterize  A workgroup composites a tile. Its entries go through shared memory, front to
 *     back.
 *   render     Does both.
 *   backward   Does the same, and then goes back. It sums over each entry, and then over each
 *              splat, in a fixed order.
 */
#include "op/splat/gaussian_splat.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#define MOST_PIXELS  16384 /* along an axis */
#define MOST_TILE    64
#define MOST_ENTRIES (1u << 27)
#define MOST_SPLATS  (1u << 27)
#define MOST_BAND    3

/* ---- Building ---- */

static bool take_options(rlxvk_graph *g, op_kind op, const rlxvk_gaussian_splat_options *options,
                         splat_attributes *out)
{
    static const rlxvk_gaussian_splat_options defaults = RLXVK_GAUSSIAN_SPLAT_DEFAULTS;
    *out = (splat_attributes){.count = -1};
    return op_take(g, op_table[op].name, SIZED(rlxvk_gaussian_splat_options),
                   options ? options : &defaults, &out->options);
}

/* Whether scales must be raised. Also false if the op itself will refuse them. */
static bool takes_limit(rlxvk_graph *g, const char *row, rlxvk_tensor scales,
                        const rlxvk_gaussian_splat_options *o)
{
    rlxvk_shape shape;
    uint64_t numel;
    if (!gaussian_splat_limits(o) || !composite_begin(g, row, &scales, 1))
        return false;
    shape = rlxvk_tensor_shape(g, scales);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (!composite_number(g, row, "a size of scales", shape.dims[i]))
            return false;
    return rlxvk_tensor_dtype(g, scales) == RLXVK_F32 && shape_numel_checked(&shape, &numel) &&
           numel > 0 && numel % 3 == 0;
}

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const rlxvk_gaussian_splat_scene *scene,
                          const rlxvk_tensor *loss, const rlxvk_gaussian_splat_options *options)
{
    const char *row = op_table[op].name;
    splat_attributes a;
    rlxvk_gaussian_splat_scene s;
    if (!take_options(g, op, options, &a) ||
        graph_fail(g, status_require_items(scene, 1, row, "scene")) != RLXVK_OK ||
        !op_take(g, row, SIZED(rlxvk_gaussian_splat_scene), scene, &s))
        return RLXVK_NONE;
    rlxvk_tensor inputs[] = {s.positions, s.scales, s.rotations, s.opacities,
                             s.colors,    s.sh,     s.meta,      loss ? *loss : RLXVK_NONE};
    size_t start = g->nodes.count;
    bool limited = takes_limit(g, row, s.scales, &a.options);
    if (limited)
        inputs[SPLAT_SCALES] = gaussian_splat_limit_scales(g, s.scales, a.options.max_anisotropy);
    rlxvk_tensor y = op_build(g, op, inputs, loss ? 8 : 7, &a);
    return limited ? composite_end(g, row, start, y) : y;
}

/* The result of a node without its last word, the flag that tells whether the list had room. */
static rlxvk_tensor without_flag(rlxvk_graph *g, rlxvk_tensor y)
{
    if (!y.id)
        return y;
    int64_t words = rlxvk_tensor_shape(g, y).dims[0];
    return rlxvk_narrow(g, y, 0, 0, words - (words > 0));
}

rlxvk_tensor rlxvk_gaussian_splat_render(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                         const rlxvk_gaussian_splat_options *options)
{
    return without_flag(g, build(g, OP_gaussian_splat_render, scene, NULL, options));
}

rlxvk_tensor rlxvk_gaussian_splat_render_backward(rlxvk_graph *g,
                                                  const rlxvk_gaussian_splat_scene *scene,
                                                  rlxvk_tensor d_loss_rgba,
                                                  const rlxvk_gaussian_splat_options *options)
{
    static const char row[] = "gaussian_splat_render_backward";
    splat_attributes a;
    rlxvk_tensor y =
        without_flag(g, build(g, OP_gaussian_splat_render_backward, scene, &d_loss_rgba, options));
    if (y.id && take_options(g, OP_gaussian_splat_render_backward, options, &a) &&
        takes_limit(g, row, scene->scales, &a.options))
        y = gaussian_splat_limit_gradients(g, scene->scales, a.options.max_anisotropy, y);
    return y;
}

rlxvk_tensor rlxvk_gaussian_splat_prepare(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                          const rlxvk_gaussian_splat_options *options)
{
    return build(g, OP_gaussian_splat_prepare, scene, NULL, options);
}

rlxvk_tensor rlxvk_gaussian_splat_rasterize(rlxvk_graph *g, rlxvk_tensor prepared,
                                            rlxvk_tensor meta, int64_t count,
                                            const rlxvk_gaussian_splat_options *options)
{
    splat_attributes a;
    if (!take_options(g, OP_gaussian_splat_rasterize, options, &a))
        return RLXVK_NONE;
    a.count = count < 0 ? -1 : count;
    return op_build(g, OP_gaussian_splat_rasterize, (rlxvk_tensor[]){prepared, meta}, 2, &a);
}

/* ---- Shapes ---- */

/* Whether low < v < high. If `closed`, v may also be `low`. False for NaN. */
static bool within(float v, float low, bool closed, float high)
{
    return (closed ? v >= low : v > low) && v < high;
}

static rlxvk_status check_options(const node *n, const rlxvk_gaussian_splat_options *o)
{
    if (o->width < 1 || o->width > MOST_PIXELS || o->height < 1 || o->height > MOST_PIXELS)
        return op_fail(n, RLXVK_E_ATTR, "the image is %u x %u; takes 1 to %d each", o->width,
                       o->height, MOST_PIXELS);
    if (o->tile_size < 1 || o->tile_size > MOST_TILE)
        return op_fail(n, RLXVK_E_ATTR, "tile_size is %u; takes 1 to %d", o->tile_size, MOST_TILE);
    if (o->max_list_entries < 1 || o->max_list_entries > MOST_ENTRIES)
        return op_fail(n, RLXVK_E_ATTR, "max_list_entries is %u; takes 1 to 2^27",
                       o->max_list_entries);
    if (!within(o->radius_scale, 0, false, INFINITY))
        return op_fail(n, RLXVK_E_ATTR, "radius_scale is %g; must be above 0",
                       (double)o->radius_scale);
    if (!within(o->alpha_cutoff, 0, false, 1))
        return op_fail(n, RLXVK_E_ATTR, "alpha_cutoff is %g; must lie between 0 and 1",
                       (double)o->alpha_cutoff);
    if (!within(o->transmittance_threshold, 0, true, 1))
        return op_fail(n, RLXVK_E_ATTR, "transmittance_threshold is %g; takes 0 to below 1",
                       (double)o->transmittance_threshold);
    if (!within(o->output_gamma, 0, false, INFINITY))
        return op_fail(n, RLXVK_E_ATTR, "output_gamma is %g; must be above 0",
                       (double)o->output_gamma);
    if (!within(o->min_axis_px, 0, true, INFINITY))
        return op_fail(n, RLXVK_E_ATTR, "min_axis_px is %g; must be 0 or above",
                       (double)o->min_axis_px);
    if (!(o->loss_grad_clip > 0))
        return op_fail(n, RLXVK_E_ATTR, "loss_grad_clip is %g; must be above 0",
                       (double)o->loss_grad_clip);
    if (o->max_anisotropy != 0 && !(o->max_anisotropy >= 1))
        return op_fail(n, RLXVK_E_ATTR, "max_anisotropy is %g; takes 0 or 1 and above",
                       (double)o->max_anisotropy);
    if (o->sh_band > MOST_BAND)
        return op_fail(n, RLXVK_E_ATTR, "sh_band is %u; takes 0 to %d", o->sh_band, MOST_BAND);
    return RLXVK_OK;
}

static rlxvk_status check_words(const rlxvk_graph *g, const node *n, uint32_t i, uint64_t expected)
{
    static const char *const names[] = {"positions", "scales", "rotations", "opacities",
                                        "colors",    "sh",     "meta",      "d_loss_rgba"};
    const rlxvk_shape *x = input_shape(g, n, i);
    char is[SHAPE_TEXT];
    uint64_t numel;
    if (!shape_numel_checked(x, &numel) || numel != expected)
        return op_fail(n, RLXVK_E_SHAPE, "%s is %s; needs %llu elements", names[i],
                       shape_text(x, is), (unsigned long long)expected);
    return op_require_dtype(g, n, i, RLXVK_F32, "cast it");
}

static rlxvk_status check_scene(const rlxvk_graph *g, const node *n,
                                const rlxvk_gaussian_splat_options *o, splat_sizes *out)
{
    static const uint32_t words[] = {3, 3, 4, 1, 3};
    char is[SHAPE_TEXT];
    uint64_t positions, sh;
    rlxvk_status status;
    TRY(check_options(n, o));
    if (!shape_numel_checked(input_shape(g, n, SPLAT_POSITIONS), &positions) || positions % 3)
        TRY(op_fail(n, RLXVK_E_SHAPE, "positions is %s; needs three elements for each splat",
                    shape_text(input_shape(g, n, SPLAT_POSITIONS), is)));
    if (positions / 3 > MOST_SPLATS)
        TRY(op_fail(n, RLXVK_E_TOO_LARGE, "%llu splats; takes 2^27 at most",
                    (unsigned long long)positions / 3));
    for (uint32_t i = 0; i < SPLAT_SH; i++)
        TRY(check_words(g, n, i, positions / 3 * words[i]));
    TRY(check_words(g, n, SPLAT_VIEW, SPLAT_META));
    if (!shape_numel_checked(input_shape(g, n, SPLAT_SH), &sh) ||
        (positions ? sh % positions : sh) != 0)
        TRY(op_fail(n, RLXVK_E_SHAPE, "sh is %s; needs 3 K elements for each of %llu splats",
                    shape_text(input_shape(g, n, SPLAT_SH), is),
                    (unsigned long long)positions / 3));
    TRY(op_require_dtype(g, n, SPLAT_SH, RLXVK_F32, "cast it"));
    *out = gaussian_splat_sizes(o, positions / 3);
    out->coefficients = positions ? sh / positions : 0;
    if (out->words > INT32_MAX)
        TRY(op_fail(n, RLXVK_E_TOO_LARGE,
                    "scene, list, tiles and rays take %llu words; 2^31 - 1 "
                    "at most",
                    (unsigned long long)out->words));
error:
    return status;
}

static uint64_t image_words(const rlxvk_gaussian_splat_options *o)
{
    return 4ull * o->width * o->height;
}

static void set_result(node *n, uint64_t words)
{
    n->shape = RLXVK_SHAPE((int64_t)words);
    n->dtype = RLXVK_F32;
}

static rlxvk_status gaussian_splat_render_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_gaussian_splat_options *o = &((splat_attributes *)attributes)->options;
    splat_sizes s;
    rlxvk_status status;
    TRY(check_scene(g, n, o, &s));
    set_result(n, image_words(o) + 1);
error:
    return status;
}

static rlxvk_status gaussian_splat_prepare_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_gaussian_splat_options *o = &((splat_attributes *)attributes)->options;
    splat_sizes s;
    rlxvk_status status;
    TRY(check_scene(g, n, o, &s));
    set_result(n, s.words);
error:
    return status;
}

static rlxvk_status gaussian_splat_render_backward_infer(const rlxvk_graph *g, node *n,
                                                         void *attributes)
{
    const rlxvk_gaussian_splat_options *o = &((splat_attributes *)attributes)->options;
    splat_sizes s;
    rlxvk_status status;
    uint64_t words;
    TRY(check_scene(g, n, o, &s));
    TRY(check_words(g, n, SPLAT_LOSS, image_words(o)));
    words = s.count * (SPLAT_GRADIENTS + 3 * MAX(s.coefficients, 1));
    words += words > 0;
    if (words > INT32_MAX)
        TRY(op_fail(n, RLXVK_E_TOO_LARGE, "the gradients take %llu words; 2^31 - 1 at most",
                    (unsigned long long)words));
    set_result(n, words);
error:
    return status;
}

static rlxvk_status gaussian_splat_rasterize_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    splat_attributes *a = attributes;
    const node *from = graph_node(g, n->inputs[0]);
    char is[SHAPE_TEXT];
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    if (a->count < 0 && from->op == OP_gaussian_splat_prepare)
        a->count = (int64_t)gaussian_splat_scene_sizes(g, from).count;
    if (a->count < 0 || a->count > MOST_SPLATS)
        TRY(op_fail(n, RLXVK_E_ATTR,
                    "count is %lld; say how many splats `prepared` is of, 2^27 at "
                    "most",
                    (long long)a->count));
    uint64_t words = gaussian_splat_sizes(&a->options, (uint64_t)a->count).words, numel;
    if (!shape_numel_checked(&from->shape, &numel) || numel != words)
        TRY(op_fail(n, RLXVK_E_SHAPE, "prepared is %s; of %lld splats it has %llu elements",
                    shape_text(&from->shape, is), (long long)a->count, (unsigned long long)words));
    TRY(op_require_dtype(g, n, 0, RLXVK_F32, "give what prepare gave"));
    if (shape_numel(input_shape(g, n, 1)) != SPLAT_META)
        TRY(op_fail(n, RLXVK_E_SHAPE, "meta is %s; needs %d elements",
                    shape_text(input_shape(g, n, 1), is), SPLAT_META));
    set_result(n, image_words(&a->options));
error:
    return status;
}

/* `bucket` of all families in this file. */
static uint64_t gaussian_splat_bucket(bucket_call *c)
{
    return bucket_refuse(c, "each pixel is made of all splats");
}

/* The flag is the last word of the result (see glsl/splat/flag.glsl). */
static uint64_t gaussian_splat_render_flags(const node *n, uint64_t *out_first)
{
    uint64_t words = shape_numel(&n->shape);
    *out_first = words ? words - 1 : 0;
    return words > 0;
}

static rlxvk_status gaussian_splat_render_flag_error(const node *n, const char *label,
                                                     const run_flags *found)
{
    const splat_attributes *a = n->attributes;
    return status_fail(RLXVK_E_TOO_LARGE,
                       "%s: the splats of all tiles are %.0f, max_list_entries is %u: the farthest "
                       "are left out, all else is valid; build it with at least as many",
                       label, (double)found->value, a->options.max_list_entries);
}

/* ---- Gradient ---- */

static rlxvk_status gaussian_splat_render_vjp(gradient_call *c)
{
    static const int64_t words[] = {3, 3, 4, 1, 3};
    rlxvk_graph *g = c->graph;
    splat_attributes a = *(const splat_attributes *)c->n.attributes;
    rlxvk_shape positions = gradient_shape(c, SPLAT_POSITIONS), sh = gradient_shape(c, SPLAT_SH);
    int64_t count = (int64_t)shape_numel(&positions) / 3, at = 0;
    rlxvk_tensor inputs[8], all;
    if (count == 0) {
        for (uint32_t i = 0; i < SPLAT_VIEW; i++)
            gradient_give(c, i, gradient_filled(g, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    for (uint32_t i = 0; i <= SPLAT_VIEW; i++)
        inputs[i] = gradient_operand(c, i);
    inputs[SPLAT_LOSS] = without_flag(g, c->dy);
    a.options.loss_grad_clip = INFINITY;
    a.options.alpha_gradient = true;
    a.options.sh_band = MOST_BAND;
    all = op_build(g, OP_gaussian_splat_render_backward, inputs, 8, &a);
    for (uint32_t i = 0; i < SPLAT_VIEW; i++) {
        int64_t length = i == SPLAT_SH ? (int64_t)shape_numel(&sh) : words[i] * count;
        if (length)
            gradient_give(c, i,
                          rlxvk_reshape(g, rlxvk_narrow(g, all, 0, at, length),
                                        gradient_shape(c, i)));
        at += length;
    }
    return RLXVK_OK;
}

/* ---- The families ---- */

static void gaussian_splat_render_describe(const node *n, text *out)
{
    const splat_attributes *a = n->attributes;
    const rlxvk_gaussian_splat_options *o = &a->options;
    text_append(out,
                " width=%u height=%u tile_size=%u radius_scale=%g alpha_cutoff=%g steps=%u "
                "transmittance=%g entries=%u gamma=%g min_axis=%g",
                o->width, o->height, o->tile_size, (double)o->radius_scale, (double)o->alpha_cutoff,
                o->max_splat_steps, (double)o->transmittance_threshold, o->max_list_entries,
                (double)o->output_gamma, (double)o->min_axis_px);
    if (n->op == OP_gaussian_splat_rasterize)
        text_append(out, " count=%lld", (long long)a->count);
    if (n->op == OP_gaussian_splat_render_backward)
        text_append(out, " clip=%g band=%u alpha=%d", (double)o->loss_grad_clip, o->sh_band,
                    o->alpha_gradient);
}

const op_family gaussian_splat_prepare_family = {
    .name = "gaussian_splat_prepare",
    .attribute_size = sizeof(splat_attributes),
    .infer = gaussian_splat_prepare_infer,
    .execution = {.lower = gaussian_splat_prepare_lower, .host = gaussian_splat_prepare_host},
    .rows = {.bucket = gaussian_splat_bucket},
    .describe = gaussian_splat_render_describe,
};
const op_family gaussian_splat_rasterize_family = {
    .name = "gaussian_splat_rasterize",
    .attribute_size = sizeof(splat_attributes),
    .infer = gaussian_splat_rasterize_infer,
    .execution = {.lower = gaussian_splat_rasterize_lower, .host = gaussian_splat_rasterize_host},
    .rows = {.bucket = gaussian_splat_bucket},
    .describe = gaussian_splat_render_describe,
};
const op_family gaussian_splat_render_family = {
    .name = "gaussian_splat_render",
    .attribute_size = sizeof(splat_attributes),
    .infer = gaussian_splat_render_infer,
    .execution = {.lower = gaussian_splat_render_lower, .host = gaussian_splat_render_host},
    .rows = {.bucket = gaussian_splat_bucket},
    .derivative = {.vjp = gaussian_splat_render_vjp},
    .checks = {.flags = gaussian_splat_render_flags,
               .flag_error = gaussian_splat_render_flag_error},
    .describe = gaussian_splat_render_describe,
};
const op_family gaussian_splat_render_backward_family = {
    .name = "gaussian_splat_render_backward",
    .attribute_size = sizeof(splat_attributes),
    .infer = gaussian_splat_render_backward_infer,
    .execution = {.lower = gaussian_splat_render_backward_lower,
                  .host = gaussian_splat_render_backward_host},
    .rows = {.bucket = gaussian_splat_bucket},
    .checks = {.flags = gaussian_splat_render_flags,
               .flag_error = gaussian_splat_render_flag_error},
    .describe = gaussian_splat_render_describe,
};
