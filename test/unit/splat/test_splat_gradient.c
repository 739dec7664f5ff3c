/*
 * Gradients of single splats against the host function, which computes in double precision by
 * another formula. The splats are discs that are 1 to 100,000 times as wide as thick, at random
 * places and angles. Each axis must have the precision that rlxvk_ops_splat.h promises.
 */
#include "support/harness.h"
#include "support/rewritten.h"

#include <math.h>
#include <rlxvk_train.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { SIDE = 32, DISCS = 60, GRADIENTS = 17, LOSS = 4 * SIDE * SIDE };

#define EDGE 0.17 /* sine of ten degrees: closer to edge-on, a disc is hardly visible */

typedef struct splat {
    float position[3], scale[3], rotation[4], opacity, color[3], sh[3], meta[23], loss[LOSS];
} splat;

static uint32_t random_state;

static double between(double low, double high)
{
    random_state = random_state * 1664525u + 1013904223u;
    return low + (high - low) * (random_state >> 8) * 0x1p-24;
}

/* The cosine of the angle between the splat's axis `axis` and the line to the camera. */
static double facing(const splat *s, int axis)
{
    double w = (double)s->rotation[0], x = (double)s->rotation[1], y = (double)s->rotation[2];
    double z = (double)s->rotation[3], length = w * w + x * x + y * y + z * z, along = 0, far = 0;
    const double columns[3][3] = {
        {w * w + x * x - y * y - z * z, 2 * (x * y + w * z), 2 * (x * z - w * y)},
        {2 * (x * y - w * z), w * w - x * x + y * y - z * z, 2 * (y * z + w * x)},
        {2 * (x * z + w * y), 2 * (y * z - w * x), w * w - x * x - y * y + z * z}};
    for (int k = 0; k < 3; k++) {
        double away = (double)s->meta[k] - (double)s->position[k];
        along += columns[axis][k] / length * away;
        far += away * away;
    }
    return fabs(along) / sqrt(far);
}

/* Makes a disc that is `ratio` times as wide as it is thick along `axis`. It is 20 to 50 deviations
 * away from the camera. */
static void make_disc(splat *s, int axis, double ratio)
{
    static const float meta[23] = {0, 0, -4, 0, 0, 0, 0, 1, 0, 50, 0.1f, 100, 0.1f, 0.2f, 0.3f};
    memset(s, 0, sizeof *s);
    memcpy(s->meta, meta, sizeof meta);
    s->opacity = 0.7f;
    for (int k = 0; k < 3; k++) {
        s->position[k] = (float)between(-0.3, 0.3);
        s->scale[k] = (float)(between(-2.5, -1.5) - (k == axis ? log(ratio) : 0));
        s->sh[k] = (float)between(-0.5, 0.5);
    }
    do
        for (int k = 0; k < 4; k++)
            s->rotation[k] = (float)between(-1, 1);
    while (facing(s, axis) < EDGE);
    for (int i = 0; i < LOSS; i++)
        s->loss[i] = (float)between(-0.3, 0.7);
}

static rlxvk_executable *compile_gradient(bool on_host)
{
    rlxvk_graph *g = new_graph();
    const rlxvk_gaussian_splat_scene scene = {input(g, "position", RLXVK_SHAPE(3)),
                                              input(g, "scale", RLXVK_SHAPE(3)),
                                              input(g, "rotation", RLXVK_SHAPE(4)),
                                              input(g, "opacity", RLXVK_SHAPE(1)),
                                              input(g, "color", RLXVK_SHAPE(3)),
                                              input(g, "sh", RLXVK_SHAPE(1, 1, 3)),
                                              input(g, "meta", RLXVK_SHAPE(23))};
    const rlxvk_gaussian_splat_options o = {.width = SIDE,
                                            .height = SIDE,
                                            .tile_size = 16,
                                            .radius_scale = 1,
                                            .alpha_cutoff = 1e-8f,
                                            .max_list_entries = 4096,
                                            .output_gamma = 1,
                                            .loss_grad_clip = 1};
    rlxvk_compile_options options = {.force_host = on_host ? RLXVK_ON : RLXVK_DEFAULT};
    rlxvk_executable *e = NULL;
    rlxvk_tensor loss = input(g, "loss", RLXVK_SHAPE(LOSS));
    rlxvk_graph_output(g, rlxvk_gaussian_splat_render_backward(g, &scene, loss, &o));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void run_gradient(rlxvk_executable *e, const splat *s, float out[GRADIENTS])
{
    const rlxvk_run_input in[] = {
        {"position", s->position, 3, RLXVK_F32}, {"scale", s->scale, 3, RLXVK_F32},
        {"rotation", s->rotation, 4, RLXVK_F32}, {"opacity", &s->opacity, 1, RLXVK_F32},
        {"color", s->color, 3, RLXVK_F32},       {"sh", s->sh, 3, RLXVK_F32},
        {"meta", s->meta, 23, RLXVK_F32},        {"loss", s->loss, LOSS, RLXVK_F32}};
    rlxvk_run_output to = {.buffer = out, .length = GRADIENTS, .dtype = RLXVK_F32};
    expect_ok(rlxvk_run(e, in, sizeof in / sizeof *in, &to, 1));
}

typedef struct part {
    const char *name;
    int first, end;
    double squares, worst; /* relative errors of the discs: the sum of squares; the worst */
} part;

static void take(part *p, const float *got, const float *wanted)
{
    double squares = 0, errors = 0;
    for (int k = p->first; k < p->end; k++) {
        double error = (double)got[k] - (double)wanted[k];
        squares += (double)wanted[k] * (double)wanted[k];
        errors += error * error;
    }
    assert_true(squares > 1e-12);
    p->squares += errors / squares;
    p->worst = fmax(p->worst, sqrt(errors / squares));
}

static void thin_discs_keep_their_digits(void **state)
{
    static const double ratios[] = {1, 10, 100, 1000, 1e4, 1e5};
    static splat s;
    rlxvk_executable *kernels = compile_gradient(false), *host = compile_gradient(true);
    (void)state;
    random_state = 12345;
    for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++) {
        part parts[] = {{"positions", 0, 3, 0, 0},
                        {"scales", 3, 6, 0, 0},
                        {"rotations", 6, 10, 0, 0}};
        for (int i = 0; i < DISCS; i++) {
            float got[GRADIENTS], wanted[GRADIENTS];
            make_disc(&s, i % 3, ratios[r]);
            run_gradient(kernels, &s, got);
            run_gradient(host, &s, wanted);
            for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
                take(&parts[p], got, wanted);
        }
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            double rms = sqrt(parts[p].squares / DISCS);
            if (!(rms < 3e-5 && parts[p].worst < 3e-4))
                fail_msg("discs of 1 to %g: gradients by %s are off by %.2g, one by %.2g",
                         ratios[r], parts[p].name, rms, parts[p].worst);
        }
    }
    rlxvk_executable_destroy(kernels);
    rlxvk_executable_destroy(host);
}

/* ---- max_anisotropy ---- */

enum { TRIO = 3, PACKED = 17 * TRIO };

typedef struct limited {
    float image[LOSS], backward[PACKED], slopes[9];
} limited;

/* Runs three splats with these scales. Gets their image, their gradients by the backward op, and
 * the gradients of the scales by rlxvk_grad. */
static void run_limited(const float scales[9], float most, limited *out)
{
    static const float places[] = {-0.5f, 0, 0, 0.5f, 0.2f, 0.3f, 0, -0.5f, 0.1f};
    static const float turns[] = {1, 0.2f, 0.3f, 0.1f, 0.5f, 1, -0.4f, 0.2f, 0.3f, 0.3f, 1, 0.7f};
    static const float covers[] = {0.5f, 0.9f, 0.7f},
                       meta[23] = {0, 0, -4, 0, 0, 0, 0, 1, 0, 50, 0.1f, 100, 0.1f};
    static float loss[LOSS];
    rlxvk_gaussian_splat_options o = RLXVK_GAUSSIAN_SPLAT_DEFAULTS;
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor slope, colors = floats(g, RLXVK_SHAPE(9), places);
    for (int i = 0; i < LOSS; i++)
        loss[i] = (float)((i * 7 + 3) % 11 - 4) / 10;
    o.width = o.height = SIDE;
    o.max_splat_steps = 0;
    o.min_axis_px = 0;
    o.max_list_entries = 1000;
    o.loss_grad_clip = INFINITY;
    o.alpha_gradient = true;
    o.max_anisotropy = most;
    rlxvk_tensor s = input(g, "scales", RLXVK_SHAPE(9));
    rlxvk_tensor d = floats(g, RLXVK_SHAPE(LOSS), loss);
    const rlxvk_gaussian_splat_scene scene = {
        floats(g, RLXVK_SHAPE(9), places), s,      floats(g, RLXVK_SHAPE(12), turns),
        floats(g, RLXVK_SHAPE(3), covers), colors, colors,
        floats(g, RLXVK_SHAPE(23), meta)};
    rlxvk_tensor y = rlxvk_gaussian_splat_render(g, &scene, &o);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, rlxvk_gaussian_splat_render_backward(g, &scene, d, &o));
    rlxvk_grad(g, y, d, &s, 1, &slope);
    rlxvk_graph_output(g, slope);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    const rlxvk_run_input in = {"scales", scales, 9, RLXVK_F32};
    const rlxvk_run_output to[] = {{0, out->image, LOSS, RLXVK_F32},
                                   {1, out->backward, PACKED, RLXVK_F32},
                                   {2, out->slopes, 9, RLXVK_F32}};
    expect_ok(rlxvk_run(e, &in, 1, to, 3));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* If the option raises scales, the image has the same bits as for scales that were raised before.
 * The gradient of a raised scale goes to the largest scale of its splat; if several are equal, to
 * the first. A scale at the bound is not raised. */
static void thin_splats_are_raised(void **state)
{
    const float step = logf(4);
    const float scales[9] = {-1, -3, -1.5f, -4, -1, -1, -1, -1 - step, -9};
    const float raised[9] = {-1, -1 - step, -1.5f, -1 - step, -1, -1, -1, -1 - step, -1 - step};
    static const int moves[9] = {0, 0, 2, 4, 4, 5, 6, 7, 6}; /* the scale that gets the gradient */
    static limited off, got, wanted;
    (void)state;
    run_limited(scales, 0, &off);
    run_limited(scales, 4, &got);
    run_limited(raised, 0, &wanted);
    assert_memory_not_equal(got.image, off.image, sizeof got.image);
    assert_memory_equal(got.image, wanted.image, sizeof got.image);
    float slopes[9] = {0};
    for (int k = 0; k < 9; k++)
        slopes[moves[k]] += wanted.backward[9 + k];
    for (int k = 0; k < PACKED; k++) {
        float expected = k >= 9 && k < 18 ? slopes[k - 9] : wanted.backward[k];
        assert_true(fabsf(got.backward[k] - expected) <= 1e-6f * (1 + fabsf(expected)));
    }
    for (int k = 0; k < 9; k++) /* rlxvk_grad must agree */
        assert_true(fabsf(got.slopes[k] - slopes[k]) <= 1e-6f * (1 + fabsf(slopes[k])));
    run_limited(raised, INFINITY, &got);
    assert_memory_equal(&got, &wanted, sizeof got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thin_splats_are_raised),
        cmocka_unit_test(thin_discs_keep_their_digits),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
