//! The formats that names and other texts can be checked against.

use crate::eval::value::Library;
use crate::eval::{Failure, Native, Val};
use crate::golang::url;
use crate::strfmt;
use pintle_apimachinery::names;

/// A format.
#[derive(Debug)]
pub struct Format {
    /// What the format is called among values.
    pub name: &'static str,
    /// What expressions call it.
    key: &'static str,
    /// The length of the pattern that checking it is charged by.
    pub pattern_length: u64,
    /// What is wrong with a text.
    check: fn(&str) -> Vec<String>,
}

const FORMATS: &[Format] = &[
    Format {
        key: "dns1123Label",
        name: "DNS1123Label",
        pattern_length: 30,
        check: |s| faults(names::dns1123_label(s)),
    },
    Format {
        key: "dns1123Subdomain",
        name: "DNS1123Subdomain",
        pattern_length: 60,
        check: |s| faults(names::dns1123_subdomain(s)),
    },
    Format {
        key: "dns1035Label",
        name: "DNS1035Label",
        pattern_length: 30,
        check: |s| faults(names::dns1035_label(s)),
    },
    Format {
        key: "qualifiedName",
        name: "QualifiedName",
        pattern_length: 60,
        check: |s| faults(names::qualified_name(s)),
    },
    Format {
        key: "dns1123LabelPrefix",
        name: "DNS1123LabelPrefix",
        pattern_length: 30,
        check: |s| faults(names::dns1123_label(&names::mask_trailing_dash(s))),
    },
    Format {
        key: "dns1123SubdomainPrefix",
        name: "DNS1123SubdomainPrefix",
        pattern_length: 60,
        check: |s| faults(names::dns1123_subdomain(&names::mask_trailing_dash(s))),
    },
    Format {
        key: "dns1035LabelPrefix",
        name: "DNS1035LabelPrefix",
        pattern_length: 30,
        check: |s| faults(names::dns1035_label(&names::mask_trailing_dash(s))),
    },
    Format { key: "labelValue", name: "LabelValue", pattern_length: 40, check: |s| faults(names::label_value(s)) },
    Format {
        key: "uri",
        name: "URI",
        pattern_length: 1103,
        check: |s| url::parse_request_uri(s).err().into_iter().collect(),
    },
    Format {
        key: "uuid",
        name: "uuid",
        pattern_length: 70,
        check: |s| known("uuid", s, "does not match the UUID format"),
    },
    Format { key: "byte", name: "byte", pattern_length: 84, check: |s| known("byte", s, "invalid base64") },
    Format { key: "date", name: "date", pattern_length: 71, check: |s| known("date", s, "invalid date") },
    Format {
        key: "datetime",
        name: "datetime",
        pattern_length: 71,
        check: |s| known("datetime", s, "invalid datetime"),
    },
];

fn faults(faults: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    faults.into_iter().map(|fault| fault.to_string()).collect()
}

fn known(format: &str, text: &str, fault: &str) -> Vec<String> {
    let is_fine = strfmt::check_of(format).is_some_and(|check| check(text));
    if is_fine { Vec::new() } else { vec![fault.to_owned()] }
}

fn constant<'v>(key: &str) -> Option<Val<'v>> {
    FORMATS.iter().find(|format| format.key == key).map(|format| Val::library(Library::Format(format)))
}

/// The function of a name.
pub fn native(name: &str) -> Option<Native> {
    /// One function for each format, for functions know no more than their arguments.
    macro_rules! constants {
        ($($key:literal),*) => {
            match name.strip_prefix("format.")? {
                $($key => |_| constant($key).ok_or(Failure::NoOverload),)*
                _ => return None,
            }
        };
    }
    Some(match name {
        "format.named" => |args| {
            let [Val::String(name)] = args else { return Err(Failure::NoOverload) };
            Ok(constant(name.as_str()).map_or(Val::NONE, Val::some))
        },
        "validate" => |args| {
            let [Val::Library(library), Val::String(text)] = args else { return Err(Failure::NoOverload) };
            let Library::Format(format) = library.as_ref() else { return Err(Failure::NoOverload) };
            let faults = (format.check)(text.as_str());
            Ok(if faults.is_empty() {
                Val::NONE
            } else {
                Val::some(Val::list(faults.into_iter().map(Val::text).collect()))
            })
        },
        _ => constants!(
            "dns1123Label",
            "dns1123Subdomain",
            "dns1035Label",
            "qualifiedName",
            "dns1123LabelPrefix",
            "dns1123SubdomainPrefix",
            "dns1035LabelPrefix",
            "labelValue",
            "uri",
            "uuid",
            "byte",
            "date",
            "datetime"
        ),
    })
}
