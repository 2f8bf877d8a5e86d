//! What expressions can speak of: their variables and the object types they can name; and the way from a text to
//! something that can run.

use crate::ast::Ast;
use crate::check::{self, Checked};
use crate::parser::parse_with;
use crate::source::{Faults, Source};
use crate::types::{Object, Type};
use compact_str::CompactString;
use std::sync::Arc;

/// The variables that expressions can use, and the object types they can make.
#[derive(Debug, Clone, Default)]
pub struct Env {
    variables: Vec<(CompactString, Type)>,
    objects: Vec<Object>,
    has_bind: bool,
}

impl Env {
    /// An environment with the functions of the language and of the Kubernetes libraries, and no variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable. Values are given in the order of declaration when an expression runs.
    #[must_use]
    pub fn with(mut self, name: &str, of: Type) -> Self {
        self.variables.push((name.into(), of));
        self
    }

    /// Lets expressions give names to values with `cel.bind`.
    #[must_use]
    pub const fn with_bind(mut self) -> Self {
        self.has_bind = true;
        self
    }

    /// Declares an object type that expressions can make.
    #[must_use]
    pub fn with_object(mut self, object: Object) -> Self {
        self.objects.push(object);
        self
    }

    /// The type of a variable, and its place among the variables.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(usize, &Type)> {
        self.variables.iter().enumerate().rev().find(|(_, (known, _))| known == name).map(|(at, (_, of))| (at, of))
    }

    /// An object type by its name.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<&Object> {
        self.objects.iter().find(|object| object.name == name)
    }

    /// Reads and checks an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(&self, text: &str) -> Result<Checked, Faults> {
        if nesting(text) <= NESTING_PLAIN_MAX {
            return self.compile_here(text);
        }
        // Reading goes as deep as the text nests; threads that serve requests have little room for that.
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, || self.compile_here(text)) {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|_| Err(Faults::whole(text, "the expression cannot be read")))
                }
                Err(_) => Err(Faults::whole(text, "the expression nests too deep to be read now")),
            }
        })
    }

    fn compile_here(&self, text: &str) -> Result<Checked, Faults> {
        let source = Source::new(text);
        let Ast { root, offsets } = parse_with(&source, self.has_bind)?;
        check::check(self, source, root, offsets)
    }
}

/// How deep a text may nest to be read where it is; deeper ones are read in a thread of their own.
const NESTING_PLAIN_MAX: usize = 40;

/// The stack of a thread that reads a deep text. The parser's own limit of depth needs a tenth of it.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// How deep a text nests at most.
fn nesting(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b'(' | b'[' | b'{' | b'?')).count()
}

/// What a name that is no variable stands for: a type.
#[must_use]
pub fn type_named(name: &str) -> Option<Type> {
    let of = match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "google.protobuf.Duration" => Type::Duration,
        "int" => Type::Int,
        "list" => Type::list(Type::Param("A".into())),
        "map" => Type::map(Type::Param("A".into()), Type::Param("B".into())),
        "null_type" => Type::Null,
        "string" => Type::String,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "type" => Type::Meta(None),
        "uint" => Type::Uint,
        "net.IP" | "net.CIDR" | "optional_type" => Type::Opaque(name.into(), Arc::from([])),
        _ => return None,
    };
    Some(Type::Meta(Some(Arc::new(of))))
}
