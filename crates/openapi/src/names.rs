//! How operations, tags and definitions are called.

/// `rbacAuthorization` of `rbac.authorization.k8s.io`, `core` of the core group, `shopExampleCom` of a custom one.
pub(crate) fn group_tag(group: &str) -> String {
    identifier(short(group), false)
}

/// `RbacAuthorization` of `rbac.authorization.k8s.io`.
pub(crate) fn group_word(group: &str) -> String {
    identifier(short(group), true)
}

fn short(group: &str) -> &str {
    let group = if group.is_empty() { "core" } else { group };
    group.strip_suffix(".k8s.io").unwrap_or(group)
}

/// The text without what no identifier has; the letter behind such becomes a capital.
fn identifier(text: &str, is_capital: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_capital = is_capital;
    for (at, c) in text.char_indices() {
        if !(c.is_alphabetic() || c == '_' || (at > 0 && c.is_numeric())) {
            is_capital = true;
        } else if std::mem::take(&mut is_capital) {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    }
    out
}

/// The word with a capital at its beginning.
pub(crate) fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// ` a Pod`, ` an Ingress`, ` Endpoints`.
pub(crate) fn with_article(kind: &str) -> String {
    let is_plural = kind.ends_with('s') && !kind.ends_with("ss");
    match kind.chars().next() {
        _ if is_plural => format!(" {kind}"),
        Some('a' | 'e' | 'i' | 'o' | 'u' | 'A' | 'E' | 'I' | 'O' | 'U') => format!(" an {kind}"),
        _ => format!(" a {kind}"),
    }
}

/// The definition of a custom kind: `com.example.shop.v1.Widget`.
pub(crate) fn custom_definition(group: &str, version: &str, kind: &str) -> String {
    let parts: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// The definition of a kind of `meta.k8s.io`.
pub(crate) fn meta(kind: &str) -> String {
    format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_articles() {
        assert_eq!(group_tag("flowcontrol.apiserver.k8s.io"), "flowcontrolApiserver");
        assert_eq!(group_word("shop.example.com"), "ShopExampleCom");
        assert_eq!((group_tag(""), group_word("")), ("core".to_owned(), "Core".to_owned()));
        let kinds = ["Pod", "Ingress", "Endpoints", "IngressClass"].map(with_article);
        assert_eq!(kinds, [" a Pod", " an Ingress", " Endpoints", " an IngressClass"]);
    }
}
