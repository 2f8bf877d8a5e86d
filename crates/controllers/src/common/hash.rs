//! The hash of a pod template, as it stands in names and in the label `pod-template-hash`.
//!
//! Follows: kubernetes/pkg/controller/controller_utils.go ComputeHash (v1.35): 32 bits of FNV-1a, written in an
//! alphabet without vowels. Differs: upstream hashes Go's dump of the structure, this the JSON with sorted keys, so the
//! values differ; nothing reads them but whoever made them.

use serde::Serialize;

/// The alphabet of generated names: no vowels and no look-alikes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// 32 bits of FNV-1a.
#[derive(Clone, Copy, Debug)]
struct Fnv32a(u32);

impl Fnv32a {
    const OFFSET: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;

    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(Fnv32a::PRIME);
        }
    }
}

/// Each character replaced by one that is safe in a name and spells nothing.
pub(crate) fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// The hash of a template. `collision_count` makes another one when the first is taken.
pub(crate) fn compute_hash(template: &impl Serialize, collision_count: Option<i32>) -> String {
    // maps of Rust types are sorted, so the JSON of equal templates is equal; a template of the API has a JSON form
    safe_fnv(&serde_json::to_vec(template).unwrap_or_default(), collision_count)
}

/// The hash of bytes, written like that of a template.
pub(crate) fn safe_fnv(bytes: &[u8], collision_count: Option<i32>) -> String {
    let mut hash = Fnv32a(Fnv32a::OFFSET);
    hash.update(bytes);
    if let Some(count) = collision_count {
        hash.update(&i64::from(count).to_le_bytes()[..4]);
    }
    safe_encode(&hash.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_stable_and_safe() {
        let hash = |count| compute_hash(&serde_json::json!({"spec": {"a": 1}}), count);
        assert_eq!(hash(None), hash(None));
        assert_ne!(hash(None), hash(Some(1)));
        assert_ne!(hash(Some(1)), hash(Some(2)));
        assert!(hash(None).bytes().all(|byte| ALPHABET.contains(&byte)));
        // the reference value of FNV-1a
        let mut fnv = Fnv32a(Fnv32a::OFFSET);
        fnv.update(b"foobar");
        assert_eq!(fnv.0, 0xbf9c_f968);
    }
}
