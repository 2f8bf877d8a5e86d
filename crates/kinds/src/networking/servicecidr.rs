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

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "spec": {"cidrs": ["10.0.0.0/24"]}
        });
        let cidrs = |cidrs: pintle_apimachinery::Value| json!({"spec": {"cidrs": cidrs}});
        let of = "networking.k8s.io/v1/servicecidrs";
        let out = creates(
            of,
            &base,
            &[
                cidrs(json!([])),
                cidrs(json!(["10.0.0.0/24", "10.0.1.0/24", "::/64"])),
                cidrs(json!(["10.0.0.0/24", "10.0.1.0/24"])),
                cidrs(json!(["10.0.0.1/24"])),
                cidrs(json!(["x", "2001:DB8::/64"])),
            ],
        );
        expect![[r#"
            {"spec":{"cidrs":[]}}
                spec.cidrs: Required value: at least one CIDR required
            {"spec":{"cidrs":["10.0.0.0/24","10.0.1.0/24","::/64"]}}
                spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","10.0.1.0/24","::/64"]}: may only hold up to 2 values
            {"spec":{"cidrs":["10.0.0.0/24","10.0.1.0/24"]}}
                spec.cidrs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64
            {"spec":{"cidrs":["10.0.0.1/24"]}}
                spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length
            {"spec":{"cidrs":["x","2001:DB8::/64"]}}
                spec.cidrs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
                spec.cidrs[1]: Invalid value: "2001:DB8::/64": must be in canonical form ("2001:db8::/64")
        "#]].assert_eq(&out);
        let variants = [cidrs(json!(["10.0.1.0/24"])), cidrs(json!(["10.0.0.0/24", "fd00::/64"]))];
        expect![[r#"
            {"spec":{"cidrs":["10.0.1.0/24"]}}
                spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable
            {"spec":{"cidrs":["10.0.0.0/24","fd00::/64"]}}
        "#]]
        .assert_eq(&updates(of, "", &base, &variants));
    }
}
