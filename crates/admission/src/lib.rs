//! Admission: the built-in plugins, policies and webhooks, as a chain over lookups.
