/*
 * Cases of the Gaussian splats. Keys: width, height, tile, radius, cutoff, steps, threshold,
 * entries, gamma, axis, anisotropy; of the backward ops also clip, band, alpha;
 * in=positions;scales;rotations;opacities;colors;sh[;loss].
 *
 * The camera looks at the origin: eye=x,y,z is its place in tenths; fov, near, far.
 * gaussian_splat_rasterize takes the results of a prepare node before it.
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

static rlxvk_gaussian_splat_options options_of(const case_spec *s)
{
    rlxvk_gaussian_splat_options o = RLXVK_GAUSSIAN_SPLAT_DEFAULTS;
    o.width = (uint32_t)case_integer(s, "width", 32);
    o.height = (uint32_t)case_integer(s, "height", 24);
    o.tile_size = (uint32_t)case_integer(s, "tile", o.tile_size);
    o.radius_scale = (float)case_real(s, "radius", 1);
    o.alpha_cutoff = (float)case_real(s, "cutoff", (double)o.alpha_cutoff);
    o.max_splat_steps = (uint32_t)case_integer(s, "steps", 0);
    o.transmittance_threshold = (float)case_real(s, "threshold", 1e-4);
    o.max_list_entries = (uint32_t)case_integer(s, "entries", 4096);
    o.output_gamma = (float)case_real(s, "gamma", 2.2);
    o.min_axis_px = (float)case_real(s, "axis", (double)o.min_axis_px);
    o.loss_grad_clip = (float)case_real(s, "clip", (double)o.loss_grad_clip);
    o.sh_band = (uint32_t)case_integer(s, "band", o.sh_band);
    o.alpha_gradient = case_integer(s, "alpha", 0) != 0;
    o.max_anisotropy = (float)case_real(s, "anisotropy", 0);
    return o;
}

static rlxvk_tensor camera(rlxvk_graph *g, const case_spec *s)
{
    float meta[23] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 60, 0.1f, 20, 0.1f, 0.15f, 0.2f};
    int32_t eye[3] = {3, 2, 40};
    case_integers(s, "eye", eye, COUNT(eye));
    for (int k = 0; k < 3; k++)
        meta[k] = (float)eye[k] / 10;
    meta[9] = (float)case_real(s, "fov", 60);
    meta[10] = (float)case_real(s, "near", 0.1);
    meta[11] = (float)case_real(s, "far", 20);
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(23), meta, sizeof meta);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_gaussian_splat_options o = options_of(s);
    rlxvk_gaussian_splat_scene scene = {.positions = case_tensor(s, inputs, "positions"),
                                        .scales = case_tensor(s, inputs, "scales"),
                                        .rotations = case_tensor(s, inputs, "rotations"),
                                        .opacities = case_tensor(s, inputs, "opacities"),
                                        .colors = case_tensor(s, inputs, "colors"),
                                        .sh = case_tensor(s, inputs, "sh")};
    scene.meta = case_tensor(s, inputs, "meta");
    scene.meta = scene.meta.id ? scene.meta : camera(g, s);
    if (strcmp(s->row, "gaussian_splat_prepare") == 0)
        return rlxvk_gaussian_splat_prepare(g, &scene, &o);
    if (strcmp(s->row, "gaussian_splat_render") == 0)
        return rlxvk_gaussian_splat_render(g, &scene, &o);
    if (strcmp(s->row, "gaussian_splat_render_backward") == 0)
        return rlxvk_gaussian_splat_render_backward(g, &scene, case_tensor(s, inputs, "loss"), &o);
    rlxvk_tensor prepared = case_tensor(s, inputs, "prepared");
    prepared = prepared.id ? prepared : rlxvk_gaussian_splat_prepare(g, &scene, &o);
    return rlxvk_gaussian_splat_rasterize(g, prepared, scene.meta, case_integer(s, "count", -1),
                                          &o);
}

/* ---- Lines ---- */

static const char *const rows[] = {"gaussian_splat_prepare", "gaussian_splat_rasterize",
                                   "gaussian_splat_render", "gaussian_splat_render_backward", NULL};

static bool reports(const char *row)
{
    return strncmp(row, "gaussian_splat_render", 21) == 0;
}

static void add_scene(case_list *list, const char *row, const char *options, int count,
                      int coefficients, const char *sizes)
{
    char loss[40] = "";
    int width = 32, height = 24;
    const char *size = strstr(options, "width=");
    if (size)
        sscanf(size, "width=%d height=%d", &width, &height);
    bool back = strcmp(row, "gaussian_splat_render_backward") == 0;
    if (back)
        snprintf(loss, sizeof loss, ";loss:f32:%dx%dx4:unit", height, width);
    /* sums behind the op have no bounds of their own; this is the error that thin splats may have
     */
    const char *within = back && strncmp(options, "anisotropy", 10) == 0 ? "within=5e-4 " : "";
    case_add(list,
             "%s %s%s in=positions:f32:%dx3:unit;scales:f32:%dx3:%s;rotations:f32:%dx4:unit;"
             "opacities:f32:%d:range:0.1:0.95;colors:f32:%dx3:range:0.05:0.95;"
             "sh:f32:%dx%dx3:range:-0.3:0.3%s",
             row, within, options, count, count, sizes, count, count, count, count, coefficients,
             loss);
}

static void generate_scenes(case_list *list, const char *row)
{
    static const char *const options[] = {
        "",
        "tile=1",
        "tile=7",
        "tile=8 gamma=1",
        "tile=64",
        "width=33 height=17",
        "width=1 height=1",
        "width=5 height=70 tile=16",
        "width=70 height=40 tile=32",
        "steps=1",
        "steps=5 gamma=1.5",
        "threshold=0",
        "threshold=0.5",
        "cutoff=0.1",
        "cutoff=1e-9 axis=0",
        "cutoff=1e-9 axis=0 gamma=1 tile=8",
        "radius=1.6",
        "axis=2",
        "axis=0",
        "eye=0,0,40",
        "eye=-30,20,-10 fov=90",
        "eye=1,1,1 near=0.01",
        "eye=0,30,0",
        "near=3.9",
        "far=4",
        "fov=20",
    };
    static const char *const refused[] = {"width=0",        "height=0",  "width=16385",
                                          "tile=0",         "tile=65",   "radius=0",
                                          "cutoff=0",       "cutoff=1",  "cutoff=nan",
                                          "gamma=0",        "axis=-1",   "threshold=1",
                                          "threshold=-0.1", "entries=0", "clip=0",
                                          "band=4"};
    for (size_t i = 0; i < COUNT(options); i++)
        add_scene(list, row, options[i], 20,
                  i % 5 == 0   ? 0
                  : i % 5 == 1 ? 16
                               : (int)i % 5,
                  "range:-3:-1");
    add_scene(list, row, "", 1, 1, "range:-2:-1");
    add_scene(list, row, "", 2, 20, "range:-2:-1");
    add_scene(list, row, "threshold=0", 300, 4, "range:-4:-2");
    add_scene(list, row, "width=48 height=48", 700, 1, "range:-4.5:-3");
    add_scene(list, row, "", 6, 9, "range:0:2");
    add_scene(list, row, "cutoff=1e-9 axis=0 threshold=0", 40, 4, "range:-3:-0.5");
    for (size_t i = 0; i < COUNT(refused) && strcmp(row, rows[1]) != 0; i++) {
        char line[80];
        snprintf(line, sizeof line, "expect=E_ATTR %s", refused[i]);
        add_scene(list, row, line, 3, 1, "range:-2:-1");
    }
    if (strcmp(row, rows[3]) != 0) {
        add_scene(list, row, "", 0, 0, "unit");
        add_scene(list, row, "width=17 height=9 tile=4", 0, 3, "unit");
    }
    /* A list without room for all entries. The result of prepare tells this. */
    for (size_t i = 0; i < 2; i++) {
        char line[80];
        snprintf(line, sizeof line, "%swidth=16 height=16 tile=%d entries=40",
                 reports(row) ? "run=E_TOO_LARGE " : "", i ? 4 : 16);
        add_scene(list, row, line, 60, 1, "range:-3:-1");
    }
}

static void generate_borders(case_list *list)
{
    const char *const scene = "in=positions:f32:4x3:unit;scales:f32:4x3:range:-2:-1;"
                              "rotations:f32:4x4:unit;opacities:f32:4:range:0.1:1;";
    for (size_t r = 0; r < 3; r++) {
        case_add(list, "%s %scolors:f32:4x3:range:-0.5:1.5;sh:f32:4x1x3:zero", rows[r], scene);
        case_add(list, "%s %scolors:f32:4x3:special;sh:f32:4x2x3:unit", rows[r], scene);
        case_add(list,
                 "%s in=positions:f32:9x3:special;scales:f32:9x3:special;rotations:f32:9x4:special;"
                 "opacities:f32:9:special;colors:f32:9x3:range:0:1;sh:f32:0",
                 rows[r]);
        case_add(list,
                 "%s axis=0 in=positions:f32:3x3:unit;scales:f32:3x3:constant:-20;"
                 "rotations:f32:3x4:zero;opacities:f32:3:one;colors:f32:3x3:range:0:1;sh:f32:0",
                 rows[r]);
        case_add(list,
                 "%s in=positions:f32:3x3:zero;scales:f32:3x3:constant:-1;rotations:f32:3x4:one;"
                 "opacities:f32:3:constant:1.5;colors:f32:9:range:0:1;sh:f32:27:unit",
                 rows[r]);
        if (r == 1)
            continue; /* prepare refuses these */
        case_add(list, "%s expect=E_SHAPE %scolors:f32:4x2;sh:f32:4x2x3", rows[r], scene);
        case_add(list, "%s expect=E_SHAPE %scolors:f32:4x3;sh:f32:5x1x3", rows[r], scene);
        case_add(list, "%s expect=E_SHAPE %scolors:f32:4x3;sh:f32:4x1x3;meta:f32:22", rows[r],
                 scene);
        case_add(list, "%s expect=E_DTYPE %scolors:i32:4x3:bool;sh:f32:4x1x3", rows[r], scene);
    }
    case_add(list, "gaussian_splat_rasterize expect=E_ATTR in=prepared:f32:9000;meta:f32:23");
    case_add(list, "gaussian_splat_rasterize count=3 expect=E_SHAPE "
                   "in=prepared:f32:9000;meta:f32:23");
    case_add(list, "gaussian_splat_rasterize count=3 width=4 height=4 entries=10 tile=4 "
                   "in=prepared:f32:116:unit;meta:f32:23");
}

/* Adds random splats whose operands have these fills. */
static void add_filled(case_list *list, const char *row, const char *options, int count,
                       const char *positions, const char *scales, const char *opacities,
                       const char *loss)
{
    bool back = strcmp(row, rows[3]) == 0;
    case_add(list,
             "%s %s in=positions:f32:%dx3:%s;scales:f32:%dx3:%s;rotations:f32:%dx4:unit;"
             "opacities:f32:%d:%s;colors:f32:%dx3:range:0.05:0.95;sh:f32:%dx4x3:range:-0.3:0.3%s%s",
             row, options, count, positions, count, scales, count, count, opacities, count, count,
             back ? ";loss:f32:24x32x4:" : "", back ? loss : "");
}

/* Transmittances far below those that a pixel shows, alphas of 1, opacities close to the cutoff,
 * NaN and infinities, and splats up to 10,000 times as wide as thick. */
static void generate_extremes(case_list *list, const char *row)
{
    const char *const wide = "range:-3:-1", *const place = "range:-0.3:0.3";
    bool back = strcmp(row, rows[3]) == 0;
    add_filled(list, row, "threshold=0", 20, "unit", wide, "range:0.9:1", "unit");
    add_filled(list, row, "threshold=0", 300, "unit", wide, "range:0.9:1", "unit");
    add_filled(list, row, "threshold=0 alpha=1", 60, place, "range:-1:0", "range:0.99:1", "unit");
    add_filled(list, row, "threshold=0 alpha=1", 40, place, "range:0:2", "one", "unit");
    add_filled(list, row, "threshold=0 cutoff=1e-9 gamma=1 axis=0", 200, place, wide,
               "range:0.5:0.9999", "unit");
    add_filled(list, row, "cutoff=0.1 axis=0 gamma=1", 60, "unit", wide, "range:0.1:0.11", "unit");
    add_filled(list, row, "cutoff=0.1 axis=0 alpha=1", 60, "unit", wide, "range:0.09999:0.10001",
               "unit");
    add_filled(list, row, "cutoff=1e-6 axis=0 gamma=1", 60, "unit", "range:-7:-1", "range:0.1:0.9",
               "unit");
    add_filled(list, row, "cutoff=1e-6 axis=0 alpha=1", 60, "unit", "range:-10:-1", "range:0.1:0.9",
               "unit");
    add_filled(list, row, "cutoff=1e-3 axis=0", 12, place, "range:-20:-1", "range:0.1:0.9", "unit");
    if (!back)
        return;
    add_filled(list, row, "", 20, "special", wide, "range:0.1:0.9", "unit");
    add_filled(list, row, "", 20, "unit", "special", "range:0.1:0.9", "unit");
    add_filled(list, row, "", 20, "unit", wide, "special", "unit");
    add_filled(list, row, "alpha=1", 20, "range:-0.5:0.5", wide, "range:0.1:0.9", "special");
    add_filled(list, row, "gamma=0.5", 20, "unit", wide, "range:0.1:0.9", "unit");
    case_add(list,
             "%s in=positions:f32:9x3:unit;scales:f32:9x3:%s;rotations:f32:9x4:unit;"
             "opacities:f32:9:range:0.1:0.9;colors:f32:9x3:special;sh:f32:9x4x3:special;"
             "loss:f32:24x32x4:unit",
             row, wide);
}

/* Splats whose places exceed f32 in their own axes or the camera's, and quaternions whose squares
 * do. */
static void generate_far(case_list *list, const char *row)
{
    static const char rest[] = "opacities:f32:20:range:0.1:0.9;colors:f32:20x3:range:0:1;sh:f32:0";
    case_add(list,
             "%s in=positions:f32:20x3:range:-3.4e38:3.4e38;scales:f32:20x3:range:-1:1;"
             "rotations:f32:20x4:unit;%s",
             row, rest);
    case_add(list,
             "%s in=positions:f32:20x3:unit;scales:f32:20x3:range:-2:-1;"
             "rotations:f32:20x4:range:-3e38:3e38;%s",
             row, rest);
}

/* Thin splats, most of whose scales are raised; and equal scales, of which none is raised. */
static void generate_limited(case_list *list, const char *row)
{
    static const char *const refused[] = {"anisotropy=0.5", "anisotropy=-1", "anisotropy=nan"};
    add_scene(list, row, "anisotropy=1", 20, 0, "range:-3:-1");
    add_scene(list, row, "anisotropy=2", 20, 2, "range:-3:-1");
    add_scene(list, row, "anisotropy=inf", 20, 3, "range:-3:-1");
    add_scene(list, row, "anisotropy=3", 30, 2, "range:-6:-1");
    add_scene(list, row, "anisotropy=10 axis=0", 9, 1, "range:-9:-1");
    add_scene(list, row, "anisotropy=1.5", 9, 1, "constant:-2");
    for (size_t i = 0; i < COUNT(refused) && strcmp(row, rows[1]) != 0; i++) {
        char line[80];
        snprintf(line, sizeof line, "expect=E_ATTR %s", refused[i]);
        add_scene(list, row, line, 3, 1, "range:-2:-1");
    }
}

static void generate(case_list *list)
{
    for (size_t r = 0; rows[r]; r++)
        generate_scenes(list, rows[r]);
    generate_borders(list);
    add_scene(list, rows[3], "clip=0.2", 20, 4, "range:-3:-1");
    add_scene(list, rows[3], "band=0", 20, 16, "range:-3:-1");
    add_scene(list, rows[3], "band=1 alpha=1", 20, 16, "range:-3:-1");
    add_scene(list, rows[3], "alpha=1 clip=inf", 20, 9, "range:-3:-1");
    for (size_t r = 0; rows[r]; r++)
        generate_extremes(list, rows[r]);
    for (size_t r = 0; r < 3; r++)
        generate_far(list, rows[r]);
    for (size_t r = 0; rows[r]; r++) /* a list that is just long enough */
        add_scene(list, rows[r], "width=8 height=8 tile=8 entries=3", 3, 1, "range:-2:-1");
    case_add(list, /* the largest constant terms that colors may replace */
             "%s in=positions:f32:4x3:unit;scales:f32:4x3:range:-2:-1;rotations:f32:4x4:unit;"
             "opacities:f32:4:range:0.1:1;colors:f32:4x3:range:0.1:0.4;"
             "sh:f32:4x1x3:constant:1e-8",
             rows[0]);
    for (size_t r = 0; rows[r]; r++)
        generate_limited(list, rows[r]);
}

const case_family splat_cases = {rows, build, generate};
