//! What etcd answers when it does not do what it was asked for, by its texts: its status codes are shared by errors that
//! differ in what is to be done.

use pintle_storage::{Key, Revision, StorageError};
use tonic::{Code, Status};

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The revision is compacted.
    Compacted,
    /// The revision lies ahead.
    Future,
    /// The request is too large.
    TooLarge,
    /// The cluster's quota is used up.
    NoSpace(String),
    /// The lease is gone.
    NoLease,
    /// The request was not begun: it can be sent again, to another member as well.
    NotBegun(String),
    /// Nobody knows whether the request was done.
    Unknown(String),
    /// The request will never be done: etcd does not let us.
    Denied(String),
    /// The cluster's members disagree.
    Corrupt(String),
}

/// What a text means.
type Meaning = fn(String) -> Fault;

/// Texts of etcd's errors, and what they mean.
const TEXTS: &[(&str, Meaning)] = &[
    ("required revision has been compacted", |_| Fault::Compacted),
    ("required revision is a future revision", |_| Fault::Future),
    ("request is too large", |_| Fault::TooLarge),
    ("received message larger than max", |_| Fault::TooLarge),
    ("message larger than max", |_| Fault::TooLarge),
    ("database space exceeded", Fault::NoSpace),
    ("requested lease not found", |_| Fault::NoLease),
    // Said before anything is proposed.
    ("etcdserver: no leader", Fault::NotBegun),
    ("etcdserver: too many requests", Fault::NotBegun),
    ("etcdserver: not capable", Fault::NotBegun),
    ("rpc not supported for learner", Fault::NotBegun),
    ("corrupt", Fault::Corrupt),
];

impl Fault {
    pub(crate) fn of(status: &Status) -> Fault {
        let text = status.message();
        let error = std::error::Error::source(status).and_then(|source| source.downcast_ref::<hyper::Error>());
        if error.is_some_and(hyper::Error::is_canceled) {
            return Fault::NotBegun("the connection closed before the request was sent".to_owned());
        }
        if let Some((_, fault)) = TEXTS.iter().find(|(part, _)| text.contains(part)) {
            return fault(text.to_owned());
        }
        match status.code() {
            Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented => Fault::Denied(text.to_owned()),
            Code::DataLoss => Fault::Corrupt(text.to_owned()),
            code => Fault::Unknown(if text.is_empty() { code.description().to_owned() } else { text.to_owned() }),
        }
    }

    /// Whether another member may do better.
    pub(crate) fn is_of_the_member(&self) -> bool {
        match self {
            Fault::NotBegun(_) | Fault::Unknown(_) => true,
            Fault::Compacted
            | Fault::Future
            | Fault::TooLarge
            | Fault::NoSpace(_)
            | Fault::NoLease
            | Fault::Denied(_)
            | Fault::Corrupt(_) => false,
        }
    }

    /// As an error of a request about no particular revision or value.
    pub(crate) fn into_error(self) -> StorageError {
        match self {
            Fault::NoSpace(why) => StorageError::ReadOnly {
                why: format!("{why}: compact and defragment etcd, or raise its quota, then disarm its alarm"),
            },
            Fault::Corrupt(what) => StorageError::Corrupt { what: format!("etcd: {what}") },
            Fault::NotBegun(why) | Fault::Unknown(why) | Fault::Denied(why) => StorageError::Unavailable { why },
            Fault::Compacted | Fault::Future | Fault::TooLarge | Fault::NoLease => {
                StorageError::Unavailable { why: format!("etcd answers {self:?}") }
            }
        }
    }

    /// As an error of a write.
    pub(crate) fn of_write(self, key: &Key, bytes: usize, bytes_max: usize) -> StorageError {
        match self {
            Fault::TooLarge => StorageError::TooLarge { key: key.clone(), bytes, bytes_max },
            other => other.into_error(),
        }
    }

    /// As an error of a request for history. `compacted` is what is known of it.
    pub(crate) fn of_read(self, requested: Option<Revision>, compacted: Revision, current: Revision) -> StorageError {
        match (self, requested) {
            (Fault::Compacted, Some(requested)) => {
                StorageError::Expired { requested, compacted: compacted.max(requested.next()) }
            }
            (Fault::Future, Some(requested)) => StorageError::Future { requested, current },
            (other, _) => other.into_error(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_decide() {
        let of = |code, text: &str| Fault::of(&Status::new(code, text));
        assert_eq!(of(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted"), Fault::Compacted);
        assert_eq!(of(Code::OutOfRange, "etcdserver: mvcc: required revision is a future revision"), Fault::Future);
        assert_eq!(of(Code::InvalidArgument, "etcdserver: request is too large"), Fault::TooLarge);
        assert!(matches!(of(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"), Fault::NoSpace(_)));
        assert!(matches!(of(Code::ResourceExhausted, "etcdserver: too many requests"), Fault::NotBegun(_)));
        assert!(matches!(of(Code::Unavailable, "etcdserver: no leader"), Fault::NotBegun(_)));
        assert!(matches!(of(Code::Unavailable, "etcdserver: leader changed"), Fault::Unknown(_)));
        assert!(matches!(of(Code::Unavailable, "etcdserver: request timed out"), Fault::Unknown(_)));
        assert!(matches!(of(Code::Unauthenticated, "etcdserver: user name is empty"), Fault::Denied(_)));
    }
}
