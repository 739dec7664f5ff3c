/* Pictures of graphs by the program dot of Graphviz. */
#ifndef RLXVK_PICTURE_H
#define RLXVK_PICTURE_H

#include "base/base.h"

/* Draws DOT text into the file `path`, with `suffix` before its extension. If the extension is
 * .dot, writes the text. E_FILE: the file cannot be written; E_UNSUPPORTED: there is no program
 * dot, or it fails. */
RLXVK_MUST_CHECK rlxvk_status picture_write(const char *path, const char *suffix, const char *dot,
                                            size_t length);

#endif
