/* The variants of histogram and bincount. Counters in shared memory are added to the buffer once
 * for each workgroup. So each compute unit gets few workgroups, to make this cheap, but enough that
 * none waits long for the last one. */
#include "op/array/histogram_choice.h"
#include "args/array.h"

#include "base/base.h"

#define UNIT_GROUPS 16   /* workgroups of a compute unit; "packed" has half of that */
#define LEAST_RUN   4096 /* elements of a workgroup, at least */
#define MOST_WORDS  8192 /* of shared memory, at most */
#define MOST_SETS   32
#define MOST_HALF   65532 /* elements of a workgroup: 16 bits can count them and three more */
/* Limits of "packed". Each range of bins reads all elements, so there must be few ranges, and many
 * elements for each bin. On GPUs it suits only if one range holds all bins, because counting in the
 * buffer is fast there, too. */
#define MOST_RANGES    4
#define LEAST_ELEMENTS 64

/* clang-format off */
static const histogram_way ways[] = {
    {{"packed", ON_ALL, 0}, HISTOGRAM_PACKED},
    {{"shared", ON_ALL, 0}, HISTOGRAM_SHARED},
    {{"direct", ON_ALL, 0}, HISTOGRAM_DIRECT},
};
/* clang-format on */

static uint32_t words_of(const device_profile *profile)
{
    return MIN(profile->shared_memory_bytes / 4, MOST_WORDS);
}

/* Divides the bins into ranges, and chooses the counters in shared memory. */
static void divide_bins(histogram_division *d, const histogram_way *way, uint64_t bins,
                        uint32_t words)
{
    *d = (histogram_division){.words = 1, .sets = 1, .ranges = 1, .range_bins = bins};
    if (way->place == HISTOGRAM_PACKED) {
        d->ranges = divide_up(bins, 2ull * words);
        d->range_bins = round_up(divide_up(bins, d->ranges), 2);
        d->words = (uint32_t)(d->range_bins / 2);
    } else if (way->place == HISTOGRAM_SHARED) {
        while (d->sets < MOST_SETS && 2 * d->sets * bins <= words)
            d->sets *= 2;
        d->words = (uint32_t)(d->sets * bins);
    }
}

histogram_division histogram_divide(const histogram_way *way, const histogram_problem *p,
                                    const device_profile *profile)
{
    histogram_division d;
    bool packed = way->place == HISTOGRAM_PACKED;
    uint64_t groups = (uint64_t)profile->compute_units * (packed ? UNIT_GROUPS / 2 : UNIT_GROUPS);
    divide_bins(&d, way, p->bins, words_of(profile));
    uint64_t elements = MAX(divide_up(p->count * d.ranges, MAX(groups, 1)), LEAST_RUN);
    if (packed)
        elements = MIN(elements, MOST_HALF);
    d.run = divide_up(elements, p->width);
    d.groups = MAX(divide_up(p->count / p->width, d.run), p->count > 0) * d.ranges;
    return d;
}

static bool halves_suit(const histogram_problem *p, const device_profile *profile)
{
    uint64_t words = words_of(profile);
    if (profile_is_software(profile))
        return p->bins > words && p->bins <= MOST_RANGES * 2 * words;
    return p->bins <= 2 * words;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const histogram_way *way = row;
    const histogram_problem *p = problem;
    uint64_t words = words_of(profile);
    if (way->place == HISTOGRAM_SHARED)
        return (choice_fit){.can = p->bins <= words, .suits = true};
    if (way->place == HISTOGRAM_PACKED)
        return (choice_fit){.can = p->bins > 0 && words > 0,
                            .suits =
                                halves_suit(p, profile) && p->count >= LEAST_ELEMENTS * p->bins};
    return (choice_fit){.can = true, .suits = true};
}

const choice_table histogram_choice = {CHOICE_ROWS(ways), .fit = fit};

const histogram_way *histogram_find_way(const histogram_problem *p, const device_profile *profile,
                                        size_t forced)
{
    return choice_select(&histogram_choice, p, profile, forced);
}
