/* The distance counts insertions, deletions, replacements and swaps of neighbours (optimal string
 * alignment), without regard to case. Words are cut at LONGEST characters. */
#include "base/nearest.h"

#include <string.h>

enum { LONGEST = 63 };

static size_t least(size_t a, size_t b, size_t c)
{
    return MIN(MIN(a, b), c);
}

static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1], m = MIN(strlen(a), LONGEST), n = MIN(strlen(b), LONGEST);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *reused = before;
        before = above, above = row, row = reused;
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            char x = ascii_lower(a[i - 1]), y = ascii_lower(b[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == ascii_lower(b[j - 2]) && y == ascii_lower(a[i - 2]))
                row[j] = MIN(row[j], before[j - 2] + 1);
        }
    }
    return row[n];
}

nearest nearest_to(const char *wanted)
{
    return (nearest){.wanted = wanted, .distance = strlen(wanted) / 3 + 2};
}

void nearest_consider(nearest *n, const char *word)
{
    size_t d = distance(n->wanted, word);
    if (d >= n->distance)
        return;
    n->distance = d;
    n->word = word;
}
