/*
 * rlxvk: saving params to a file and loading them. The file has all params of an executable, by
 * name, with their shapes and element types. Other programs read and write the same formats:
 *
 *   .safetensors   for example, load_file and save_file of safetensors.numpy
 *   .npz           numpy.load and numpy.savez
 *
 * The extension of the path chooses the format, in upper or lower case; any other is E_ATTR. A
 * training run can go on from such a file, because optimizers keep their averages in params, too.
 *
 * Element types. An array in the file has the dtype with which its param was declared. Four rules
 * go with that:
 *   - BF16 params are E_UNSUPPORTED in .npz, because NumPy has no such type.
 *   - I16, I32, U32, I64 and F64 params are rounded to f32, because the device holds them so.
 *   - If weight_storage packs an F32 param, the array is F32 and has the rounded values.
 *   - Weights in a packed format are U8 or I8 params. The file has their bytes as they are, but
 *     not their format, which is an attribute of the op that reads them.
 *
 * Both calls wait for all tickets of the executable, and only the thread that uses it may make
 * them. The path goes to the operating system unchanged.
 */
#ifndef RLXVK_FILES_H
#define RLXVK_FILES_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlxvk_save_options {
    /* The params to save; NULL, with name_count 0: all. Any other pointer with name_count 0: none,
     * so the file has no params. A param that no output depends on has no content. If all are
     * saved, it is left out; if it is listed here, that is E_UNKNOWN_NAME. */
    const char *const *names;
    size_t name_count;
    size_t struct_size;
} rlxvk_save_options;

/*
 * Writes a file with the params' present content. The file takes its name only when it is complete
 * and on the disk: after a failure, or if the process is killed, the old file is still there. It
 * keeps the old file's permissions. If the path is a symbolic link, the link stays and the file
 * that it names is replaced. Takes host memory for one param at a time.
 *   E_ATTR             the extension is neither .safetensors nor .npz
 *   E_UNKNOWN_NAME     a name in `names` is not a param, or the param has no content
 *   E_NULL             `names` is NULL and name_count is not 0, or a name is NULL
 *   E_DUP_NAME         a name is in `names` twice
 *   E_UNSET_PARAM      a param was never set, and the executable was compiled without allow_unset
 *                      (with it, such a param is saved as zeros)
 *   E_UNSUPPORTED      BF16 in .npz; a param called "__metadata__" in .safetensors
 *   E_UNBOUND_SYMBOL   nothing is bound yet. If a param has symbols in its shape, its content in
 *                      the present binding is saved
 *   E_FILE             the file cannot be written, or another process is writing it
 *   and E_OUT_OF_*_MEMORY, E_DEVICE_LOST, E_TIMEOUT.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_save_params(rlxvk_executable *executable, const char *path,
                                                const rlxvk_save_options *options);

typedef struct rlxvk_load_options {
    rlxvk_toggle allow_missing; /* if the file lacks a param, it keeps its content (off). If it was
                                   never set, the load succeeds, but the next run fails with
                                   E_UNSET_PARAM, unless allow_unset is on */
    rlxvk_toggle allow_unknown; /* names in the file that are not params of the executable are
                                   skipped (off) */
    rlxvk_toggle convert;       /* F32, F16, BF16 and F64 values may set params of another of these
                                   types. They are rounded to f32, then to that type, to nearest.
                                   Beyond its range they become infinite (off) */
    size_t struct_size;
} rlxvk_load_options;

/*
 * Sets params from a file. Everything is checked before any param is changed: the whole file is
 * read, its checksums are compared (only .npz has them), and every name, type and shape must be
 * right. A damaged or hostile file is an error.
 *
 * A load that fails changes nothing. The exceptions are E_DEVICE_LOST and E_TIMEOUT, which may come
 * while params are written; the executable is lost then. An array and its param must have the same
 * shape and, without `convert`, the same dtype. If no output depends on a param, the file may lack
 * its array; if it has one, the array is checked and discarded. Takes host memory for all arrays
 * that are loaded. If the device holds an array in another form, for example I32 as f32 words, a
 * converted copy takes host memory, too.
 *   E_ATTR             the extension is neither .safetensors nor .npz
 *   E_UNSET_PARAM      the file lacks params (without allow_missing)
 *   E_UNKNOWN_NAME     the file has names that are not params (without allow_unknown)
 *   E_DTYPE, E_SHAPE   an array is not like its param; the sentence has both
 *   E_DUP_NAME         a name is in the file twice
 *   E_FILE             the file cannot be read, is damaged, or is not of its format
 *   E_UNSUPPORTED      an array is compressed (numpy.savez_compressed), encrypted, or in Fortran's
 *                      order
 *   E_UNBOUND_SYMBOL   a param has symbols in its shape and nothing is bound yet
 *   E_RANGE            see check_packed at rlxvk_set_param
 *   and E_OUT_OF_*_MEMORY, E_DEVICE_LOST, E_TIMEOUT.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_load_params(rlxvk_executable *executable, const char *path,
                                                const rlxvk_load_options *options);

#ifdef __cplusplus
}
#endif

#endif
