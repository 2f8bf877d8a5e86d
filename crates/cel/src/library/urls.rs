//! URLs.

use crate::eval::map::Map;
use crate::eval::value::Library;
use crate::eval::{Eval, Failure, Native, Val};
use crate::golang::url::{self, Url};

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "url" => |args| {
            let [Val::String(text)] = args else { return Err(Failure::NoOverload) };
            let wrong = |why| Failure::text(format!("URL parse error during conversion from string: {why}"));
            url::parse_request_uri(text.as_str()).map_err(wrong)?;
            url::parse(text.as_str()).map(|url| Val::library(Library::Url(url))).map_err(wrong)
        },
        "isURL" => |args| {
            let [Val::String(text)] = args else { return Err(Failure::NoOverload) };
            Ok(Val::Bool(url::parse_request_uri(text.as_str()).is_ok()))
        },
        "getScheme" => |args| part(args, |url| Val::text(url.scheme.as_str())),
        "getHost" => |args| part(args, |url| Val::text(url.host.as_str())),
        "getHostname" => |args| part(args, |url| Val::text(url.hostname())),
        "getPort" => |args| part(args, |url| Val::text(url.port())),
        "getEscapedPath" => |args| part(args, |url| Val::text(url.escaped_path())),
        "getQuery" => |args| part(args, query),
        _ => return None,
    })
}

fn part<'v>(args: &[Val<'v>], of: impl Fn(&Url) -> Val<'v>) -> Eval<Val<'v>> {
    match args {
        [Val::Library(library)] => match library.as_ref() {
            Library::Url(url) => Ok(of(url)),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn query<'v>(url: &Url) -> Val<'v> {
    Map::made(
        url.query()
            .into_iter()
            .map(|(key, values)| (Val::text(key), Val::list(values.into_iter().map(Val::text).collect()))),
    )
}
