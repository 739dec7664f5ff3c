/* See program.h. */
#include "system/program.h"

#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

void program_begin(int *argc, char ***argv)
{
    (void)argc, (void)argv; /* they are as they should be */
}

bool program_path(char *out, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[MAX(length, 0)] = 0;
    return length > 0;
}

bool program_has_terminal_input(void)
{
    return isatty(STDIN_FILENO);
}

int program_terminal_columns(void)
{
    struct winsize screen = {0};
    if (!isatty(STDERR_FILENO))
        return 0;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &screen) == 0 && screen.ws_col > 1 ? screen.ws_col : 80;
}

void program_sleep(double seconds)
{
    time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t noted;

static void note(int number)
{
    if (noted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    noted = 1;
}

void program_watch_interrupt(void)
{
    signal(SIGINT, note);
}

bool program_interrupted(void)
{
    return noted;
}

void program_end_interrupt(void)
{
    signal(SIGINT, SIG_DFL);
}

/* ---- Folders ---- */

bool program_make_temporary(char *out, size_t size)
{
    int length = snprintf(out, size, "/tmp/rlxvk-XXXXXX");
    return length > 0 && (size_t)length < size && mkdtemp(out);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

void program_remove_folder(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
