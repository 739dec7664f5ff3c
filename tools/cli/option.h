/* Converts text of a command line into the structs that a program passes to the library. Errors are
 * E_ATTR or E_NO_DEVICE, and quote the text. */
#ifndef RLXVK_OPTION_H
#define RLXVK_OPTION_H

#include "base/base.h"

/* Sets `options->device` to the device that `text` names. NULL changes nothing. */
RLXVK_MUST_CHECK rlxvk_status option_device(const char *text, rlxvk_device_info *room,
                                            rlxvk_context_options *options);

#define OPTION_VARIANTS 16

typedef struct option_variants {
    rlxvk_variant items[OPTION_VARIANTS];
    char text[1024];
} option_variants;

/* Sets the variants to "kind=row,kind=row", which may be "". NULL changes nothing. The variants
 * live in `room`. */
RLXVK_MUST_CHECK rlxvk_status option_set_variants(const char *text, option_variants *room,
                                                  rlxvk_compile_options *options);

#endif
