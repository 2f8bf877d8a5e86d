//! Finding a field by its name in one step. The build script makes the tables of built-in types with the same code.

/// Bytes of table for each field of a schema: a type's table begins at this many times its first field.
pub(crate) const TABLE_BYTES_PER_FIELD: usize = 4;

/// Types with more fields have no table and are searched.
const TABLE_FIELDS_MAX: usize = 255;

/// The size of the table of a type with `n_fields` fields; 0 for none.
pub(crate) fn table_len(n_fields: usize) -> usize {
    if n_fields > TABLE_FIELDS_MAX {
        0
    } else {
        (2 * n_fields).next_power_of_two().min(TABLE_BYTES_PER_FIELD * n_fields)
    }
}

/// Mixes the length and the ends of a name: field names rarely agree in these.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let word = |part: &[u8]| part.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let n_end = bytes.len().min(6);
    let mixed = word(&bytes[..n_end]) ^ word(&bytes[bytes.len() - n_end..]).rotate_left(29) ^ bytes.len() as u64;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// Fills the table of a type: each byte is 0 or the position of a field, counted from 1.
pub(crate) fn fill<'n>(table: &mut [u8], names: impl Iterator<Item = &'n str>) {
    if table.is_empty() {
        return;
    }
    for (idx, name) in names.enumerate() {
        let mut at = hash(name) & (table.len() - 1);
        while table[at] != 0 {
            at = (at + 1) & (table.len() - 1);
        }
        table[at] = u8::try_from(idx + 1).unwrap_or_default();
    }
}

/// The position of the field for which `is_it` holds, given its name.
pub(crate) fn find(table: &[u8], name: &str, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
    let mut at = hash(name) & (table.len() - 1);
    loop {
        match usize::from(table[at]) {
            0 => return None,
            position if is_it(position - 1) => return Some(position - 1),
            _ => at = (at + 1) & (table.len() - 1),
        }
    }
}
