/*
 * The shape of a tile: the radices of its stages, the threads of a row, the rows of a workgroup,
 * and the gaps between results that stages exchange. Pure.
 */
#include "op/spectral/fft.h"

#include <string.h>

#define LARGEST_RADIX 16

/* ---- Stages ---- */

/* Finds the fewest radices, none above `most`, in falling order. Of equally few, those with the
 * largest first. */
static bool find_radices(uint32_t n, uint32_t most, uint32_t left, uint8_t *out, uint32_t *count)
{
    bool found = n <= most;
    if (found) {
        out[0] = (uint8_t)n;
        *count = 1;
    }
    for (uint32_t radix = MIN(most, n); radix > 1 && left > 1 && n > most; radix--) {
        uint8_t rest[FFT_TILE_STAGES];
        uint32_t stages;
        if (n % radix || !find_radices(n / radix, radix, left - 1, rest, &stages))
            continue;
        if (found && stages + 1 >= *count)
            continue;
        found = true;
        out[0] = (uint8_t)radix;
        memcpy(out + 1, rest, stages);
        *count = stages + 1;
    }
    return found;
}

/* Splits a power of two into radices of at most 8, as few and as equal as possible. */
static bool find_equal_radices(uint32_t n, uint8_t *out, uint32_t *count)
{
    uint32_t bits = 0;
    while (1u << bits < n)
        bits++;
    *count = MAX((uint32_t)divide_up(bits, 3), 1);
    for (uint32_t i = 0; i < *count && *count <= FFT_TILE_STAGES; i++)
        out[i] = (uint8_t)(1u << (bits / *count + (i < bits % *count)));
    return *count <= FFT_TILE_STAGES;
}

/* Large radices go to both ends, because these access memory. */
static bool choose_radices(const fft_class *c, fft_tile *t)
{
    uint32_t most = MIN(c->held, LARGEST_RADIX);
    if (c->binary && !find_equal_radices(t->n, t->radices, &t->stages))
        return false;
    while (!c->binary && !find_radices(t->n, most, FFT_TILE_STAGES, t->radices, &t->stages))
        if (++most > LARGEST_RADIX)
            return false;
    if (t->stages > 2) {
        uint8_t second = t->radices[1];
        memmove(t->radices + 1, t->radices + 2, t->stages - 2);
        t->radices[t->stages - 1] = second;
    }
    return true;
}

/* The threads of a row, if none holds more than `held` points, or one butterfly. */
static uint32_t lanes_of(const fft_tile *t, uint32_t held)
{
    uint32_t lanes = 1;
    for (uint32_t i = 0; i < t->stages; i++) {
        uint32_t each = MAX(held / t->radices[i], 1);
        lanes = MAX(lanes, (uint32_t)divide_up(t->n / t->radices[i], each));
    }
    return lanes;
}

/* ---- Exchanges ---- */

#define BANKS    32
#define MOST_GAP 31

typedef struct exchange {
    uint32_t ns, radix, next; /* from a stage of `radix`, with ns points done before, to `next` */
} exchange;

/* How often the most used bank is accessed if threads write one result each, or read one point
 * each. */
static uint32_t turns_of(const fft_tile *t, const exchange *e, uint32_t gap, uint32_t pitch,
                         bool get)
{
    uint32_t group = e->ns * e->radix, most = 0, count[BANKS] = {0};
    for (uint32_t thread = 0; thread < MIN(BANKS, t->rows * t->lanes); thread++) {
        uint32_t b = t->along ? thread % t->lanes : thread / t->rows;
        uint32_t row = t->along ? thread / t->lanes : thread % t->rows;
        uint32_t at = get ? b + b / group * gap : b / e->ns * (group + gap) + b % e->ns;
        at = t->along ? at + row * pitch : at * t->rows + row;
        if (b < t->n / (get ? e->next : e->radix)) {
            uint32_t turn = ++count[at % BANKS];
            most = MAX(most, turn);
        }
    }
    return most;
}

/* Chooses the gaps with the fewest bank conflicts, for rows of `pitch` places. Of equally good
 * gaps, the smallest. */
static uint32_t choose_gaps(fft_tile *t, uint32_t pitch, uint32_t *places)
{
    uint32_t sum = 0;
    *places = t->n;
    for (uint32_t i = 0, ns = 1; i + 1 < t->stages; ns *= t->radices[i++]) {
        exchange e = {ns, t->radices[i], t->radices[i + 1]};
        uint32_t best = UINT32_MAX, between = t->n / (ns * e.radix) - 1;
        for (uint32_t gap = 0; gap <= MOST_GAP && t->n + between * gap <= pitch; gap++) {
            uint32_t turns = turns_of(t, &e, gap, pitch, false) + turns_of(t, &e, gap, pitch, true);
            if (turns >= best)
                continue;
            best = turns;
            t->gaps[i] = (uint8_t)gap;
        }
        sum += best;
        *places = MAX(*places, t->n + between * t->gaps[i]);
    }
    return sum;
}

/* Chooses gaps and the distance of rows. The distance matters if a subgroup has several rows. */
static void place_results(const fft_class *c, fft_tile *t)
{
    uint32_t places, best = UINT32_MAX, pitch = t->n;
    if (c->dense || !t->along || t->lanes >= BANKS) {
        choose_gaps(t, t->n + (c->dense ? 0 : t->n / 8), &places);
        t->places = t->rows * places;
        return;
    }
    for (uint32_t p = t->n; p < t->n + BANKS; p++) {
        uint32_t turns = choose_gaps(t, p, &places);
        pitch = turns < best ? p : pitch;
        best = MIN(best, turns);
    }
    choose_gaps(t, pitch, &places);
    t->places = t->rows * pitch;
}

/* ---- Rows ---- */

#define MOST_THREADS 256
#define WIDTH        32 /* of subgroups, probably */

/* Adds rows until few threads of the last subgroup are idle, if possible. */
static uint32_t fill_subgroups(uint32_t rows, uint32_t lanes)
{
    for (uint32_t more = rows; more * lanes <= MOST_THREADS; more *= 2)
        if (round_up(more * lanes, WIDTH) - more * lanes <= more * lanes / 16)
            return more;
    return rows;
}

bool fft_tile_shape(const fft_class *c, const device_profile *p, fft_tile *t)
{
    if (!choose_radices(c, t))
        return false;
    t->lanes = lanes_of(t, c->held);
    t->rows = 1;
    while (2 * t->rows * t->lanes <= c->threads)
        t->rows *= 2;
    t->rows = MAX(t->rows, c->least_rows);
    if (t->along && !p->portable)
        t->rows = fill_subgroups(t->rows, t->lanes);
    for (; t->rows >= c->least_rows; t->rows /= 2) {
        place_results(c, t);
        if (t->rows * t->lanes <= p->max_workgroup_invocations &&
            t->places * sizeof(float) <= p->shared_memory_bytes)
            return true;
    }
    return false;
}

uint32_t fft_tile_radices(const fft_tile *t)
{
    uint32_t packed = 0;
    for (uint32_t i = 0; i < t->stages; i++)
        packed |= (t->radices[i] - 1u) << 5 * i;
    return packed;
}

uint32_t fft_tile_gaps(const fft_tile *t)
{
    uint32_t packed = 0;
    for (uint32_t i = 0; i + 1 < t->stages; i++)
        packed |= (uint32_t)t->gaps[i] << 5 * i;
    return packed;
}
