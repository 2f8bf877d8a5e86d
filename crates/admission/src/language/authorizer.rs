//! The authorizer as expressions ask it.

use crate::attributes::Attributes;
use crate::matching::namespace_of;
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::labels::Selector;
use pintle_auth::authz::{self, Authorizer};
use pintle_auth::user;
use pintle_cel::authz::{Answer, Authz, Question, Resource};
use pintle_cel::eval::Val;
use pintle_cel::eval::value::Library;
use pintle_kinds::UserInfo;

/// Asks for the one who makes the request.
#[derive(Debug)]
pub(super) struct Asker<'a> {
    pub(super) authorizer: &'a dyn Authorizer,
    pub(super) attributes: &'a Attributes<'a>,
}

impl Asker<'_> {
    /// The value of `authorizer`.
    pub(super) fn value<'v>(&'v self) -> Val<'v> {
        Val::library(Library::Authz(Authz::Authorizer(self, None)))
    }

    /// The value of `authorizer.requestResource`.
    pub(super) fn resource<'v>(&'v self) -> Val<'v> {
        let Attributes { resource, subresource, name, .. } = *self.attributes;
        let resource = Resource {
            group: resource.group.to_string(),
            resource: resource.resource.to_string(),
            subresource: subresource.to_owned(),
            namespace: namespace_of(self.attributes).to_owned(),
            name: name.to_owned(),
            ..Resource::default()
        };
        let question = Question { resource, ..Question::default() };
        Val::library(Library::Authz(Authz::Resource(self, question)))
    }

    fn ask(&self, user: &UserInfo, question: &Question) -> Answer {
        let Question { verb, path, resource, .. } = question;
        let verdict = match path {
            Some(path) => self.authorizer.authorize(&authz::Attributes::path(user, verb, path)),
            None => {
                let fields = Some(&resource.field_selector).filter(|text| !text.is_empty());
                let labels = Some(&resource.label_selector).filter(|text| !text.is_empty());
                let fields = fields.and_then(|text| FieldSelector::parse(text).ok());
                let labels = labels.and_then(|text| Selector::parse(text).ok());
                let asked = authz::Attributes::resource(user, verb, &resource.group, &resource.resource)
                    .at(&resource.namespace, &resource.name)
                    .with_subresource(&resource.subresource);
                self.authorizer.authorize(&authz::Attributes {
                    field_selector: fields.as_ref(),
                    label_selector: labels.as_ref(),
                    ..asked
                })
            }
        };
        let is_allowed = verdict.is_allowed();
        Answer { is_allowed, reason: verdict.reason, error: Some(verdict.error).filter(|error| !error.is_empty()) }
    }
}

impl pintle_cel::authz::Authorizer for Asker<'_> {
    fn authorize(&self, question: &Question) -> Answer {
        match &question.service_account {
            None => self.ask(self.attributes.user, question),
            Some((namespace, name)) => {
                let account = UserInfo {
                    name: user::service_account_name(namespace, name),
                    groups: user::service_account_groups(namespace),
                    ..UserInfo::default()
                };
                self.ask(&account, question)
            }
        }
    }
}
