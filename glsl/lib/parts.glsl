/*
 * Where an element of y lies whose columns are cut into up to three parts, each a matrix of its own
 * behind the one before: the columns before ends[0], those before ends[1] and those before
 * `columns`. Of a whole y both ends are `columns`, which may be more than it has: rows lie as far
 * apart.
 */
uint place_in_parts(uint row, uint column, uint rows, uint columns, uint ends[2])
{
    uint first = column < ends[0] ? 0 : column < ends[1] ? ends[0] : ends[1];
    uint end = column < ends[0] ? ends[0] : column < ends[1] ? ends[1] : columns;
    return first * rows + row * (end - first) + column - first;
}
