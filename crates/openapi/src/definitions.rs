//! The definitions of built-in types, unpacked while a document is made.

use flate2::read::ZlibDecoder;
use std::collections::BTreeSet;
use std::io::Read as _;

include!(concat!(env!("OUT_DIR"), "/definitions.rs"));

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/definitions.z"));

/// What the definitions are packed into: changes when they do.
pub(crate) fn packed() -> &'static [u8] {
    PACKED
}

/// All definitions, sorted by name.
#[derive(Debug)]
pub(crate) struct Definitions {
    text: String,
}

/// A built-in type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition<'t> {
    /// Such as `io.k8s.api.core.v1.Pod`.
    pub(crate) name: &'t str,
    /// The names that its schema refers to, separated by commas.
    refs: &'t str,
    /// The schema in the form of OpenAPI v3.
    pub(crate) json: &'t str,
}

impl Definitions {
    /// Unpacks them: 1 MB, for as long as the answer lives.
    pub(crate) fn unpack() -> Definitions {
        let mut text = String::with_capacity(UNPACKED_BYTES);
        let read = ZlibDecoder::new(PACKED).read_to_string(&mut text);
        debug_assert_eq!(read.ok(), Some(UNPACKED_BYTES), "the build script packed it");
        Definitions { text }
    }

    /// All of them, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Definition<'_>> {
        self.text.lines().filter_map(|line| {
            let (name, rest) = line.split_once('\t')?;
            let (refs, json) = rest.split_once('\t')?;
            Some(Definition { name, refs, json })
        })
    }

    /// Those that are needed where `roots` are referred to, sorted by name.
    pub(crate) fn needed(&self, roots: BTreeSet<String>) -> Vec<Definition<'_>> {
        let all: Vec<Definition<'_>> = self.iter().collect();
        let find = |name: &str| all.binary_search_by(|d| d.name.cmp(name)).ok();
        let mut is_needed = vec![false; all.len()];
        let mut pending: Vec<usize> = roots.iter().filter_map(|name| find(name)).collect();
        while let Some(idx) = pending.pop() {
            if !std::mem::replace(&mut is_needed[idx], true) {
                pending.extend(all[idx].refs.split(',').filter_map(find));
            }
        }
        all.into_iter().zip(is_needed).filter(|(_, is_needed)| *is_needed).map(|(definition, _)| definition).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_are_there_and_refer_to_each_other() {
        let definitions = Definitions::unpack();
        let names: Vec<&str> = definitions.iter().map(|d| d.name).collect();
        assert_eq!(names.len(), 570);
        assert!(names.is_sorted());
        let pod = definitions.needed(BTreeSet::from(["io.k8s.api.core.v1.Pod".to_owned()]));
        assert!(pod.iter().any(|d| d.name == "io.k8s.apimachinery.pkg.api.resource.Quantity"));
        assert!(!pod.iter().any(|d| d.name == "io.k8s.api.core.v1.Service"));
        let prose = pod.iter().filter(|d| d.json.contains("\"description\"")).count();
        assert_eq!(prose, pod.len(), "every type says what it is");
    }
}
