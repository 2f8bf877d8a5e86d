//! The CEL expressions inside built-in objects: what they may speak of, and whether they say something.
//!
//! Follows: apiserver/pkg/admission/plugin/cel and dynamic-resource-allocation/cel (v0.35).

use super::At;
use compact_str::CompactString;
use pintle_apimachinery::{ErrorList, FieldError, Value};
use pintle_cel::check::Checked;
use pintle_cel::cost::estimate;
use pintle_cel::decl::{Decl, Keyed, Members, Shape};
use pintle_cel::env::Env;
use pintle_cel::eval::plan;
use pintle_cel::types::{Object, Type};
use std::sync::{Arc, LazyLock};

/// What an expression about a device may cost by estimate (units of the language).
pub const DEVICE_COST_MAX: u64 = 1_000_000;

/// What an expression may speak of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// Whether it is about a device (`device`) instead of a request.
    pub is_device: bool,
    /// Whether there is `params`.
    pub has_params: bool,
    /// Whether there is `authorizer`.
    pub has_authorizer: bool,
    /// The variables declared before, each with `name` and `expression`; none if there is no `variables` at all.
    pub variables: Option<&'a [Value]>,
}

/// What an expression must evaluate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A boolean.
    Bool,
    /// A string.
    Text,
    /// A string or null.
    TextOrNull,
    /// Anything.
    Any,
}

/// An expression and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Expression<'a> {
    /// What is compiled.
    pub text: &'a str,
    /// What messages show.
    pub shown: &'a str,
    /// What it must evaluate to.
    pub wanted: Wanted,
    /// What it may speak of.
    pub scope: Scope<'a>,
    /// Whether the old object held the same one: that may use what new ones may not yet.
    pub is_stored: bool,
}

/// Checks the expression at a place.
pub fn validate(at: &At<'_>, expression: &Expression<'_>, errors: &mut ErrorList) {
    let Expression { text, shown, wanted, scope, .. } = *expression;
    if scope.is_device {
        match device(text) {
            Err(why) => errors.push(at.invalid_showing(shown, why)),
            Ok(cost) if cost > DEVICE_COST_MAX => {
                errors.push(FieldError::forbidden(at.path(), "too complex, exceeds cost limit"));
            }
            Ok(_) => {}
        }
        return;
    }
    let env = match scope.variables {
        None => request_env(scope.has_params, scope.has_authorizer, None),
        Some(variables) => {
            let mut known: Vec<(CompactString, Type)> = Vec::with_capacity(variables.len());
            for variable in variables {
                let env = request_env(scope.has_params, true, Some(&known));
                let text = variable["expression"].str_or_empty();
                let of = compile(&env, text, Wanted::Any).map_or(Type::Dyn, |checked| variable_type(checked.output()));
                known.push((variable["name"].str_or_empty().into(), of));
            }
            request_env(scope.has_params, scope.has_authorizer, Some(&known))
        }
    };
    if let Err(why) = compile(&env, text, wanted) {
        errors.push(at.invalid_showing(shown, why));
    }
}

/// Reads and checks an expression.
///
/// # Errors
/// What is wrong with it, as errors of objects tell it.
pub fn compile(env: &Env, text: &str, wanted: Wanted) -> Result<Checked, String> {
    let checked = env.compile(text).map_err(|faults| format!("compilation failed: {faults}"))?;
    let of = checked.output();
    let (is_wanted, told) = match wanted {
        Wanted::Bool => (*of == Type::Bool, "bool"),
        Wanted::Text => (*of == Type::String, "string"),
        Wanted::TextOrNull => (matches!(of, Type::String | Type::Null), "one of [string null_type]"),
        Wanted::Any => (true, ""),
    };
    if is_wanted { Ok(checked) } else { Err(format!("must evaluate to {told} but got {}", type_text(of))) }
}

/// A type as these errors tell it: by the name it is declared by.
fn type_text(of: &Type) -> String {
    let params: Vec<String> = of.params().into_iter().map(type_text).collect();
    if params.is_empty() { of.name().to_owned() } else { format!("{}({})", of.name(), params.join(", ")) }
}

/// The variables of expressions about requests, in the order of [`Scope`]: `object`, `oldObject`, `namespaceObject`,
/// `request`, then if there are any `params`, `authorizer` and `authorizer.requestResource`, `variables`.
#[must_use]
pub fn request_env(has_params: bool, has_authorizer: bool, variables: Option<&[(CompactString, Type)]>) -> Env {
    let mut env = Env::new()
        .with("object", Type::Dyn)
        .with("oldObject", Type::Dyn)
        .with("namespaceObject", NAMESPACE.typed("kubernetes.Namespace"))
        .with("request", REQUEST.typed("kubernetes.AdmissionRequest"));
    if has_params {
        env = env.with("params", Type::Dyn);
    }
    if has_authorizer {
        env = env
            .with("authorizer", Type::named("kubernetes.authorization.Authorizer"))
            .with("authorizer.requestResource", Type::named("kubernetes.authorization.ResourceCheck"));
    }
    let Some(variables) = variables else { return env };
    let mut members = Members { name: Some("kubernetes.variables".into()), ..Members::default() };
    for (name, of) in variables {
        members.declared.insert(name.clone(), Arc::new(Decl::new(Shape::Library(of.clone()))));
    }
    let decl = Some(Arc::new(Decl::new(Shape::Object(members))));
    env.with("variables", Type::Object(Object { name: "kubernetes.variables".into(), decl }))
}

/// What is known of a variable when others use it: types of the libraries are forgotten.
#[must_use]
pub fn variable_type(of: &Type) -> Type {
    match of {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(of) => Type::list(variable_type(of)),
        Type::Map(key, value) => Type::map(variable_type(key), variable_type(value)),
        _ => Type::Dyn,
    }
}

fn object(name: &str, members: impl IntoIterator<Item = (&'static str, Decl)>) -> Decl {
    let mut all = Members { name: Some(name.into()), ..Members::default() };
    // these names are used as they are, even those that are words of the language
    all.declared.extend(members.into_iter().map(|(name, decl)| (name.into(), Arc::new(decl))));
    Decl::new(Shape::Object(all))
}

fn text() -> Decl {
    Decl::new(Shape::String)
}

fn list(of: Decl) -> Decl {
    Decl::new(Shape::List(Arc::new(of), Keyed::Atomic))
}

fn map(of: Decl) -> Decl {
    Decl::new(Shape::Map(Arc::new(of)))
}

fn sized(elements_max: u64, decl: Decl) -> Decl {
    Decl { elements_max, ..decl }
}

static REQUEST: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let kind = || object("kubernetes.GroupVersionKind", [("group", text()), ("version", text()), ("kind", text())]);
    let resource =
        || object("kubernetes.GroupVersionResource", [("group", text()), ("version", text()), ("resource", text())]);
    let user = object(
        "kubernetes.UserInfo",
        [("username", text()), ("uid", text()), ("groups", list(text())), ("extra", map(list(text())))],
    );
    Arc::new(object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", text()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Decl::new(Shape::Bool)),
            ("options", Decl::new(Shape::Dyn)),
        ],
    ))
});

static NAMESPACE: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let time = || Decl::new(Shape::DateTime);
    let int = || Decl::new(Shape::Int);
    let condition = object(
        "kubernetes.NamespaceCondition",
        [("status", text()), ("type", text()), ("lastTransitionTime", time()), ("message", text()), ("reason", text())],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", map(text())),
            ("annotations", map(text())),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", int()),
            ("deletionTimestamp", time()),
            ("generation", int()),
            ("resourceVersion", text()),
            ("finalizers", list(text())),
        ],
    );
    let spec = object("kubernetes.NamespaceSpec", [("finalizers", list(text()))]);
    let status = object("kubernetes.NamespaceStatus", [("conditions", list(condition)), ("phase", text())]);
    Arc::new(object("kubernetes.Namespace", [("metadata", metadata), ("spec", spec), ("status", status)]))
});

/// Attributes and capacities that a device can have, and the lengths of their parts (characters).
const DEVICE_ENTRIES_MAX: u64 = 32;
const ATTRIBUTE_LENGTH_MAX: u64 = 64;
const DOMAIN_LENGTH_MAX: u64 = 63;

static DEVICE: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let entries = |of: Decl| sized(DEVICE_ENTRIES_MAX, map(sized(DEVICE_ENTRIES_MAX, map(of))));
    let quantity = Decl::new(Shape::Library(Type::named("kubernetes.Quantity")));
    Arc::new(object(
        "kubernetes.DRADevice",
        [
            ("driver", sized(DOMAIN_LENGTH_MAX, text())),
            ("allowMultipleAllocations", sized(1, Decl::new(Shape::Bool))),
            ("attributes", entries(sized(ATTRIBUTE_LENGTH_MAX, Decl::new(Shape::Dyn)))),
            ("capacity", entries(quantity)),
        ],
    ))
});

/// Checks an expression about a device; answers what it can cost.
fn device(text: &str) -> Result<u64, String> {
    let env = Env::new().with_bind().with("device", DEVICE.typed("kubernetes.DRADevice"));
    let checked = env.compile(text).map_err(|faults| format!("compilation failed: {faults}"))?;
    let of = checked.output();
    if !matches!(of, Type::Bool | Type::Dyn) {
        return Err(format!("must evaluate to bool or the unknown type, not {}", type_text(of)));
    }
    plan(&checked).map_err(|why| format!("program instantiation failed: {why}"))?;
    let sizes = |path: &[CompactString]| {
        let (_, steps) = path.split_first()?;
        if steps.last().is_some_and(|step| step == "@keys") {
            return Some(DOMAIN_LENGTH_MAX);
        }
        steps.iter().try_fold(DEVICE.as_ref(), |decl, step| decl.part(step)).map(|decl| decl.elements_max)
    };
    Ok(estimate(&checked, &sizes).max)
}
