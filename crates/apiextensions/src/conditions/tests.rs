use super::*;
use expect_test::expect;
use pintle_apimachinery::time::parse_time;

fn definition(plural: &str, kind: &str, short: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "names": {
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
            "shortNames": [short],
        }},
        "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    })
}

fn told(definition: &Value) -> String {
    let conditions = definition.at("status.conditions").items().iter().map(|c| {
        let text = |field: &str| c[field].str_or_empty();
        format!(
            "{}={} {}: {} @{}\n",
            text("type"),
            text("status"),
            text("reason"),
            text("message"),
            text("lastTransitionTime")
        )
    });
    format!("{}\n{}", definition.at("status.acceptedNames"), conditions.collect::<String>())
}

#[test]
fn from_names_to_established_to_gone() {
    let at = |s: &str| parse_time(s).unwrap();
    let (t1, t2) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:09Z"));
    let first = definition("widgets", "Widget", "w");
    let first = accept_names(&first, [&first], t1).unwrap();
    assert_eq!(accept_names(&first, [&first], t2), None);
    let first = establish(&first, t2).unwrap();
    assert_eq!(establish(&first, t2), None);
    expect![[r#"
        {"kind":"Widget","listKind":"WidgetList","plural":"widgets","shortNames":["w"],"singular":"widget"}
        NamesAccepted=True NoConflicts: no conflicts found @2026-01-01T00:00:00Z
        Established=True InitialNamesAccepted: the initial names have been accepted @2026-01-01T00:00:09Z
    "#]]
    .assert_eq(&told(&first));

    let second = definition("gadgets", "Widget", "w");
    let second = accept_names(&second, [&first, &second], t1).unwrap();
    expect![[r#"
        {"kind":"","plural":"gadgets"}
        NamesAccepted=False ListKindConflict: "WidgetList" is already in use @2026-01-01T00:00:00Z
        Established=False NotAccepted: not all names are accepted @2026-01-01T00:00:00Z
    "#]]
    .assert_eq(&told(&second));
    assert_eq!(establish(&second, t2), None);
    let second = accept_names(&second, [&second], t2).unwrap();
    expect![[r#"
        {"kind":"Widget","listKind":"WidgetList","plural":"gadgets","shortNames":["w"],"singular":"widget"}
        NamesAccepted=True NoConflicts: no conflicts found @2026-01-01T00:00:09Z
        Established=False Installing: the initial names have been accepted @2026-01-01T00:00:00Z
    "#]]
    .assert_eq(&told(&second));

    let gone = begin_deletion(&first, t2);
    assert!(needs_cleanup(&gone) && is_condition_true(&gone, "Terminating"));
    let gone = note_cleanup(&gone, &Cleanup::InProgress, t2);
    let gone = note_cleanup(&gone, &Cleanup::Completed, t2);
    assert!(!needs_cleanup(&gone) && !gone.has_finalizer(CLEANUP_FINALIZER));
}

#[test]
fn approval_of_protected_groups() {
    for (group, want) in
        [("k8s.io", true), ("a.k8s.io", true), ("xk8s.io", false), ("a.kubernetes.io", true), ("example.com", false)]
    {
        assert_eq!(is_protected_group(group), want, "{group}");
    }
    let with = |text: &str| json!({"metadata": {"annotations": {"api-approved.kubernetes.io": text}}});
    assert_eq!(approval_state(&json!({})).0, ApprovalState::Missing);
    assert_eq!(
        approval_state(&with("unapproved, testing")),
        (ApprovalState::Bypassed, "not approved: \"unapproved, testing\"".to_owned())
    );
    assert_eq!(approval_state(&with("https://example.com/1")).0, ApprovalState::Approved);
    assert_eq!(approval_state(&with("nonsense")).0, ApprovalState::Invalid);
}
