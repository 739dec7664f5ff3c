/* SPIR-V modules for tests of what transforms them: from text by spirv-as, judged by spirv-val. */
#ifndef RLXVK_TEST_MODULE_H
#define RLXVK_TEST_MODULE_H

#include "kernel/words.h"

#include <stdbool.h>

typedef struct module {
    uint32_t *words, count; /* words: to memory_free */
} module;

/* Valid, or the test fails. */
module module_assemble(const char *text);
/* Whether spirv-val takes the module; what it says goes to the file `complaint`. */
bool module_is_valid(const module *m, const char *complaint);
uint32_t module_occurrences(const module *m, uint32_t opcode);

#endif
