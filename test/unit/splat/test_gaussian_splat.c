/*
 * Gaussian splats on a device. A scene with known colours, pixels and sums is compared. Images must
 * not depend on tiles, on the order of the splats, or on when they are prepared. The integers in
 * the result of prepare are checked, because comparing floats skips them. Also tests a list that
 * overflows.
 */
#include "op/op.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MOST 600

typedef struct scene {
    int64_t count;
    float positions[3 * MOST], scales[3 * MOST], rotations[4 * MOST], opacities[MOST];
    float colors[3 * MOST], sh[3 * MOST], meta[23];
} scene;

/* Splats along a wave from the far left to the near right. */
static void make_wave(scene *s)
{
    static const float meta[23] = {0, 0, 4, 0, 0, 0, 0, 1, 0, 60, 0.1f, 20, 0.1f, 0.15f, 0.2f};
    memset(s, 0, sizeof *s);
    memcpy(s->meta, meta, sizeof meta);
    s->count = 18;
    for (int i = 0; i < 18; i++) {
        double t = i / 17.0;
        const double p[3] = {-1 + 2 * t, 0.8 * sin(0.17 * i), -1 + 2 * t};
        const double color[3] = {0.2 + 0.7 * t, 0.15 + 0.6 * (1 - t), 0.1 + 0.5 * t};
        for (int k = 0; k < 3; k++) {
            s->positions[3 * i + k] = (float)p[k];
            s->scales[3 * i + k] = (float)log(0.04);
            s->colors[3 * i + k] = (float)color[k];
        }
        s->rotations[4 * i] = 1;
        s->opacities[i] = (float)(0.25 + 0.5 * t);
    }
}

/* Splats at random, from one generator. */
static void make_cloud(scene *s, int64_t count)
{
    uint32_t state = 12345;
    float *const parts[] = {s->positions, s->scales, s->rotations, s->opacities, s->colors};
    const int64_t words[] = {3, 3, 4, 1, 3};
    const double low[] = {-1, -4, -1, 0.2, 0}, high[] = {1, -2, 1, 1, 1};
    make_wave(s);
    s->count = count;
    for (int p = 0; p < 5; p++)
        for (int64_t i = 0; i < words[p] * count; i++) {
            state = state * 1664525u + 1013904223u;
            parts[p][i] = (float)(low[p] + (high[p] - low[p]) * (state >> 8) * 0x1p-24);
        }
}

static const rlxvk_gaussian_splat_options wave_options = {.width = 64,
                                                          .height = 64,
                                                          .tile_size = 16,
                                                          .radius_scale = 1.6f,
                                                          .alpha_cutoff = 1.0f / 255,
                                                          .transmittance_threshold = 1e-4f,
                                                          .max_list_entries = 4096,
                                                          .output_gamma = 2.2f,
                                                          .min_axis_px = 0.125f,
                                                          .loss_grad_clip = 1};

/* LACKING is a render whose list is too short. */
enum what { RENDER, LACKING, IN_TWO, PREPARED };

/* Returns the image or the result of prepare, which the caller frees. */
static float *draw(scene *s, const rlxvk_gaussian_splat_options *o, enum what what, size_t *out)
{
    rlxvk_graph *g = new_graph();
    int64_t n = s->count;
    const rlxvk_gaussian_splat_scene of = {floats(g, RLXVK_SHAPE(n, 3), s->positions),
                                           floats(g, RLXVK_SHAPE(n, 3), s->scales),
                                           floats(g, RLXVK_SHAPE(n, 4), s->rotations),
                                           floats(g, RLXVK_SHAPE(n), s->opacities),
                                           floats(g, RLXVK_SHAPE(n, 3), s->colors),
                                           floats(g, RLXVK_SHAPE(n, 1, 3), s->sh),
                                           input(g, "meta", RLXVK_SHAPE(23))};
    rlxvk_run_input in = {"meta", s->meta, 23, RLXVK_F32};
    rlxvk_tensor y = what <= LACKING ? rlxvk_gaussian_splat_render(g, &of, o)
                                     : rlxvk_gaussian_splat_prepare(g, &of, o);
    if (what == IN_TWO)
        y = rlxvk_gaussian_splat_rasterize(g, y, of.meta, -1, o);
    rlxvk_executable *e = NULL;
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    *out = shape_numel(&graph_node(g, y.id - 1)->shape);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    float *words = calloc(*out + 1, sizeof *words);
    rlxvk_run_output to = {.buffer = words, .length = *out, .dtype = RLXVK_F32};
    assert_int_equal(rlxvk_run(e, &in, 1, &to, 1), what == LACKING ? RLXVK_E_TOO_LARGE : RLXVK_OK);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return words;
}

static void expect_near(const float *got, const double *wanted, size_t count, double within)
{
    for (size_t k = 0; k < count; k++)
        if (!(fabs((double)got[k] - wanted[k]) <= within))
            fail_msg("word %zu is %.7f, not %.7f", k, (double)got[k], wanted[k]);
}

static void a_known_scene_has_its_pixels(void **state)
{
    static const struct {
        int x, y;
        double rgba[4];
    } pixels[] = {{43, 32, {0.009126, 0.049790, 0.023758, 0.177027}},
                  {37, 39, {0.036313, 0.081077, 0.035214, 0.398675}},
                  {31, 43, {0.102237, 0.072435, 0.065170, 0.541820}},
                  {23, 42, {0.228583, 0.043608, 0.121031, 0.646486}},
                  {13, 35, {0.447751, 0.015407, 0.214780, 0.742612}},
                  {0, 0, {0.006310, 0.015396, 0.028991, 0}}};
    const double sums[4] = {37.287805, 66.088337, 124.242696, 50.127281};
    double got[4] = {0};
    scene s;
    size_t words;
    (void)state;
    make_wave(&s);
    float *y = draw(&s, &wave_options, RENDER, &words);
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
        expect_near(y + 4 * (64 * pixels[i].y + pixels[i].x), pixels[i].rgba, 4, 2e-5);
    for (size_t i = 0; i < words; i++)
        got[i % 4] += (double)y[i];
    for (int k = 0; k < 4; k++)
        if (!(fabs(got[k] - sums[k]) < 0.02))
            fail_msg("channel %d adds up to %.6f, not %.6f", k, got[k], sums[k]);
    free(y);
}

static void two_steps_give_the_same_bits(void **state)
{
    static scene s;
    size_t words, same;
    (void)state;
    make_cloud(&s, 300);
    float *one = draw(&s, &wave_options, RENDER, &words);
    float *two = draw(&s, &wave_options, IN_TWO, &same);
    assert_int_equal(words, same);
    assert_memory_equal(one, two, words * sizeof *one);
    free(one);
    free(two);
}

/* With other tiles, splats may be added whose alpha equals the cutoff, 1/255, except for rounding.
 * So a few words may change. */
static void tiles_do_not_show(void **state)
{
    static const uint32_t sizes[] = {1, 7, 8, 64};
    static scene s;
    size_t words;
    (void)state;
    make_cloud(&s, 300);
    float *wanted = draw(&s, &wave_options, RENDER, &words);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rlxvk_gaussian_splat_options o = wave_options;
        o.tile_size = sizes[i];
        o.max_list_entries = 200000;
        float *y = draw(&s, &o, RENDER, &words);
        size_t differ = 0;
        for (size_t k = 0; k < words; k++)
            differ += fabs((double)y[k] - (double)wanted[k]) > 1e-6;
        if (differ > words / 1000)
            fail_msg("tiles of %u change %zu words of %zu", sizes[i], differ, words);
        free(y);
    }
    free(wanted);
}

static void order_does_not_show(void **state)
{
    static scene s, turned;
    size_t words;
    (void)state;
    make_cloud(&s, 300);
    turned = s;
    for (int64_t i = 0; i < s.count; i++) {
        int64_t from = s.count - 1 - i;
        memcpy(turned.positions + 3 * i, s.positions + 3 * from, 3 * sizeof(float));
        memcpy(turned.scales + 3 * i, s.scales + 3 * from, 3 * sizeof(float));
        memcpy(turned.rotations + 4 * i, s.rotations + 4 * from, 4 * sizeof(float));
        memcpy(turned.colors + 3 * i, s.colors + 3 * from, 3 * sizeof(float));
        turned.opacities[i] = s.opacities[from];
    }
    float *one = draw(&s, &wave_options, RENDER, &words);
    float *two = draw(&turned, &wave_options, RENDER, &words);
    assert_memory_equal(one, two, words * sizeof *one);
    free(one);
    free(two);
}

/* ---- The result of prepare ---- */

typedef struct sections {
    const uint32_t *valid, *list, *ranges, *parameters;
    const float *rays;
} sections;

static sections sections_of(const float *words, const rlxvk_gaussian_splat_options *o, int64_t n)
{
    const uint32_t *bits = (const uint32_t *)(const void *)words;
    uint32_t wide = (o->width + o->tile_size - 1) / o->tile_size;
    uint32_t high = (o->height + o->tile_size - 1) / o->tile_size;
    sections s = {.valid = bits + 4 * n, .list = bits + 15 * n};
    s.ranges = s.list + o->max_list_entries;
    s.rays = words + 15 * n + o->max_list_entries + 2 * (int64_t)wide * high;
    s.parameters = bits + (s.rays - words) + 3 * (int64_t)o->width * o->height;
    return s;
}

/* Alpha at the middle of a pixel, in double precision, computed only from the scene. */
static double alpha_at(const scene *s, uint32_t splat, const float *ray, double scale)
{
    const float *q = s->rotations + 4 * splat, *p = s->positions + 3 * splat;
    double n =
        sqrt((double)q[0] * q[0] + (double)q[1] * q[1] + (double)q[2] * q[2] + (double)q[3] * q[3]);
    double w = q[0] / n, x = q[1] / n, y = q[2] / n, z = q[3] / n;
    const double g[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                            {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    double e[3] = {0}, v[3] = {0}, ev = 0, vv = 0, ee = 0;
    for (int k = 0; k < 3; k++) {
        double deviation = scale * exp((double)s->scales[3 * splat + (uint32_t)k]);
        for (int i = 0; i < 3; i++) {
            e[k] += g[i][k] * ((double)s->meta[i] - p[i]) / deviation;
            v[k] += g[i][k] * ray[i] / deviation;
        }
        ev += e[k] * v[k];
        vv += v[k] * v[k];
        ee += e[k] * e[k];
    }
    return ev >= 0 ? 0 : s->opacities[splat] * exp(-0.5 * (ee - ev * ev / vv));
}

static double distance_of(const scene *s, uint32_t splat)
{
    double sum = 0;
    for (uint32_t k = 0; k < 3; k++) {
        double d = (double)s->positions[3 * splat + k] - s->meta[k];
        sum += d * d;
    }
    return sqrt(sum);
}

/* Checks the part of the list for a tile: it must be in order, and have all splats that show in its
 * pixels. */
static void check_tile(const scene *s, const rlxvk_gaussian_splat_options *o, const sections *p,
                       uint32_t tile)
{
    uint32_t wide = p->parameters[3], first = p->ranges[2 * tile], end = p->ranges[2 * tile + 1];
    bool in[MOST] = {false};
    for (uint32_t i = first; i < end; i++) {
        assert_true(p->list[i] < s->count && p->valid[p->list[i]] == 1);
        assert_false(in[p->list[i]]);
        in[p->list[i]] = true;
        assert_true(i == first ||
                    distance_of(s, p->list[i - 1]) <= distance_of(s, p->list[i]) + 1e-6);
    }
    for (uint32_t k = 0; k < o->tile_size * o->tile_size; k++) {
        uint32_t x = tile % wide * o->tile_size + k % o->tile_size;
        uint32_t y = tile / wide * o->tile_size + k / o->tile_size;
        for (uint32_t i = 0; x < o->width && y < o->height && i < s->count; i++)
            if (p->valid[i] && !in[i] &&
                alpha_at(s, i, p->rays + 3 * ((size_t)y * o->width + x), (double)o->radius_scale) >
                    (double)o->alpha_cutoff + 1e-5)
                fail_msg("splat %u shows at %u, %u but is not in the list of tile %u", i, x, y,
                         tile);
    }
}

static void lists_hold_what_shows(void **state)
{
    static const uint32_t sizes[] = {5, 16};
    static scene s;
    (void)state;
    make_cloud(&s, 200);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rlxvk_gaussian_splat_options o = wave_options;
        size_t words;
        uint32_t entries = 0, visible = 0, tiles;
        o.tile_size = sizes[i];
        o.max_list_entries = 40000;
        o.min_axis_px = 0;
        float *y = draw(&s, &o, PREPARED, &words);
        sections p = sections_of(y, &o, s.count);
        tiles = p.parameters[3] * ((o.height + o.tile_size - 1) / o.tile_size);
        assert_int_equal(p.parameters[0], 64);
        assert_int_equal(p.parameters[2], sizes[i]);
        for (uint32_t tile = 0; tile < tiles; tile++) {
            check_tile(&s, &o, &p, tile);
            entries += p.ranges[2 * tile + 1] - p.ranges[2 * tile];
        }
        for (uint32_t k = 0; k < s.count; k++)
            visible += p.valid[k];
        assert_int_equal(p.parameters[10], entries);
        assert_true(visible > 150 && entries > visible);
        free(y);
    }
}

static void a_full_list_tells_and_keeps_the_nearest(void **state)
{
    static scene s;
    rlxvk_gaussian_splat_options o = wave_options;
    size_t words;
    (void)state;
    make_cloud(&s, 200);
    float *all = draw(&s, &o, PREPARED, &words);
    uint32_t entries = sections_of(all, &o, s.count).parameters[10];
    free(all);
    assert_true(entries < o.max_list_entries);
    o.max_list_entries = entries / 3;
    float *y = draw(&s, &o, PREPARED, &words);
    sections p = sections_of(y, &o, s.count);
    double farthest = 0;
    uint32_t last = 0, kept = 0, nearer = 0;
    assert_int_equal(p.parameters[10], entries);
    for (uint32_t tile = 0; tile < 16; tile++)
        kept += p.ranges[2 * tile + 1] - p.ranges[2 * tile];
    assert_int_equal(kept, o.max_list_entries);
    for (uint32_t i = 0; i < kept; i++)
        if (distance_of(&s, p.list[i]) > farthest)
            farthest = distance_of(&s, last = p.list[i]);
    for (uint32_t i = 0; i < s.count; i++) {
        bool listed = false;
        for (uint32_t k = 0; k < kept; k++)
            listed |= p.list[k] == i;
        nearer += p.valid[i] && !listed && i != last && distance_of(&s, i) < farthest - 1e-6 &&
                  fabs((double)s.positions[3 * i]) < 0.5 &&
                  fabs((double)s.positions[3 * i + 1]) < 0.5;
    }
    assert_int_equal(nearer, 0);
    free(y);
}

static void a_run_says_how_long_the_list_must_be(void **state)
{
    rlxvk_gaussian_splat_options o = wave_options;
    scene s;
    size_t words;
    unsigned entries = 0;
    (void)state;
    make_cloud(&s, 300);
    o.max_list_entries = 100;
    float *short_one = draw(&s, &o, LACKING, &words);
    const char *told = strstr(rlxvk_last_error(), "all tiles are ");
    assert_non_null(told);
    assert_int_equal(sscanf(told, "all tiles are %u", &entries), 1);
    float *in_two = draw(&s, &o, IN_TWO, &words);
    assert_memory_equal(short_one, in_two, words * sizeof *in_two);
    free(short_one);
    free(in_two);
    o.max_list_entries = entries - 1;
    free(draw(&s, &o, LACKING, &words));
    o.max_list_entries = entries;
    free(draw(&s, &o, RENDER, &words));
}

static void opaque_splats_hide_what_is_behind(void **state)
{
    scene s;
    size_t words;
    (void)state;
    make_wave(&s);
    s.count = 2;
    for (int k = 0; k < 3; k++) {
        s.positions[k] = s.positions[3 + k] = 0;
        s.scales[k] = s.scales[3 + k] = 0;
        s.colors[k] = 1;
        s.colors[3 + k] = 0;
    }
    s.positions[2] = -1; /* white behind black */
    s.opacities[0] = s.opacities[1] = 1;
    float *y = draw(&s, &wave_options, RENDER, &words);
    const float *middle = y + 4 * (64 * 32 + 32);
    assert_true(middle[0] < 1e-3f && middle[3] > 0.999f);
    free(y);
}

/* The memory held other values before. */
static void no_splats_leave_zeros(void **state)
{
    enum { WORDS = 1 << 16 };
    static float before[WORDS];
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_compile_options options = {.fusion = RLXVK_OFF, .reorder = RLXVK_OFF};
    scene s;
    (void)state;
    make_wave(&s);
    rlxvk_tensor x = rlxvk_exp(g, input(g, "x", RLXVK_SHAPE(WORDS)));
    rlxvk_graph_output(g, rlxvk_reduce_sum(g, x, (int32_t[]){0}, 1, false));
    rlxvk_tensor none = floats(g, RLXVK_SHAPE(0, 3), s.positions);
    const rlxvk_gaussian_splat_scene of = {none,
                                           none,
                                           floats(g, RLXVK_SHAPE(0, 4), s.rotations),
                                           floats(g, RLXVK_SHAPE(0), s.opacities),
                                           none,
                                           none,
                                           input(g, "meta", RLXVK_SHAPE(23))};
    rlxvk_tensor y = rlxvk_gaussian_splat_prepare(g, &of, &wave_options);
    size_t words = shape_numel(&graph_node(g, y.id - 1)->shape), wrong = 0;
    assert_in_range(words, 1, WORDS);
    rlxvk_graph_output(g, rlxvk_relu(g, y));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    float *got = calloc(words, sizeof *got);
    rlxvk_run_input in[] = {{"meta", s.meta, 23, RLXVK_F32}, {"x", before, WORDS, RLXVK_F32}};
    rlxvk_run_output to = {1, got, words, RLXVK_F32};
    expect_ok(rlxvk_run(e, in, 2, &to, 1));
    for (size_t i = 0; i < words; i++)
        wrong += got[i] == 1;
    assert_int_equal(wrong, 0);
    free(got);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_scene_has_its_pixels),
        cmocka_unit_test(two_steps_give_the_same_bits),
        cmocka_unit_test(tiles_do_not_show),
        cmocka_unit_test(no_splats_leave_zeros),
        cmocka_unit_test(order_does_not_show),
        cmocka_unit_test(lists_hold_what_shows),
        cmocka_unit_test(a_full_list_tells_and_keeps_the_nearest),
        cmocka_unit_test(a_run_says_how_long_the_list_must_be),
        cmocka_unit_test(opaque_splats_hide_what_is_behind),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
