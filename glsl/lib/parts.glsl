/*
 * The index of an element of y, if the columns of y are split into up to three parts. Each part is
 * a matrix of its own, stored behind the previous one: the columns before ends[0], those before
 * ends[1] and those before `columns`. If y is not split, both ends equal `columns`, which is then
 * the stride between rows and may exceed the number of columns.
 */
uint place_in_parts(uint row, uint column, uint rows, uint columns, uint ends[2])
{
    uint first = column < ends[0] ? 0 : column < ends[1] ? ends[0] : ends[1];
    uint end = column < ends[0] ? ends[0] : column < ends[1] ? ends[1] : columns;
    return first * rows + row * (end - first) + column - first;
}
