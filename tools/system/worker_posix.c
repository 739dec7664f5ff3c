/* See worker.h. Workers are forks. */
#include "system/worker.h"
#include "system/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_FOUND = 127, MOST_WORKERS = 64 };

void *worker_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void worker_memory_free(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

/* ---- Workers ---- */

/* If the caller is killed, a worker that hangs must not stay. */
static void end_with_caller(void)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

bool worker_start(worker_work *work, void *argument, size_t index, worker_process *out)
{
    int ends[2];
    if (pipe(ends))
        return false;
    fcntl(ends[1], F_SETFD, FD_CLOEXEC); /* the pipe ends with the process, whatever it starts */
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        end_with_caller();
        work(argument, index, ends[1]);
        fflush(NULL);
        _exit(EXIT_SUCCESS); /* not exit(): the child must not run the caller's exit handlers */
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return false;
    }
    *out = (worker_process){process, ends[0]};
    return true;
}

bool worker_is_restarted(void)
{
    return false; /* workers are forks */
}

void worker_enter(worker_work *work, void *argument)
{
    (void)work, (void)argument;
}

/* The write is atomic, because it is so small. */
bool worker_tell(intptr_t out, size_t number)
{
    return write((int)out, &number, sizeof number) == sizeof number;
}

void worker_wait(const worker_process *workers, size_t count, unsigned milliseconds, bool *ready)
{
    struct pollfd waiting[MOST_WORKERS];
    count = MIN(count, MOST_WORKERS);
    for (size_t i = 0; i < count; i++)
        waiting[i] = (struct pollfd){workers[i].process ? (int)workers[i].in : -1, POLLIN, 0};
    bool some = poll(waiting, count, (int)milliseconds) > 0;
    for (size_t i = 0; i < count; i++)
        ready[i] = some && waiting[i].revents;
}

bool worker_hear(const worker_process *worker, size_t *out)
{
    return read((int)worker->in, out, sizeof *out) == sizeof *out;
}

void worker_kill(const worker_process *worker)
{
    kill((pid_t)worker->process, SIGKILL);
}

bool worker_join(const worker_process *worker, text *how)
{
    int result = 0;
    while (waitpid((pid_t)worker->process, &result, 0) < 0)
        continue;
    if (WIFSIGNALED(result))
        text_append(how, "ended by signal %d (%s)", WTERMSIG(result), strsignal(WTERMSIG(result)));
    else
        text_append(how, "ended with exit status %d", WEXITSTATUS(result));
    return result != 0;
}

void worker_forget(worker_process *worker)
{
    close((int)worker->in);
    *worker = (worker_process){0};
}

/* ---- Commands ---- */

/* Starts a command whose standard input or output is `file`. Returns its id; -1 if there is none.
 */
static pid_t start(const char *file, const char *const arguments[], int stream, int replaced)
{
    fflush(stdout);
    pid_t child = fork();
    if (child)
        return child;
    dup2(stream, replaced);
    execvp(file, (char *const *)arguments); /* it does not write to them */
    _exit(NOT_FOUND);
}

static spawn_end end_of(pid_t child)
{
    int result = -1;
    if (child < 0 || waitpid(child, &result, 0) < 0)
        return SPAWN_FAILED;
    if (WIFEXITED(result) && WEXITSTATUS(result) == NOT_FOUND)
        return SPAWN_NOT_FOUND;
    return result == 0 ? SPAWN_DONE : SPAWN_FAILED;
}

spawn_end spawn_command(const char *const arguments[], const char *input, size_t length)
{
    FILE *file = tmpfile();
    if (!file)
        return SPAWN_FAILED;
    fwrite(input, 1, length, file);
    rewind(file);
    pid_t child = start(arguments[0], arguments, fileno(file), STDIN_FILENO);
    fclose(file);
    return end_of(child);
}

spawn_end spawn_self(const char *const arguments[], char *line, size_t size, uint64_t *out_first)
{
    int ends[2];
    char rest[256];
    if (pipe(ends))
        return SPAWN_FAILED;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    pid_t child = start("/proc/self/exe", arguments, ends[1], STDOUT_FILENO);
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], line, size - 1) : 0;
    line[MAX(got, 0)] = 0;
    *out_first = system_nanoseconds();
    while (child > 0 && read(ends[0], rest, sizeof rest) > 0)
        continue;
    close(ends[0]);
    return end_of(child);
}
