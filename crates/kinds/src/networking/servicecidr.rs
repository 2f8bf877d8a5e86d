//! ServiceCIDRs and their status.

use crate::common::ip::{self, parse_cidr};
use crate::common::{At, goform};
use crate::meta::IMMUTABLE;
use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of ServiceCIDRs.
#[derive(Debug)]
pub struct ServiceCidr;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Stays, rounds: MetadataRounds::UPDATE, validate: anything_goes };

impl UpdateStrategy for ServiceCidr {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec = At::top(object, "spec");
        let (cidrs, old_cidrs) = (spec.child("cidrs"), old.at("spec.cidrs").items());
        let n_kept = match (old_cidrs.len(), cidrs.items().len()) {
            (old, new) if old == new => old,
            (1, 2) => 1,
            _ => {
                errors.push(show(&cidrs, cidrs.value(), "[]string", IMMUTABLE));
                return errors;
            }
        };
        for (cidr, old) in cidrs.each().zip(old_cidrs).take(n_kept) {
            if cidr.value() != old {
                errors.push(cidr.invalid(IMMUTABLE));
            }
        }
        if cidrs.items().len() != old_cidrs.len() {
            validate(&spec, &mut errors);
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ServiceCidr {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(&At::top(object, "spec"), &mut errors);
        errors
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

fn show(at: &At<'_>, shown: &Value, kind: &str, rule: &str) -> FieldError {
    FieldError { shown: Some(goform::compact(shown, kind)), ..at.invalid(rule) }
}

fn validate(spec: &At<'_>, errors: &mut ErrorList) {
    let cidrs = spec.child("cidrs");
    match cidrs.items().len() {
        0 => errors.push(cidrs.required("at least one CIDR required")),
        1 | 2 => {
            cidrs.each().for_each(|cidr| ip::cidr_strict(&cidr, errors));
            let families: Vec<Option<bool>> =
                cidrs.each().map(|cidr| parse_cidr(cidr.text()).map(|cidr| cidr.ip.is_ipv4())).collect();
            if let [Some(first), Some(second)] = families[..]
                && first == second
            {
                let rule = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
                errors.push(show(&cidrs, cidrs.value(), "[]string", rule));
            }
        }
        _ => errors.push(show(&cidrs, spec.value(), "networking/v1.ServiceCIDRSpec", "may only hold up to 2 values")),
    }
}
