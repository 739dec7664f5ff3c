/* Whether a device executes anything. Some drivers only compile, for example under a shim that
 * plays the kernel's driver. They report success, and no dispatch writes anything. */
#ifndef RLXVK_PROBE_H
#define RLXVK_PROBE_H

#include "base/base.h"

/* Runs a kernel with two inputs. If both results are wrong and equal, the device executes nothing.
 */
RLXVK_MUST_CHECK rlxvk_status probe_executes(rlxvk_context *context, bool *out_executes);
/* E_UNSUPPORTED if the device executes nothing. */
RLXVK_MUST_CHECK rlxvk_status probe_require(rlxvk_context *context);

#endif
