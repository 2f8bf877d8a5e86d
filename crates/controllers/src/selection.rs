//! Which controllers run: the `--controllers` flag.

use crate::start::names;

/// The `--controllers` list: `*` is every controller that is on by default, `foo` turns one on, `-foo` turns one off.
/// The first item that speaks of a controller counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSelection {
    items: Vec<String>,
}

/// A name in the list that is no controller's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not in the list of known controllers")]
pub struct UnknownController(pub String);

impl Default for ControllerSelection {
    fn default() -> ControllerSelection {
        ControllerSelection { items: vec!["*".to_owned()] }
    }
}

impl ControllerSelection {
    /// Reads `*,-foo,bar`.
    ///
    /// # Errors
    /// [`UnknownController`].
    pub fn parse(text: &str) -> Result<ControllerSelection, UnknownController> {
        let items: Vec<String> = text.split(',').map(|item| item.trim().to_owned()).filter(|i| !i.is_empty()).collect();
        let is_known = |item: &&String| {
            let name = item.strip_prefix('-').unwrap_or(item);
            name == "*" || names().any(|known| known == name)
        };
        match items.iter().find(|item| !is_known(item)) {
            Some(unknown) => Err(UnknownController(unknown.trim_start_matches('-').to_owned())),
            None => Ok(ControllerSelection { items }),
        }
    }

    /// Whether the controller of this name runs.
    pub fn has(&self, name: &str) -> bool {
        let mut has_star = false;
        for item in &self.items {
            match item.strip_prefix('-') {
                _ if item == name => return true,
                Some(off) if off == name => return false,
                _ => has_star |= item == "*",
            }
        }
        has_star
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_names_and_exceptions() {
        let selection = ControllerSelection::parse("*,-garbage-collector-controller").unwrap();
        assert!(selection.has("deployment-controller") && !selection.has("garbage-collector-controller"));
        let selection = ControllerSelection::parse("deployment-controller").unwrap();
        assert!(selection.has("deployment-controller") && !selection.has("namespace-controller"));
        let error = ControllerSelection::parse("*,-nope").unwrap_err();
        assert_eq!(error.to_string(), r#""nope" is not in the list of known controllers"#);
    }
}
