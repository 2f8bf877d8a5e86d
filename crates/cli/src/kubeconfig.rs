//! `pintle kubeconfig`.

use crate::flags::KubeconfigFlags;
use anyhow::{Context, Result};
use pintle_apimachinery::env::Env;
use pintle_auth::pki::{Kubeconfig, Pki};

/// Prints the administrator's kubeconfig, or one for the user that the flags name.
pub(crate) fn print(flags: &KubeconfigFlags) -> Result<()> {
    let path = flags.data_dir.join("kubeconfig");
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!("cannot read {}: has a server run with this data directory? (--data-dir)", path.display())
    })?;
    let Some(user) = &flags.user else {
        print!("{text}");
        return Ok(());
    };
    let server = pintle_codec::yaml::parse(text.as_bytes()).map_err(anyhow::Error::msg)?.value;
    let url = server["clusters"]
        .items()
        .first()
        .map(|c| c.at("cluster.server").str_or_empty().to_owned())
        .unwrap_or_default();
    let pki = Pki::open(&flags.data_dir.join("pki"), &Env::system()).context("cannot read keys and certificates")?;
    let groups: Vec<&str> = flags.group.iter().map(String::as_str).collect();
    let client = pki.client(&format!("user-{}", file_name(user)), user, &groups)?;
    let kubeconfig = Kubeconfig { name: "pintle", server: &url, ca: &pki.ca.certificate, user, client: &client };
    print!("{}", kubeconfig.to_yaml());
    Ok(())
}

/// A user's name as part of a file's: what is neither letter nor digit becomes its number.
fn file_name(user: &str) -> String {
    let mut out = String::new();
    for c in user.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else {
            out.push_str(&format!("-{:x}-", u32::from(c)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn different_users_have_different_files() {
        assert_eq!(file_name("alice"), "alice");
        assert_eq!(file_name("system:node:a"), "system-3a-node-3a-a");
        assert_ne!(file_name("a/b"), file_name("a:b"));
    }
}
