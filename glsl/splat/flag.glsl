/* What the image and the gradients have behind them: 0, or how many entries the list would have
 * where that is more than it has room for. `args`, prepared[], y[] and layout.glsl are before. */
void store_flag()
{
    uint entries = prepared[parameters_at() + 10u];
    if (global_index() == 0u && args.flag_offset != SPLAT_NO_FLAG)
        y[args.flag_offset] = entries > args.list_most ? float(entries) : 0.0;
}
