/* The expressions of rlxvk bench --filter, by hand and by chance against those of the C library. */
#include "bench/pattern.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#ifdef __GLIBC__
enum { GLIBC = 1 };
#else
enum { GLIBC = 0 };
#endif

static void expressions_match(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } table[] = {{"conv", "a conv of 3x3", true},
                 {"^conv", "a conv", false},
                 {"conv$", "a conv", true},
                 {"^(conv|matmul) [0-9]+x[0-9]+$", "matmul 12x8", true},
                 {"^(conv|matmul) [0-9]+x[0-9]+$", "matmul 12x", false},
                 {"a.c", "abc", true},
                 {"a\\.c", "abc", false},
                 {"^[^ab]*$", "xyz", true},
                 {"^[^ab]*$", "xaz", false},
                 {"^a{2,3}$", "aaaa", false},
                 {"^a{2,}$", "aaaa", true},
                 {"^(a*)*$", "aaaab", false},
                 {"^(ab?)+c?$", "aababc", true},
                 {"[]x]", "]", true}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_true(pattern_is_valid(table[i].pattern));
        if (pattern_matches(table[i].pattern, table[i].text) != table[i].matches)
            fail_msg("%s with %s", table[i].pattern, table[i].text);
    }
}

static void wrong_expressions_are_refused(void **state)
{
    static const char *const wrong[] = {"",   "(a", "a)", "[a",     "a\\",
                                        "*a", "a|", "|a", "a{3,2}", "()"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (pattern_is_valid(wrong[i]))
            fail_msg("'%s' is taken", wrong[i]);
}

static uint64_t random_state = 1;

static unsigned below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

/* musl mistakes some anchors in the middle: (a|b)?^$|^ with the text aaba, .(^)? with abaa. */
static bool has_inner_anchor(const char *pattern)
{
    const char *end = strchr(pattern, '$');
    return (*pattern && strchr(pattern + 1, '^')) || (end && end[1]);
}

static void the_c_library_agrees(void **state)
{
    static const char *const parts[] = {"a", "b", ".", "[ab]",  "[^a]", "(", ")",     "|",
                                        "*", "+", "?", "{1,2}", "^",    "$", "(a|b)", "(ab)*"};
    unsigned compared = 0, matched = 0;
    (void)state;
    for (int i = 0; i < 40000; i++) {
        char pattern[96] = "", subject[16] = "";
        regex_t r;
        for (unsigned k = 1 + below(6); k; k--)
            strcat(pattern, parts[below(sizeof parts / sizeof *parts)]);
        for (unsigned k = below(8); k; k--)
            strcat(subject, below(2) ? "a" : "b");
        /* What repeats an anchor or another count is undefined in POSIX. */
        if (!pattern_is_valid(pattern) || strstr(pattern, "^*") || strstr(pattern, "^+") ||
            strstr(pattern, "^?") || strstr(pattern, "^{") || strstr(pattern, "$*") ||
            strstr(pattern, "$+") || strstr(pattern, "$?") || strstr(pattern, "${") ||
            (!GLIBC && has_inner_anchor(pattern)) ||
            regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0)
            continue;
        bool found = regexec(&r, subject, 0, NULL, 0) == 0;
        regfree(&r);
        compared++;
        matched += found;
        if (pattern_matches(pattern, subject) != found)
            fail_msg("'%s' with '%s': the C library says %d", pattern, subject, found);
    }
    assert_in_range(compared, 5000, 40000);
    assert_in_range(matched, compared / 10, compared - compared / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_match),
        cmocka_unit_test(wrong_expressions_are_refused),
        cmocka_unit_test(the_c_library_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
