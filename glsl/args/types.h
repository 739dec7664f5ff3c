/*
 * Types of the argument structs. C and GLSL share the files of glsl/args/, so each thing is defined
 * once: the codes that a kernel is specialized to, and its push-constant struct. There is a file
 * for each family folder. A kernel declares `layout(push_constant) uniform block { <name>_args
 * args; };`. Structs have only 4-byte members, arrays and structs of them (`STRUCT(row_args)
 * rows;`), and at most 128 bytes. Offsets and strides count elements of the operand's storage.
 */
#ifndef RLXVK_ARGS_TYPES_H
#define RLXVK_ARGS_TYPES_H

#ifdef __STDC_VERSION__
#include <stdint.h>
typedef uint32_t u32;
typedef int32_t i32;
typedef float f32;
#define STRUCT(name) struct name
#else
#define u32 uint
#define i32 int
#define f32 float

#define STRUCT(name) name
#endif

#endif
