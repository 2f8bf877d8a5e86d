//! What storage errors mean to a client: the only place where one becomes the other.

use pintle_apimachinery::{GroupResource, Status};
use pintle_storage::StorageError;

/// How a client should see a storage error about the object `name` of `resource`.
pub fn storage_status(error: &StorageError, resource: &GroupResource, name: &str) -> Box<Status> {
    Box::new(match error {
        StorageError::AlreadyExists { .. } => Status::already_exists(resource, name),
        StorageError::NotFound { .. } => Status::not_found(resource, name),
        StorageError::Conflict { .. } => Status::stale(resource, name),
        StorageError::Expired { .. } => Status::expired("The resourceVersion for the provided list is too old."),
        StorageError::Future { requested, current } => too_large_version(requested.get(), current.get()),
        StorageError::TooLarge { .. } => Status::too_large(error.to_string()),
        StorageError::ReadOnly { .. } => Status::unavailable(error.to_string()),
        StorageError::Unavailable { .. } => {
            Status::timeout(format!("request did not complete within requested timeout: {error}"), 1)
        }
        StorageError::Corrupt { .. } => Status::internal(error),
    })
}

/// 504 for a version that the store has not reached.
pub fn too_large_version(requested: u64, current: u64) -> Status {
    Status::timeout(format!("Too large resource version: {requested}, current: {current}"), 1).with_cause(
        "ResourceVersionTooLarge",
        "Too large resource version",
        "",
    )
}

/// 410 inside a watch.
pub fn expired_watch(requested: u64, oldest: u64) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}
