use super::*;
use expect_test::{Expect, expect};
use pintle_kinds::UserInfo;

fn definition(change: impl FnOnce(&mut Value)) -> Value {
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    let mut definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    change(&mut definition);
    definition
}

fn version(definition: &mut Value) -> &mut Value {
    &mut definition.make("spec.versions").items_mut()[0]
}

fn schema(definition: &mut Value) -> &mut Value {
    version(definition).make("schema.openAPIV3Schema")
}

fn with_request<T>(run: impl FnOnce(RequestInfo<'_>) -> T) -> T {
    let user = UserInfo::default();
    run(RequestInfo { namespace: "", subresource: "", user: &user, now: jiff::Timestamp::UNIX_EPOCH })
}

fn created(mut definition: Value) -> Value {
    DefinitionStrategy.set_defaults(&mut definition);
    with_request(|request| DefinitionStrategy.prepare_for_create(request, &mut definition));
    definition
}

fn told(errors: &ErrorList) -> String {
    errors.iter().map(|e| format!("{e}\n")).collect()
}

fn check(change: impl FnOnce(&mut Value), expected: Expect) {
    let definition = created(definition(change));
    let errors = with_request(|request| DefinitionStrategy.validate(request, &definition));
    expected.assert_eq(&told(&errors));
}

#[test]
fn defaults_and_status() {
    let definition = created(definition(|d| d.set("status", json!({"storedVersions": ["v9"]}))));
    assert_eq!(definition.at("spec.names.listKind").as_str(), Some("WidgetList"));
    expect![[r#"{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}"#]]
        .assert_eq(&definition["status"].to_json_string());
    expect![[r#"{"strategy":"None"}"#]].assert_eq(&definition["spec"]["conversion"].to_json_string());
}

#[test]
fn names_versions_and_their_parts() {
    check(|_| {}, expect![""]);
    check(
        |d| {
            d.make("spec").set("scope", "Global");
            d.make("spec").set("group", "nodots");
            d.make("spec.names").set("shortNames", json!(["W"]));
            d.make("spec.names").set("listKind", "Widget");
            version(d).set("storage", false);
            version(d).set("deprecationWarning", "x");
            version(d).set("additionalPrinterColumns", json!([{"name": "", "type": "thing", "jsonPath": "spec.x"}]));
            version(d).set("subresources", json!({"scale": {"specReplicasPath": ".replicas"}}));
            version(d).set(
                "selectableFields",
                json!([{"jsonPath": ".spec.a"}, {"jsonPath": ".spec"}, {"jsonPath": ".spec.a"}]),
            );
        },
        expect![[r#"
            metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group
            spec.group: Invalid value: "nodots": should be a domain with at least one dot
            spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"
            spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions
            spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":"x","Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version
            spec.names.shortNames[0]: Invalid value: "W": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same
            spec.subresources.scale.specReplicasPath: Invalid value: ".replicas": should be a json path under .spec
            spec.subresources.scale.statusReplicasPath: Required value
            spec.additionalPrinterColumns[0].name: Required value
            spec.additionalPrinterColumns[0].type: Invalid value: "thing": must be one of boolean,date,integer,number,string
            spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.x": must be a simple json path starting with .
            spec.selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.
            spec.selectableFields[2].jsonPath: Duplicate value: ".spec.a"
            status.storedVersions: Invalid value: null: must have at least one stored version
        "#]],
    );
}

#[test]
fn schemas_that_are_none() {
    check(
        |d| {
            *schema(d) = json!({"type": "object", "nullable": true, "properties": {
                "a": {"anyOf": [{"type": "string"}]},
                "b": {"type": "array"},
                "c": {"type": "string", "pattern": "("},
                "l": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
                "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
                "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}, "uniqueItems": true}
            }});
        },
        expect![[r#"
            spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root
            spec.validation.openAPIV3Schema.properties[a].anyOf[0].type: Forbidden: must be empty to be structural
            spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields
            spec.validation.openAPIV3Schema.properties[b].items: Required value: must be specified
            spec.validation.openAPIV3Schema.properties[c].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`
            spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
            spec.validation.openAPIV3Schema.properties[l].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map
            spec.validation.openAPIV3Schema.properties[s].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
            spec.validation.openAPIV3Schema.properties[s].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set
        "#]],
    );
    check(
        |d| {
            schema(d).set("properties", json!({"a": {"type": "object", "properties": {"b": {"type": "integer", "minimum": 3, "default": 1}}, "default": {"c": "d"}}}))
        },
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[a].default: Invalid value: {"c":"d"}: must not have unknown fields
            spec.validation.openAPIV3Schema.properties[a].properties[b].default: Invalid value: 1:  in body should be greater than or equal to 3
        "#]],
    );
    check(
        |d| {
            version(d).set("subresources", json!({"status": {}}));
            schema(d).set("maxProperties", 1);
        },
        expect![[r#"
            spec.validation.openAPIV3Schema: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":1,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":{"spec":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":{"a":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"string","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}},"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}},"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled
        "#]],
    );
}

#[test]
fn updates() {
    let mut old = created(definition(|_| {}));
    old.make("status").set("conditions", json!([{"type": "Established", "status": "True"}]));
    old.make("metadata").set("generation", 1);
    let mut new = old.clone();
    new.make("spec").set("scope", "Cluster");
    new.make("spec.names").set("plural", "gadgets");
    new.make("spec").set(
        "versions",
        json!([{"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]),
    );
    new.make("status").set("storedVersions", json!(["nonsense"]));
    with_request(|request| {
        DefinitionStrategy.prepare_for_update(request, &mut new, &old);
        assert_eq!(
            (new.generation(), new.at("status.storedVersions").to_json_string().as_str()),
            (2, r#"["v1","v2"]"#)
        );
        expect![[r#"
            spec.scope: Invalid value: "Cluster": field is immutable
            spec.names.plural: Invalid value: "gadgets": field is immutable
            status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions
        "#]]
        .assert_eq(&told(&DefinitionStrategy.validate_update(request, &new, &old)));
    });
}

#[test]
fn conversion_and_warnings() {
    check(
        |d| {
            d.make("spec").set("conversion", json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "", "namespace": "n", "port": 0}}, "conversionReviewVersions": ["v7", "v7"]}}))
        },
        expect![[r#"
            spec.conversion.webhookClientConfig.service.namespace: Required value
            spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive
            spec.conversion.conversionReviewVersions[1]: Invalid value: "v7": duplicate version
            spec.conversion.conversionReviewVersions: Invalid value: ["v7","v7"]: must include at least one of v1, v1beta1
        "#]],
    );
    let odd =
        created(definition(|d| schema(d).set("properties", json!({"x": {"type": "string", "format": "nonsense"}}))));
    with_request(|request| {
        assert_eq!(DefinitionStrategy.warnings_on_create(request, &odd), ["unrecognized format \"nonsense\""]);
        assert!(DefinitionStrategy.warnings_on_update(request, &odd, &odd).is_empty());
    });
}
