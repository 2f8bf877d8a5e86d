//! The members of a JSON object: a vector sorted by key. Objects of the API have few members, for which this is the
//! smallest and quickest map; large ones (a ConfigMap's data) are built once by [`Object::from_unsorted`].

use super::Value;
use crate::Str;

/// A JSON object, its members sorted by key, each key once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Strictly ascending by key.
    entries: Vec<(Str, Value)>,
}

impl Object {
    /// An object without members.
    pub const fn new() -> Object {
        Object { entries: Vec::new() }
    }

    /// An empty object with room for `n_members`.
    pub fn with_capacity(n_members: usize) -> Object {
        Object { entries: Vec::with_capacity(n_members) }
    }

    /// The object with these members; of members with the same key the last one counts.
    pub fn from_unsorted(mut entries: Vec<(Str, Value)>) -> Object {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            // dedup_by keeps the first of a run, the last one counts: so the values move to the front
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(&mut later.1, &mut earlier.1);
                }
                same
            });
        }
        let object = Object { entries };
        object.check();
        object
    }

    /// The field comments above, executed.
    fn check(&self) {
        debug_assert!(self.entries.is_sorted_by(|a, b| a.0 < b.0), "members are sorted and unique");
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        // Most objects are small: a forward scan that compares lengths first beats a binary search there.
        if self.entries.len() <= 8 {
            for (idx, (k, _)) in self.entries.iter().enumerate() {
                match k.as_str().cmp(key) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Ok(idx),
                    std::cmp::Ordering::Greater => return Err(idx),
                }
            }
            return Err(self.entries.len());
        }
        self.entries.binary_search_by(|(k, _)| k.as_str().cmp(key))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The member `key`, which may be `null`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).ok().map(|idx| &self.entries[idx].1)
    }

    /// The member `key` for change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self.find(key) {
            Ok(idx) => Some(&mut self.entries[idx].1),
            Err(_) => None,
        }
    }

    /// Whether there is a member `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// Sets a member; answers the value it had.
    pub fn insert(&mut self, key: impl AsRef<str>, value: Value) -> Option<Value> {
        let key = key.as_ref();
        match self.find(key) {
            Ok(idx) => Some(std::mem::replace(&mut self.entries[idx].1, value)),
            Err(idx) => {
                self.entries.insert(idx, (Str::new(key), value));
                None
            }
        }
    }

    /// The member `key` for change, made as `null` when absent.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        let idx = match self.find(key) {
            Ok(idx) => idx,
            Err(idx) => {
                self.entries.insert(idx, (Str::new(key), Value::Null));
                idx
            }
        };
        &mut self.entries[idx].1
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key).ok().map(|idx| self.entries.remove(idx).1)
    }

    /// The members, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Value)> + DoubleEndedIterator {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// The members with values for change, sorted by key.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Str, &mut Value)> {
        self.entries.iter_mut().map(|(k, v)| (&*k, v))
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Str> {
        self.entries.iter().map(|(k, _)| k)
    }

    /// The values, sorted by key.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.entries.iter().map(|(_, v)| v)
    }

    /// The values for change, sorted by key.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Value> {
        self.entries.iter_mut().map(|(_, v)| v)
    }

    /// Keeps the members for which `keep` answers true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Str, &mut Value) -> bool) {
        self.entries.retain_mut(|(k, v)| keep(k, v));
    }

    /// Removes every member.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Gives back memory that was reserved for members that never came.
    pub fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }
}

impl IntoIterator for Object {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Into<Str>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Object {
        Object::from_unsorted(members.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_counts() {
        let object = Object::from_iter([("b", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)]);
        assert_eq!(Value::Object(object).to_json_string(), r#"{"a":4,"b":5}"#);
    }

    #[test]
    fn insert_find_remove_in_large_objects() {
        let mut object = Object::new();
        for i in (0..100).rev() {
            object.insert(format!("k{i:03}"), Value::Int(i));
        }
        assert_eq!(object.len(), 100);
        assert_eq!(object.get("k042"), Some(&Value::Int(42)));
        assert_eq!(object.remove("k042"), Some(Value::Int(42)));
        assert_eq!(object.get("k042"), None);
        object.check();
    }
}
