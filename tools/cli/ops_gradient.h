/* Which operands of ops have gradients: what rlxvk_grad makes of the conformance cases. */
#ifndef RLXVK_OPS_GRADIENT_H
#define RLXVK_OPS_GRADIENT_H

#include "base/base.h"

/* Appends the names of the case's leaves that its result hands a gradient to, those not yet among
 * the words of `names`. */
RLXVK_MUST_CHECK rlxvk_status ops_gradient_names(const char *line, text *names);

#endif
