/*
 * Gaussian splats. First it draws a scene of 120,000 splats, a knot (splat.png). Then it fits 2,000
 * splats, which begin as a grey cloud, to a small picture of that scene by gradient descent.
 * splat_fit.png shows the small picture, the cloud and the fitted splats. Model, gradient and
 * optimizer are one graph.
 */
#include "picture.h"

#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdlib.h>

enum {
    KNOT = 90000,
    FLOOR = 30000,
    SPLATS = KNOT + FLOOR,
    WIDTH = 640,
    HEIGHT = 480,
    FITTED = 2000,
    SIDE = 64, /* width and height of the pictures that are fitted */
    STEPS = 80,
    PARTS = 5, /* positions, scales, rotations, opacities, colors */
    META = 23
};

static const char *const names[PARTS] = {"positions", "scales", "rotations", "opacities", "colors"};
static const size_t words[PARTS] = {3, 3, 4, 1, 3};
static float scene[PARTS][4 * SPLATS], start[PARTS][4 * FITTED];
static float large[4 * WIDTH * HEIGHT], target[4 * SIDE * SIDE], image[4 * SIDE * SIDE];
/* The view is from above. `up` points down, so that the rows of the image go down. The background
 * is light blue. */
static const float view[META] = {0, 2.2f, -4.6f, 0,  -0.1f, 0,     0,   -1,
                                 0, 45,   0.1f,  20, 0.45f, 0.55f, 0.7f};

static double uniform(void)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) * 0x1p-24;
}

static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static void normalize(double *v)
{
    double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int k = 0; k < 3; k++)
        v[k] /= length;
}

/* Sets splat `i`, a flat one: its third axis is the normal and has a tenth of the size. */
static void put(int i, const double *p, const double *normal, double size, const double *color)
{
    const double light[3] = {-0.4, 0.8, -0.45};
    double shade = 0.25, half = sqrt((1 + normal[2]) / 2);
    for (int k = 0; k < 3; k++)
        shade += 0.75 * fmax(0, normal[k] * light[k]);
    for (int k = 0; k < 3; k++) {
        scene[0][3 * i + k] = (float)p[k];
        scene[1][3 * i + k] = (float)log(k == 2 ? 0.1 * size : size);
        scene[4][3 * i + k] = (float)(color[k] * shade);
    }
    scene[2][4 * i] = (float)fmax(half, 1e-3);
    scene[2][4 * i + 1] = (float)(-normal[1] / (2 * fmax(half, 1e-3)));
    scene[2][4 * i + 2] = (float)(normal[0] / (2 * fmax(half, 1e-3)));
    scene[3][i] = 0.9f;
}

static void find_curve(double t, double *out)
{
    double r = 1 + 0.45 * cos(3 * t);
    out[0] = r * cos(2 * t);
    out[1] = 0.3 + 0.45 * sin(3 * t);
    out[2] = r * sin(2 * t);
}

static void make_scene(void)
{
    const double turn = 2 * acos(-1);
    for (int i = 0; i < KNOT; i++) {
        double t = turn * uniform(), a = turn * uniform(), here[3], ahead[3], side[3], p[3], n[3];
        double up[3] = {0, 1, 0};
        find_curve(t, here);
        find_curve(t + 1e-4, ahead);
        for (int k = 0; k < 3; k++)
            ahead[k] -= here[k];
        normalize(ahead);
        cross(up, ahead, side);
        normalize(side);
        cross(ahead, side, up);
        for (int k = 0; k < 3; k++) {
            n[k] = cos(a) * side[k] + sin(a) * up[k];
            p[k] = here[k] + 0.2 * n[k];
        }
        const double color[3] = {0.6 + 0.35 * cos(t), 0.45 + 0.35 * cos(t + 2),
                                 0.5 + 0.4 * cos(t + 4)};
        put(i, p, n, 0.013, color);
    }
    for (int i = 0; i < FLOOR; i++) {
        const double p[3] = {6 * uniform() - 3, -0.55, 6 * uniform() - 3}, up[3] = {0, 1, 0};
        int dark = ((int)floor(2 * p[0]) + (int)floor(2 * p[2])) & 1;
        const double color[3] = {dark ? 0.25 : 0.85, dark ? 0.3 : 0.85, dark ? 0.35 : 0.8};
        put(KNOT + i, p, up, 0.03, color);
    }
}

static void make_cloud(void)
{
    for (int i = 0; i < FITTED; i++) {
        for (int k = 0; k < 3; k++) {
            start[0][3 * i + k] = (float)(3.6 * uniform() - 1.8);
            start[1][3 * i + k] = -2.6f;
        }
        start[0][3 * i + 1] *= 0.45f;
        start[2][4 * i] = 1;
        start[3][i] = -1; /* before the logistic function */
    }
}

/* Draws `count` splats, whose params get the names above. If `is_free` is set, the params of
 * opacities and colors are values before the logistic function. */
static rlxvk_tensor build(rlxvk_graph *g, int count, unsigned width, unsigned height, unsigned room,
                          rlxvk_tensor *params, int is_free)
{
    rlxvk_gaussian_splat_options o = RLXVK_GAUSSIAN_SPLAT_DEFAULTS;
    rlxvk_tensor t[PARTS];
    o.width = width;
    o.height = height;
    o.radius_scale = 1;
    o.output_gamma = 1;
    o.max_splat_steps = 0;
    o.transmittance_threshold = 1e-4f;
    o.max_list_entries = room;
    for (int i = 0; i < PARTS; i++) {
        t[i] = params[i] =
            rlxvk_param(g, names[i], RLXVK_F32, RLXVK_SHAPE(count, (int64_t)words[i]));
        if (is_free && i >= 3)
            t[i] = rlxvk_sigmoid(g, t[i]);
    }
    rlxvk_gaussian_splat_scene s = {
        .positions = t[0], .scales = t[1], .rotations = t[2], .opacities = t[3], .colors = t[4]};
    s.sh = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(count, 0, 3), NULL, 0);
    s.meta = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(META), view, sizeof view);
    return rlxvk_gaussian_splat_render(g, &s, &o);
}

static rlxvk_status set_parts(rlxvk_executable *e, float (*parts)[4 * SPLATS])
{
    rlxvk_status status = RLXVK_OK;
    for (int i = 0; i < PARTS && !status; i++)
        status = rlxvk_set_param(e, names[i], parts[i], SPLATS * words[i]);
    return status;
}

/* Draws the scene at a size, with room for `room` entries in the splat lists of all tiles. */
static rlxvk_status draw_within(rlxvk_context *context, unsigned width, unsigned height,
                                unsigned room, float *rgba)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_tensor params[PARTS];
    rlxvk_run_output out = {.buffer = rgba, .length = 4ull * width * height};
    rlxvk_status status = rlxvk_graph_create(&g);
    if (!status)
        rlxvk_graph_output(g, build(g, SPLATS, width, height, room, params, 0));
    if (!status)
        status = rlxvk_compile(context, g, NULL, &e);
    if (!status)
        status = set_parts(e, scene);
    if (!status)
        status = rlxvk_run(e, NULL, 0, &out, 1);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

/* Doubles the room until it is enough. A run without enough room fails with E_TOO_LARGE. */
static rlxvk_status draw(rlxvk_context *context, unsigned width, unsigned height, float *rgba)
{
    rlxvk_status status = RLXVK_E_TOO_LARGE;
    for (unsigned room = SPLATS; status == RLXVK_E_TOO_LARGE && room < 64u * SPLATS; room *= 2)
        status = draw_within(context, width, height, room, rgba);
    return status;
}

/* ---- Fitting ---- */

/* Builds one step: it draws the splats and brings them nearer to the target. */
static void build_step(rlxvk_graph *g)
{
    static const float rates[PARTS] = {1, 2, 4, 5, 5};
    rlxvk_tensor params[PARTS], gradients[PARTS],
        y = build(g, FITTED, SIDE, SIDE, 8 * FITTED, params, 1);
    rlxvk_tensor wanted =
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(4 * SIDE * SIDE), target, sizeof target);
    rlxvk_tensor schedule = rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3));
    rlxvk_tensor off = rlxvk_sub(g, y, wanted);
    rlxvk_tensor loss = rlxvk_reduce_sum(g, rlxvk_mul(g, off, off), (int32_t[]){0}, 1, false);
    rlxvk_grad(g, loss, RLXVK_NONE, params, PARTS, gradients);
    for (int i = 0; i < PARTS; i++) {
        rlxvk_shape shape = RLXVK_SHAPE(FITTED, (int64_t)words[i]);
        char first[32], second[32];
        float factors[3] = {rates[i], 1, 1};
        snprintf(first, sizeof first, "%s.first", names[i]);
        snprintf(second, sizeof second, "%s.second", names[i]);
        rlxvk_tensor by = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(3), factors, sizeof factors);
        rlxvk_adamw(g, params[i], gradients[i], rlxvk_state(g, first, RLXVK_F32, shape),
                    rlxvk_state(g, second, RLXVK_F32, shape),
                    &(rlxvk_adamw_options){.beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f},
                    &(rlxvk_optimizer_data){.schedule = rlxvk_mul(g, schedule, by)}, NULL);
    }
    rlxvk_graph_output(g, y);
}

/* Peak signal-to-noise ratio of the colors, in decibels. */
static double quality(void)
{
    double sum = 0;
    for (int i = 0; i < 4 * SIDE * SIDE; i++) {
        double off = (double)image[i] - (double)target[i];
        sum += i % 4 == 3 ? 0 : off * off;
    }
    return -10 * log10(sum / (3 * SIDE * SIDE));
}

/* Writes an image as bytes into a picture, from its column `x` on. */
static void show(const float *rgba, int width, int height, unsigned char *picture, int pitch, int x)
{
    for (int row = 0; row < height; row++)
        for (int i = 0; i < width; i++)
            for (int c = 0; c < 3; c++) {
                float v = rgba[4 * (row * width + i) + c] * 255 + 0.5f;
                picture[3 * (row * pitch + x + i) + c] = (unsigned char)fminf(v, 255);
            }
}

/* Returns whether the fit gained more than 5 dB. */
static int fit(rlxvk_context *context)
{
    static unsigned char picture[3 * 3 * SIDE * SIDE];
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float schedule[3];
    rlxvk_run_input in = {.name = "schedule", .data = schedule, .length = 3};
    rlxvk_run_output out = {.buffer = image, .length = 4 * SIDE * SIDE};
    double before = 0, after = 0;
    if (rlxvk_graph_create(&g))
        goto error;
    build_step(g);
    if (rlxvk_compile(context, g, NULL, &e))
        goto error;
    for (int i = 0; i < PARTS; i++)
        if (rlxvk_set_param(e, names[i], start[i], FITTED * words[i]))
            goto error;
    for (int step = 1; step <= STEPS; step++) {
        schedule[0] = (float)(0.01 * pow(0.1, (double)step / STEPS));
        schedule[1] = (float)(1 - pow(0.9, step));
        schedule[2] = (float)(1 - pow(0.99, step));
        if (rlxvk_run(e, &in, 1, &out, 1))
            goto error;
        if (step == 1) {
            before = quality();
            show(image, SIDE, SIDE, picture, 3 * SIDE, SIDE);
        }
    }
    after = quality();
    printf("%d splats, %d steps: PSNR %.2f dB before, %.2f dB after\n", FITTED, STEPS, before,
           after);
    show(target, SIDE, SIDE, picture, 3 * SIDE, 0);
    show(image, SIDE, SIDE, picture, 3 * SIDE, 2 * SIDE);
    if (!picture_write("splat_fit.png", 3 * SIDE, SIDE, picture))
        after = 0;
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return after > before + 5;
}

int main(void)
{
    static unsigned char picture[3 * WIDTH * HEIGHT];
    rlxvk_context *context = NULL;
    int good = 0;
    make_scene();
    make_cloud();
    if (rlxvk_context_create(NULL, &context) || draw(context, WIDTH, HEIGHT, large) ||
        draw(context, SIDE, SIDE, target))
        goto error;
    show(large, WIDTH, HEIGHT, picture, WIDTH, 0);
    good = picture_write("splat.png", WIDTH, HEIGHT, picture);
    printf("%d splats drawn\n", SPLATS);
    good = fit(context) && good;
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_context_destroy(context);
    return !good;
}
