/* Finds which operands of ops have gradients, from the results of rlxvk_grad for conformance cases.
 */
#ifndef RLXVK_OPS_GRADIENT_H
#define RLXVK_OPS_GRADIENT_H

#include "base/base.h"

/* Appends the names of the case's leaves that get a gradient from the result, except names that are
 * already among the words of `names`. */
RLXVK_MUST_CHECK rlxvk_status ops_gradient_names(const char *line, text *names);

#endif
