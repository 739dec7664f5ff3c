/* Extended regular expressions of ASCII, as POSIX describes them, without named classes and without
 * back references. They match in the same way on every system. */
#ifndef RLXVK_PATTERN_H
#define RLXVK_PATTERN_H

#include <stdbool.h>

/* Whether the text is such an expression. */
bool pattern_is_valid(const char *pattern);
/* Whether it matches some part of the text. It must be valid. */
bool pattern_matches(const char *pattern, const char *text);

#endif
