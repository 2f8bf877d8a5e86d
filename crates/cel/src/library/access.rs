//! Questions of permission.

use crate::authz::{Authz, Question};
use crate::eval::value::Library;
use crate::eval::{Eval, Failure, Native, Val};
use pintle_apimachinery::names;

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "path" => path,
        "group" => group,
        "serviceAccount" => service_account,
        "resource" => resource,
        "subresource" => |args| detail(args, |question, text| question.resource.subresource = text),
        "namespace" => |args| detail(args, |question, text| question.resource.namespace = text),
        "name" => |args| detail(args, |question, text| question.resource.name = text),
        "fieldSelector" => |args| detail(args, |question, text| question.resource.field_selector = text),
        "labelSelector" => |args| detail(args, |question, text| question.resource.label_selector = text),
        "check" => check,
        "allowed" => |args| decision(args).map(|answer| Val::Bool(answer.is_allowed)),
        "errored" => |args| decision(args).map(|answer| Val::Bool(answer.error.is_some())),
        "error" => |args| decision(args).map(|answer| Val::text(answer.error.clone().unwrap_or_default())),
        "reason" => |args| decision(args).map(|answer| Val::text(answer.reason.as_str())),
        _ => return None,
    })
}

fn of<'v, 'a>(value: &'a Val<'v>) -> Eval<&'a Authz<'v>> {
    match value {
        Val::Library(library) => match library.as_ref() {
            Library::Authz(authz) => Ok(authz),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn made<'v>(authz: Authz<'v>) -> Val<'v> {
    Val::library(Library::Authz(authz))
}

/// The first argument, and the text that is the second.
fn with_text<'v, 'a>(args: &'a [Val<'v>]) -> Eval<(&'a Authz<'v>, &'a str)> {
    match args {
        [value, Val::String(text)] => Ok((of(value)?, text.as_str())),
        _ => Err(Failure::NoOverload),
    }
}

fn path<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (Authz::Authorizer(authorizer, account), path) = with_text(args)? else { return Err(Failure::NoOverload) };
    if path.trim().is_empty() {
        return Err(Failure::text("path must not be empty"));
    }
    let question = Question { service_account: account.clone(), path: Some(path.to_owned()), ..Question::default() };
    Ok(made(Authz::Path(*authorizer, question)))
}

fn group<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (Authz::Authorizer(authorizer, account), group) = with_text(args)? else { return Err(Failure::NoOverload) };
    let mut question = Question { service_account: account.clone(), ..Question::default() };
    group.clone_into(&mut question.resource.group);
    Ok(made(Authz::Group(*authorizer, question)))
}

fn service_account<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let [value, Val::String(namespace), Val::String(name)] = args else { return Err(Failure::NoOverload) };
    let Authz::Authorizer(authorizer, _) = of(value)? else { return Err(Failure::NoOverload) };
    if !names::dns1123_subdomain(name.as_str()).is_empty() {
        return Err(Failure::text("Invalid service account name"));
    }
    if !names::dns1123_label(namespace.as_str()).is_empty() {
        return Err(Failure::text("Invalid service account namespace"));
    }
    let account = (namespace.as_str().to_owned(), name.as_str().to_owned());
    Ok(made(Authz::Authorizer(*authorizer, Some(account))))
}

fn resource<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (Authz::Group(authorizer, question), resource) = with_text(args)? else { return Err(Failure::NoOverload) };
    if resource.trim().is_empty() {
        return Err(Failure::text("resource must not be empty"));
    }
    let mut question = question.clone();
    resource.clone_into(&mut question.resource.resource);
    Ok(made(Authz::Resource(*authorizer, question)))
}

fn detail<'v>(args: &[Val<'v>], set: impl FnOnce(&mut Question, String)) -> Eval<Val<'v>> {
    let (Authz::Resource(authorizer, question), text) = with_text(args)? else { return Err(Failure::NoOverload) };
    let mut question = question.clone();
    set(&mut question, text.to_owned());
    Ok(made(Authz::Resource(*authorizer, question)))
}

fn check<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (Authz::Resource(authorizer, question) | Authz::Path(authorizer, question), verb) = with_text(args)? else {
        return Err(Failure::NoOverload);
    };
    let question = Question { verb: verb.to_owned(), ..question.clone() };
    Ok(made(Authz::Decision(authorizer.authorize(&question))))
}

fn decision<'v, 'a>(args: &'a [Val<'v>]) -> Eval<&'a crate::authz::Answer> {
    match args {
        [value] => match of(value)? {
            Authz::Decision(answer) => Ok(answer),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}
