/*
 * Draws handwritten digits in the plane, so that similar ones lie together. The device finds the 15
 * nearest neighbours of each digit. Then each gets a point of the plane, at first a random one.
 * Gradient descent pulls points to their neighbours and pushes them away from others. The result is
 * neighbours.png, with one color for each digit. Run it as ./neighbours [FOLDER], where FOLDER has
 * digits.x.npy and digits.y.npy.
 */
#include "picture.h"

#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS = 1797,
    DIMS = 64,
    NEAR = 15,
    OTHERS = 5, /* random points that push each point in a step */
    STEPS = 400,
    SIDE = 700
};

static float x[POINTS][DIMS], labels[POINTS], place[POINTS][2];
static int32_t found[POINTS][NEAR + 1]; /* the first is the point itself */
static float distances[POINTS][NEAR + 1];
static float near[POINTS][NEAR], weights[POINTS][NEAR], others[POINTS][OTHERS];
static unsigned char picture[SIDE][SIDE][3];

static double uniform(void)
{
    static unsigned state = 7;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) * 0x1p-24;
}

/* ---- Files (NPY): a header, then unsigned bytes or little-endian floats ---- */

static int read_array(const char *folder, const char *name, float *out, size_t count)
{
    char path[512], header[10], text[512] = "";
    unsigned char byte;
    size_t got = 0, length;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    if (fread(header, 1, 10, file) == 10) {
        length = (unsigned char)header[8] + 256u * (unsigned char)header[9];
        if (length < sizeof text && fread(text, 1, length, file) == length) {
            if (strstr(text, "'<f4'"))
                got = fread(out, sizeof *out, count, file);
            else if (strstr(text, "u1'"))
                while (got < count && fread(&byte, 1, 1, file) == 1)
                    out[got++] = byte;
        }
    }
    fclose(file);
    if (got != count)
        fprintf(stderr, "%s: %zu of %zu numbers could be read\n", path, got, count);
    return got == count;
}

static int read_digits(const char *folder)
{
    const char *const folders[] = {folder, "test/data", "../data", "../../test/data"};
    for (int i = 0; i < 4; i++)
        if (folders[i] && read_array(folders[i], "digits.x.npy", &x[0][0], POINTS * DIMS))
            return read_array(folders[i], "digits.y.npy", labels, POINTS);
    fprintf(stderr, "digits.x.npy is nowhere to be found; name its folder\n");
    return 0;
}

/* ---- Neighbours ---- */

static rlxvk_status find_neighbours(rlxvk_context *context)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {.name = "x", .data = x, .length = POINTS * DIMS};
    rlxvk_run_output out[] = {
        {.index = 0, .buffer = distances, .length = POINTS * (NEAR + 1)},
        {.index = 1, .buffer = found, .length = POINTS * (NEAR + 1), .dtype = RLXVK_I32}};
    rlxvk_status status = rlxvk_graph_create(&g);
    if (!status) {
        rlxvk_tensor points = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(POINTS, DIMS)), which;
        rlxvk_graph_output(g, rlxvk_knn(g, points, points, NEAR + 1, RLXVK_METRIC_L2, &which));
        rlxvk_graph_output(g, which);
        status = rlxvk_compile(context, g, NULL, &e);
    }
    if (!status)
        status = rlxvk_run(e, &in, 1, out, 2);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

/* Weights of the neighbours: e^(-(d - nearest) / s). For each point, s is such that its weights add
 * up to log2 of the number of neighbours (McInnes, Healy and Melville, "UMAP", 2018). */
static void weigh(void)
{
    for (int i = 0; i < POINTS; i++) {
        int count = 0;
        float d[NEAR];
        for (int k = 0; k <= NEAR && count < NEAR; k++)
            if (found[i][k] != i) {
                near[i][count] = (float)found[i][k];
                d[count++] = distances[i][k];
            }
        double low = 0, high = 1000;
        for (int step = 0; step < 40; step++) {
            double s = (low + high) / 2, sum = 0;
            for (int k = 0; k < NEAR; k++)
                sum += weights[i][k] = (float)exp(-(d[k] - d[0]) / s);
            *(sum > log2(NEAR) ? &high : &low) = s;
        }
    }
}

/* ---- The plane ---- */

/* Squared distances from each point to the points `which`. */
static rlxvk_tensor squares(rlxvk_graph *g, rlxvk_tensor p, rlxvk_tensor which)
{
    rlxvk_tensor own = rlxvk_reshape(g, p, RLXVK_SHAPE(POINTS, 1, 2));
    rlxvk_tensor off = rlxvk_sub(g, rlxvk_gather(g, p, which, 0), own);
    return rlxvk_reduce_sum(g, rlxvk_mul(g, off, off), (int32_t[]){2}, 1, false);
}

/* Builds one step of gradient descent. The loss is the sum of w log(1 + d^2) over neighbours plus
 * the sum of log(1 + 1 / d^2) over other points. */
static void build_step(rlxvk_graph *g)
{
    const float small = 1e-3f, numbers[] = {0, 1};
    rlxvk_tensor p = rlxvk_param(g, "p", RLXVK_F32, RLXVK_SHAPE(POINTS, 2)), gradient;
    rlxvk_tensor schedule = rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3));
    rlxvk_tensor from = rlxvk_input(g, "others", RLXVK_F32, RLXVK_SHAPE(POINTS, OTHERS));
    rlxvk_shape shape = RLXVK_SHAPE(POINTS, NEAR);
    rlxvk_tensor to = rlxvk_constant(g, RLXVK_F32, shape, near, sizeof near);
    rlxvk_tensor w = rlxvk_constant(g, RLXVK_F32, shape, weights, sizeof weights);
    rlxvk_tensor apart = squares(g, p, from);
    rlxvk_tensor floor = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &small, sizeof small);
    rlxvk_tensor one = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), numbers + 1, sizeof *numbers);
    rlxvk_tensor pull = rlxvk_mul(g, w, rlxvk_log1p(g, squares(g, p, to)));
    rlxvk_tensor push = rlxvk_log1p(g, rlxvk_div(g, one, rlxvk_add(g, apart, floor)));
    rlxvk_tensor loss = rlxvk_add(g, rlxvk_reduce_sum(g, pull, (int32_t[]){0, 1}, 2, false),
                                  rlxvk_reduce_sum(g, push, (int32_t[]){0, 1}, 2, false));
    rlxvk_grad(g, loss, RLXVK_NONE, &p, 1, &gradient);
    rlxvk_adamw_all(g, &p, &gradient, 1, &(rlxvk_adamw_options){.beta2 = 0.99f},
                    &(rlxvk_optimizer_data){.schedule = schedule});
    rlxvk_graph_output(g, loss);
}

static rlxvk_status embed(rlxvk_context *context)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float schedule[3], loss;
    rlxvk_run_input in[] = {{.name = "schedule", .data = schedule, .length = 3},
                            {.name = "others", .data = others, .length = POINTS * OTHERS}};
    rlxvk_run_output out = {.buffer = &loss, .length = 1};
    rlxvk_status status = rlxvk_graph_create(&g);
    if (!status) {
        build_step(g);
        status = rlxvk_compile(context, g, NULL, &e);
    }
    if (!status)
        status = rlxvk_set_param(e, "p", &place[0][0], POINTS * 2);
    for (int step = 1; step <= STEPS && !status; step++) {
        schedule[0] = (float)(0.5 * (1 - (step - 1.0) / STEPS));
        schedule[1] = (float)(1 - pow(0.9, step));
        schedule[2] = (float)(1 - pow(0.99, step));
        for (int i = 0; i < POINTS * OTHERS; i++)
            others[i / OTHERS][i % OTHERS] = (float)floor(uniform() * POINTS);
        status = rlxvk_run(e, in, 2, &out, 1);
    }
    if (!status)
        status = rlxvk_read_param(e, "p", &place[0][0], POINTS * 2);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

/* The share of points whose nearest point in the plane is the same digit. */
static double agreement(void)
{
    int same = 0;
    for (int i = 0; i < POINTS; i++) {
        double least = INFINITY;
        int nearest = 0;
        for (int j = 0; j < POINTS; j++) {
            double d = hypot((double)place[i][0] - place[j][0], (double)place[i][1] - place[j][1]);
            if (j != i && d < least) {
                least = d;
                nearest = j;
            }
        }
        same += labels[i] == labels[nearest];
    }
    return (double)same / POINTS;
}

static void draw(void)
{
    static const unsigned char colors[10][3] = {{31, 119, 180},  {255, 127, 14},  {44, 160, 44},
                                                {214, 39, 40},   {148, 103, 189}, {140, 86, 75},
                                                {227, 119, 194}, {127, 127, 127}, {188, 189, 34},
                                                {23, 190, 207}};
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < 2; k++) {
            low[k] = fminf(low[k], place[i][k]);
            high[k] = fmaxf(high[k], place[i][k]);
        }
    memset(picture, 255, sizeof picture);
    for (int i = 0; i < POINTS; i++) {
        int at[2];
        for (int k = 0; k < 2; k++)
            at[k] = 10 + (int)((SIDE - 20) * (place[i][k] - low[k]) / (high[k] - low[k]));
        for (int d = 0; d < 25; d++)
            memcpy(picture[at[1] + d / 5 - 2][at[0] + d % 5 - 2], colors[(int)labels[i] % 10], 3);
    }
}

int main(int argc, char **argv)
{
    rlxvk_context *context = NULL;
    double before, after = 0;
    if (!read_digits(argc > 1 ? argv[1] : NULL))
        return 1;
    for (int i = 0; i < POINTS * 2; i++)
        place[i / 2][i % 2] = (float)(20 * uniform() - 10);
    before = agreement();
    if (rlxvk_context_create(NULL, &context) || find_neighbours(context))
        goto error;
    weigh();
    if (embed(context))
        goto error;
    after = agreement();
    printf("nearest in the plane is the same digit: %.3f before, %.3f after\n", before, after);
    draw();
    if (!picture_write("neighbours.png", SIDE, SIDE, &picture[0][0][0]))
        after = 0;
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_context_destroy(context);
    return after < 0.9;
}
