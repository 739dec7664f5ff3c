/* Members of public structs that were renamed: #define OLD NEW. Include it after no other header.
 */
#define family kind /* of rlxvk_variant, since 0.2 */
