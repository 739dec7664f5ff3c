/* rlxvk ops: the op table as Markdown, a line per family; README.md carries it (make readme). */
#include "cli/commands.h"
#include "conform/golden.h"
#include "cli/output.h"
#include "op/op.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: rlxvk ops [--golden DIR]\n\n"
    "Prints the op table as Markdown: for every family its rows, where they\n"
    "run, and how many conformance cases and golden vectors check them.\n\n"
    "      --golden DIR  count the vectors of this folder\n";

typedef struct counts {
    size_t cases[OP_COUNT], golden[OP_COUNT];
} counts;

static void count_line(const char *line, size_t *per_row)
{
    char row[64] = "";
    size_t length = strcspn(line, " ");
    if (length >= sizeof row)
        return;
    memcpy(row, line, length);
    op_kind op = op_find(row);
    if (op != OP_COUNT)
        per_row[op]++;
}

static rlxvk_status count_all(const char *golden, counts *out)
{
    case_list cases = {0};
    golden_set set = {0};
    rlxvk_status status;
    TRY(case_list_generate(&cases));
    for (size_t i = 0; i < cases.lines.count; i++)
        count_line(cases.lines.items[i], out->cases);
    if (golden)
        TRY(golden_open(golden, &set));
    for (size_t i = 0; i < set.cases.count; i++)
        count_line(set.cases.items[i].spec.row, out->golden);
error:
    case_list_destroy(&cases);
    golden_close(&set);
    return status;
}

static const char *where(const op_family *family)
{
    return family->lower ? "kernel" : family->view ? "view" : "leaf";
}

static void print_family(uint32_t first, const counts *c)
{
    const op_family *family = op_table[first].family;
    size_t cases = 0, golden = 0;
    printf("| %s | ", family->name);
    for (uint32_t i = first; i < OP_COUNT; i++) {
        if (op_table[i].family != family)
            continue;
        printf("%s%s", i == first ? "" : " ", op_table[i].name);
        cases += c->cases[i];
        golden += c->golden[i];
    }
    printf(" | %s | %s | %zu | %zu |\n", where(family), family->host ? "yes" : "-", cases, golden);
}

static bool is_first_of_family(uint32_t row)
{
    for (uint32_t i = 0; i < row; i++)
        if (op_table[i].family == op_table[row].family)
            return false;
    return true;
}

int command_ops(int argc, char **argv)
{
    static const struct option long_options[] = {{"golden", required_argument, NULL, 'g'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    const char *golden = NULL;
    counts c = {0};
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        if (letter == 'h')
            return print_help(help);
        if (letter != 'g')
            return EXIT_USAGE;
        golden = optarg;
    }
    if (!parse_end(argc, argv, optind))
        return EXIT_USAGE;
    rlxvk_status status = count_all(golden, &c);
    if (status != RLXVK_OK) {
        report_status(status);
        return EXIT_FAILED;
    }
    printf(
        "| family | rows | GPU | host reference | cases | golden |\n|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (is_first_of_family(i))
            print_family(i, &c);
    return EXIT_OK;
}
