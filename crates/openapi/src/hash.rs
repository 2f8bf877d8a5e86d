//! A name for content: clients ask again when it changes. Nothing is kept secret or safe by it.

/// FNV-1a of 128 bits, over parts with their lengths.
pub(crate) fn of(parts: &[&[u8]]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = OFFSET;
    let mut add = |byte: u8| hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    for part in parts {
        part.len().to_le_bytes().into_iter().for_each(&mut add);
        part.iter().copied().for_each(&mut add);
    }
    hash
}

/// The hash as clients see it.
pub(crate) fn text(hash: u128) -> String {
    format!("{hash:032X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_eq!(text(of(&[])), "6C62272E07BB014262B821756295C58D");
    }
}
