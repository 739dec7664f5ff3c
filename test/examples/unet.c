/*
 * A U-Net for images of any size that is a multiple of 4, because height and width are each 4 times
 * a symbol. It goes two levels down and up again. On the way up, the features of each level are
 * joined with those from below. A size is compiled when it first comes up. The weights are uploaded
 * once.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>
#include <stdio.h>
#include <string.h>

enum { CHANNELS = 4, LEVELS = 2, SIZES = 3, MOST = 32 * 24, CONVS = 2 * LEVELS + 2, TAPS = 9 };

static const char *const names[CONVS] = {"down.0", "down.1", "bottom", "up.1", "up.0", "out"};
static const int widths[CONVS][2] = {{1, CHANNELS},
                                     {CHANNELS, 2 * CHANNELS},
                                     {2 * CHANNELS, 4 * CHANNELS},
                                     {6 * CHANNELS, 2 * CHANNELS},
                                     {3 * CHANNELS, CHANNELS},
                                     {CHANNELS, 1}};
static float weights[CONVS][6 * CHANNELS * 4 * CHANNELS * TAPS];

/* A 3x3 convolution with zero padding, with ReLU except for the last one. */
static rlxvk_tensor conv(rlxvk_graph *g, rlxvk_tensor x, int index)
{
    const rlxvk_conv_options same = {.padding = {1, 1}};
    rlxvk_shape shape = RLXVK_SHAPE(widths[index][1], widths[index][0], 3, 3);
    x = rlxvk_conv(g, x, rlxvk_param(g, names[index], RLXVK_F32, shape), RLXVK_NONE, &same);
    return index + 1 < CONVS ? rlxvk_relu(g, x) : x;
}

static rlxvk_status build(rlxvk_graph *g)
{
    const rlxvk_pool_options half = {.kernel = {2, 2}};
    int64_t height = rlxvk_dim_multiply(g, rlxvk_symbol(RLXVK_USER_SYMBOL), 4);
    int64_t width = rlxvk_dim_multiply(g, rlxvk_symbol(RLXVK_USER_SYMBOL + 1), 4);
    rlxvk_tensor x = rlxvk_input(g, "image", RLXVK_F32, RLXVK_SHAPE(1, 1, height, width));
    rlxvk_tensor kept[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        kept[i] = conv(g, x, i);
        x = rlxvk_pool_max(g, kept[i], &half);
    }
    x = conv(g, x, LEVELS);
    for (int i = LEVELS - 1; i >= 0; i--) {
        x = rlxvk_concat(g, (rlxvk_tensor[]){kept[i], rlxvk_resize_nearest2x(g, x)}, 2, 1);
        x = conv(g, x, CONVS - 2 - i);
    }
    rlxvk_graph_output(g, conv(g, x, CONVS - 1));
    return rlxvk_graph_status(g);
}

/* ---- The same in plain C ---- */

typedef struct image {
    int channels, height, width;
    float data[6 * CHANNELS * MOST];
} image;

static float *pixel(image *m, int c, int y, int x)
{
    return &m->data[(c * m->height + y) * m->width + x];
}

static void convolve(image *m, int index)
{
    static image out;
    out = (image){.channels = widths[index][1], .height = m->height, .width = m->width};
    for (int c = 0; c < out.channels; c++)
        for (int y = 0; y < m->height; y++)
            for (int x = 0; x < m->width; x++) {
                double sum = 0;
                for (int k = 0; k < m->channels * TAPS; k++) {
                    int v = y + k % TAPS / 3 - 1, u = x + k % 3 - 1;
                    if (v >= 0 && v < m->height && u >= 0 && u < m->width)
                        sum += (double)*pixel(m, k / TAPS, v, u) *
                               weights[index][c * m->channels * TAPS + k];
                }
                *pixel(&out, c, y, x) = (float)(index + 1 < CONVS ? fmax(sum, 0) : sum);
            }
    *m = out;
}

/* Without `before`, halves the image by the maximum of 2x2 pixels. Otherwise doubles it and appends
 * it to the channels of `before`. */
static void resize(image *m, image *before)
{
    static image out;
    int above = before ? before->channels : 0;
    out = (image){.channels = above + m->channels,
                  .height = before ? before->height : m->height / 2,
                  .width = before ? before->width : m->width / 2};
    for (int c = 0; c < out.channels; c++)
        for (int y = 0; y < out.height; y++)
            for (int x = 0; x < out.width; x++)
                *pixel(&out, c, y, x) =
                    c < above ? *pixel(before, c, y, x)
                    : before
                        ? *pixel(m, c - above, y / 2, x / 2)
                        : fmaxf(fmaxf(*pixel(m, c, 2 * y, 2 * x), *pixel(m, c, 2 * y, 2 * x + 1)),
                                fmaxf(*pixel(m, c, 2 * y + 1, 2 * x),
                                      *pixel(m, c, 2 * y + 1, 2 * x + 1)));
    *m = out;
}

static void expect(image *m)
{
    static image kept[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        convolve(m, i);
        kept[i] = *m;
        resize(m, NULL);
    }
    convolve(m, LEVELS);
    for (int i = LEVELS - 1; i >= 0; i--) {
        resize(m, &kept[i]);
        convolve(m, CONVS - 2 - i);
    }
    convolve(m, CONVS - 1);
}

int main(void)
{
    static const int sizes[SIZES][2] = {{16, 16}, {32, 24}, {16, 16}};
    static float y[MOST];
    static image m;
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_cached_bindings_report programs;
    int right = 0, wanted = 0;
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g) || build(g) ||
        rlxvk_compile(context, g, NULL, &e))
        goto error;
    for (int i = 0; i < CONVS; i++) {
        int length = widths[i][0] * widths[i][1] * TAPS;
        for (int k = 0; k < length; k++)
            weights[i][k] = 0.3f * sinf((float)(k * k % 1009 + i));
        if (rlxvk_set_param(e, names[i], weights[i], (size_t)length))
            goto error;
    }
    for (int s = 0; s < SIZES; s++) {
        int height = sizes[s][0], width = sizes[s][1], pixels = height * width;
        const rlxvk_binding bindings[] = {{RLXVK_USER_SYMBOL, height / 4},
                                          {RLXVK_USER_SYMBOL + 1, width / 4}};
        m = (image){.channels = 1, .height = height, .width = width};
        for (int i = 0; i < pixels; i++)
            m.data[i] = sinf((float)(i * i % 1013));
        const rlxvk_run_input in = {.name = "image", .data = m.data, .length = (size_t)pixels};
        const rlxvk_run_output out = {.buffer = y, .length = (size_t)pixels};
        if (rlxvk_bind_symbols(e, bindings, 2) || rlxvk_run(e, &in, 1, &out, 1))
            goto error;
        expect(&m);
        for (int i = 0; i < pixels; i++)
            right += fabsf(y[i] - m.data[i]) <= 1e-4f * fmaxf(1, fabsf(m.data[i]));
        wanted += pixels;
        printf("%dx%d: the last pixel is %f\n", height, width, y[pixels - 1]);
    }
    rlxvk_executable_cached_bindings(e, &programs);
    printf("%d of %d pixels are right; %u sizes were compiled\n", right, wanted, programs.members);
    right += programs.members == SIZES - 1;
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right == 0 || right != wanted + 1;
}
