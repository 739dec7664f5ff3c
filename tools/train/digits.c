/*
 * rlxvk train digits: learns 8 x 8 pictures of handwritten digits (UCI "Optical Recognition of
 * Handwritten Digits", E. Alpaydin and C. Kaynak 1998, CC BY 4.0). Every fifth picture is held back
 * for tests. The net has two convolutions, a 2 x 2 max pool and two dense layers. The test is a
 * second executable, which shares the parameters.
 */
#include "cli/clock.h"
#include "cli/output.h"
#include "conform/npy.h"
#include "system/program.h"
#include "train/job.h"

#include <math.h>
#include <string.h>

#define SIDE     8
#define PIXELS   (SIDE * SIDE)
#define CLASSES  10
#define HELD     5 /* one of 5 pictures is held back */
#define CHANNELS 32
#define HIDDEN   64
#define EPOCHS   12

typedef struct digits {
    const train_options *options;
    npy_array pixels, labels;
    uint32_t *order; /* of the pictures that it learns from */
    uint64_t learned, held;
    trainer trainer;
    rlxvk_graph *test_graph;
    rlxvk_executable *test;
    float *x, *y; /* a batch, or all pictures that are held back */
} digits;

/* ---- Pictures ---- */

/* Finds the folder of the pictures in a checkout or in an installation. */
static void find_folder(char *out, size_t size)
{
    snprintf(out, size, "test/data");
    if (system_may_read("test/data/digits.x.npy") == 0)
        return;
    char program[768] = "";
    if (!program_path(program, sizeof program))
        return;
    for (int up = 0; up < 2; up++) { /* removes the program's name, and bin */
        char *slash = strrchr(program, '/');
        if (!slash || (up && strcmp(slash + 1, "bin") != 0))
            return;
        *slash = 0;
    }
    snprintf(out, size, "%s/share/rlxvk", program);
}

static rlxvk_status read_file(const char *folder, const char *name, uint32_t rank, npy_array *out)
{
    char path[1024];
    rlxvk_status status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (system_may_read(path) != 0)
        return status_fail(RLXVK_E_FILE,
                           "'%s' cannot be read; name the folder of digits.x.npy and digits.y.npy "
                           "by --data",
                           path);
    TRY(npy_read(path, out));
    if (out->dtype != RLXVK_U8 || out->shape.rank != rank ||
        (rank == 2 && out->shape.dims[1] != PIXELS))
        TRY(status_fail(RLXVK_E_FILE, "%s is not of 8-bit numbers in %u dims", path, rank));
error:
    return status;
}

static rlxvk_status read_pictures(digits *d)
{
    rlxvk_status status;
    char found[1024];
    const char *folder = d->options->data;
    if (!folder) {
        find_folder(found, sizeof found);
        folder = found;
    }
    TRY(read_file(folder, "digits.x.npy", 2, &d->pixels));
    TRY(read_file(folder, "digits.y.npy", 1, &d->labels));
    uint64_t count = d->labels.numel;
    if ((uint64_t)d->pixels.shape.dims[0] != count || count < 2 * HELD)
        TRY(status_fail(RLXVK_E_FILE, "%s: %lld pictures and %llu labels", folder,
                        (long long)d->pixels.shape.dims[0], (unsigned long long)count));
    d->held = divide_up(count, HELD);
    d->learned = count - d->held;
    uint64_t rows = MAX(d->held, d->options->batch);
    d->order = memory_allocate(d->learned * sizeof *d->order);
    d->x = memory_allocate(rows * PIXELS * sizeof *d->x);
    d->y = memory_allocate(rows * sizeof *d->y);
    TRY(d->order && d->x && d->y ? RLXVK_OK : status_fail_memory("pictures"));
    for (uint32_t i = 0, next = 0; i < count; i++)
        if (i % HELD)
            d->order[next++] = i;
error:
    return status;
}

static void take_picture(digits *d, uint64_t row, uint32_t picture)
{
    for (uint32_t i = 0; i < PIXELS; i++)
        d->x[row * PIXELS + i] =
            ((const uint8_t *)d->pixels.data)[(uint64_t)picture * PIXELS + i] / 16.0f;
    d->y[row] = ((const uint8_t *)d->labels.data)[picture];
}

/* The Fisher-Yates shuffle. */
static void shuffle(digits *d)
{
    for (uint64_t i = d->learned; i-- > 1;) {
        uint64_t k = trainer_below(&d->trainer, i + 1);
        uint32_t kept = d->order[i];
        d->order[i] = d->order[k];
        d->order[k] = kept;
    }
}

/* ---- The net ---- */

typedef struct layer {
    const char *name;
    rlxvk_shape shape;
    double inputs; /* terms in the sum of one output: He et al. 2015 */
} layer;

static const layer layers[] = {{"conv1.w", {4, {CHANNELS, 1, 3, 3}}, 9},
                               {"conv1.b", {1, {CHANNELS}}, 0},
                               {"conv2.w", {4, {CHANNELS, CHANNELS, 3, 3}}, 9 * CHANNELS},
                               {"conv2.b", {1, {CHANNELS}}, 0},
                               {"dense1.w", {2, {CHANNELS * PIXELS / 4, HIDDEN}}, CHANNELS * 16},
                               {"dense1.b", {1, {HIDDEN}}, 0},
                               {"dense2.w", {2, {HIDDEN, CLASSES}}, HIDDEN},
                               {"dense2.b", {1, {CLASSES}}, 0}};

/* Logits [rows, 10] of x. p: the parameters of the layers. */
static rlxvk_tensor net(rlxvk_graph *g, rlxvk_tensor x, int64_t rows, const rlxvk_tensor *p)
{
    static const rlxvk_conv_options same = {.padding = {1, 1}};
    static const rlxvk_pool_options half = {.kernel = {2, 2}, .stride = {2, 2}};
    rlxvk_tensor h = rlxvk_reshape(g, x, RLXVK_SHAPE(rows, 1, SIDE, SIDE));
    h = rlxvk_relu(g, rlxvk_conv(g, h, p[0], p[1], &same));
    h = rlxvk_relu(g, rlxvk_conv(g, h, p[2], p[3], &same));
    h = rlxvk_reshape(g, rlxvk_pool_max(g, h, &half), RLXVK_SHAPE(rows, CHANNELS * PIXELS / 4));
    h = rlxvk_relu(g, rlxvk_add(g, rlxvk_matmul(g, h, p[4]), p[5]));
    return rlxvk_add(g, rlxvk_matmul(g, h, p[6]), p[7]);
}

static rlxvk_status build_training(digits *d, rlxvk_context *context,
                                   const rlxvk_compile_options *options)
{
    trainer *t = &d->trainer;
    rlxvk_graph *g = t->graph;
    rlxvk_tensor p[ARRAY_COUNT(layers)];
    int64_t batch = (int64_t)d->options->batch;
    for (size_t i = 0; i < ARRAY_COUNT(layers); i++)
        p[i] = trainer_param(t, layers[i].name, layers[i].shape,
                             layers[i].inputs ? sqrt(2 / layers[i].inputs) : 0, 0);
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, PIXELS));
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(batch));
    rlxvk_tensor losses = rlxvk_softmax_cross_entropy(g, net(g, x, batch, p), y);
    rlxvk_tensor loss = rlxvk_reduce_mean(g, losses, (int32_t[]){0}, 1, false);
    return trainer_compile(t, context, loss, options);
}

static rlxvk_status build_test(digits *d, rlxvk_context *context, rlxvk_compile_options options)
{
    rlxvk_tensor p[ARRAY_COUNT(layers)];
    int64_t rows = (int64_t)d->held;
    rlxvk_status status;
    TRY(rlxvk_graph_create(&d->test_graph));
    rlxvk_graph *g = d->test_graph;
    for (size_t i = 0; i < ARRAY_COUNT(layers); i++)
        p[i] = rlxvk_param(g, layers[i].name, RLXVK_F32, layers[i].shape);
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, PIXELS));
    rlxvk_graph_output(g, rlxvk_argmax(g, net(g, x, rows, p), 1, false));
    options.share_with = d->trainer.executable;
    TRY(rlxvk_compile(context, g, &options, &d->test));
error:
    return status;
}

/* ---- Runs ---- */

/* Pictures that do not fill a batch are left out of this epoch; the next one has another order. */
static rlxvk_status run_epoch(digits *d, double start, uint64_t *learned)
{
    trainer *t = &d->trainer;
    uint64_t batch = d->options->batch;
    rlxvk_status status = RLXVK_OK;
    const rlxvk_run_input inputs[] = {{.name = "x", .data = d->x, .length = batch * PIXELS},
                                      {.name = "y", .data = d->y, .length = batch}};
    shuffle(d);
    for (uint64_t first = 0; first + batch <= d->learned && t->step < t->steps && !train_stopped();
         first += batch) {
        for (uint64_t i = 0; i < batch; i++)
            take_picture(d, i, d->order[first + i]);
        TRY(trainer_step(t, inputs, ARRAY_COUNT(inputs)));
        *learned += batch;
        train_report(d->options, t, "images", (double)*learned, clock_seconds() - start);
    }
error:
    return status;
}

static rlxvk_status test_held(digits *d, uint64_t *out_right)
{
    rlxvk_run_input input = {.name = "x", .data = d->x, .length = d->held * PIXELS};
    int32_t *found = memory_allocate(d->held * sizeof *found);
    rlxvk_run_output output = {.index = 0, .buffer = found, .length = d->held, .dtype = RLXVK_I32};
    rlxvk_status status;
    *out_right = 0;
    TRY(found ? RLXVK_OK : status_fail_memory("results"));
    for (uint64_t i = 0; i < d->held; i++)
        take_picture(d, i, (uint32_t)(i * HELD));
    TRY(rlxvk_run(d->test, &input, 1, &output, 1));
    for (uint64_t i = 0; i < d->held; i++)
        *out_right += (float)found[i] == d->y[i];
error:
    memory_free(found);
    return status;
}

static void print_result(const digits *d, uint64_t right, double seconds, double images)
{
    double accuracy = 100.0 * (double)right / (double)d->held;
    print_progress(NULL);
    if (d->options->json)
        printf("{\"right\":%llu,\"held\":%llu,\"accuracy\":%.4f,\"seconds\":%.2f,"
               "\"images_per_second\":%.1f,\"steps\":%llu}\n",
               (unsigned long long)right, (unsigned long long)d->held, accuracy / 100, seconds,
               images / seconds, (unsigned long long)d->trainer.step);
    else
        printf("%llu of %llu held back told right (%.1f %%) after %llu steps, %.1f s (%.0f images "
               "a second)\n",
               (unsigned long long)right, (unsigned long long)d->held, accuracy,
               (unsigned long long)d->trainer.step, seconds, images / seconds);
}

static rlxvk_status learn(digits *d)
{
    trainer *t = &d->trainer;
    double start = clock_seconds();
    uint64_t learned = 0, right;
    rlxvk_status status = RLXVK_OK;
    while (t->step < t->steps && !train_stopped())
        TRY(run_epoch(d, start, &learned));
    double seconds = clock_seconds() - start;
    TRY(test_held(d, &right));
    print_result(d, right, seconds, (double)learned);
    if (d->options->save)
        TRY(trainer_save(t, d->options->save));
    if (d->options->curve)
        TRY(trainer_draw(t, "handwritten digits: loss of each step", d->options->curve));
error:
    return status;
}

static void digits_destroy(digits *d)
{
    npy_destroy(&d->pixels);
    npy_destroy(&d->labels);
    memory_free(d->order);
    memory_free(d->x);
    memory_free(d->y);
    rlxvk_executable_destroy(d->test);
    rlxvk_graph_destroy(d->test_graph);
    trainer_destroy(&d->trainer);
}

rlxvk_status train_digits(const train_options *o, rlxvk_context *context)
{
    digits d = {.options = o};
    rlxvk_compile_options options = {.precision = o->precision};
    rlxvk_status status;
    TRY(read_pictures(&d));
    if (o->batch > d.learned)
        TRY(status_fail(RLXVK_E_ATTR, "--batch %llu: there are %llu pictures to learn from",
                        (unsigned long long)o->batch, (unsigned long long)d.learned));
    TRY(trainer_create(&d.trainer, o->seed));
    d.trainer.options.learning_rate = o->rate;
    d.trainer.steps = (o->epochs || o->resume ? o->epochs : EPOCHS) * (d.learned / o->batch);
    TRY(build_training(&d, context, &options));
    TRY(build_test(&d, context, options));
    if (o->resume)
        TRY(trainer_load(&d.trainer, o->resume));
    TRY(learn(&d));
error:
    digits_destroy(&d);
    return status;
}
