/* rlxvk_version returns the version of the headers with which the library was built. */
#include "base/base.h"

#define DOTTED(major, minor, patch)   #major "." #minor "." #patch
#define EXPANDED(major, minor, patch) DOTTED(major, minor, patch)

const char *rlxvk_version(void)
{
    return EXPANDED(RLXVK_VERSION_MAJOR, RLXVK_VERSION_MINOR, RLXVK_VERSION_PATCH);
}
