/* See conform_resume.h. Each line is one write to the end of the file, so processes do not mix
 * theirs. */
#include "conform/conform_resume.h"
#include "base/system.h"
#include "base/switches.h"
#include "cli/file.h"

#include <errno.h>
#include <string.h>

enum { HEADER_BYTES = 8192, LINE_BYTES = 2048 };

static const char magic[] = "rlxvk conform: results, format 1\n";

static const char *const verdict_words[VERDICT_COUNT] = {
    [VERDICT_PASSED] = "passed",
    [VERDICT_FAILED] = "failed",
    [VERDICT_UNSUPPORTED] = "unsupported",
    [VERDICT_HOST_ONLY] = "host",
};

/* ---- The first lines ---- */

static uint64_t cases_hash(const conform_job *j)
{
    uint64_t hash = BASE_HASH_START;
    for (size_t i = 0; i < j->cases.count; i++)
        hash = base_hash(hash, j->cases.items[i].line, strlen(j->cases.items[i].line) + 1);
    return hash;
}

static void append_header(const conform_job *j, text *out)
{
    const rlxvk_device_info *d = &j->common->device;
    text_append(out, "%slibrary %s\ndevice %s, UUID %s\ndriver %s\nrun %s\nswitches", magic,
                rlxvk_version(), d->name, d->uuid, d->driver, j->report.command);
    for (size_t i = 0; switches_name(i); i++) {
        const char *value = system_environment(switches_name(i));
        if (value && strcmp(switches_name(i), "RLXVK_DEVICE") != 0)
            text_append(out, " %s=%s", switches_name(i), value);
    }
    text_append(out, "\ncases %zu, %016llx\n", j->cases.count, (unsigned long long)cases_hash(j));
}

static size_t line_length(const char *line)
{
    return strcspn(line, "\n");
}

/* Names the first line that differs. `there` is the whole file. */
static rlxvk_status refuse(const conform_job *j, const char *there, const char *here)
{
    const char *path = j->options->resume;
    if (strncmp(there, magic, strlen(magic)) != 0)
        return status_fail(RLXVK_E_ATTR, "--resume %s: this is no file of results of rlxvk conform",
                           path);
    while (*there && line_length(there) == line_length(here) &&
           strncmp(there, here, line_length(here)) == 0) {
        there += line_length(there) + (there[line_length(there)] == '\n');
        here += line_length(here) + 1;
    }
    return status_fail(RLXVK_E_ATTR,
                       "--resume %s: it has results of another run, '%.*s' instead of '%.*s'; "
                       "name another file or remove this one",
                       path, (int)MIN(line_length(there), 300), there,
                       (int)MIN(line_length(here), 300), here);
}

/* ---- Lines of cases ---- */

/* Appends the line of a case's end. The error's bits keep it exact in any locale. */
static void append_end(const conform_job *j, size_t i, text *out)
{
    const conform_result *r = &j->common->results[i];
    char message[sizeof r->message];
    uint64_t error;
    memcpy(&error, &r->error, sizeof error);
    memcpy(message, r->message, sizeof message);
    for (char *at = message; *at; at++)
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    text_append(out, "end %zu %s %016llx %llu %llu %llu %llu %d %d %s\n", i,
                verdict_words[r->verdict], (unsigned long long)error,
                (unsigned long long)r->elements, (unsigned long long)r->unjudged,
                (unsigned long long)r->bounded, (unsigned long long)r->seed, r->takes_zeros,
                r->passed_over, message);
}

static bool parse_end_line(conform_job *j, const char *line)
{
    char word[16];
    unsigned long long index, error, elements, unjudged, bounded, seed;
    int zeros, over, length = 0;
    conform_result *r;
    if (sscanf(line, "end %llu %15s %llx %llu %llu %llu %llu %d %d%n", &index, word, &error,
               &elements, &unjudged, &bounded, &seed, &zeros, &over, &length) != 9 ||
        index >= j->cases.count || line[length] != ' ')
        return false;
    r = &j->common->results[index];
    *r = (conform_result){.elements = elements,
                          .unjudged = unjudged,
                          .bounded = bounded,
                          .seed = seed,
                          .takes_zeros = zeros,
                          .passed_over = over};
    memcpy(&r->error, &error, sizeof r->error);
    snprintf(r->message, sizeof r->message, "%s", line + length + 1);
    for (size_t v = 0; v < VERDICT_COUNT; v++)
        if (strcmp(word, verdict_words[v]) == 0) {
            r->verdict = (verdict)v;
            r->ran = true;
        }
    return r->ran;
}

static bool parse_line(conform_job *j, const char *line)
{
    unsigned long long index;
    if (strncmp(line, "end ", 4) == 0)
        return parse_end_line(j, line);
    if (sscanf(line, "begin %llu", &index) != 1 || index >= j->cases.count)
        return false;
    j->begun[index] = (uint8_t)MIN(j->begun[index] + 1, 2);
    return true;
}

/* Parses the lines behind the header, and ends each with a zero. `length` is where the last
 * complete line ends. */
static rlxvk_status parse_lines(conform_job *j, char *all, size_t begin, size_t length)
{
    for (char *line = all + begin, *end; line < all + length; line = end + 1) {
        end = memchr(line, '\n', (size_t)(all + length - line));
        *end = 0;
        if (!parse_line(j, line))
            return status_fail(RLXVK_E_ATTR, "--resume %s: a line is not understood: '%.100s'",
                               j->options->resume, line);
    }
    return RLXVK_OK;
}

static rlxvk_status fail_file(const conform_job *j, int error)
{
    if (error == EBUSY)
        return status_fail(RLXVK_E_FILE, "--resume %s: another run writes this file",
                           j->options->resume);
    return status_fail(RLXVK_E_FILE, "--resume %s: %s", j->options->resume, strerror(error));
}

/* Reads what is there. *out_length is the length to keep; 0: there is no complete header. */
static rlxvk_status read_file(conform_job *j, const char *header, size_t *out_length)
{
    file_content content;
    char *all = NULL;
    rlxvk_status status;
    *out_length = 0;
    TRY(file_read(j->options->resume, &content));
    all = memory_zeroed(content.length + 1, 1);
    if (!all)
        status = status_fail_memory("results");
    else if (content.length)
        memcpy(all, content.data, content.length);
    file_free(&content);
    TRY(status);
    size_t length = strlen(all), whole = strlen(header);
    if (length < whole && strncmp(all, header, length) == 0)
        goto error; /* a reboot came before the header was complete */
    if (strncmp(all, header, whole) != 0)
        TRY(refuse(j, all, header));
    while (length > whole && all[length - 1] != '\n')
        length--;
    TRY(parse_lines(j, all, whole, length));
    *out_length = length;
error:
    memory_free(all);
    return status;
}

/* ---- The file ---- */

static int write_and_keep(const conform_job *j, const text *line)
{
    int error = system_output_write(&j->resume_file, line->buffer, line->length);
    return error ? error : system_output_keep(&j->resume_file);
}

rlxvk_status conform_resume_open(conform_job *j)
{
    char header[HEADER_BYTES] = "";
    text t = {header, sizeof header, 0};
    size_t kept = 0;
    rlxvk_status status;
    append_header(j, &t);
    j->begun = memory_zeroed(j->cases.count + 1, sizeof *j->begun);
    if (!j->begun)
        return status_fail_memory("cases");
    int error = system_output_open(j->options->resume, true, &j->resume_file);
    if (error)
        return fail_file(j, error);
    error = system_output_lock(&j->resume_file);
    status = error ? fail_file(j, error) : read_file(j, header, &kept);
    if (status == RLXVK_OK && ((error = system_output_cut(&j->resume_file, kept)) != 0 ||
                               (kept == 0 && (error = write_and_keep(j, &t)) != 0)))
        status = fail_file(j, error);
    if (status != RLXVK_OK) {
        (void)!system_output_close(&j->resume_file);
        return status;
    }
    j->resumes = true;
    return RLXVK_OK;
}

rlxvk_status conform_resume_join(conform_job *j)
{
    int error = system_output_open(j->options->resume, true, &j->resume_file);
    j->resumes = error == 0;
    return error ? fail_file(j, error) : RLXVK_OK;
}

void conform_resume_close(conform_job *j)
{
    if (j->resumes)
        (void)!system_output_close(&j->resume_file);
    memory_free(j->begun);
    j->begun = NULL;
    j->resumes = false;
}

static void write_line(const conform_job *j, const text *line)
{
    int error = write_and_keep(j, line);
    if (error)
        j->common->resume_error = error;
}

void conform_resume_begin(const conform_job *j, size_t i)
{
    char buffer[LINE_BYTES] = "", row[40];
    text line = {buffer, sizeof buffer, 0};
    if (!j->resumes)
        return;
    text_append(&line, "begin %zu %s case %llu\n", i, conform_row_of(&j->cases.items[i], row),
                (unsigned long long)j->cases.items[i].number);
    write_line(j, &line);
}

void conform_resume_end(const conform_job *j, size_t i)
{
    char buffer[LINE_BYTES] = "";
    text line = {buffer, sizeof buffer, 0};
    if (!j->resumes)
        return;
    append_end(j, i, &line);
    write_line(j, &line);
}
