/* Half `index` of a word of packed halves (its last bit counts), as f32. The includer declares
 * STORAGE, MATMUL_F16 or MATMUL_BF16. */
float half_of(uint word, uint index)
{
    uint bits = (index & 1) != 0 ? word >> 16 : word & 0xffff;
    return STORAGE == MATMUL_F16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
}
