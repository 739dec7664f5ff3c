/* Malformed GGUF files: each fault must give its own status and name the byte of the fault. */
#include "unit/model/gguf_builder.h"
#include "op/packed/quant_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

/* Each builder sets `fault` to the offset that the error must name. */

static void start(builder *b, uint64_t tensors, uint64_t pairs)
{
    put_header(b, 3, tensors, pairs);
}
static void pad(builder *b)
{
    for (int i = 0; i < 200; i++)
        put(b, 0, 1);
}
static void mark(builder *b)
{
    b->fault = b->length;
}

static void short_file(builder *b)
{
    start(b, 0, 0);
    b->length = 15;
    mark(b);
}
static void short_version_3(builder *b)
{
    start(b, 0, 0);
    b->length = 23;
    mark(b);
}
static void cut_value(builder *b)
{
    start(b, 0, 1);
    put_key(b, "a", GGUF_U64);
    mark(b);
    put(b, 0, 7);
}
static void wrong_magic(builder *b)
{
    start(b, 0, 0);
    b->bytes[3] = 'f';
}
static void version_0(builder *b)
{
    put_header(b, 0, 0, 0);
    b->fault = 4;
}
static void version_4(builder *b)
{
    put_header(b, 4, 0, 0);
    b->fault = 4;
}
static void big_endian(builder *b)
{
    put_header(b, 0x03000000, 0, 0);
    b->fault = 4;
}
static void many_tensors(builder *b)
{
    start(b, 9, 0);
    b->fault = 8;
    pad(b);
}
static void many_pairs(builder *b)
{
    start(b, 0, 15);
    b->fault = 16;
    pad(b);
}
static void count_above_limit(builder *b)
{
    start(b, UINT64_MAX, 0);
    b->fault = 8;
    pad(b);
}
static void long_key(builder *b)
{
    start(b, 0, 1);
    mark(b);
    put_count(b, 300);
    pad(b);
}
static void long_string(builder *b)
{
    start(b, 0, 1);
    put_key(b, "a", GGUF_STRING);
    mark(b);
    put_count(b, (uint64_t)1 << 60);
    pad(b);
}
static void long_array(builder *b)
{
    start(b, 0, 1);
    put_key(b, "a", GGUF_ARRAY);
    put(b, GGUF_U64, 4);
    mark(b);
    put_count(b, 26);
    pad(b);
}
static void long_string_array(builder *b)
{
    start(b, 0, 1);
    put_key(b, "a", GGUF_ARRAY);
    put(b, GGUF_STRING, 4);
    mark(b);
    put_count(b, (uint64_t)1 << 61);
    pad(b);
}
static void long_tensor_name(builder *b)
{
    start(b, 1, 0);
    mark(b);
    put_count(b, UINT64_MAX);
    pad(b);
}
static void empty_key(builder *b)
{
    start(b, 0, 1);
    mark(b);
    put_u32(b, "", 0);
}
static void spaced_key(builder *b)
{
    start(b, 0, 1);
    b->fault = b->length + 8 + 1;
    put_u32(b, "a b", 0);
}
static void same_key(builder *b)
{
    start(b, 0, 2);
    put_u32(b, "a", 0);
    b->fault = b->length + 8;
    put_u32(b, "a", 0);
}
static void unknown_value_type(builder *b)
{
    start(b, 0, 1);
    put_string(b, "a");
    mark(b);
    put(b, 13, 4);
    pad(b);
}
static void nested_array(builder *b)
{
    start(b, 0, 1);
    put_key(b, "a", GGUF_ARRAY);
    mark(b);
    put(b, GGUF_ARRAY, 4);
    pad(b);
}
static void bool_of_2(builder *b)
{
    start(b, 0, 1);
    put_array(b, "a", GGUF_BOOL, 3);
    put(b, 0x0001, 2);
    mark(b);
    put(b, 2, 1);
}
static void alignment_u64(builder *b)
{
    start(b, 0, 1);
    put_key(b, "general.alignment", GGUF_U64);
    mark(b);
    put(b, 32, 8);
}
static void alignment_of(builder *b, uint32_t alignment)
{
    start(b, 0, 1);
    put_key(b, "general.alignment", GGUF_U32);
    mark(b);
    put(b, alignment, 4);
}
static void alignment_0(builder *b)
{
    alignment_of(b, 0);
}
static void alignment_4(builder *b)
{
    alignment_of(b, 4);
}
static void alignment_48(builder *b)
{
    alignment_of(b, 48);
}
static void alignment_large(builder *b)
{
    alignment_of(b, 1 << 21);
}

static void tensor_name(builder *b, const char *name, size_t length)
{
    start(b, 1, 0);
    mark(b);
    put_bytes(b, name, length);
    pad(b);
}
static void empty_name(builder *b)
{
    tensor_name(b, "", 0);
}
static void name_of_256(builder *b)
{
    char name[256];
    memset(name, 'a', sizeof name);
    tensor_name(b, name, sizeof name);
}
static void name_with_nul(builder *b)
{
    tensor_name(b, "a\0b", 3);
}
static void name_not_utf8(builder *b)
{
    tensor_name(b, "a\xc0\x80", 3);
}
static void same_name(builder *b)
{
    start(b, 2, 0);
    put_tensor(b, "a", QUANT_F32, 0, 0, NULL);
    mark(b);
    put_tensor(b, "a", QUANT_F32, 32, 0, NULL);
    put_data(b, 32, 64);
}
static void rank_5(builder *b)
{
    start(b, 1, 0);
    put_string(b, "a");
    mark(b);
    put(b, 5, 4);
    pad(b);
}
static void dim_of_2_63(builder *b)
{
    start(b, 1, 0);
    b->fault = b->length + 8 + 1 + 4;
    put_tensor(b, "a", QUANT_F32, 0, 1, (uint64_t[]){(uint64_t)1 << 63});
    put_data(b, 32, 64);
}
static void dims_overflow(builder *b)
{
    start(b, 1, 0);
    b->fault = b->length + 8 + 1 + 4 + 16;
    put_tensor(b, "a", QUANT_F32, 0, 3, (uint64_t[]){0, 1u << 31, (uint64_t)1 << 33});
    put_data(b, 32, 64);
}

static void tensor_with(builder *b, uint32_t type, uint64_t dim, size_t fault_field)
{
    start(b, 1, 0);
    b->fault = b->length + 8 + 1 + 4 + 8 + fault_field;
    put_tensor(b, "a", type, 0, 1, &dim);
    put_data(b, 32, 64);
}
static void withdrawn_type(builder *b)
{
    tensor_with(b, 4, 32, 0);
}
static void unknown_type(builder *b)
{
    tensor_with(b, 43, 32, 0);
}
static void broken_block(builder *b)
{
    tensor_with(b, QUANT_Q8_0, 33, 0);
}
static void payload_overflow(builder *b)
{
    tensor_with(b, QUANT_F64, (uint64_t)1 << 62, 0);
}
static void past_the_end(builder *b)
{
    tensor_with(b, QUANT_F32, 17, 4);
}

static void offset_of(builder *b, uint64_t offset)
{
    start(b, 1, 0);
    b->fault = b->length + 8 + 1 + 4 + 4;
    put_tensor(b, "a", QUANT_F32, offset, 0, NULL);
    put_data(b, 32, 64);
}
static void odd_offset(builder *b)
{
    offset_of(b, 16);
}
static void far_offset(builder *b)
{
    offset_of(b, 64);
}
static void overflowing_offset(builder *b)
{
    offset_of(b, UINT64_MAX - 31);
}
static void overlap(builder *b)
{
    start(b, 2, 0);
    b->fault = b->length + 8 + 1 + 4 + 8 + 4;
    put_tensor(b, "a", QUANT_F32, 32, 1, (uint64_t[]){2});
    put_tensor(b, "b", QUANT_F32, 0, 1, (uint64_t[]){9});
    put_data(b, 32, 64);
}

#define CASE(build, status)                                                                        \
    {                                                                                              \
#build, build, GGUF_##status                                                               \
    }
static const struct malformed_case {
    const char *name;
    void (*build)(builder *b);
    gguf_status status;
} malformed_cases[] = {
    CASE(short_file, E_TRUNCATED),     CASE(short_version_3, E_TRUNCATED),
    CASE(cut_value, E_TRUNCATED),      CASE(wrong_magic, E_MAGIC),
    CASE(version_0, E_VERSION),        CASE(version_4, E_VERSION),
    CASE(big_endian, E_ENDIAN),        CASE(many_tensors, E_COUNT),
    CASE(many_pairs, E_COUNT),         CASE(count_above_limit, E_COUNT),
    CASE(long_key, E_COUNT),           CASE(long_string, E_COUNT),
    CASE(long_array, E_COUNT),         CASE(long_string_array, E_COUNT),
    CASE(long_tensor_name, E_COUNT),   CASE(empty_key, E_KEY),
    CASE(spaced_key, E_KEY),           CASE(same_key, E_KEY),
    CASE(unknown_value_type, E_VALUE), CASE(nested_array, E_VALUE),
    CASE(bool_of_2, E_VALUE),          CASE(alignment_u64, E_ALIGN),
    CASE(alignment_0, E_ALIGN),        CASE(alignment_4, E_ALIGN),
    CASE(alignment_48, E_ALIGN),       CASE(alignment_large, E_ALIGN),
    CASE(empty_name, E_NAME),          CASE(name_of_256, E_NAME),
    CASE(name_with_nul, E_NAME),       CASE(name_not_utf8, E_NAME),
    CASE(same_name, E_NAME),           CASE(rank_5, E_SHAPE),
    CASE(dim_of_2_63, E_SHAPE),        CASE(dims_overflow, E_SHAPE),
    CASE(withdrawn_type, E_TYPE),      CASE(unknown_type, E_TYPE),
    CASE(broken_block, E_SHAPE),       CASE(payload_overflow, E_SHAPE),
    CASE(past_the_end, E_OFFSET),      CASE(odd_offset, E_OFFSET),
    CASE(far_offset, E_OFFSET),        CASE(overflowing_offset, E_OFFSET),
    CASE(overlap, E_OFFSET),
};

static void test_malformed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(malformed_cases); i++) {
        builder b = {.fault = 0};
        gguf_status status;
        uint8_t *copy;
        char place[64];
        malformed_cases[i].build(&b);
        gguf_file *file = parse_copy(&b, b.length, &status, &copy);
        snprintf(place, sizeof place, "byte %llu:", (unsigned long long)b.fault);
        if (status != malformed_cases[i].status || strstr(rlxvk_last_error(), place) == NULL)
            fail_msg("%s: %s, '%s', expected %s at %s", malformed_cases[i].name,
                     gguf_status_name(status), rlxvk_last_error(),
                     gguf_status_name(malformed_cases[i].status), place);
        assert_null(file);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_malformed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
