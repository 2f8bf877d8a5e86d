//! JSON on its way in, cut into objects without parsing them.

mod list;
mod scan;
mod watch;

pub use list::ListSplitter;
pub use scan::{Members, ValueScanner, members, text_of, value_at};
pub use watch::{FRAME_BYTES_MAX, FrameType, LineSplitter, split_frame};
