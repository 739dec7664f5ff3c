/*
 * Writes the flag behind the image and the gradients. It is 0, or the number of entries that the
 * list would have, if that is more than its room. The includer declares `args`, prepared[] and y[],
 * and includes layout.glsl first.
 */
void store_flag()
{
    uint entries = prepared[parameters_at() + 10u];
    if (global_index() == 0u && args.flag_offset != SPLAT_NO_FLAG)
        y[args.flag_offset] = entries > args.list_most ? float(entries) : 0.0;
}
