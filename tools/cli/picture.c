/* See picture.h. */
#include "cli/picture.h"
#include "base/new_file.h"
#include "system/worker.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_PATH = 4096 };

static rlxvk_status write_text(const char *path, const char *text, size_t length)
{
    new_file file;
    rlxvk_status status;
    TRY(new_file_open(path, &file));
    fwrite(text, 1, length, file.stream);
    TRY(new_file_close(&file));
error:
    return status;
}

/* Runs dot -Tsvg -o PATH with the text as its input. No shell sees the path. */
static rlxvk_status draw(const char *path, const char *text, size_t length)
{
    const char *const command[] = {"dot", "-Tsvg", "-o", path, NULL};
    spawn_end end = spawn_command(command, text, length);
    if (end == SPAWN_DONE)
        return RLXVK_OK;
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "the program dot of Graphviz %s; name a file that ends in .dot to get its "
                       "input",
                       end == SPAWN_NOT_FOUND ? "is not here" : "failed");
}

rlxvk_status picture_write(const char *path, const char *suffix, const char *dot, size_t length)
{
    char whole[LONGEST_PATH];
    const char *slash = strrchr(path, '/'), *point = strrchr(path, '.');
    size_t stem = point && (!slash || point > slash) ? (size_t)(point - path) : strlen(path);
    int needed = snprintf(whole, sizeof whole, "%.*s%s%s", (int)stem, path, suffix, path + stem);
    if (needed < 0 || (size_t)needed >= sizeof whole)
        return status_fail(RLXVK_E_FILE, "the path of the picture is too long");
    return strcmp(path + stem, ".dot") == 0 ? write_text(whole, dot, length)
                                            : draw(whole, dot, length);
}
