/* SPIR-V modules for tests of transformations: spirv-as assembles them, and spirv-val checks
 * them. */
#ifndef RLXVK_TEST_MODULE_H
#define RLXVK_TEST_MODULE_H

#include "kernel/words.h"

#include <stdbool.h>

typedef struct module {
    uint32_t *words, count; /* words: freed by memory_free */
} module;

/* Assembles a module. If it is not valid, the test fails. */
module module_assemble(const char *text);
/* Whether spirv-val accepts the module. Its messages go to the file `complaint`. */
bool module_is_valid(const module *m, const char *complaint);
uint32_t module_occurrences(const module *m, uint32_t opcode);

#endif
