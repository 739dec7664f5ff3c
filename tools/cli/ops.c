/* rlxvk ops: prints the op table as Markdown, a line for each family. include/OPS.md has it (make
 * readme). */
#include "cli/commands.h"
#include "cli/ops_gradient.h"
#include "conform/golden.h"
#include "cli/output.h"
#include "op/op.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: rlxvk ops [--golden DIR]\n\n"
    "Prints the op table as Markdown: for every family its rows, where they\n"
    "run, how many conformance cases and golden vectors check them, and which\n"
    "operands have gradients.\n\n"
    "      --golden DIR  count the vectors of this folder\n";

#define NAMES 256

typedef struct counts {
    size_t cases[OP_COUNT], golden[OP_COUNT];
    char gradients[OP_COUNT][NAMES]; /* operands with gradients, stored under the first row of the
                                        family */
} counts;

static uint32_t first_of_family(uint32_t row)
{
    uint32_t first = 0;
    while (op_table[first].family != op_table[row].family)
        first++;
    return first;
}

static op_kind row_of(const char *line)
{
    char row[64] = "";
    size_t length = strcspn(line, " ");
    if (length >= sizeof row)
        return OP_COUNT;
    memcpy(row, line, length);
    return op_find(row);
}

static rlxvk_status count_case(const char *line, counts *out)
{
    op_kind op = row_of(line);
    if (op == OP_COUNT)
        return RLXVK_OK;
    char *names = out->gradients[first_of_family(op)];
    text list = {names, NAMES, strlen(names)};
    out->cases[op]++;
    return ops_gradient_names(line, &list);
}

static rlxvk_status count_all(const char *golden, counts *out)
{
    case_list cases = {0};
    golden_set set = {0};
    rlxvk_status status;
    TRY(case_list_generate(&cases));
    for (size_t i = 0; i < cases.lines.count; i++)
        TRY(count_case(cases.lines.items[i], out));
    if (golden)
        TRY(golden_open(golden, &set));
    for (size_t i = 0; i < set.cases.count; i++) {
        op_kind op = row_of(set.cases.items[i].spec.row);
        if (op != OP_COUNT)
            out->golden[op]++;
    }
error:
    case_list_destroy(&cases);
    golden_close(&set);
    return status;
}

static const char *where(const op_family *family)
{
    return family->execution.lower ? "kernel" : family->views.view ? "view" : "leaf";
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
    printf(" | %s | %s | %zu | %zu | %s |\n", where(family), family->execution.host ? "yes" : "-",
           cases, golden, *c->gradients[first] ? c->gradients[first] : "-");
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
    printf("| family | rows | GPU | host reference | cases | golden | gradients of |\n"
           "|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (first_of_family(i) == i)
            print_family(i, &c);
    return EXIT_OK;
}
