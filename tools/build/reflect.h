/* A compiled kernel: its module, the names in it, and the sources from which it was compiled. */
#ifndef RLXVK_REFLECT_H
#define RLXVK_REFLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OP_SOURCE_CONTINUED = 2,
    OP_NAME = 5,
    OP_MEMBER_NAME = 6,
    OP_STRING = 7,
    OP_LINE = 8,
    OP_CAPABILITY = 17,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_NO_LINE = 317,
    OP_MODULE_PROCESSED = 330,
    CAPABILITY_SUBGROUP_BALLOT = 64,
    CAPABILITY_SUBGROUP_SHUFFLE = 65,
    CAPABILITY_COOPERATIVE_MATRIX = 6022,
    DECORATION_SPEC_ID = 1,
    DECORATION_ARRAY_STRIDE = 6,
    DECORATION_BINDING = 33,
    DECORATION_DESCRIPTOR_SET = 34,
    DECORATION_OFFSET = 35,
    STORAGE_PUSH_CONSTANT = 9
};

enum { MAX_CONSTANTS = 64 };

typedef struct module {
    const char *name;
    char *path;
    uint32_t *words;
    size_t count;
} module;

typedef struct kernel {
    const char *name;
    module reflected, embedded;
    char *sources;                        /* the words of its .d, each ended by a 0, then another
                                             0 */
    char folder[64];                      /* the folder of its .comp */
    const char *constants[MAX_CONSTANTS]; /* names by SpecId; NULL: no constant has this id */
    uint32_t constant_count;
} kernel;

_Noreturn void die(const char *what, const char *path);
char *path_of(const char *folder, const char *name, const char *end);
/* The first instruction with this opcode whose word `at` equals `value`; NULL if there is none. */
const uint32_t *find(const module *m, unsigned opcode, unsigned at, uint32_t value);
/* The largest literal of a decoration over all ids, plus one; 0 if there is none. */
uint32_t decoration_limit(const module *m, uint32_t decoration);
uint32_t struct_size(const module *m, uint32_t type);
/* The type id of the struct inside the push-constant block; 0 if the kernel takes no arguments. */
uint32_t argument_struct(const module *m);
const char *name_of(const module *m, uint32_t id);
const char *member_name(const module *m, uint32_t type, uint32_t member);
/* The next word, from `word` on, with this start and this end; NULL if there is none. */
const char *next_source(const char *word, const char *start, const char *end);
bool has_source(const kernel *k, const char *source);
void read_kernel(kernel *k, const char *folder, const char *name);
void free_kernel(kernel *k);

#endif
