/* Parses texts into options. Invariant: the names in a list of variants point into the list's own
 * copy of the text. */
#include "cli/option.h"

#include <string.h>

rlxvk_status option_device(const char *text, rlxvk_device_info *room,
                           rlxvk_context_options *options)
{
    rlxvk_status status = RLXVK_OK;
    if (!text)
        return RLXVK_OK;
    TRY(rlxvk_device_find(text, room));
    options->device = room;
error:
    return status;
}

/* Cuts "kind=row" in two. False if there is no equals sign. */
static bool cut(char *item, rlxvk_variant *out)
{
    char *equals = strchr(item, '=');
    if (!equals)
        return false;
    *equals = 0;
    *out = (rlxvk_variant){item, equals + 1};
    return true;
}

rlxvk_status option_set_variants(const char *text, option_variants *room,
                                 rlxvk_compile_options *options)
{
    size_t count = 0, length = text ? strlen(text) : 0;
    if (!text)
        return RLXVK_OK;
    if (length >= sizeof room->text)
        return status_fail(RLXVK_E_ATTR, "variant '%.100s...': longer than %zu bytes", text,
                           sizeof room->text - 1);
    memcpy(room->text, text, length + 1);
    for (char *item = room->text + strspn(room->text, ", "); *item;) {
        char *end = item + strcspn(item, ", "), *next = end + strspn(end, ", ");
        *end = 0;
        if (count == OPTION_VARIANTS || !cut(item, &room->items[count]))
            return status_fail(RLXVK_E_ATTR,
                               "variant '%.200s': it takes kind=row, at most %d, separated by "
                               "commas",
                               text, OPTION_VARIANTS);
        count++;
        item = next;
    }
    options->variants = room->items;
    options->variant_count = count;
    return RLXVK_OK;
}
