//! The file `FORMAT`: that this is a store, of which version, and which one. Text, for whoever looks into the directory.

use crate::disk::{Disk, read_whole, replace_whole};
use crate::error::OpenError;
use crate::format::{SegmentName, StoreId, VERSION};
use pintle_apimachinery::env::Env;

/// The name of the file.
const FORMAT_NAME: &str = "FORMAT";

const TITLE: &str = "pintle embedded store";

/// The identity of the store in this directory; `None` when the directory is empty.
///
/// # Errors
/// `NotAStore` when it holds something else, `Format` when it has another version.
pub(crate) fn read_format(disk: &dyn Disk) -> Result<Option<StoreId>, OpenError> {
    let names = disk.list().map_err(OpenError::io("list the data directory"))?;
    if !names.iter().any(|name| name == FORMAT_NAME) {
        // A crash at the very first start may leave these behind.
        let is_ours = |name: &&String| name.ends_with(".tmp") || name.as_str() == "LOCK" || is_lost_and_found(name);
        return match names.iter().find(|name| !is_ours(name)) {
            Some(name) if SegmentName::parse(name).is_some() => {
                Err(OpenError::corrupt(format!("the file {FORMAT_NAME} is missing")))
            }
            Some(name) => Err(OpenError::NotAStore { name: name.clone() }),
            None => Ok(None),
        };
    }
    let bytes = read_whole(disk, FORMAT_NAME).map_err(OpenError::io("read FORMAT"))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(OpenError::NotAStore { name: FORMAT_NAME.to_owned() });
    }
    let found = lines.next().and_then(|line| line.strip_prefix("format ")).unwrap_or_default();
    if found != VERSION.to_string() {
        return Err(OpenError::Format { found: found.to_owned(), expected: VERSION });
    }
    let id = lines.next().and_then(|line| line.strip_prefix("id ")).and_then(parse_id);
    id.map(Some).ok_or_else(|| OpenError::corrupt(format!("the file {FORMAT_NAME} has no identity")))
}

/// What some file systems put into an empty directory of their own.
fn is_lost_and_found(name: &str) -> bool {
    name == "lost+found"
}

fn parse_id(text: &str) -> Option<StoreId> {
    u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32).map(u128::to_be_bytes)
}

/// A fresh identity.
pub(crate) fn new_id(env: &Env) -> StoreId {
    ((u128::from(env.ids.random_u64()) << 64) | u128::from(env.ids.random_u64())).to_be_bytes()
}

/// Makes the file: from now on the directory is this store.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn write_format(disk: &dyn Disk, id: StoreId) -> Result<(), OpenError> {
    let text = format!("{TITLE}\nformat {VERSION}\nid {:032x}\n", u128::from_be_bytes(id));
    replace_whole(disk, FORMAT_NAME, text.as_bytes()).map_err(OpenError::io("write FORMAT"))
}
