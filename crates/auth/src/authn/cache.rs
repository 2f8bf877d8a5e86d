//! Bearer tokens that were good a moment ago.

use super::Authenticated;
use indexmap::IndexMap;
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use ring::hmac;
use ring::rand::SystemRandom;

/// How long a good token is not looked at again, in seconds. As upstream.
pub const TOKEN_CACHE_TTL_SECONDS: i64 = 10;

/// How many tokens are remembered. At the limit the oldest are forgotten.
pub const TOKEN_CACHE_ENTRIES_MAX: usize = 32 * 1024;

/// A digest of a token and its audiences under a key of this process, so that no token is kept in memory.
pub(super) type Key = [u8; 32];

#[derive(Debug)]
pub(super) struct TokenCache {
    secret: Option<hmac::Key>,
    entries: Mutex<IndexMap<Key, (Timestamp, Authenticated)>>,
}

impl Default for TokenCache {
    fn default() -> TokenCache {
        // without random numbers there is no cache; nothing else depends on it
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok();
        TokenCache { secret, entries: Mutex::default() }
    }
}

impl TokenCache {
    pub(super) fn key(&self, token: &str, audiences: &[Str]) -> Option<Key> {
        let mut context = hmac::Context::with_key(self.secret.as_ref()?);
        for part in std::iter::once(token).chain(audiences.iter().map(Str::as_str)) {
            context.update(&part.len().to_be_bytes());
            context.update(part.as_bytes());
        }
        context.sign().as_ref().try_into().ok()
    }

    pub(super) fn get(&self, key: &Option<Key>, now: Timestamp) -> Option<Authenticated> {
        let key = key.as_ref()?;
        let entries = self.entries.lock();
        let (since, authenticated) = entries.get(key)?;
        let age_seconds = now.as_second() - since.as_second();
        ((0..TOKEN_CACHE_TTL_SECONDS).contains(&age_seconds)).then(|| authenticated.clone())
    }

    pub(super) fn put(&self, key: Option<Key>, authenticated: &Authenticated, now: Timestamp) {
        let Some(key) = key else { return };
        let mut entries = self.entries.lock();
        entries.shift_remove(&key);
        if entries.len() >= TOKEN_CACHE_ENTRIES_MAX {
            // oldest first: one sweep makes room for many
            entries.drain(..TOKEN_CACHE_ENTRIES_MAX / 4);
        }
        entries.insert(key, (now, authenticated.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user;

    #[test]
    fn remembered_for_a_while_and_for_its_audiences() {
        let cache = TokenCache::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let good = Authenticated { user: user::named("jane", &[]), ..Authenticated::default() };
        let key = cache.key("t", &[Str::new("a")]);
        assert_eq!(cache.get(&key, at(100)), None);
        cache.put(key, &good, at(100));
        assert_eq!(cache.get(&key, at(109)), Some(good));
        assert_eq!(cache.get(&key, at(110)), None);
        assert_eq!(cache.get(&cache.key("t", &[Str::new("b")]), at(100)), None);
        assert_eq!(cache.get(&cache.key("ta", &[]), at(100)), None);
    }
}
