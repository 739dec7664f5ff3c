/*
 * A short-time Fourier transform. A chirp is cut into frames under a Hann window. For each frame
 * one run computes the power spectrum and finds its largest bin. The peaks climb because the pitch
 * does.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>

enum { SAMPLES = 8192, LENGTH = 512, HOP = 256, BINS = LENGTH / 2 + 1 };
enum { FRAMES = 1 + (SAMPLES - LENGTH) / HOP };

static const double pi = 3.14159265358979323846;
static float x[SAMPLES], power[FRAMES][BINS];
static int32_t peaks[FRAMES];

static void build(rlxvk_graph *g)
{
    rlxvk_stft_options options = {.length = LENGTH, .hop = HOP};
    rlxvk_tensor signal = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(SAMPLES)), im;
    rlxvk_tensor spectrum = rlxvk_stft(g, signal, rlxvk_signal_hann(g, LENGTH, true), &options);
    rlxvk_tensor re = rlxvk_fft_split(g, spectrum, &im);
    rlxvk_tensor density = rlxvk_psd(g, re, im, LENGTH);
    rlxvk_graph_output(g, density);
    rlxvk_graph_output(g, rlxvk_argmax(g, density, -1, false));
}

/* The power of bin `k` of frame `f`, by the definition. */
static double expected(int f, int k)
{
    double re = 0, im = 0;
    for (int n = 0; n < LENGTH; n++) {
        double v = x[f * HOP + n] * (1 - cos(2 * pi * n / LENGTH)) / 2;
        re += v * cos(2 * pi * (n * k % LENGTH) / LENGTH);
        im -= v * sin(2 * pi * (n * k % LENGTH) / LENGTH);
    }
    return (re * re + im * im) / LENGTH;
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *executable = NULL;
    rlxvk_run_input in = {.name = "x", .data = x, .length = SAMPLES};
    rlxvk_run_output out[] = {{.index = 0, .buffer = power, .length = FRAMES * BINS},
                              RLXVK_RUN_OUTPUT(1, peaks)};
    int right = 0;
    for (int n = 0; n < SAMPLES; n++)
        x[n] = (float)sin(2 * pi * (0.02 + 0.2 * n / SAMPLES) * n);
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    build(g);
    if (rlxvk_compile(context, g, NULL, &executable) || rlxvk_run(executable, &in, 1, out, 2))
        goto error;
    for (int f = 0; f < FRAMES; f++) {
        int peak = 0, close = 0;
        for (int k = 0; k < BINS; k++) {
            peak = power[f][k] > power[f][peak] ? k : peak;
            close += fabs(power[f][k] - expected(f, k)) < 1e-4;
        }
        right += close == BINS && peaks[f] == peak;
        if (f % 10 == 0)
            printf("frame %2d: loudest at %.3f of the sampling rate\n", f,
                   (double)peaks[f] / LENGTH);
    }
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executable);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right != FRAMES;
}
