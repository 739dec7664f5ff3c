/*
 * A bar chart of a failed case's errors, by element. There are up to 96 bars, each for a part of
 * the elements, and a bar shows the worst error in its part. Errors are in units of the bound, on a
 * logarithmic scale that begins at a thousandth of the bound. Bars for errors that have no number
 * (NaN, infinity, a bound of 0) reach the top, which is kept for them. The page defines the
 * colours.
 */
#include "conform/conform.h"

#include <math.h>
#include <string.h>

#define MOST_PARTS ARRAY_COUNT(((conform_picture *)0)->parts)

enum { WIDTH = 640, HEIGHT = 190, LEFT = 52, TOP = 24, RIGHT = 630, BOTTOM = 150 };
enum { LOWEST = -3, MOST_TICKS = 7 }; /* powers of ten */

static size_t part_count(const conform_picture *p)
{
    return (size_t)MIN(p->elements, MOST_PARTS);
}

void conform_picture_begin(conform_picture *p, uint64_t elements)
{
    *p = (conform_picture){.elements = elements};
}

void conform_picture_take(conform_picture *p, uint64_t element, double error)
{
    size_t part = (size_t)((double)element * (double)part_count(p) / (double)p->elements);
    size_t worst = (size_t)((double)p->worst * (double)part_count(p) / (double)p->elements);
    if (error > p->parts[worst])
        p->worst = element;
    if (error > p->parts[part])
        p->parts[part] = (float)error;
}

/* ---- Scales ---- */

/* The power of ten at which the axis ends: above every finite error, and above the bound. */
static int highest(const conform_picture *p)
{
    double most = 10;
    for (size_t i = 0; i < part_count(p); i++)
        if (isfinite(p->parts[i]))
            most = fmax(most, p->parts[i]);
    return (int)ceil(log10(most));
}

static double height_of(double error, int high)
{
    const double free = 8; /* room above the axis' end, for errors without a number */
    double power = fmax(log10(error), LOWEST);
    return isinf(error)
               ? TOP
               : BOTTOM - (power - LOWEST) * (BOTTOM - TOP - free) / (double)(high - LOWEST);
}

static double place_of(const conform_picture *p, size_t part)
{
    return LEFT + (double)(RIGHT - LEFT) * (double)part / (double)part_count(p);
}

/* ---- Drawing ---- */

static void write_axes(const conform_picture *p, int high, FILE *file)
{
    int step = (high - LOWEST + MOST_TICKS - 1) / MOST_TICKS;
    for (int power = LOWEST; power <= high; power++) {
        double y = height_of(pow(10, power), high);
        if (power % step != 0)
            continue;
        fprintf(file, "<line%s x1=%d y1=%.1f x2=%d y2=%.1f />", power ? "" : " class=bound", LEFT,
                y, RIGHT, y);
        fprintf(file, "<text x=%d y=%.1f text-anchor=end>%g</text>", LEFT - 5, y + 4,
                pow(10, power));
    }
    fprintf(file, "<line x1=%d y1=%d x2=%d y2=%d />", LEFT, BOTTOM, RIGHT, BOTTOM);
    fprintf(file, "<text x=%d y=%d>0</text>", LEFT, BOTTOM + 14);
    fprintf(file, "<text x=%d y=%d text-anchor=end>%llu</text>", RIGHT, BOTTOM + 14,
            (unsigned long long)(p->elements - 1));
    fprintf(file, "<text x=2 y=12>error / bound</text>");
}

/* Draws one path for all bars that are right and one for all that are wrong. */
static void write_bars(const conform_picture *p, int high, bool wrong, FILE *file)
{
    fprintf(file, "<path class=%s d='", wrong ? "wrong" : "within");
    for (size_t i = 0; i < part_count(p); i++) {
        double x = place_of(p, i), width = place_of(p, i + 1) - x;
        if (p->parts[i] > 0 && (p->parts[i] > 1) == wrong)
            fprintf(file, "M%.1f %dV%.1fh%.1fV%d", x + width / 10, BOTTOM,
                    height_of(p->parts[i], high), width * 8 / 10, BOTTOM);
    }
    fprintf(file, "'/>");
}

static void write_worst(const conform_picture *p, FILE *file)
{
    size_t part = (size_t)((double)p->worst * (double)part_count(p) / (double)p->elements);
    double x = (place_of(p, part) + place_of(p, part + 1)) / 2;
    bool right = x > (LEFT + RIGHT) / 2.0; /* place the text on the side with more room */
    fprintf(file, "<path class=worst d='M%.1f %dl-5 -8h10z'/>", x, TOP - 1);
    fprintf(file, "<text class=worst x=%.1f y=%d text-anchor=%s>worst: element %llu, ",
            right ? x - 9 : x + 9, TOP - 4, right ? "end" : "start", (unsigned long long)p->worst);
    if (isinf(p->parts[part]))
        fprintf(file, "beyond measure</text>");
    else
        fprintf(file, "%.4g</text>", p->parts[part]);
}

void conform_picture_write(const conform_picture *p, FILE *file)
{
    if (!p->elements)
        return;
    int high = highest(p);
    double share = (double)p->elements / (double)part_count(p);
    fprintf(file, "<svg class=errors viewBox='0 0 %d %d' role=img aria-label='Error of each ",
            WIDTH, HEIGHT);
    fprintf(file, "element; the worst is element %llu'>", (unsigned long long)p->worst);
    write_axes(p, high, file);
    write_bars(p, high, false, file);
    write_bars(p, high, true, file);
    write_worst(p, file);
    fprintf(file, "<text x=%d y=%d text-anchor=middle>element, row-major", (LEFT + RIGHT) / 2,
            BOTTOM + 14);
    if (share > 1)
        fprintf(file, "; a bar is the worst of %s%.4g", share == floor(share) ? "" : "about ",
                share);
    fprintf(file, "; dashed: the bound</text></svg>");
}
