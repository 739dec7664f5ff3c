/* See interrupt.h. */
#include "cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t noted;

static void note(int number)
{
    if (noted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    noted = 1;
}

void interrupt_watch(void)
{
    signal(SIGINT, note);
}

bool interrupted(void)
{
    return noted;
}

void interrupt_end(void)
{
    signal(SIGINT, SIG_DFL);
}
