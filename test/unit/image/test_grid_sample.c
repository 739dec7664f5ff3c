/*
 * grid_sample on the device, for points that are exactly halfway between cells, along each axis.
 * The reference allows two answers here, but the nearest cell must be the even one, even if the
 * driver's roundEven is wrong.
 */
#include "base/base.h"
#include "support/harness.h"

#include <rlxvk_ops_vision.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { CELLS = 9, HALVES = CELLS - 1 };

/* The shape of an image that has CELLS cells along `axis` and one along each other spatial axis. */
static rlxvk_shape line_of(uint32_t axes, uint32_t axis)
{
    rlxvk_shape s = {.rank = 2 + axes};
    for (uint32_t i = 0; i < s.rank; i++)
        s.dims[i] = 1;
    s.dims[2 + axis] = CELLS;
    return s;
}

static void expect_even(uint32_t axes, uint32_t axis)
{
    const rlxvk_grid_options o = {.mode = RLXVK_GRID_NEAREST, .align_corners = true};
    float x[CELLS], grid[HALVES * 3] = {0}, y[HALVES] = {0};
    rlxvk_shape points = {.rank = 2 + axes, .dims = {1, 1, 1, 1, 1}};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    points.dims[axes] = HALVES;
    points.dims[axes + 1] = axes;
    for (int i = 0; i < CELLS; i++)
        x[i] = (float)i;
    for (uint32_t i = 0; i < HALVES; i++) /* position (v + 1) 4, which is exact */
        grid[axes * i + axes - 1 - axis] = ((float)i + 0.5f) / 4 - 1;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor image = rlxvk_input(g, "x", RLXVK_F32, line_of(axes, axis));
    rlxvk_tensor at = rlxvk_input(g, "grid", RLXVK_F32, points);
    rlxvk_graph_output(g, rlxvk_grid_sample(g, image, at, &o));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    const rlxvk_run_input inputs[] = {{"x", x, CELLS, RLXVK_F32},
                                      {"grid", grid, HALVES * (size_t)axes, RLXVK_F32}};
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = HALVES};
    expect_ok(rlxvk_run(e, inputs, 2, &out, 1));
    for (int i = 0; i < HALVES; i++)
        if (y[i] != (float)(i + i % 2))
            fail_msg("axis %u of %u: %d.5 is nearest to %g", axis, axes, i, (double)y[i]);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void halves_go_to_the_even_cell(void **state)
{
    (void)state;
    for (uint32_t axes = 2; axes <= 3; axes++)
        for (uint32_t axis = 0; axis < axes; axis++)
            expect_even(axes, axis);
}

/* If one of three axes has a single cell, the result must be that of two axes, bit for bit. */
static void a_single_plane_is_an_image(void **state)
{
    enum { POINTS = 40 };
    const rlxvk_grid_mode modes[] = {RLXVK_GRID_BILINEAR, RLXVK_GRID_NEAREST};
    float x[2 * 5 * 7], flat[2 * POINTS], deep[3 * POINTS] = {0}, y[2][2 * POINTS];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(x); i++)
        x[i] = (float)(i * 37 % 101) / 7;
    for (size_t i = 0; i < POINTS; i++)
        for (size_t k = 0; k < 2; k++)
            deep[3 * i + k] = flat[2 * i + k] = (float)((2 * i + k) * 29 % 97) / 32 - 1.5f;
    for (size_t m = 0; m < ARRAY_COUNT(modes); m++) {
        const rlxvk_grid_options o = {.mode = modes[m], .padding = RLXVK_GRID_REFLECTION};
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor image = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 2, 5, 7));
        rlxvk_tensor stack = rlxvk_reshape(g, image, RLXVK_SHAPE(1, 2, 1, 5, 7));
        rlxvk_tensor two = rlxvk_input(g, "flat", RLXVK_F32, RLXVK_SHAPE(1, 4, 10, 2));
        rlxvk_tensor three = rlxvk_input(g, "deep", RLXVK_F32, RLXVK_SHAPE(1, 1, 4, 10, 3));
        rlxvk_graph_output(g, rlxvk_grid_sample(g, image, two, &o));
        rlxvk_graph_output(g, rlxvk_grid_sample(g, stack, three, &o));
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        const rlxvk_run_input inputs[] = {{"x", x, ARRAY_COUNT(x), RLXVK_F32},
                                          {"flat", flat, ARRAY_COUNT(flat), RLXVK_F32},
                                          {"deep", deep, ARRAY_COUNT(deep), RLXVK_F32}};
        const rlxvk_run_output outputs[] = {{.index = 0, .buffer = y[0], .length = 2 * POINTS},
                                            {.index = 1, .buffer = y[1], .length = 2 * POINTS}};
        expect_ok(rlxvk_run(e, inputs, 3, outputs, 2));
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_go_to_the_even_cell),
        cmocka_unit_test(a_single_plane_is_an_image),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
