//! What a namespace asks of its pods: a level and a version for each mode, read from its labels.
//!
//! Follows: pod-security-admission/api/helpers.go (v0.35).

use pintle_apimachinery::Value;
use pintle_apimachinery::field::{ErrorList, FieldError, Path};
use std::fmt;

/// How strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything goes.
    #[default]
    Privileged,
    /// What is known to open the node is refused.
    Baseline,
    /// What hardening guides ask for is required.
    Restricted,
}

impl Level {
    /// The level of this name.
    ///
    /// # Errors
    /// What a name must be.
    pub fn parse(text: &str) -> Result<Level, &'static str> {
        [Level::Privileged, Level::Baseline, Level::Restricted]
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or("must be one of privileged, baseline, restricted")
    }

    /// The level's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

/// Whose idea of the levels: that of a minor version, or the newest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// The newest.
    #[default]
    Latest,
    /// That of 1.x.
    Minor(u32),
}

const VERSION_FORM: &str = r#"must be "latest" or "v1.x""#;

impl Version {
    /// The version that is written so.
    ///
    /// # Errors
    /// What a version must be.
    pub fn parse(text: &str) -> Result<Version, &'static str> {
        if text == "latest" {
            return Ok(Version::Latest);
        }
        let minor = text.strip_prefix("v1.").ok_or(VERSION_FORM)?;
        let is_number = minor.bytes().all(|b| b.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
        if !is_number {
            return Err(VERSION_FORM);
        }
        minor.parse().map(Version::Minor).map_err(|_| VERSION_FORM)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Latest => f.write_str("latest"),
            Version::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// A level as a version has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standard {
    /// How strict.
    pub level: Level,
    /// By whose idea.
    pub version: Version,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.as_str(), self.version)
    }
}

/// What a namespace asks for in each mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What pods are refused for.
    pub enforce: Standard,
    /// What is noted in the audit log.
    pub audit: Standard,
    /// What the client is warned of.
    pub warn: Standard,
}

const MODES: [&str; 3] = ["enforce", "audit", "warn"];

impl Policy {
    /// The policy that these labels ask for, with `defaults` where they ask for nothing, and what is wrong with them. A
    /// mistake in `enforce` makes it stricter, in the other modes laxer.
    pub fn of_labels(labels: &Value, defaults: &Policy) -> (Policy, ErrorList) {
        let mut policy = *defaults;
        let mut errors = ErrorList::new();
        let (mut is_enforce_level_good, mut has_warn_level, mut has_warn_version) = (false, false, false);
        for mode in MODES {
            let (key, version_key) = (label(mode), version_label(mode));
            let standard = policy.mode_mut(mode);
            if let Some(text) = labels[key.as_str()].as_str() {
                let level = Level::parse(text);
                is_enforce_level_good |= mode == "enforce" && level.is_ok();
                has_warn_level |= mode == "warn";
                standard.level = level.unwrap_or_else(|why| {
                    errors.push(bad_label(&key, text, why));
                    if mode == "enforce" { Level::Restricted } else { Level::Privileged }
                });
            }
            if let Some(text) = labels[version_key.as_str()].as_str() {
                has_warn_version |= mode == "warn";
                standard.version = Version::parse(text).unwrap_or_else(|why| {
                    errors.push(bad_label(&version_key, text, why));
                    Version::Latest
                });
            }
        }
        if is_enforce_level_good && !has_warn_level && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !has_warn_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// Whether nothing at all is asked for.
    pub fn is_fully_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|standard| standard.level == Level::Privileged)
    }

    /// Whether both come to the same: versions do not matter where everything goes.
    pub fn is_equivalent(&self, other: &Policy) -> bool {
        let is_same = |a: Standard, b: Standard| a == b || (a.level, b.level) == (Level::Privileged, Level::Privileged);
        is_same(self.enforce, other.enforce) && is_same(self.audit, other.audit) && is_same(self.warn, other.warn)
    }

    /// The modes that `labels` set to more than privileged: `enforce=restricted:latest, warn=..`.
    pub fn explicit_modes(&self, labels: &Value) -> String {
        let mut texts = Vec::new();
        for (mode, standard) in MODES.into_iter().zip([self.enforce, self.audit, self.warn]) {
            let is_set = labels.has(&label(mode)) || labels.has(&version_label(mode));
            if standard.level != Level::Privileged && is_set {
                texts.push(format!("{mode}={standard}"));
            }
        }
        texts.join(", ")
    }

    fn mode_mut(&mut self, mode: &str) -> &mut Standard {
        match mode {
            "enforce" => &mut self.enforce,
            "audit" => &mut self.audit,
            _ => &mut self.warn,
        }
    }
}

fn label(mode: &str) -> String {
    format!("pod-security.kubernetes.io/{mode}")
}

fn version_label(mode: &str) -> String {
    format!("{}-version", label(mode))
}

fn bad_label(key: &str, text: &str, why: &str) -> FieldError {
    FieldError::invalid(&Path::new("metadata").child("labels").key(key), text, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn labels_ask_for_standards() {
        let cases = [
            json!({}),
            json!({"pod-security.kubernetes.io/enforce": "baseline"}),
            json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.20"}),
            json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn-version": "v1.3"}),
            json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "privileged"}),
            json!({"pod-security.kubernetes.io/enforce": "x", "pod-security.kubernetes.io/audit": "y"}),
            json!({"pod-security.kubernetes.io/warn": "z", "pod-security.kubernetes.io/audit-version": "v1.04"}),
        ];
        let mut told = String::new();
        for labels in &cases {
            let (policy, errors) = Policy::of_labels(labels, &Policy::default());
            told += &format!("{} {} {}\n", policy.enforce, policy.audit, policy.warn);
            for error in errors {
                told += &format!("  {error}\n");
            }
        }
        expect![[r#"
            privileged:latest privileged:latest privileged:latest
            baseline:latest privileged:latest baseline:latest
            baseline:v1.20 privileged:latest baseline:v1.20
            restricted:latest privileged:latest restricted:v1.3
            restricted:latest privileged:latest privileged:latest
            restricted:latest privileged:latest privileged:latest
              metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted
              metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "y": must be one of privileged, baseline, restricted
            privileged:latest privileged:latest privileged:latest
              metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: "v1.04": must be "latest" or "v1.x"
              metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "z": must be one of privileged, baseline, restricted
        "#]]
        .assert_eq(&told);
    }
}
