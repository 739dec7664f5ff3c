/* Inlining the bodies of others (control.c). `what` names the body in errors. */
#ifndef RLXVK_CONTROL_H
#define RLXVK_CONTROL_H

#include "op/op.h"

/* Whether a body has no error and so many inputs and outputs; else the graph has failed. */
bool control_body_fits(rlxvk_graph *g, const rlxvk_graph *body, const char *what, size_t inputs,
                       size_t outputs);
/* outputs = body(inputs), of a body that fits; false: the graph has failed. */
bool control_inline(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                    const rlxvk_tensor *inputs, size_t count, rlxvk_tensor *outputs);

#endif
