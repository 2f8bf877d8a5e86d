//! One generic store for every resource: strategy, admission, storage, subresources.
