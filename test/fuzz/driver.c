/*
 * Our own driver of the fuzz targets, for compilers without libFuzzer. It runs every seed file
 * once. Then it runs mutations of them, which a seeded generator chooses. If a run fails (abort,
 * sanitizer report, leak or hang), it writes the input to a file. Run the target on this file to
 * repeat the failure.
 *
 * A run depends only on the names and contents of the seed files, --seed and --runs.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* From the sanitizers' run time, if that is linked. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
int __lsan_is_turned_off(
    void); /* support/balance.c: true after a driver was loaded, because its leaks are its own */
extern int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                                     void (*)(const volatile void *))
    __attribute__((weak));
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* Reports end in abort(), because its handler saves the input. */
const char *__asan_default_options(void)
{
    return "abort_on_error=1:allocator_may_return_null=1:quarantine_size_mb=16:"
           "malloc_context_size=6";
}

const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}

enum { INPUT_LIMIT = 1 << 20 };

typedef struct input {
    uint8_t *bytes;
    size_t size;
} input;

static struct {
    input *corpus;
    size_t count, capacity;
    size_t max_length; /* of mutations; 0: 1.5 times the longest seed + 256 */
    uint64_t runs, seed, random;
    double seconds;
    unsigned timeout;
    const char *program, *folder; /* name and folder of saved inputs */
    bool save;                    /* save each input before it runs */
    volatile sig_atomic_t interrupted;
} job = {.seed = 1, .timeout = 30, .folder = "."};

/* The input that is running, for the signal handlers. */
static struct {
    const uint8_t *bytes;
    size_t size;
    volatile uint64_t number;
    uint64_t seen; /* number at the last tick of the watchdog */
    unsigned stuck;
    uint64_t allocated, freed;
} current;

/* ---- Saving ---- */

static void save_input(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (size_t at = 0; file >= 0 && at < current.size;) {
        ssize_t n = write(file, current.bytes + at, current.size - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    if (file >= 0)
        close(file);
}

/* Formats text, which signal handlers in general must not do. Here it is harmless, because the
 * process ends anyway. */
static void on_failure(int number)
{
    char path[512], line[700];
    snprintf(path, sizeof path, "%s/%s-crash-%llu-%llu", job.folder, job.program,
             (unsigned long long)job.seed, (unsigned long long)current.number);
    save_input(path);
    int n =
        snprintf(line, sizeof line,
                 "signal %d at execution %llu of seed %llu; input saved, rerun with: %s\n"
                 "0 passed, 1 failed\n",
                 number, (unsigned long long)current.number, (unsigned long long)job.seed, path);
    if (n > 0 && write(STDOUT_FILENO, line, (size_t)n) < 0)
        _exit(2);
    _exit(1);
}

/* Called once a second. If one input runs for too long, gives up. */
static void on_tick(int number)
{
    (void)number;
    current.stuck = current.seen == current.number ? current.stuck + 1 : 0;
    current.seen = current.number;
    if (current.stuck > job.timeout)
        on_failure(SIGALRM);
}

/* Ends the run after this input and prints the closing line. */
static void on_interrupt(int number)
{
    (void)number;
    job.interrupted = 1;
}

static void install_handlers(void)
{
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    static char stack[65536];
    /* The address sanitizer handles all signals but SIGABRT itself, and then aborts. */
    size_t count = __lsan_do_recoverable_leak_check ? 1 : sizeof fatal / sizeof *fatal;
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval second = {{1, 0}, {1, 0}};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (size_t i = 0; i < count; i++)
        sigaction(fatal[i], &(struct sigaction){.sa_handler = on_failure, .sa_flags = SA_ONSTACK},
                  NULL);
    sigaction(SIGALRM, &tick, NULL);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
}

/* ---- Executing ---- */

static void count_malloc(const volatile void *block, size_t size)
{
    (void)block, (void)size;
    current.allocated++;
}

static void count_free(const volatile void *block)
{
    current.freed += block != NULL;
}

static void execute(const uint8_t *bytes, size_t size)
{
    /* A block of exactly that size, so that a sanitizer sees every overrun. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(2);
    memcpy(copy, bytes, size);
    current.bytes = copy;
    current.size = size;
    current.number++;
    if (job.save) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s-current", job.folder, job.program);
        save_input(path);
    }
    uint64_t before = current.allocated - current.freed;
    LLVMFuzzerTestOneInput(copy, size);
    if (current.allocated - current.freed > before && __lsan_do_recoverable_leak_check &&
        !__lsan_is_turned_off() && __lsan_do_recoverable_leak_check())
        abort();
    current.bytes = NULL;
    current.size = 0;
    free(copy);
}

/* ---- Corpus ---- */

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(INPUT_LIMIT);
    if (!file || !bytes) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t size = fread(bytes, 1, INPUT_LIMIT, file);
    fclose(file);
    if (job.count == job.capacity) {
        job.capacity = job.capacity * 2 + 64;
        job.corpus = realloc(job.corpus, job.capacity * sizeof *job.corpus);
        if (!job.corpus)
            exit(2);
    }
    uint8_t *fitting = realloc(bytes, size ? size : 1);
    job.corpus[job.count++] = (input){fitting ? fitting : bytes, size};
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_path(const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, visible, alphasort);
    if (count < 0) {
        add_file(path);
        return;
    }
    for (int i = 0; i < count; i++) {
        char inside[1024];
        snprintf(inside, sizeof inside, "%s/%s", path, names[i]->d_name);
        add_file(inside);
        free(names[i]);
    }
    free(names);
}

/* ---- Mutation ---- */

static uint64_t draw(void)
{
    uint64_t z = job.random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t n)
{
    return n ? (size_t)(draw() % n) : 0;
}

static void overwrite_number(uint8_t *bytes, size_t size)
{
    static const int64_t limits[] = {0,         1,         -1,         2,         127,      128,
                                     255,       256,       32767,      32768,     65535,    65536,
                                     INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
    size_t width = (size_t)1 << below(4);
    if (size < width)
        return;
    size_t at = below(size - width + 1);
    uint64_t value = 0;
    if (draw() & 1) {
        value = (uint64_t)limits[below(sizeof limits / sizeof *limits)];
    } else {
        memcpy(&value, bytes + at, width);
        value += below(71) - 35;
    }
    memcpy(bytes + at, &value, width);
}

/* Replaces `removed` bytes at `at` by `count` bytes of `from`. If that exceeds `limit`, does
 * nothing. */
static size_t replace(uint8_t *bytes, size_t size, size_t limit, size_t at, size_t removed,
                      const uint8_t *from, size_t count)
{
    if (size - removed + count > limit)
        return size;
    memmove(bytes + at + count, bytes + at + removed, size - at - removed);
    memcpy(bytes + at, from, count);
    return size - removed + count;
}

static size_t mutate_once(uint8_t *bytes, size_t size, size_t limit)
{
    static uint8_t piece[INPUT_LIMIT];
    const input *other = &job.corpus[below(job.count)];
    size_t at = below(size), length = below(size - at) + 1;
    if (length > 32 && draw() % 4)
        length = 1 + below(32);
    if (size == 0)
        return replace(bytes, 0, limit, 0, 0, other->bytes, other->size);
    switch (below(8)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << below(8));
        return size;
    case 1:
    case 2:
        bytes[at] = (uint8_t)draw();
        return size;
    case 3:
        overwrite_number(bytes, size);
        return size;
    case 4: /* delete */
        return replace(bytes, size, limit, at, length, bytes, 0);
    case 5: /* repeat, or copy elsewhere */
        memcpy(piece, bytes + at, length);
        return replace(bytes, size, limit, draw() & 1 ? at : below(size), 0, piece, length);
    case 6: /* insert a piece of another input, or overwrite by it */
        at = below(size);
        length = 1 + below(other->size < 64 ? other->size : 64);
        if (other->size < length)
            return size;
        memcpy(piece, other->bytes + below(other->size - length + 1), length);
        return replace(bytes, size, limit, at, draw() & 1 && at + length <= size ? length : 0,
                       piece, length);
    default: /* replace the rest by the rest of another input */
        length = below(other->size + 1);
        return replace(bytes, size, limit, at, size - at, other->bytes + other->size - length,
                       length);
    }
}

static void mutate_and_execute(size_t limit)
{
    static uint8_t bytes[INPUT_LIMIT];
    const input *from = &job.corpus[below(job.count)];
    size_t size = from->size < limit ? from->size : limit;
    memcpy(bytes, from->bytes, size);
    for (size_t n = (size_t)1 << below(6); n > 0; n--)
        size = mutate_once(bytes, size, limit);
    execute(bytes, size);
}

/* ---- Command line ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--runs N] [--seconds S] [--seed S] [--max-length N] [--timeout S]\n"
            "       [--folder DIR] [--save] SEED_FILE_OR_FOLDER...\n"
            "Without --runs and --seconds every seed is run once. --folder: where failing inputs\n"
            "go; --save writes each input there, as '..-current', before it is run.\n",
            program);
    exit(2);
}

static void parse(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    job.program = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strncmp(argv[i], "--", 2) != 0)
            add_path(argv[i]);
        else if (strcmp(argv[i], "--save") == 0)
            job.save = true;
        else if (!value)
            usage(argv[0]);
        else if (i++, strcmp(argv[i - 1], "--runs") == 0)
            job.runs = strtoull(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--seconds") == 0)
            job.seconds = strtod(value, NULL);
        else if (strcmp(argv[i - 1], "--seed") == 0)
            job.seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--max-length") == 0)
            job.max_length = (size_t)strtoull(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--timeout") == 0)
            job.timeout = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--folder") == 0)
            job.folder = value;
        else
            usage(argv[0]);
    }
    if (job.count == 0 || job.max_length > INPUT_LIMIT)
        usage(argv[0]);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    install_handlers();
    if (__sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    double started = seconds_now();
    size_t limit = 0;
    for (size_t i = 0; i < job.count; i++) {
        execute(job.corpus[i].bytes, job.corpus[i].size);
        limit = job.corpus[i].size > limit ? job.corpus[i].size : limit;
    }
    limit = job.max_length ? job.max_length : limit + limit / 2 + 256;
    limit = limit < INPUT_LIMIT ? limit : INPUT_LIMIT;
    job.random = job.seed;
    while (!job.interrupted && (current.number < job.runs ||
                                (job.seconds > 0 && seconds_now() - started < job.seconds)))
        mutate_and_execute(limit);
    if (fuzz_report)
        fuzz_report();
    printf("%llu executions, corpus of %zu, %.0f s\n", (unsigned long long)current.number,
           job.count, seconds_now() - started);
    printf("1 passed, 0 failed\n");
    for (size_t i = 0; i < job.count; i++)
        free(job.corpus[i].bytes);
    free(job.corpus);
}
