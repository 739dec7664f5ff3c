/*
 * The log-mel spectrogram of a chirp. It takes the spectra of frames under a Hann window, sums
 * their power in bands of equal width on the mel scale, and takes logarithms. The picture,
 * spectrogram.png, has time to the right and the highest band on top. In every frame the loudest
 * band must be the one that has the pitch.
 */
#include "picture.h"

#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>

enum {
    RATE = 16000,
    SAMPLES = 3 * RATE,
    LENGTH = 400,
    HOP = 160,
    N_FFT = 512,
    MELS = 80,
    FRAMES = 1 + (SAMPLES - LENGTH) / HOP,
    WIDE = 3, /* pixels of a frame; HIGH: of a band */
    HIGH = 4
};

static const double pi = 3.14159265358979323846;
static float x[SAMPLES], bands[FRAMES][MELS];
static unsigned char picture[MELS * HIGH][FRAMES * WIDE][3];

/* The pitch in hertz. It rises by 1.6 octaves a second. */
static double frequency(double seconds)
{
    return 200 * exp2(1.6 * seconds);
}

/* The phase is the integral of the frequency. An overtone and some noise are added. */
static void make_chirp(void)
{
    unsigned state = 1;
    for (int n = 0; n < SAMPLES; n++) {
        double t = (double)n / RATE, phase = 2 * pi * frequency(t) / (1.6 * log(2));
        state = state * 1664525u + 1013904223u;
        x[n] = (float)(sin(phase) + 0.1 * sin(1.5 * phase) + 0.002 * ((state >> 8) * 0x1p-23 - 1));
    }
}

static void build(rlxvk_graph *g)
{
    rlxvk_stft_options frames = {.length = LENGTH, .hop = HOP, .n_fft = N_FFT};
    rlxvk_mel_options mels = {
        .n_mels = MELS, .n_fft = N_FFT, .rate = RATE, .scale = RLXVK_MEL_HTK, .unnormalized = true};
    rlxvk_tensor signal = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(SAMPLES));
    rlxvk_tensor spectra = rlxvk_stft(g, signal, rlxvk_signal_hann(g, LENGTH, true), &frames);
    rlxvk_tensor filters = rlxvk_signal_mel_filterbank(g, &mels);
    rlxvk_graph_output(g, rlxvk_log_mel(g, spectra, filters, RLXVK_LOG_MEL_CLIP));
}

/* O'Shaughnessy's mel scale. band_of gives the place on it in bands: an integer is the middle of a
 * band. */
static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

static double band_of(double hertz)
{
    return mel_of(hertz) / mel_of(RATE / 2.0) * (MELS + 1) - 1;
}

/* A color between black (0) and light yellow (1), through violet and orange. */
static void color(double v, unsigned char *rgb)
{
    static const double stops[5][3] = {
        {0, 0, 4}, {80, 18, 123}, {182, 54, 121}, {251, 136, 97}, {252, 253, 191}};
    double at = 4 * fmin(fmax(v, 0), 1);
    int low = at < 3 ? (int)at : 3;
    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned char)(stops[low][c] + (at - low) * (stops[low + 1][c] - stops[low][c]));
}

static void draw(void)
{
    float least = bands[0][0], most = least;
    for (int f = 0; f < FRAMES; f++)
        for (int m = 0; m < MELS; m++) {
            least = fminf(least, bands[f][m]);
            most = fmaxf(most, bands[f][m]);
        }
    for (int row = 0; row < MELS * HIGH; row++)
        for (int column = 0; column < FRAMES * WIDE; column++)
            color((bands[column / WIDE][MELS - 1 - row / HIGH] - least) / (most - least),
                  picture[row][column]);
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {.name = "x", .data = x, .length = SAMPLES};
    rlxvk_run_output out = {.buffer = bands, .length = FRAMES * MELS};
    double worst = MELS;
    int drawn = 0;
    make_chirp();
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    build(g);
    if (rlxvk_compile(context, g, NULL, &e) || rlxvk_run(e, &in, 1, &out, 1))
        goto error;
    worst = 0;
    for (int f = 0; f < FRAMES; f++) {
        int loudest = 0;
        for (int m = 0; m < MELS; m++)
            loudest = bands[f][m] > bands[f][loudest] ? m : loudest;
        double wanted = band_of(frequency((f * HOP + LENGTH / 2.0) / RATE));
        worst = fmax(worst, fabs(loudest - wanted));
    }
    printf("%d frames, %d bands: the loudest is at most %.2f bands off the pitch\n", FRAMES, MELS,
           worst);
    draw();
    drawn = picture_write("spectrogram.png", FRAMES * WIDE, MELS * HIGH, &picture[0][0][0]);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return !drawn || worst > 1.5;
}
