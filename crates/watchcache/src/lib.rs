//! The watch cache: a Storage over a Storage that serves lists and watches from memory.
