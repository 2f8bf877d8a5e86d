//! PodTemplates: templates on their own.
//!
//! Follows: pkg/registry/core/podtemplate (v1.35).

use super::pod::defaults::set_template_defaults;
use super::pod::{PodOptions, drop_disabled_spec_fields, template_warnings, validate_template};
use crate::common::At;
use crate::common::equality::semantic;
use crate::prepare::start_generation;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of PodTemplates.
#[derive(Debug)]
pub struct PodTemplate;

impl UpdateStrategy for PodTemplate {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        drop_disabled_spec_fields(object.make("template.spec"), old.at("template.spec"));
        if !semantic(&object["template"], &old["template"], "core/v1.PodTemplateSpec") {
            set_meta(object, "generation", old.generation() + 1);
        }
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_template(&At::top(object, "template"), &PodOptions::of_template(&old["template"]), &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        if object.generation() == old.generation() { Vec::new() } else { template_warnings(object, "template") }
    }
}

impl Strategy for PodTemplate {
    fn set_defaults(&self, object: &mut Value) {
        set_template_defaults(object.make("template"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
        drop_disabled_spec_fields(object.make("template.spec"), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_template(&At::top(object, "template"), &PodOptions::TEMPLATE, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        template_warnings(object, "template")
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
